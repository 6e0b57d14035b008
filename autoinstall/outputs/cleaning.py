"""What a terminal would show of an output, and what of it stays the same from run to run."""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves
    r"|[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?"  # operating system commands: titles, hyperlinks
    r"|[ -/]*[0-~])"
)
_BACKSPACE = re.compile(r"[^\n\x08]\x08")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

# In this order: a wider pattern comes before the ones that would match a part of it.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,16}\b"), "<address>"),
    (re.compile(r"(?<![\w.])/(?:private/)?(?:var/)?tmp/[^\s'\":,;)\]>]+"), "<tmp>"),
    (
        re.compile(
            r"\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T ,]+\d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?)?"
            r"(?:\s?(?:Z|[+-]\d{2}:?\d{2}\b|UTC\b))?"
        ),
        "<date>",
    ),
    (
        re.compile(
            r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?"
            r"(?:\d{1,2}\s+(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
            r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\s+\d{1,2}),?"
            r"(?:\s+\d{4})?(?:\s+\d{1,2}:\d{2}(?::\d{2})?)?(?:\s+[A-Z]{3,4})?(?:\s+\d{4})?\b"
        ),
        "<date>",
    ),
    (re.compile(r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b"), "<time>"),
    (
        re.compile(
            r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?\s?"
            r"(?:ns|us|µs|μs|ms|msec|millis(?:econds)?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b\.?"
        ),
        "<duration>",
    ),
    (re.compile(r"(?i)\b(duration(?:_ms)?|elapsed|real|user|sys|time)(\W{1,3})\d+(?:\.\d+)?\b"), r"\1\2<duration>"),
    (re.compile(r"(?i)\b(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{2,5}\b"), r"\1:<port>"),
    (re.compile(r"(?i)\b(port)(\W{1,3})\d{2,5}\b"), r"\1\2<port>"),
    (re.compile(r"(?i)\b(pid|process(?: id)?)(\W{1,3})\d+\b"), r"\1\2<pid>"),
    (re.compile(r"([=\-_*~#.─━═])\1{3,}"), r"\1\1\1"),
    (re.compile(r"[ \t]+"), " "),
)


def clean(output: str) -> str:
    """`output` as a terminal would show it: no colours, titles or control characters, the last state of a progress
    bar that redraws itself with carriage returns, and \\n line ends."""
    text = _ESCAPES.sub("", output).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    while "\x08" in text:
        shorter = _BACKSPACE.sub("", text)
        if shorter == text:
            break
        text = shorter
    return _CONTROL.sub("", text)


def normalise(output: str) -> str:
    """`output` cleaned, with everything replaced that differs from run to run for no reason of its own: dates, times,
    durations, addresses, UUIDs, temporary paths, ports, process ids, lengths of rulers and amounts of blanks.

    Counts, versions and names stay, so that a real difference stays one.
    """
    text = clean(output)
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return "\n".join(line.strip() for line in text.split("\n") if line.strip())


def same_output(left: str, right: str) -> bool:
    """Whether two outputs say the same, up to what `normalise` takes out."""
    return normalise(left) == normalise(right)


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")
