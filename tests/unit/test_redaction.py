import pytest

from autoinstall.redaction import redact, without_userinfo


@pytest.mark.parametrize(
    "text",
    [
        "fatal: unable to access 'https://user:s3cret@example.org/o/n/': x",
        "https://s3cret@example.org",
        "https://user:p@s3cret@example.org/n",
        "Authorization: Basic s3cret",
        "authorization = Bearer s3cret",
        '{"Authorization": "Bearer s3cret", "a": 1}',
        "curl -H 'PRIVATE-TOKEN: s3cret' x",
        "https://example.org/n?access_token=s3cret&x=1",
        "https://example.org/n?x=1&Signature=s3cret",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    masked = redact(text)
    assert "s3cret" not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "token", ["ghp_" + "a" * 36, "github_pat_" + "b" * 40, "glpat-" + "c" * 20, "sk-" + "d" * 40, "AKIA" + "E" * 16]
)
def test_tokens_of_known_shape_are_masked(token: str) -> None:
    assert redact(f"found {token} there") == "found *** there"


def test_given_secrets_are_masked_wherever_they_stand() -> None:
    assert redact("a-opensesame-b", "opensesame", "") == "a-***-b"


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/o/n@v1",
        "pip install git+https://example.org/o/n@main",
        "see https://example.org and write to a@example.org",
        "git@example.org:o/n",
        "skills sk-1 AKIA",
        "https://example.org/?tokens=3",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://user:p@example.org:8443/o/n", "https://example.org:8443/o/n"),
        ("https://token@example.org/o/n@v1", "https://example.org/o/n@v1"),
        ("https://user:p@ss@example.org/n", "https://example.org/n"),
        ("https://example.org/o/n@v1", "https://example.org/o/n@v1"),
        ("ssh://git:secret@example.org/o/n", "ssh://git@example.org/o/n"),
        ("git@example.org:o/n", "git@example.org:o/n"),
        ("/srv/a@b/n", "/srv/a@b/n"),
        ("file:///srv/a@b", "file:///srv/a@b"),
        ("https://[::1/x", "https://[::1/x"),
    ],
)
def test_user_info_is_taken_out_of_urls(url: str, clean: str) -> None:
    assert without_userinfo(url) == clean
