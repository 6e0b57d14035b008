import subprocess
from pathlib import Path

import pytest
from checkout_remotes import git, make_repository

from autoinstall.checkout import checkout, resolve
from autoinstall.checkout.git import Failure, classify, environment, failure_patterns
from autoinstall.checkout.urls import join, locate
from autoinstall.errors import InvalidUrl
from autoinstall.settings import CloneSettings, Settings
from autoinstall.values import RepositorySpec


def settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type,call-arg]


BAD = [
    "ext::sh -c touch% /tmp/x",
    "ext::sh",
    "fd::17",
    "--upload-pack=touch /tmp/x",
    "-oProxyCommand=x",
    "https://example.org/a\nb",
    "https://example.org/a\x00b",
    "https://example.org/a\x1b[31m",
    "https://exa mple.org/a",
    "ftp://example.org/a",
    "javascript://example.org/a",
    "data:text/plain,x y",
    "https://",
    "https:///a",
    "https://example.org",
    "https://example.org/",
    "https://example.org:99999/a",
    "https://[::1/a",
    "https://-oProxyCommand=x/a",
    "ssh://-oProxyCommand=x/a",
    "ssh://git@-x/a",
    "ssh://-oProxyCommand=x@host/a",
    "git@-host:a",
    "git@host:-a",
    "https://example.org/a?token=secret",
    "https://example.org/a#b",
    "file://server/share",
    "relative/path",
    "../up",
    "name",
]


@pytest.mark.parametrize("url", BAD)
def test_bad_urls_are_refused_before_any_process(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_process(*arguments: object, **options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", no_process)
    target = tmp_path / "out"
    with pytest.raises(InvalidUrl) as caught:
        checkout(RepositorySpec(url=url), target, settings())
    assert "secret" not in str(caught.value)
    assert not any(ord(char) < 32 for char in str(caught.value))
    assert not target.exists()
    with pytest.raises(InvalidUrl):
        resolve(RepositorySpec(url=url, ref="a" * 40), settings())


@pytest.mark.parametrize("url", ["", "  ", "\t"])
def test_an_empty_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl):
        locate(url, settings())


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/o/n",
        "http://[::1]:8080/n.git",
        "ssh://git@example.org:22/o/n.git",
        "git://example.org/n",
        "git@example.org:o/n.git",
        "[::1]:o/n",
        "file:///srv/n",
        "/srv/with space/n",
    ],
)
def test_good_urls_pass(url: str) -> None:
    assert locate(url, settings()).address == url


def test_user_info_goes_apart() -> None:
    remote = locate("https://user:p%40ss@example.org/o/n", settings())
    assert (remote.address, remote.username, remote.password) == ("https://example.org/o/n", "user", "p@ss")
    assert "p@ss" not in repr(remote)
    lone = locate("https://token@example.org/o/n", settings())
    assert (lone.username, lone.password) == ("x-access-token", "token")


def test_the_longest_credential_prefix_wins_and_ends_at_a_border() -> None:
    configured = settings(
        git_credentials={"https://example.org": "token", "https://example.org/o/": "user:other", "https://exam": "no"}
    )
    assert locate("https://example.org/o/n", configured).password == "other"
    assert locate("https://example.org/p/n", configured).username == "x-access-token"
    assert locate("https://example.org.evil/p/n", configured).password == ""
    assert locate("git@example.org:o/n", configured).password == ""


def test_the_longest_mirror_prefix_wins_and_gets_no_foreign_login() -> None:
    configured = settings(
        git_mirrors={"https://example.org/": "https://a.example/", "https://example.org/o/": "https://b.example/x/"}
    )
    assert locate("https://example.org/o/n", configured).address == "https://b.example/x/n"
    remote = locate("https://user:secret@example.org/p/n.git", configured)
    assert (remote.address, remote.password) == ("https://a.example/p/n.git", "")


