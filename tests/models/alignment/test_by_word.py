"""Alignment word by word changes what alignment of all documents together changes, to the last bit of each score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.alignment import by_word, graph
from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment.by_word import Change, WordCensus, find_changes, find_occurrences
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.alignment.model import FREE, Model, align
from chaffinch.models.alignment.objective import CliqueWeights
from chaffinch.text import Document
from tests.models.alignment.test_alignment import note, weights

WORDS = ("Penn", "PENN", "penn", "Bath", "Straße", "STRASSE", "came", "the", ".", "Dr.")
COMMON = frozenset({"came", "the"})


def random_notes(rng: np.random.Generator, count: int, size: int, group: str | None) -> list[Document]:
    out = []
    for number in range(count):
        chances = rng.dirichlet([1.2, 0.4, 0.4], size)
        rows = [
            (str(word), float(row[1]), float(row[2]))
            for word, row in zip(rng.choice(WORDS, size), chances, strict=True)
        ]
        name = "" if group is None and number % 2 else f"n{(number * 7) % count // 2}"
        out.append(note(rows, id=name, group=group))
    return out


def changes_by_word(docs: list[Document], model: Model, mode: str, rng: np.random.Generator) -> list[Change]:
    """Read the documents one by one, in any order; sort their occurrences."""
    census = WordCensus()
    for doc in docs:
        census.add(doc, "found")
    order = sorted(range(len(docs)), key=lambda number: (docs[number].id, docs[number].text))
    words = census.linkable(model.common)
    records = [
        record
        for place, number in enumerate(order)
        for record in find_occurrences(docs[number], "found", number=place, names=census.names, words=words)
    ]
    rng.shuffle(records)
    found = find_changes(sorted(records), model, names=census.names, mode=mode)
    return [change._replace(document=order[change.document]) for change in found]


def check(docs: list[Document], model: Model, mode: str, rng: np.random.Generator) -> int:
    """Compare both ways; return how many tokens change."""
    by_document: dict[int, dict[int, tuple[str, float]]] = {}
    changes = changes_by_word(docs, model, mode, rng)
    for change in changes:
        by_document.setdefault(change.document, {})[change.token] = (change.label, change.score)
    for number, (doc, aligned) in enumerate(zip(docs, align(docs, model, layer="found", mode=mode), strict=True)):
        spans = graph.to_spans(doc, doc.layers["found"], by_document.get(number, {}))
        told = [(s.start, s.end, s.label, s.score, s.source) for s in spans]
        assert told == [(s.start, s.end, s.label, s.score, s.source) for s in aligned.layers["found"]]
    return len(changes)


@pytest.mark.parametrize("together", [1, 40, 100_000])
@pytest.mark.parametrize("mode", ["recall", "balanced"])
def test_words_alone_change_as_all_documents_together(
    mode: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_word, "_TOGETHER", together)
    model, changed = Model.default("recall", common=COMMON), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        docs = random_notes(rng, count=1 + seed % 7, size=1 + seed % 23, group="p" if seed % 2 else None)
        if not docs[0].group:  # of one patient by their id, or by themselves
            docs = [doc for doc in docs if doc.id in ("", docs[0].id)]
        changed += check(docs, model, mode, rng)
    assert changed > 20, "the notes are such that labels change"


def test_a_word_with_more_occurrences_than_are_decided_together_changes_alike() -> None:
    rng = np.random.default_rng(3)
    chances = np.where(rng.random((9, 50)) < 0.9, rng.uniform(0.8, 1.0, (9, 50)), rng.uniform(0.2, 0.5, (9, 50)))
    rows = [[(str(rng.choice(WORDS[:3])), float(chance), 0.0) for chance in row] for row in chances]
    docs = [note(row, id=f"n{number}", group="p") for number, row in enumerate(rows)]
    assert chances.size > 2 * FREE
    assert check(docs, Model.default(), "recall", rng) > 20


def test_a_label_that_is_taken_away_is_a_change() -> None:
    rng = np.random.default_rng(4)
    rows = [[("Bath", 0.03, 0.0)], [("Bath", 0.55, 0.0)], *([("Bath", 0.03, 0.0)] for _ in range(6))]
    docs = [note(row, id=f"n{number}", group="p") for number, row in enumerate(rows)]
    model = Model.default("balanced")
    unary = model.weights.unary.copy()
    unary[1, 1] = 0.0  # what the tagger found has no more weight than its chance
    model = replace(model, weights=replace(model.weights, unary=unary))
    assert [(change.document, change.label) for change in changes_by_word(docs, model, "balanced", rng)] == [(1, "O")]
    assert check(docs, model, "balanced", rng) == 1


def test_a_model_that_weighs_neighbours_is_refused() -> None:
    drawn: CliqueWeights = weights(np.random.default_rng(1))
    with pytest.raises(ConfigError, match="all documents of a patient together"):
        next(find_changes([], Model(Alignment(), drawn), names=("O",), mode="recall"))


@pytest.mark.parametrize("mode", ["recall", "balanced"])
def test_notes_of_many_patients_change_together_as_by_patient(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups = [None, "p", "q", "r"][: 1 + seed % 4]
        docs = [doc for group in groups for doc in random_notes(rng, 1 + seed % 3, 1 + seed % 23, group)]
        docs = [docs[place] for place in rng.permutation(len(docs))]
        model = Model.default("recall", common=COMMON)
        together = align(docs, model, layer="found", mode=mode)
        with monkeypatch.context() as patch:
            patch.setattr(alignment, "weighs_word_alone", lambda _: False)
            alone = align(docs, model, layer="found", mode=mode)
        for doc, one, other in zip(docs, together, alone, strict=True):
            assert [repr(span) for span in one.layers["found"]] == [repr(span) for span in other.layers["found"]]
            changed += one is not doc
    assert changed > 10, "the notes are such that labels change"
