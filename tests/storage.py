"""An S3-compatible storage for tests: a server process of its own, with a bucket, on this machine alone."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import boto3

from autoinstall.settings import StorageSettings

BUCKET = "datasets"


@dataclass(frozen=True)
class Storage:
    """A running server; `stop` ends it for good."""

    endpoint: str
    process: "subprocess.Popen[bytes]"

    @property
    def settings(self) -> StorageSettings:
        return StorageSettings(
            endpoint=self.endpoint, access_key="key", secret_key="secret-of-the-storage", connect_seconds=2, retries=2
        )

    def variables(self) -> dict[str, str]:
        """As other programs are told of the storage."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret-of-the-storage",
            "AWS_REGION": "us-east-1",
        }

    def keys(self, prefix: str = "") -> list[str]:
        """Names of the objects, those that only mark a folder aside."""
        pages = client(self.endpoint).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        names = [found["Key"] for page in pages for found in page.get("Contents", [])]
        return [name for name in names if not name.endswith("/")]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def storage_server(port: int | None = None, *, checks_keys: bool = False) -> Iterator[Storage]:
    """Start a server with an empty bucket.

    Args:
        checks_keys: refuse every key after the bucket is made.
    """
    port = port or _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1"} if checks_keys else dict(os.environ)
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    storage = Storage(endpoint, process)
    try:
        _until_it_answers(port)
        client(endpoint).create_bucket(Bucket=BUCKET)
        yield storage
    finally:
        storage.stop()


def client(endpoint: str):
    """A client of another make than the product's."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="key",
        aws_secret_access_key="secret-of-the-storage",
        region_name="us-east-1",
    )


def _until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
