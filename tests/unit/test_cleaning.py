import pytest

from autoinstall.outputs.cleaning import clean, normalise, same_output


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[32m✓\x1b[0m ok\x1b[K", "✓ ok"),
        ("\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink"),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        ("downloading 1/3\rdownloading 3/3\r", "downloading 3/3"),
        ("a\x08b", "b"),
        ("tab\tkept\x00\x07", "tab\tkept"),
    ],
)
def test_clean_shows_what_a_terminal_would(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("==== 3 passed in 0.12s ====", "========= 3 passed in 11.40s ========="),
        ("<object at 0x7f3a2b10>", "<object at 0x7ffd9c44aa10>"),
        ("wrote /tmp/pytest-of-root/pytest-1/x", "wrote /tmp/pytest-of-root/pytest-22/y"),
        ("2024-01-02 03:04:05,678 INFO up", "2026-11-30T00:14:39Z INFO up"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("listening on http://127.0.0.1:43121 pid 17", "listening on http://127.0.0.1:9999 pid 40012"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"),
        ("Mon Nov 30 00:14:39 UTC 2026: ok", "Tue Dec 1 10:00:00 UTC 2026: ok"),
        ("took 12 ms", "took 1.5 seconds"),
    ],
)
def test_outputs_that_vary_for_no_reason_are_the_same(left: str, right: str) -> None:
    assert same_output(left, right), (normalise(left), normalise(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("3 passed in 0.12s", "2 passed, 1 failed in 0.12s"),
        ("version 1.2.3", "version 1.2.4"),
        ("hello world", "hello there"),
        ("5 files written", "6 files written"),
        ("wrote /workspace/a", "wrote /workspace/b"),
    ],
)
def test_real_differences_stay(left: str, right: str) -> None:
    assert not same_output(left, right)
