import random

from autoinstall.sandbox.stream import STDERR, STDOUT, BoundedOutput, Frames, UntilMarker


def frame(channel: int, payload: bytes) -> bytes:
    return bytes([channel, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


def test_frames_are_split_wherever_the_reads_end() -> None:
    text = "é€😀" * 50
    data = (
        frame(STDOUT, text.encode()[:7]) + frame(STDERR, b"") + frame(STDOUT, text.encode()[7:]) + frame(STDERR, b"e")
    )
    for seed in range(20):
        cut = sorted(random.Random(seed).choices(range(len(data)), k=9))
        frames = Frames()
        parts = [data[a:b] for a, b in zip([0, *cut], [*cut, len(data)], strict=True)]
        received = [item for part in parts for item in frames.feed(part)]
        assert b"".join(payload for channel, payload in received if channel == STDOUT).decode() == text
        assert b"".join(payload for channel, payload in received if channel == STDERR) == b"e"


def test_only_stdout_leaves_nothing_on_stderr() -> None:
    assert list(Frames().feed(frame(STDOUT, b"x"))) == [(STDOUT, b"x")]


def test_output_within_its_bounds_is_kept_whole() -> None:
    output = BoundedOutput(4, 6)
    for part in (b"ab", b"cdef", b"ghij"):
        output.add(part)
    assert (output.text(), output.dropped) == ("abcdefghij", 0)


def test_output_beyond_its_bounds_is_counted() -> None:
    output = BoundedOutput(4, 6)
    for start in range(0, 1000, 7):
        output.add(bytes(48 + index % 10 for index in range(start, min(start + 7, 1000))))
    assert output.dropped == 990
    assert output.text() == "0123\n[... 990 bytes dropped ...]\n456789"


def test_a_character_that_the_bounds_cut_is_left_out() -> None:
    output = BoundedOutput(4, 4)
    output.add("é€😀€é".encode())
    assert output.text() == f"é\n[... {output.dropped} bytes dropped ...]\né"


def test_invalid_bytes_are_replaced() -> None:
    output = BoundedOutput(10, 10)
    output.add(b"a\xffb")
    assert output.text() == "a\ufffdb"


def test_a_marker_is_found_wherever_the_reads_end() -> None:
    data = b"some abab text abcabd the rest"
    for first in range(len(data)):
        for second in range(first, len(data)):
            until = UntilMarker(b"abcabd")
            got = b"".join(until.feed(part) for part in (data[:first], data[first:second], data[second:]))
            assert got == b"some abab text "
            assert until.seen


def test_what_only_looks_like_a_marker_is_not_lost() -> None:
    until = UntilMarker(b"abcabd")
    assert until.feed(b"xx abca") + until.rest() == b"xx abca"
    assert not until.seen