@pytest.mark.parametrize("there", ["n.git", "n"])
@pytest.mark.parametrize("asked", ["n", "n.git", "n/", "n.git/"])
def test_a_local_mirror_is_found_with_and_without_suffix(there: str, asked: str, tmp_path: Path) -> None:
    git(make_repository(tmp_path / "source"), "clone", "-q", "--bare", ".", str(tmp_path / "o" / there))
    configured = settings(git_mirrors={"https://example.org/": f"file://{tmp_path}/"})
    assert locate(f"https://example.org/o/{asked}", configured).address == f"file://{tmp_path}/o/{there}"


def test_a_local_path_means_what_it_says_where_both_are_there(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "n")
    git(source, "clone", "-q", "--bare", ".", str(tmp_path / "n.git"))
    (tmp_path / "group" / "inner").mkdir(parents=True)
    git(source, "clone", "-q", "--bare", ".", str(tmp_path / "group.git"))
    for asked, found in (("n", "n"), ("n.git", "n.git"), ("group", "group.git")):
        assert locate(str(tmp_path / asked), settings()).address == str(tmp_path / found)


@pytest.mark.parametrize(
    ("base", "relative", "expected"),
    [
        ("https://h/o/n.git", "../m.git", "https://h/o/m.git"),
        ("https://user:x@h/o/n", "../../p/m", "https://h/p/m"),
        ("https://h/o/n/", "./m", "https://h/o/n/m"),
        ("git@h:o/n", "../m", "git@h:o/m"),
        ("git@h:n", "../m", "git@h:m"),
        ("https://h/o/n", "https://k/m", "https://k/m"),
    ],
)
def test_relative_urls_of_submodules(base: str, relative: str, expected: str) -> None:
    assert join(base, relative) == expected


def test_a_relative_url_cannot_climb_out_of_the_host() -> None:
    with pytest.raises(InvalidUrl):
        join("https://h/n", "../../../etc")


def test_submodules_reach_local_paths_through_mirrors_alone(tmp_path: Path) -> None:
    git(make_repository(tmp_path / "source"), "clone", "-q", "--bare", ".", str(tmp_path / "m.git"))
    configured = settings(git_mirrors={"https://h/": f"file://{tmp_path}/"})
    assert locate("https://h/m", configured, trusted=False).is_local
    for url in (f"file://{tmp_path}/m.git", str(tmp_path / "m.git")):
        with pytest.raises(InvalidUrl):
            locate(url, configured, trusted=False)


def test_git_gets_nothing_of_the_host_but_its_way_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='x'")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("GIT_SSL_CAINFO", "/ca.pem")
    given = environment(CloneSettings())
    assert given["https_proxy"] == "http://proxy:3128"
    assert given["GIT_SSL_CAINFO"] == "/ca.pem"
    assert not {"GIT_DIR", "GIT_CONFIG_PARAMETERS", "AWS_SECRET_ACCESS_KEY"} & set(given)
    assert given["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", Failure.NO_ACCESS),
        ("remote: Repository not found. fatal: repository 'https://h/n/' not found", Failure.NO_ACCESS),
        ("git@h: Permission denied (publickey). fatal: Could not read from remote repository.", Failure.NO_ACCESS),
        ("fatal: remote error: upload-pack: not our ref 0123", Failure.ABSENT),
        ("error: Server does not allow request for unadvertised object 0123", Failure.REFUSED),
        ("fatal: write error: No space left on device", Failure.DISK_FULL),
        ("error: RPC failed; curl 28 Operation too slow. Less than 1 bytes/sec", Failure.STALLED),
        ("fatal: early EOF fatal: fetch-pack: invalid index-pack output", Failure.BROKEN),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", Failure.BROKEN),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 503", Failure.BROKEN),
    ],
)
def test_what_gits_messages_mean(message: str, kind: Failure) -> None:
    assert classify(message) is kind


def test_the_table_of_failures_is_complete() -> None:
    assert {kind for kind, _ in failure_patterns()} == set(Failure) - {Failure.BROKEN}
