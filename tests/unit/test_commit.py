from typing import Any
from unittest.mock import Mock

import docker.errors
import pytest
import requests

from autoinstall.errors import DiskFull, EngineUnavailable
from autoinstall.sandbox.commit import commit


def engine(**calls: Any) -> Mock:
    return Mock(spec_set=["commit", "images", "inspect_image"], **calls)


def test_a_commit_that_outlasts_the_client_is_adopted_by_its_label() -> None:
    api = engine()
    api.commit.side_effect = requests.exceptions.ReadTimeout("timed out")
    api.images.side_effect = [[], ["sha256:found"]]
    api.inspect_image.return_value = {"Id": "sha256:found", "Size": 7}
    snapshot = commit(api, "box", repository="r", tag="t", labels={}, adopt_seconds=5)
    assert (snapshot.digest, snapshot.reference, snapshot.size_bytes) == ("sha256:found", "r:t", 7)
    assert api.commit.call_count == 1
    label = api.images.call_args.kwargs["filters"]["label"].partition("=")
    assert any(f'"{label[0]}"="{label[2]}"' in change for change in api.commit.call_args.kwargs["changes"])


def test_a_commit_that_left_no_image_is_an_error() -> None:
    api = engine()
    api.commit.side_effect = requests.exceptions.ReadTimeout("timed out")
    api.images.return_value = []
    with pytest.raises(EngineUnavailable):
        commit(api, "box", repository="r", tag="t", labels={}, adopt_seconds=0)


def test_a_full_disk_is_told_apart() -> None:
    api = engine()
    response = requests.Response()
    response.status_code = 500
    api.commit.side_effect = docker.errors.APIError("failed", response, "write: no space left on device")
    with pytest.raises(DiskFull):
        commit(api, "box", repository="r", tag="t", labels={})
    api.images.assert_not_called()


def test_values_are_taken_literally() -> None:
    api = engine()
    api.commit.return_value = {"Id": "sha256:x"}
    api.inspect_image.return_value = {"Id": "sha256:x", "Size": 1}
    commit(api, "box", repository="r", tag="t", labels={}, env={"A": 'x "$HOME" \\', "B": "two\nlines", "C": "a b"})
    given = api.commit.call_args.kwargs
    assert given["conf"] == {"Env": ['A=x "$HOME" \\', "B=two\nlines"]}
    assert [change for change in given["changes"] if change.startswith("ENV ")] == ['ENV C="a b"']
