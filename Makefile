# make demo   all set-up, then a night over the sample repositories in data/samples
# make test   all set-up, then lint, types and every test
# make setup  .venv with the project; engine: a container engine that answers; base: the default base image
# make help   the rest

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
DATA ?= data/datasets
CACHE ?= $(CURDIR)/.cache
PYTEST_ARGS ?=

# Where this machine goes through an intercepting proxy or company mirrors, sandboxes have to as well. Nothing of the
# host reaches a sandbox by itself, so what the host's own tools are configured with is handed on here, explicitly;
# AUTOINSTALL_PASS_THROUGH__… given from outside wins.
define hand_on
ifneq ($(strip $(2)),)
export AUTOINSTALL_PASS_THROUGH__$(1) ?= $(firstword $(2))
endif
endef
$(eval $(call hand_on,CA_BUNDLE,$(wildcard $(SSL_CERT_FILE) $(REQUESTS_CA_BUNDLE))))
$(eval $(call hand_on,HTTP_PROXY,$(http_proxy) $(HTTP_PROXY)))
$(eval $(call hand_on,HTTPS_PROXY,$(https_proxy) $(HTTPS_PROXY)))
$(eval $(call hand_on,NO_PROXY,$(no_proxy) $(NO_PROXY)))
$(eval $(call hand_on,PIP_INDEX_URL,$(PIP_INDEX_URL)))
$(eval $(call hand_on,NPM_REGISTRY,$(npm_config_registry)))

export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
# Starting Prefect's own server for the first time migrates its database, which takes long on a small machine.
export PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS ?= 300

.PHONY: help setup engine base demo up down test lint types check unit format clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(BIN)/.installed  ## .venv with the project, its tools and the autoinstall command

$(BIN)/.installed: pyproject.toml deployments/setup.sh
	@deployments/setup.sh
	@touch $@

engine: setup  ## a container engine that answers, installed where that is possible
	@PYTHON=$(BIN)/python deployments/engine.sh

base: engine  ## the default base image, built once
	@$(BIN)/python deployments/base.py >/dev/null

demo: base  ## a night over the sample repositories
	@list=$$($(BIN)/python data/make_samples.py "$(CACHE)/samples" | tail -n 1); \
	$(BIN)/autoinstall nightly --repositories "$$list" --data "$(DATA)" && \
	echo "Open one:  $(BIN)/autoinstall environments --data $(DATA), then $(BIN)/autoinstall shell ID --data $(DATA)"

up: base  ## Prefect's server, its UI and a worker on this machine, with the nightly schedule; prints the UI's address
	@$(BIN)/python deployments/local.py up

down: setup  ## stop what `make up` started
	@$(BIN)/python deployments/local.py down

lint: setup  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup  ## mypy, strict
	@$(BIN)/mypy

check: lint types  ## lint and types

unit: setup  ## the tests that need neither an engine nor Prefect's server
	@$(BIN)/pytest -m "not docker and not prefect" $(PYTEST_ARGS)

# Prefect's database of the tests is their own. Two at a time: the tests of the engine wait for it more than they work.
test: check base  ## everything: lint, types, all tests
	@mkdir -p "$(CACHE)/prefect-tests"
	@PREFECT_HOME="$(CACHE)/prefect-tests" $(BIN)/pytest -n 2 --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

format: setup  ## put the code into form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## remove .venv and caches; images and datasets stay
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache
