"""XML that is safe to read and exact to write: no entities, no network, every character kept or counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from lxml import etree

from chaffinch.errors import DataError, LimitError
from chaffinch.text.formats.base import UNREADABLE, Entry, unreadable

Element = etree._Element

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOISE = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def legal(text: str) -> tuple[str, int]:
    """The text with U+FFFD for each character XML cannot hold (NUL, controls), and how many there were.

    >>> legal("a\\x00b")
    ('a\ufffdb', 1)
    """
    return _ILLEGAL.subn("\ufffd", text)


def escaped(text: str) -> str:
    """Legal text as the content of an element; a carriage return would be read as a line feed, so it is escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def cdata(text: str) -> str:
    """Legal text as a CDATA section; escaped where a section cannot hold it."""
    return escaped(text) if "\r" in text or "]]>" in text else f"<![CDATA[{text}]]>"


def attribute(text: str) -> str:
    """Legal text as an attribute's value, quotes included; line ends and tabs survive the parser's normalisation."""
    value = escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f'"{value}"'


def root_name(head: bytes) -> str:
    """The name of the root element in the head of a file, or "" if this is no XML."""
    flat = head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip()
    if not flat.startswith(b"<"):
        return ""
    found = _ROOT.search(_NOISE.sub(b"", flat))
    return found[1].decode("ascii", "replace") if found else ""


def parse(content: bytes, where: str) -> Element:
    """The root element of a whole file, parsed with everything dangerous switched off."""
    _refuse_entities(content, where)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise _broken(error, where) from None
    _refuse_declared(root, where)
    return root


def elements(file: Entry, name: str, *, root: str) -> Iterator[Element]:
    """The elements of that name below the root, one by one; each is emptied when the next one is asked for."""
    _refuse_entities(file.head(), file.where)
    try:
        with file.open() as stream:
            events = etree.iterparse(
                stream, tag=name, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
            )
            top: Element | None = None
            for _, element in events:
                if top is None:
                    top = element.getroottree().getroot()
                    _check_root(top, root, file.where)
                yield element
                _forget(element)
            if top is None:
                _check_root(events.root, root, file.where)
    except etree.XMLSyntaxError as error:
        raise _broken(error, file.where) from None
    except UNREADABLE as error:
        raise unreadable(file.where, error) from None


def _forget(element: Element) -> None:
    """Empties an element and removes what stood before it, so that a long file is never held as a whole."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def text_of(element: Element | None) -> str:
    """All text inside an element; none is ""."""
    return "" if element is None else "".join(map(str, element.itertext()))


def line_of(element: Element) -> int | None:
    """The line an element starts on."""
    return cast("int | None", element.sourceline)


def _check_root(top: Element, wanted: str, where: str) -> None:
    _refuse_declared(top, where)
    if top.tag != wanted:
        raise DataError(f"has another root element than <{wanted}>; choose its format with --from", path=where, line=1)


_REFUSED = "declares entities, which could read other files or grow without end; remove the DOCTYPE"


def _refuse_entities(head: bytes, where: str) -> None:
    """Refuses entity declarations before anything is parsed; NUL bytes are those of UTF-16."""
    flat = _NOISE.sub(b"", head.replace(b"\0", b""))
    found = _ROOT.search(flat)
    prolog = flat[: found.start()] if found else flat
    if b"<!ENTITY" in prolog:
        raise DataError(_REFUSED, path=where, line=1)


def _refuse_declared(top: Element, where: str) -> None:
    """The same after parsing, for encodings in which the declaration could hide."""
    declared: Any = top.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise DataError(_REFUSED, path=where, line=1)


def _broken(error: etree.XMLSyntaxError, where: str) -> DataError:
    """The parser's own message may quote the text, so only the kind of error and its line are told."""
    last: Any = cast(Any, error.error_log).last_error
    kind = last.type_name if last is not None else "ERR_DOCUMENT_EMPTY"
    if kind == "ERR_RESOURCE_LIMIT":
        return LimitError("an element is larger than 10 MB, more than XML is read with; split it", path=where)
    return DataError(f"is not well-formed XML ({kind}); check it with xmllint", path=where, line=error.lineno)
