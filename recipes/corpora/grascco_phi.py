"""GraSCCo_PHI: synthetic German discharge letters with PHI, in UIMA CAS JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from recipes.corpora._common import files, parse_json

_SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
_TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"  # noqa: S105  (a type name)
_PHI = "webanno.custom.PHI"


def read(path: Path) -> Iterator[Document]:
    """One document per letter, with the corpus's own tokens and sentences.

    Labels are the kinds (NAME_PATIENT, DATE, …), and "PHI" for a span without one. Some spans begin or end inside
    a token; they stay as they are. UIMA counts UTF-16 units, which are characters as long as the text has none
    beyond U+FFFF; a letter that has one is refused.
    """
    for file in files(path, lambda entry: entry.suffix == ".json", "CAS JSON"):
        record = parse_json(file)
        try:
            yield _document(PurePosixPath(file.stem).name.removesuffix("_phi"), record)
        except (KeyError, TypeError):
            raise DataError("is not UIMA CAS JSON with one text", path=file.where) from None
        except DataError as error:
            raise error.at(file.where) from None


def _document(name: str, record: Mapping[str, Any]) -> Document:
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for item in record["%FEATURE_STRUCTURES"]:
        by_type.setdefault(item["%TYPE"], []).append(item)
    texts = [item["sofaString"] for item in by_type["uima.cas.Sofa"]]
    if len(texts) != 1:
        raise DataError(f"has {len(texts)} texts; expected one")
    if any(ord(char) > 0xFFFF for char in texts[0]):
        raise DataError("the text has a character beyond U+FFFF, so the offsets are not characters")
    return Document.make(
        texts[0],
        id=name,
        layers={"gold": [Span(item["begin"], item["end"], item.get("kind", "PHI")) for item in by_type.get(_PHI, ())]},
        tokens=sorted((item["begin"], item["end"]) for item in by_type.get(_TOKEN, ())),
        sentences=sorted((item["begin"], item["end"]) for item in by_type.get(_SENTENCE, ())),
    )
