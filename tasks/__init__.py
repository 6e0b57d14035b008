"""Prefect tasks: one file a stage, thin glue between the flows and the domain."""
