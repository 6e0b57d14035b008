#!/usr/bin/env bash
# Makes .venv with the project and its development tools, and the launcher .venv/bin/autoinstall.
#
# PYTHON  interpreter to use, 3.11 or later (default: the newest that is found)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
complete() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
install() {
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null || say "the package lists could not be updated, going on with those here"
    apt-get install -qy --no-install-recommends "$@" </dev/null >/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if recent "$candidate" && complete "$candidate"; then echo "$candidate"; return; fi
    done
    return 1
}

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    if ! python=$(find_python); then
        if may_install; then install python3 python3-venv; fi
        python=$(PYTHON="${PYTHON:-python3 /usr/bin/python3}" find_python) || {
            say "Python 3.11 or later with its venv module is needed (Debian 12: apt-get install python3-venv)"
            exit 1
        }
    fi
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

# The checkout is where versions and hooks are asked of git.
if ! command -v git >/dev/null; then
    if may_install; then install git ca-certificates; else say "git is needed"; exit 1; fi
fi

say "installing the project and its tools"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'

# The wheel carries the domain alone, so the command is a launcher of this checkout rather than an entry point.
cat >.venv/bin/autoinstall <<LAUNCHER
#!$PWD/.venv/bin/python
from cli.main import main

if __name__ == "__main__":
    main()
LAUNCHER
chmod +x .venv/bin/autoinstall
