"""LocText: proteins, cell compartments and organisms of 100 abstracts, in tagtog's anndoc format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lxml import etree

from chaffinch.errors import DataError
from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats._shared.xml import parse, text_of
from chaffinch.text.formats.base import Entry
from recipes.corpora._common import files, parse_json

ENTITIES = {"e_1": "protein", "e_2": "location", "e_3": "organism"}  # e_4 (five words) is unexplained and stays e_4
RELATIONS = {"r_5": ("protein", "location"), "r_6": ("protein", "organism")}

_HTML = ".plain.html"
_JSON = ".ann.json"


def read(path: Path) -> Iterator[Document]:
    """One document per abstract that has an annotation with normalisations.

    The text is the parts of the `.plain.html` (title, the heading "Abstract", abstract) in their order, a blank
    line between two; `meta["parts"]` maps the name of a part to its [start, end]. Offsets count inside a part. An
    entity's concept is its UniProt, GO or taxonomy identifier. Relations are undirected; here the protein is the
    first argument: "protein-location" (r_5) and "protein-organism" (r_6), with roles named after the entities.
    The same abstracts without normalisations and four full texts, whose offsets do not fit their text, are left
    out.
    """
    found = files(path, lambda entry: entry.name.endswith((_HTML, _JSON)), "anndoc files (*.plain.html, *.ann.json)")
    texts = {_key(file, _HTML): file for file in found if file.name.endswith(_HTML)}
    for file in found:
        if file.name.endswith(_JSON) and "without_normalizations" not in file.name:
            if _key(file, _JSON) not in texts:
                raise DataError(f"has no {_HTML} beside it", path=file.where)
            try:
                yield _document(_key(file, _JSON), _parts(texts[_key(file, _JSON)]), parse_json(file))
            except (KeyError, TypeError, IndexError):
                raise DataError("is not an anndoc annotation", path=file.where) from None
            except DataError as error:
                raise error.at(file.where) from None


def _key(file: Entry, suffix: str) -> str:
    return PurePosixPath(file.name).name.removesuffix(suffix)


def _parts(file: Entry) -> dict[str, str]:
    """The text of every part of an anndoc page by its name, in their order."""
    found: dict[str, str] = {}
    for node in parse(file.content(), file.where).iter(etree.Element):
        name = node.get("id")
        if name is not None and etree.QName(node).localname in {"h1", "h2", "h3", "h4", "h5", "h6", "p"}:
            found[name] = text_of(node)
    return found


def _document(name: str, parts: Mapping[str, str], record: Mapping[str, Any]) -> Document:
    begins: dict[str, int] = {}
    length = 0
    for part, words in parts.items():
        begins[part] = length
        length += len(words) + 2
    spans: dict[str, Span] = {}
    for entity in record["entities"]:
        span, address = _entity(entity, parts, begins)
        spans[address] = span
    return Document.make(
        "\n\n".join(parts.values()),
        id=name,
        layers={"gold": spans.values()},
        relations=[_relation(item, spans) for item in record["relations"]],
        meta={"parts": {part: [begins[part], begins[part] + len(words)] for part, words in parts.items()}},
    )


def _entity(entity: Mapping[str, Any], parts: Mapping[str, str], begins: Mapping[str, int]) -> tuple[Span, str]:
    """The span, and the address under which relations name it: part|start,end."""
    part, (offset,) = entity["part"], entity["offsets"]
    start, end = offset["start"], offset["start"] + len(offset["text"])
    if parts[part][start:end] != offset["text"]:
        raise DataError(f"the entity at {part}|{start},{end} is not where its text is")
    concepts = [item["source"]["id"] for item in entity["normalizations"].values() if item["source"]["id"]]
    label = ENTITIES.get(entity["classId"], entity["classId"])
    span = Span(begins[part] + start, begins[part] + end, label, concept=concepts[0] if concepts else "")
    return span, f"{part}|{start},{end}"


def _relation(item: Mapping[str, Any], spans: Mapping[str, Span]) -> Relation:
    roles = RELATIONS[item["classId"]]
    by_role = {spans[address].label: spans[address] for address in item["entities"]}
    return Relation("-".join(roles), tuple(Argument(role, (by_role[role],)) for role in roles))
