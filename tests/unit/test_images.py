"""The catalogue, content names, and what failures of pulls and builds mean."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from autoinstall.errors import DiskFull, ImageUnavailable, RegistryRateLimited, UnusableDirectory
from autoinstall.sandbox import builder, debian_layer, images, interpreters
from autoinstall.sandbox.catalogue import Base, catalogue, packages, recipe
from autoinstall.sandbox.contract import Snapshot
from autoinstall.settings import PassThrough, Settings

BASE = Base(name="sample", suite="bookworm", image="debian:bookworm", python="3.11", interpreters=True)


class Images:
    """The engine's images, by every name they go by."""

    def __init__(self, **known: str) -> None:
        self.known = known

    def get(self, reference: str) -> Any:
        if reference not in self.known:
            raise ImageNotFound(reference)
        return SimpleNamespace(id=self.known[reference], attrs={"Size": 7})


def client(known: dict[str, str]) -> Any:
    return SimpleNamespace(images=Images(**known))


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(data=tmp_path / "data", cache=tmp_path / "cache", **given)


def test_catalogue_has_its_default_and_no_name_twice() -> None:
    names = [name for base in catalogue().bases for name in (base.name, *base.aliases)]
    assert len(names) == len(set(names))
    found = catalogue().find("default")
    assert found is not None
    assert found.suite == "bookworm"


@pytest.mark.parametrize(("minor", "suite"), [("3.9", "bullseye"), ("3.11", "bookworm"), ("3.13", "trixie")])
def test_base_by_python_version(minor: str, suite: str) -> None:
    found = catalogue().for_python(minor)
    assert found is not None
    assert found.suite == suite
    assert catalogue().find(f"python{minor}") == found


def test_unknown_names_are_not_in_the_catalogue() -> None:
    assert catalogue().find("debian:bookworm") is None
    assert catalogue().for_python("2.7") is None


def test_package_list_with_differences_and_comments() -> None:
    base = BASE.model_copy(update={"add": ("gdb",), "drop": ("git-lfs",)})
    assert packages("git git-lfs # tools\n# nothing here\ncurl\n", base) == ("curl", "gdb", "git")


def test_recipe_has_what_the_dockerfile_copies() -> None:
    files = recipe(BASE)
    copied = [line.split()[1:-1] for line in files["Dockerfile"].decode().splitlines() if line.startswith("COPY")]
    assert {name for names in copied for name in names} == set(files) - {"Dockerfile"} | {"ca.pem"}


def test_name_changes_with_the_debian_layer_and_with_the_packages() -> None:
    first = images._reference(BASE, "sha256:1")
    assert first.startswith("autoinstall/base-sample:")
    assert first == images._reference(BASE, "sha256:1")
    assert first != images._reference(BASE, "sha256:2")
    assert first != images._reference(BASE.model_copy(update={"add": ("gdb",)}), "sha256:1")


def test_base_that_is_there_is_found_by_content(tmp_path: Path) -> None:
    default = catalogue().find("default")
    assert default is not None
    reference = images._reference(default, "sha256:debian")
    engine = client({"debian:bookworm": "sha256:debian", reference: "sha256:base"})
    wanted = Snapshot(reference=reference, digest="sha256:base", size_bytes=7)
    assert images.ensure_base(engine, settings(tmp_path), None) == wanted
    assert images.present_base(engine, settings(tmp_path), "bookworm") == wanted


def test_nothing_is_made_to_find_out_what_is_present(tmp_path: Path) -> None:
    assert images.present_base(client({}), settings(tmp_path)) is None
    assert images.present_base(client({"debian:bookworm": "sha256:debian"}), settings(tmp_path)) is None


def test_image_reference_that_is_there_is_resolved_to_its_digest(tmp_path: Path) -> None:
    found = images.ensure_base(client({"example/app:1": "sha256:app"}), settings(tmp_path), "example/app:1")
    assert (found.reference, found.digest) == ("example/app:1", "sha256:app")


def test_name_that_is_no_reference_either(tmp_path: Path) -> None:
    with pytest.raises(ImageUnavailable) as caught:
        images.ensure_base(client({}), settings(tmp_path), "no such base!")
    assert "default" in caught.value.hint


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UnusableDirectory), images._once(settings(tmp_path), "default"):
        pass


@pytest.mark.parametrize(
    ("reference", "split"),
    [
        ("debian", ("debian", "latest")),
        ("debian:bookworm", ("debian", "bookworm")),
        ("localhost:5000/a/b", ("localhost:5000/a/b", "latest")),
        ("localhost:5000/a/b:c", ("localhost:5000/a/b", "c")),
        ("a/b@sha256:12", ("a/b", "sha256:12")),
    ],
)
def test_references_are_split(reference: str, split: tuple[str, str]) -> None:
    assert builder.split_reference(reference) == split


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("429 Client Error: Too Many Requests", RegistryRateLimited),
        ("500 Server Error: toomanyrequests: You have reached your pull rate limit", RegistryRateLimited),
        ("write /var/lib/x: no space left on device", DiskFull),
        ("dial tcp: lookup registry: no such host", ImageUnavailable),
        ("manifest unknown", ImageUnavailable),
    ],
)
def test_what_a_failed_pull_means(said: str, kind: type[Exception]) -> None:
    assert type(debian_layer.pull_error("debian:bookworm", said)) is kind


