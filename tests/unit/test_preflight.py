"""What is told before anything is begun."""

from pathlib import Path

import pytest

from autoinstall.errors import UnusableDirectory
from autoinstall.preflight import ensure_cache
from autoinstall.settings import PassThrough


def test_a_cache_is_made(tmp_path: Path) -> None:
    ensure_cache(tmp_path / "a/b")
    assert list((tmp_path / "a/b").iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/x"])
def test_a_cache_that_cannot_be_is_told_with_its_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableDirectory, match="cache directory") as caught:
        ensure_cache(tmp_path / place)
    assert "AUTOINSTALL_CACHE" in caught.value.hint


def test_a_bundle_that_is_not_there_is_refused_before_an_engine_makes_a_directory_of_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        PassThrough(ca_bundle=tmp_path / "absent.pem")
    assert not (tmp_path / "absent.pem").exists()
