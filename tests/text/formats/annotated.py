"""Documents that the formats with offsets can hold in full, and files that must be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import read
from tests.text.strategies import LABELS, TEXTS, unique

CANARY = "Quillfeather"  # is in the text of every bad file, and must not be in its error


def legal_in_xml(text: str) -> str:
    """The text without the characters XML 1.0 does not have."""
    return "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))


@st.composite
def annotated(
    draw: st.DrawFn,
    *,
    number: int = 0,
    texts: st.SearchStrategy[str] = TEXTS,
    concepts: Sequence[str] = ("",),
    related: bool = False,
    name: str = "doc-{}",
) -> Document:
    """One gold layer with overlaps, on any text, with concepts and binary relations where they are asked for."""
    text = draw(texts)
    found = []
    for _ in range(draw(st.integers(0, 4)) if text else 0):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        found.append(Span(start, end, draw(LABELS), concept=draw(st.sampled_from(concepts))))
    doc = Document.make(text, id=name.format(number), layers={"gold": unique(found)})
    if related and doc.layers["gold"]:
        pair = draw(st.lists(st.sampled_from(doc.layers["gold"]), min_size=2, max_size=2))
        arguments = tuple(Argument(role, (span,)) for role, span in zip(("Drug", "Effect"), pair, strict=True))
        doc = replace(doc, relations=(Relation("causes", arguments),))
    return doc


def refusal(folder: Path, form: str, **files: bytes | str) -> DataError:
    """The error of reading these files (`name_suffix=content`), once it is sure that it does not quote the text."""
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("_", ".")).write_bytes(raw)
    with pytest.raises(DataError) as caught:
        list(read(folder, format=form))
    assert CANARY not in str(caught.value)
    assert caught.value.path is not None
    assert Path(str(caught.value.path)).parent == folder
    return caught.value
