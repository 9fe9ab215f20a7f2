"""Documents that are plain except for one thing, so that nothing else can hide that its loss was not reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from chaffinch.text import Argument, Document, Relation, Soft, Span
from chaffinch.text.formats._shared.token_tags import lay_out

FIRST, SECOND, THIRD = Span(0, 4, "NAME"), Span(5, 8, "X"), Span(9, 14, "NAME")

_SPANS: tuple[dict[str, Any], ...] = (
    {"score": 0.0}, {"score": 1 / 3}, {"source": "a b"}, {"source": "\0"}, {"concept": "D1|D2"}, {"concept": "D1;D2"},
    {"concept": "concept:x"}, {"concept": "-"}, {"concept": " x\ty\n"}, {"concept": "a\0"}, {"label": ""},
    {"label": "O"}, {"label": "B-X"}, {"label": "a b\t\r\n"}, {"label": "a\0b"}, {"label": "\xe9\u2028x"},
)  # fmt: skip
_LAYERS: tuple[list[Span], ...] = (
    [FIRST, replace(FIRST, label="Z")], [Span(0, 8, "A"), Span(5, 14, "B")], [Span(0, 14, "A"), Span(5, 8, "B")],
    [Span(0, 4, "A"), Span(5, 8, "A")], [Span(1, 3, "A")], [Span(4, 5, "A")], [Span(0, 5, "A")],
)  # fmt: skip
_NAMES = ("", "rules", "predictions", "predictions:1", "annotation:2", "annotation:3", "source:", "source:a")
_METAS: tuple[dict[str, Any], ...] = (
    *({"a": value} for value in (None, "", True, 1, 1.5, 2**70, [1], {"b": "c"}, "\ufeff")),
    {"a": float("inf")}, {"a": [float("nan")]},
    {"group": "x"}, {"patient": "p"}, {"patient": 7}, {"subject_id": None}, {"spans": "x"}, {"labels": []},
    {"label": "x"}, {"entities": []}, {"text": "x"}, {"id": "x"}, {"note": "x"}, {"report": "x"}, {"note_id": "x"},
    {"Text": "t"}, {" text": "z"}, {"content": "x"}, {"GROUP": "x"}, {"Patient": "q"}, {"tags": {}},
    {"tags": {"NAME": "Q"}}, {"tags": ["O", "O", "O"]}, {"ner_tags": ["O"]}, {"passages": []}, {"passages": 7},
    {"individual_mentions": []}, {"individual_mentions": [[0, 4, "NAME", "q"]]}, {"columns": {}}, {"columns": 7},
    {"conll": {}}, {"conll": 7}, {"Comments": []}, {"Comments": ["x"]}, {"data": "x"}, {"tokens": ["x"]},
    {"sentences": [3]}, {"relations": []}, {"layers": {}}, {"soft": {}}, {"meta": {}}, {"type": "x"}, {"": "x"},
    {"a b\n": "x"}, {"a\0": "x\0"},
)  # fmt: skip
_IDS = (
    "a b", "a%20b", "a|b", "a\tb", "\xe9", "7", "out", "out-1", " x", "x ", "\ufeffa", "a\nb", "a/b", "-DOCSTART-",
)  # fmt: skip
_NO_FILE_NAMES = ("", "a\0b")


def _pair(first: Span = FIRST, second: Span = SECOND, *, roles: tuple[str, str] = ("Arg1", "Arg2")) -> Any:
    return Argument(roles[0], (first,)), Argument(roles[1], (second,))


_RELATIONS: tuple[Relation, ...] = (
    Relation("r", _pair()), Relation("", _pair()), Relation("a b", _pair()), Relation("r", _pair(), 0.5),
    Relation("r", _pair(), source="q"), Relation("r", _pair(FIRST, FIRST)), Relation("r", _pair(roles=("x", "y"))),
    Relation("r", _pair(roles=("", ""))), Relation("r", _pair(roles=("a b", "c:d"))),
    Relation("r", _pair(roles=("a", "a"))), Relation("r", ()), Relation("r", (Argument("a", (FIRST,)),)),
    Relation("r", (*_pair(), Argument("c", (THIRD,)))),
    Relation("r", (Argument("a", (FIRST, THIRD)), Argument("b", (SECOND,)))),
    Relation("r", (Argument("Arg1", (FIRST,), "D1"), Argument("Arg2", (SECOND,), "D2"))),
    Relation("7", (Argument("Arg1", (FIRST,), "D1"), Argument("Arg2", (SECOND,), "D2"))),
    Relation("r", (Argument("a", (), "D1"), Argument("b", (), "D2"))),
    Relation("r", _pair(FIRST, Span(0, 1, "elsewhere"))), Relation("r", _pair(replace(FIRST, score=0.5))),
)  # fmt: skip


def oddities(*, given: bool, folder: bool) -> Iterator[Document]:
    """Yield documents, with tokens that are given or not; in a folder an id must be the name of a file."""
    text, tokens, sentences = lay_out(["Anna", "saw", "Smith."], [3])
    gold = {"gold": [FIRST]}
    doc = Document.make(text, id="doc-0", layers=gold)
    if given:
        doc = Document.make(text, id="doc-0", layers=gold, tokens=tokens, sentences=sentences)
    for more in _SPANS:
        yield doc.with_layer("gold", [replace(FIRST, **more)])
    for spans in _LAYERS:
        yield doc.with_layer("gold", spans)
    yield replace(doc, layers={})
    yield replace(doc, layers={"rules": (FIRST,)})
    for name in _NAMES:
        yield doc.with_layer(name, [SECOND])
        yield doc.with_layer(name, [])
    for meta in _METAS:
        yield replace(doc, meta=meta)
        yield replace(doc, meta=meta, group="p")
    for group in ("", "7", "a\0\n "):
        yield replace(doc, group=group)
    for name in _IDS if folder else (*_IDS, *_NO_FILE_NAMES):
        yield replace(doc, id=name)
    for labels in (("O", "X"), ()):
        yield doc.with_soft("gold", Soft(labels, np.full((len(doc.tokens), len(labels)), 0.5)))
    full = doc.with_layer("gold", [FIRST, SECOND, THIRD])
    for relation in _RELATIONS:
        yield replace(full, relations=(relation,))
    yield replace(full, relations=(_RELATIONS[0], _RELATIONS[0]))
    yield replace(doc.with_layer("rules", [SECOND, THIRD]), relations=(Relation("r", _pair(SECOND, THIRD)),))
