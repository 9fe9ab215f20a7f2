"""Safe reading and exact writing of XML: no entities, no network, every character kept or counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from lxml import etree

from chaffinch.errors import DataError, LimitError
from chaffinch.text.formats.base import READ_ERRORS, Entry, read_error

Element = etree._Element

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOISE = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def replace_illegal(text: str) -> tuple[str, int]:
    """Replace each character XML cannot hold (NUL, controls) by U+FFFD; return the text and their number.

    >>> replace_illegal("a\\x00b")
    ('a\ufffdb', 1)
    """
    return _ILLEGAL.subn("\ufffd", text)


def escape_text(text: str) -> str:
    """Escape legal text as the content of an element, with "\\r", which would otherwise be read as a line feed."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def cdata(text: str) -> str:
    """Return legal text as a CDATA section, or escaped if a section cannot hold it ("]]>" or a carriage return)."""
    return escape_text(text) if "\r" in text or "]]>" in text else f"<![CDATA[{text}]]>"


def attribute(text: str) -> str:
    """Return legal text as an attribute's value in quotes; line ends and tabs survive the parser's normalisation."""
    value = escape_text(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f'"{value}"'


def root_name(head: bytes) -> str:
    """Return the name of the root element in the head of a file, or "" if it is not XML."""
    flat = head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip()
    if not flat.startswith(b"<"):
        return ""
    found = _ROOT.search(_NOISE.sub(b"", flat))
    return found[1].decode("ascii", "replace") if found else ""


def parse(content: bytes, where: str) -> Element:
    """Parse a file and return its root, with network, DTDs and huge trees off; DataError for entities or bad syntax."""
    _refuse_entities(content, where)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise _syntax_error(error, where) from None
    _refuse_parsed_entities(root, where)
    return root


def elements(file: Entry, name: str, *, root: str) -> Iterator[Element]:
    """Yield elements by name, each emptied before the next; DataError for a wrong root, bad syntax or entities."""
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
        raise _syntax_error(error, file.where) from None
    except READ_ERRORS as error:
        raise read_error(file.where, error) from None


def _forget(element: Element) -> None:
    """Empty an element and remove its earlier siblings, so that a long file is never held as a whole."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def text_of(element: Element | None) -> str:
    """Return all text inside an element; "" for None."""
    return "" if element is None else "".join(map(str, element.itertext()))


def line_of(element: Element) -> int | None:
    """Return the line on which an element starts; None if the parser does not know it."""
    return cast("int | None", element.sourceline)


def _check_root(top: Element, wanted: str, where: str) -> None:
    """Raise DataError if the root element is not named as `wanted`, or if entities were declared."""
    _refuse_parsed_entities(top, where)
    if top.tag != wanted:
        raise DataError(f"has another root element than <{wanted}>; name its format with --from", path=where, line=1)


_ENTITIES_MESSAGE = "declares entities, which could read other files or grow without end; remove the DOCTYPE"


def _refuse_entities(head: bytes, where: str) -> None:
    """Raise DataError if the head of a file declares entities, before parsing; NUL bytes of UTF-16 are ignored."""
    flat = _NOISE.sub(b"", head.replace(b"\0", b""))
    found = _ROOT.search(flat)
    prolog = flat[: found.start()] if found else flat
    if b"<!ENTITY" in prolog:
        raise DataError(_ENTITIES_MESSAGE, path=where, line=1)


def _refuse_parsed_entities(top: Element, where: str) -> None:
    """Raise DataError if a parsed file declared entities; encodings can hide them from the check before."""
    declared: Any = top.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise DataError(_ENTITIES_MESSAGE, path=where, line=1)


def _syntax_error(error: etree.XMLSyntaxError, where: str) -> DataError:
    """Return a DataError with the parser's kind and line only (no text), or LimitError for a huge element."""
    last: Any = cast(Any, error.error_log).last_error
    kind = last.type_name if last is not None else "ERR_DOCUMENT_EMPTY"
    if kind == "ERR_RESOURCE_LIMIT":
        return LimitError("an element is larger than 10 MB, the limit for XML; split it", path=where)
    return DataError(f"is not well-formed XML ({kind}); check it with xmllint", path=where, line=error.lineno)