def test_limited_registry_is_reported_only_where_nothing_else_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(settings: Settings, reference: str) -> str:
        raise RegistryRateLimited(f"{reference}: slow down")

    def impossible(*_: object) -> str:
        raise ImageUnavailable("no mmdebstrap")

    monkeypatch.setattr(debian_layer, "pull", limited)
    monkeypatch.setattr(debian_layer, "_bootstrap", lambda *_: "sha256:made")
    assert debian_layer.ensure_debian(client({}), settings(tmp_path), BASE) == "sha256:made"
    monkeypatch.setattr(debian_layer, "_bootstrap", impossible)
    with pytest.raises(RegistryRateLimited):
        debian_layer.ensure_debian(client({}), settings(tmp_path), BASE)


def test_pull_is_tried_once_and_its_error_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulls: list[str] = []

    def pull(repository: str, **_: object) -> Any:
        pulls.append(repository)
        raise APIError("toomanyrequests: slow down")

    engine = SimpleNamespace(api=SimpleNamespace(pull=pull), close=lambda: None)
    monkeypatch.setattr(debian_layer, "connect", lambda settings, timeout: engine)
    with pytest.raises(RegistryRateLimited):
        debian_layer.pull(settings(tmp_path), "debian:bookworm")
    assert pulls == ["debian"]


def test_failed_build_carries_the_end_of_its_log_and_no_password(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="autoinstall")
    steps: list[dict[str, object]] = [
        {"stream": "Step 1/2 : FROM debian\n"},
        {"stream": "E: fetch of http://me:secret@mirror/ failed\n"},
        {"error": "The command returned a non-zero code: 100"},
    ]
    with pytest.raises(ImageUnavailable, match="fetch of http") as caught:
        builder.follow_build(iter(steps), "sample")
    assert "secret" not in str(caught.value) + caplog.text
    assert "non-zero code: 100" in caught.value.message


def test_full_disk_during_a_build() -> None:
    with pytest.raises(DiskFull):
        builder.follow_build(iter([{"error": "mkdir /x: no space left on device"}]), "sample")


def test_only_what_the_settings_give_reaches_the_build() -> None:
    assert images._network_arguments(PassThrough()) == {}
    given = images._network_arguments(PassThrough(http_proxy="http://proxy:3128", pip_index_url="https://index/simple"))
    assert given == {
        "HTTP_PROXY": "http://proxy:3128",
        "http_proxy": "http://proxy:3128",
        "PIP_INDEX_URL": "https://index/simple",
    }


def test_ca_bundle_that_is_not_there(tmp_path: Path) -> None:
    assert images._ca(PassThrough()) == b""
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    given = PassThrough(ca_bundle=bundle)
    bundle.unlink()
    with pytest.raises(ImageUnavailable, match="cannot be read"):
        images._ca(given)


def interpreter(root: Path, version: str) -> None:
    home = root / "versions" / version / "bin"
    home.mkdir(parents=True)
    (home / f"python{version.rpartition('.')[0]}").write_bytes(b"\x7fELF")


def test_newest_patch_of_each_minor_is_taken_without_the_bases_own(tmp_path: Path) -> None:
    for version in ("2.7.18", "3.9.2", "3.9.18", "3.10.13", "3.11.7"):
        interpreter(tmp_path, version)
    (tmp_path / "versions/3.12.1").mkdir()
    found = interpreters.available(settings(tmp_path, interpreters=tmp_path), BASE)
    assert [entry.home.name for entry in found] == ["3.9.18", "3.10.13"]
    assert interpreters.available(settings(tmp_path), BASE) == ()


def test_name_changes_with_the_interpreters(tmp_path: Path) -> None:
    plain = Snapshot(reference="autoinstall/base-sample:1", digest="sha256:1", size_bytes=7)
    given = settings(tmp_path, interpreters=tmp_path)
    interpreter(tmp_path, "3.9.2")
    first = interpreters.reference(BASE, plain, given)
    assert first.startswith("autoinstall/base-sample-interpreters:")
    interpreter(tmp_path, "3.10.1")
    assert interpreters.reference(BASE, plain, given) != first


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("python/3.9/bin/python3.9", True),
        ("python/3.9/bin/pytest", False),
        ("python/3.9/lib/libpython3.9.so.1.0", True),
        ("python/3.9/lib/libpython3.9.a", False),
        ("python/3.9/lib/python3.9/site-packages/requests/api.py", False),
        ("python/3.9/lib/python3.9/test/test_os.py", False),
        ("python/3.9/lib/python3.9/test/support/__init__.py", True),
        ("python/3.9/lib/python3.9/unittest/case.py", True),
        ("python/3.9/lib/python3.9/unittest/test/test_case.py", False),
    ],
)
def test_what_of_an_interpreter_is_taken(name: str, kept: bool) -> None:
    assert (interpreters._LEFT_OUT.fullmatch(name) is None) is kept
