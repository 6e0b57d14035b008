"""Prefect flows: `flows.build_environment:build_environment` for one repository, `flows.nightly:nightly` for a list."""
