"""i2b2 2014 de-identification XML and its Spanish relative MEDDOCAN: one .xml file for each record.

`<TEXT>` holds the text, `<TAGS>` one element for each identifier: `<NAME start end text TYPE="DOCTOR">`. The label of
a span is the TYPE; the element's name is the category of that TYPE and follows from a fixed table. Where a file pairs
them otherwise, the document's meta keeps `"tags": {TYPE: element name}`, and writing uses it. The ids of the tags are
numbered again; comments and other attributes are counted as losses of reading. A record named NNN-MM is of patient NNN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import ClassVar

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import check_offsets, check_quote, whole_number
from chaffinch.text.formats._shared.xml import (
    Element,
    attribute,
    cdata,
    line_of,
    parse,
    replace_illegal,
    root_name,
    text_of,
)
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions, output_file, write_text
from chaffinch.text.formats.units import Unit, file_units
from chaffinch.text.span import Span

_I2B2 = {
    "NAME": "PATIENT DOCTOR USERNAME",
    "PROFESSION": "",
    "LOCATION": "ROOM DEPARTMENT HOSPITAL ORGANIZATION STREET CITY STATE COUNTRY ZIP LOCATION-OTHER",
    "AGE": "",
    "DATE": "",
    "CONTACT": "PHONE FAX EMAIL URL IPADDR IPADDRESS",
    "ID": "SSN MEDICALRECORD HEALTHPLAN ACCOUNT LICENSE VEHICLE DEVICE BIOID IDNUM",
    "PHI": "",
    "OTHER": "",
}
_MEDDOCAN = {
    "NAME": "NOMBRE_SUJETO_ASISTENCIA NOMBRE_PERSONAL_SANITARIO",
    "PROFESSION": "PROFESION",
    "LOCATION": "TERRITORIO CALLE PAIS INSTITUCION CENTRO_SALUD",
    "AGE": "EDAD_SUJETO_ASISTENCIA",
    "DATE": "FECHAS",
    "CONTACT": "CORREO_ELECTRONICO NUMERO_TELEFONO NUMERO_FAX URL_WEB DIREC_PROT_INTERNET",
    "ID": "ID_SUJETO_ASISTENCIA ID_TITULACION_PERSONAL_SANITARIO ID_ASEGURAMIENTO ID_CONTACTO_ASISTENCIAL "
    "ID_EMPLEO_PERSONAL_SANITARIO IDENTIF_VEHICULOS_NRSERIE_PLACAS IDENTIF_DISPOSITIVOS_NRSERIE "
    "IDENTIF_BIOMETRICOS OTRO_NUMERO_IDENTIF",
    "OTHER": "SEXO_SUJETO_ASISTENCIA FAMILIARES_SUJETO_ASISTENCIA OTROS_SUJETO_ASISTENCIA",
}
_TAG_OF = {kind: tag for table in (_MEDDOCAN, _I2B2) for tag in table for kind in (tag, *table[tag].split())}
_SPANISH = re.compile(rb'TYPE="(' + "|".join(" ".join(_MEDDOCAN.values()).split()).encode() + rb')"')
_KNOWN = {"id", "start", "end", "text", "TYPE", "comment"}
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_RECORD = re.compile(r"([0-9]+)-[0-9]+")


@dataclass(frozen=True, slots=True)
class Records:
    """One of the two formats; they differ in root element, layout, and in whether file names give the patient."""

    name: str
    about: str
    root: str
    declaration: str
    indent: str
    close: str
    key: str
    first: int
    patients: bool
    folder: bool = True
    suffixes: tuple[str, ...] = (".xml",)
    can: ClassVar[Capabilities] = Capabilities("file", exact=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is XML with <TEXT> below its root, Spanish if and only if this format is MEDDOCAN."""
        root = root_name(head)
        if not root or re.search(rb"<" + re.escape(root.encode()) + rb"[^>]*>\s*<TEXT\b", head) is None:
            return False
        spanish = root == "MEDDOCAN" or (root != "deIdi2b2" and _SPANISH.search(head) is not None)
        return spanish == (self.root == "MEDDOCAN")

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per file; a document without <TAGS> has no layer."""
        return file_units(files, partial(self._parse, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a folder of .xml files named by id; count losses; return how many documents; DataError: bad id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            options.drop(doc, "soft", "relations", "given")
            options.losses.add("groups (patients)", self._group(doc.id) != doc.group)
            write_text(output_file(target, doc.id, ".xml"), self._xml(doc, options))
        return count

    def _group(self, name: str) -> str | None:
        """Return the patient NNN of a record named NNN-MM; None for other names, or if names give no patient."""
        match = _RECORD.match(PurePosixPath(name).name) if self.patients else None
        return match[1] if match else None

    def _parse(self, options: ReadOptions, name: str, where: str, content: bytes) -> Document:
        """Return the document, with the id `name`, of a file's XML; DataError with `where` if it is broken."""
        root = parse(content, where)
        try:
            return self._document(root, name, options)
        except DataError as error:
            raise error.at(where) from None

    def _document(self, root: Element, name: str, options: ReadOptions) -> Document:
        """Return a parsed record's text, with its tags as spans; DataError if it has no <TEXT>."""
        content = root.find("TEXT")
        if content is None:
            raise DataError("has no <TEXT> below its root element; is it of another format?", line=line_of(root))
        text, tags = text_of(content), root.find("TAGS")
        layers, meta = {}, {}
        if tags is not None:
            found = [_read_tag(element, text, options.losses) for element in tags if isinstance(element.tag, str)]
            layers = {options.layer: [span for _, span in found]}
            unusual = _unusual_tags(found, options.losses)
            meta = {"tags": unusual} if unusual else {}
        return Document.make(
            text,
            id=name,
            group=self._group(name),
            meta=meta,
            layers=layers,
            split=options.split,
            max_chars=options.max_chars,
        )

    def _xml(self, doc: Document, options: WriteOptions) -> str:
        """Return a document as XML with its text and tags; replace illegal characters; count losses."""
        text = _legal(doc.text, "characters XML cannot hold (written as U+FFFD)", options)
        indent = self.indent
        lines = [self.declaration, f"<{self.root}>", f"{indent}<TEXT>{cdata(text)}</TEXT>"]
        if doc.layers:
            spans = options.spans(doc)
            options.drop_from_spans(spans, "score", "source", "concept")
            tags = _tags_of_meta(doc.meta, spans, options)
            lines.append(f"{indent}<TAGS>")
            for number, span in enumerate(spans, start=self.first):
                label = _legal(span.label, "characters of labels", options)
                quote = attribute(text[span.start : span.end])
                lines.append(
                    f'{indent * 2}<{tags.get(label, "OTHER")} id="{self.key}{number}" start="{span.start}" '
                    f'end="{span.end}" text={quote} TYPE={attribute(label)} comment=""{self.close}'
                )
            lines.append(f"{indent}</TAGS>")
        else:
            options.losses.add("meta fields", len(doc.meta))
        return "\n".join([*lines, f"</{self.root}>", ""])


