"""UIMA CAS XMI, as INCEpTION imports and exports it: a folder with one .xmi file per document.

An element per feature structure, its namespace the package of its type; the text is an attribute of `<cas:Sofa>`. The
type system, which INCEpTION puts beside it, is not needed. See `_shared.uima` for what becomes a span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from lxml import etree

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import whole_number
from chaffinch.text.formats._shared.uima import ENTITY, VIEW, Annotation, annotations_of, document_of, text_units
from chaffinch.text.formats._shared.xml import Element, attribute, parse, replace_illegal, root_name
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions, output_file, write_text
from chaffinch.text.formats.units import Unit, file_units

_XMI = "http://www.omg.org/XMI"
_CAS = "http:///uima/cas.ecore"
_COMMON = frozenset({"sofa", "begin", "end", f"{{{_XMI}}}id"})  # of every annotation, whatever its type


@dataclass(frozen=True, slots=True)
class UimaXmi:
    """The UIMA CAS XMI format."""

    name: str = "uima-xmi"
    about: str = "UIMA CAS XMI as INCEpTION imports and exports it, one file per document"
    folder: bool = True
    suffixes: tuple[str, ...] = (".xmi",)
    can: ClassVar[Capabilities] = Capabilities("file", exact=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is XML whose root is <xmi:XMI>."""
        return root_name(head) == "xmi:XMI"

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per file."""
        return file_units(files, partial(_parse, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a folder of .xmi files named by id; count losses; return how many documents; DataError: bad id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            write_text(output_file(target, doc.id, ".xmi"), _xmi(doc, options))
        return count


def _parse(options: ReadOptions, name: str, where: str, content: bytes) -> Document:
    """Return the document, with the id `name`, of a file's bytes; DataError with `where` if it is broken."""
    root = parse(content, where)
    try:
        number, text = _text(root)
        return document_of(text, _annotations(root, number, options), name, options)
    except DataError as error:
        raise error.at(where) from None


def _text(root: Element) -> tuple[str, str]:
    """Return the id (of its sofa) and the text of the first view; raise DataError if there is none."""
    sofas = root.findall(f"{{{_CAS}}}Sofa")
    chosen = next((one for one in sofas if one.get("sofaID") == VIEW), sofas[0] if sofas else None)
    text = None if chosen is None else chosen.get("sofaString")
    if chosen is None or text is None:
        raise DataError("has no text (sofaString) in its first view; export it as UIMA CAS XMI")
    return chosen.get(f"{{{_XMI}}}id", ""), text


def _annotations(root: Element, sofa: str, options: ReadOptions) -> Iterator[Annotation]:
    """Yield the annotations of the view `sofa`; count those of other views as lost; DataError for bad offsets."""
    for element in root.iterchildren(tag=etree.Element):
        if "begin" not in element.attrib or "end" not in element.attrib:
            continue  # no annotation of a stretch
        if element.get("sofa") != sofa:
            options.losses.add("annotations of other views")
            continue
        begin, end = (whole_number(element.get(key), key) for key in ("begin", "end"))
        features = {str(key): str(value) for key, value in element.attrib.items() if key not in _COMMON}
        is_relation = "Governor" in features and "Dependent" in features
        yield Annotation(_type(element), begin, end, features, is_relation)


def _type(element: Element) -> str:
    """Return the full name of an element's type: its namespace as a package, a dot, and its name."""
    name = etree.QName(element)
    package = (name.namespace or "").removeprefix("http:///").removesuffix(".ecore").replace("/", ".")
    return f"{package}.{name.localname}"


def _xmi(doc: Document, options: WriteOptions) -> str:
    """Return a document as XMI, characters that XML cannot hold replaced; count losses."""
    text, replaced = replace_illegal(doc.text)
    options.losses.add("characters XML cannot hold (written as U+FFFD)", replaced)
    package, _, name = ENTITY.rpartition(".")
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        f'<xmi:XMI xmlns:xmi="{_XMI}" xmlns:cas="{_CAS}" xmlns:tcas="http:///uima/tcas.ecore" ',
        f'xmlns:ner="http:///{package.replace(".", "/")}.ecore" xmi:version="2.0">\n<cas:NULL xmi:id="0"/>\n',
        f'<tcas:DocumentAnnotation xmi:id="2" sofa="1" begin="0" end="{text_units(text)}" language="x-unspecified"/>\n',
    ]
    members = ["2"]
    for number, one in enumerate(annotations_of(doc, options), start=3):
        features = " ".join(f"{key}={_legal(value, options.losses)}" for key, value in one.features.items())
        parts.append(f'<ner:{name} xmi:id="{number}" sofa="1" begin="{one.begin}" end="{one.end}" {features}/>\n')
        members.append(str(number))
    sofa = f'<cas:Sofa xmi:id="1" sofaNum="1" sofaID="{VIEW}" mimeType="text" sofaString={attribute(text)}/>\n'
    parts += [sofa, f'<cas:View sofa="1" members="{" ".join(members)}"/>\n</xmi:XMI>\n']
    return "".join(parts)


def _legal(value: str, losses: Losses) -> str:
    """Return a feature as an attribute in quotes, characters that XML cannot hold replaced and counted as lost."""
    kept, replaced = replace_illegal(value)
    losses.add("characters of fields that XML cannot hold (written as U+FFFD)", replaced)
    return attribute(kept)


FORMATS = (UimaXmi(),)
