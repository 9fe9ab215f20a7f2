"""BioC XML: one file with a collection, read and written document by document; see `bioc` for losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from lxml import etree

from chaffinch.text.document import Document
from chaffinch.text.formats._shared.bioc import parse_record, to_record
from chaffinch.text.formats._shared.xml import Element, elements, line_of, replace_illegal, root_name, text_of
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Record, Unit, record_units

_NOT_XML = "characters XML cannot hold (written as U+FFFD)"
_NOT_XML_FIELDS = "characters of fields that XML cannot hold (written as U+FFFD)"


@dataclass(frozen=True, slots=True)
class BiocXml:
    """The BioC XML format."""

    name: str = "bioc-xml"
    about: str = "BioC XML: a collection of documents with passages, annotations and relations"
    folder: bool = False
    suffixes: tuple[str, ...] = (".xml",)
    can: ClassVar[Capabilities] = Capabilities("record")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is XML with <collection> as its root."""
        return root_name(head) == "collection"

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document of each file, read one element at a time."""
        for file in files:
            records = (
                Record(text_of(element.find("id")), line_of(element), _record(element))
                for element in elements(file, "document", root="collection")
            )
            yield from record_units(file, records, partial(parse_record, options), "document")

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write one collection, illegal characters replaced and counted as lost; return the number of documents."""
        count = 0
        with target.open("wb") as stream, etree.xmlfile(stream, encoding="UTF-8") as xml:
            xml.write_declaration()
            with xml.element("collection"):
                for name in ("source", "date", "key"):
                    xml.write(etree.Element(name))
                for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
                    text, replaced = replace_illegal(doc.text)
                    options.losses.add(_NOT_XML, replaced)
                    record = to_record(replace(doc, text=text), options, keeps=_keeps)
                    xml.write("\n", _document(record, options.losses), pretty_print=True)
        return count


def _keeps(value: object) -> bool:
    """Tell whether a value comes back from XML unchanged: a text without characters that XML cannot hold."""
    return isinstance(value, str) and not replace_illegal(value)[1]


def _record(element: Element) -> dict[str, Any]:
    """Return an XML document, passage or sentence, with those below it, as a dict of the form of BioC JSON."""
    record: dict[str, Any] = {
        "line": line_of(element),
        "infons": _infons(element),
        "annotations": [_annotation_record(child) for child in element.findall("annotation")],
        "relations": [_relation_record(child) for child in element.findall("relation")],
    }
    for name in ("id", "offset", "text"):
        if element.find(name) is not None:
            record[name] = text_of(element.find(name))
    for name in ("passage", "sentence"):
        record[name + "s"] = [_record(child) for child in element.findall(name)]
    return record


def _infons(element: Element) -> dict[str, str]:
    """Return the infons of an element: {key: text}."""
    return {infon.get("key", ""): text_of(infon) for infon in element.findall("infon")}


def _annotation_record(element: Element) -> dict[str, Any]:
    """Return an XML annotation as a dict of the form of BioC JSON."""
    return {
        "line": line_of(element),
        "id": element.get("id", ""),
        "infons": _infons(element),
        "text": text_of(element.find("text")),
        "locations": [dict(location.attrib) for location in element.findall("location")],
    }


def _relation_record(element: Element) -> dict[str, Any]:
    """Return an XML relation as a dict of the form of BioC JSON."""
    return {
        "line": line_of(element),
        "id": element.get("id", ""),
        "infons": _infons(element),
        "nodes": [dict(node.attrib) for node in element.findall("node")],
    }


def _document(record: Mapping[str, Any], losses: Losses) -> Element:
    """Return the XML element of a document's record; replace and count characters that XML cannot hold."""
    top = etree.Element("document")
    _add(top, "id", record["id"], losses)
    _add_infons(top, record, losses)
    for passage in record["passages"]:
        part = etree.SubElement(top, "passage")
        _add_infons(part, passage, losses)
        _add(part, "offset", str(passage["offset"]), losses)
        _add(part, "text", passage["text"], losses)
        for annotation in passage["annotations"]:
            tag = etree.SubElement(part, "annotation", id=annotation["id"])
            _add_infons(tag, annotation, losses)
            for location in annotation["locations"]:
                etree.SubElement(tag, "location", {key: str(value) for key, value in location.items()})
            _add(tag, "text", annotation["text"], losses)
    for relation in record["relations"]:
        tie = etree.SubElement(top, "relation", id=relation["id"])
        _add_infons(tie, relation, losses)
        for node in relation["nodes"]:
            etree.SubElement(tie, "node", refid=node["refid"], role=_legal(node["role"], losses))
    return top


def _add_infons(parent: Element, record: Mapping[str, Any], losses: Losses) -> None:
    """Add an <infon> to the parent for each infon of the record; replace and count illegal characters."""
    for key, value in record["infons"].items():
        _add(parent, "infon", value, losses).set("key", _legal(key, losses))


def _add(parent: Element, name: str, text: str, losses: Losses) -> Element:
    """Add a child element with a text, characters that XML forbids replaced and counted as losses; return it."""
    child = etree.SubElement(parent, name)
    child.text = _legal(text, losses)
    return child


def _legal(text: str, losses: Losses) -> str:
    """Return the text with the characters that XML cannot hold replaced; count them as lost."""
    kept, replaced = replace_illegal(text)
    losses.add(_NOT_XML_FIELDS, replaced)
    return kept


BIOC_XML = BiocXml()
FORMATS = (BIOC_XML,)