def _read_tag(element: Element, text: str, losses: Losses) -> tuple[str, Span]:
    """Return (element name, span) of a tag; count other attributes as lost; DataError if offsets or quote misfit."""
    try:
        start, end = whole_number(element.get("start"), "start"), whole_number(element.get("end"), "end")
        check_offsets(start, end, text)
        quote = element.get("text")
        if quote is not None:
            check_quote(quote, [text[start:end]], start, end)
    except DataError as error:
        raise DataError(error.message, line=line_of(element)) from None
    losses.add("comments of tags", bool(element.get("comment")))
    losses.add("other attributes of tags", len(set(element.attrib) - _KNOWN))
    tag = str(element.tag)
    return tag, Span(start, end, element.get("TYPE", tag))


def _unusual_tags(found: Iterable[tuple[str, Span]], losses: Losses) -> dict[str, str]:
    """Return {TYPE: element name} of tags whose element is not the usual one; count contradictions as lost."""
    first: dict[str, str] = {}
    for tag, span in found:
        losses.add("element names that differ within one TYPE", first.setdefault(span.label, tag) != tag)
    return {label: tag for label, tag in first.items() if _TAG_OF.get(label, "OTHER") != tag}


def _tags_of_meta(meta: Mapping[str, object], spans: Sequence[Span], options: WriteOptions) -> dict[str, str]:
    """Return {TYPE: element name}, updated from the meta field "tags" for labels in use; count other meta as lost."""
    stored = meta.get("tags")
    labels = {span.label for span in spans}
    unusual = {
        label: tag
        for label, tag in (stored.items() if isinstance(stored, Mapping) else ())
        if label in labels and isinstance(tag, str) and _NAME.fullmatch(tag) and _TAG_OF.get(label, "OTHER") != tag
    }
    options.losses.add("meta fields", len(meta) - (bool(stored) and unusual == stored))
    return _TAG_OF | unusual


def _legal(text: str, what: str, options: WriteOptions) -> str:
    """Return the text with the characters XML cannot hold replaced; count them as lost under the name `what`."""
    kept, replaced = replace_illegal(text)
    options.losses.add(what, replaced)
    return kept


I2B2 = Records(
    name="i2b2",
    about="i2b2 2014 de-identification XML, one file per record",
    root="deIdi2b2",
    declaration='<?xml version="1.0" encoding="UTF-8" ?>',
    indent="",
    close=" />",
    key="P",
    first=0,
    patients=True,
)
MEDDOCAN = Records(
    name="meddocan",
    about="MEDDOCAN de-identification XML (Spanish), one file per record",
    root="MEDDOCAN",
    declaration="<?xml version='1.0' encoding='UTF-8'?>",
    indent="  ",
    close="/>",
    key="T",
    first=1,
    patients=False,
)
FORMATS = (MEDDOCAN, I2B2)
