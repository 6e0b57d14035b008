"""Web pages as plain text: Markdown, which models read best, without what only decorates."""

import codecs
import contextlib
import re
from typing import NamedTuple
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

_DECORATION = [
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "form", "button", "img", "picture",
    "video", "audio", "nav", "footer", "aside",
]  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SLOW_CODECS = frozenset({"idna", "punycode"})
_ENOUGH = 200
"""Characters of a page's main part below which the whole body is taken."""


class Text(NamedTuple):
    title: str
    text: str


def plain_text(content: bytes, charset: str) -> Text:
    """Text that is not HTML; bytes that its charset does not know are replaced."""
    try:
        text = content.decode(_codec(charset) or "utf-8", "replace")
    except UnicodeError:
        text = content.decode("utf-8", "replace")
    return Text("", _tidy(text))


def html_text(content: bytes, charset: str, url: str) -> Text:
    """The main part of a page as Markdown, its links made absolute."""
    # An XML declaration says nothing that the parser needs, and makes it warn.
    content = re.sub(rb"\A\s*<\?xml[^>]{0,200}>", b"", content)
    soup = BeautifulSoup(content, "lxml", from_encoding=_codec(charset))
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    main = soup.find("main") or soup.find("article") or soup.find(role="main")
    # Whether the main part is worth it is seen before anything is taken out of it.
    part = main if isinstance(main, Tag) and len(main.get_text(strip=True)) >= _ENOUGH else soup.body or soup
    for element in part.find_all(_DECORATION):
        element.decompose()
    for link in part.find_all("a", href=True):
        _make_absolute(link, url)
    converter = MarkdownConverter(heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False)
    try:
        text = str(converter.convert_soup(part))
    except RecursionError:  # thousands of elements inside each other: no page that people made
        text = part.get_text(" ")
    return Text(title, _tidy(text))


def _make_absolute(link: Tag, url: str) -> None:
    target = ""
    with contextlib.suppress(ValueError):
        target = urljoin(url, str(link["href"]))
    if target.startswith(("http://", "https://")) and not str(link["href"]).startswith("#"):
        link["href"] = target
    else:
        del link["href"]


def _codec(charset: str) -> str | None:
    """The codec of a charset; None where Python has none, or one that a hostile text keeps busy for minutes."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name in _SLOW_CODECS:
        return None
    with contextlib.suppress(LookupError, UnicodeError):  # of those that are for other things than text
        b"a".decode(name, "replace")
        return name
    return None


def _tidy(text: str) -> str:
    lines = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
