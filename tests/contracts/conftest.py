"""Where datasets can be: a directory of this machine, and a bucket of a real S3-compatible server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from autoinstall.datasets.store import Store, store_of
from tests.storage import BUCKET, Storage, storage_server


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with storage_server() as server:
        yield server


@pytest.fixture(params=["directory", "bucket"])
def empty_place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty place; for other programs too, which are told of the storage by the usual variables."""
    if request.param == "directory":
        return store_of(tmp_path / "data")
    storage: Storage = request.getfixturevalue("storage")
    for name, value in storage.variables().items():
        monkeypatch.setenv(name, value)
    return store_of(f"s3://{BUCKET}/{tmp_path.name}", storage.settings)
