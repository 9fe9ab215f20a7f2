"""Parts of spans, and paths through states: they tile their spans, and agree with listing every path."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels import Lattice
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.describe.explain import explain
from chaffinch.models.classhmm.model import Model
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.models.latent.parts import state_names
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.kernels import oracle
from tests.models.classhmm.test_describe import CONFIGS, model_of, only_names, tagger
from tests.models.notes import FIRST, LAST, notes

every_config = pytest.mark.parametrize("name", CONFIGS)

TEXTS = ["Dr. Ann Penn", "Voss saw Dora", "Ann", "was Ida Lowe Hart"]


def lattice_of(trained_tagger: Tagger, doc: Document) -> Lattice:
    model = trained_tagger.model
    assert isinstance(model, Model | hmmdp_model.Model)
    return next(iter(model.reading([doc]).batches))[0]


def runs_of(T: int, most: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(T) for b in range(a + 1, min(a + most, T) + 1)]


@every_config
def test_parts_tile_the_spans(name: str) -> None:
    trained_tagger, several = tagger(name), 0
    for doc in only_names(notes(25, seed=3)):
        parts, spans = trained_tagger.substructure(doc, "gold"), doc.layer("gold")
        assert parts == sorted(parts)
        assert all(part.label.startswith("NAME/") and part.label[5:] in "1234" for part in parts)
        inside = [[part for part in parts if span.start <= part.start and part.end <= span.end] for span in spans]
        assert sum(map(len, inside)) == len(parts)
        for span, found in zip(spans, inside, strict=True):
            assert (found[0].start, found[-1].end) == (span.start, span.end)
            for before, after in pairwise(found):
                assert doc.text[before.end : after.start].strip() == ""
                assert before.label != after.label
            several += len(found) > 1
    assert several or name == "crf"


@every_config
def test_parts_are_those_of_the_best_of_all_paths(name: str) -> None:
    trained_tagger = tagger(name)
    labels = trained_tagger.model.labels  # type: ignore[attr-defined]
    for text in TEXTS:
        doc = Document.make(text)
        starts, ends = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist()
        T, paths = len(starts), oracle.listing(lattice_of(trained_tagger, doc)).paths
        for a, b in runs_of(T, 3):
            tags = labels.encode([(a, b, 0)], T).tolist()
            best = next(
                path for _, path in paths if labels.tag_of[list(path)].tolist() == tags
            )  # fmt: skip
            names = [state_names(labels)[state] for state in best[a:b]]
            expected, first = [], a
            for n in range(a + 1, b + 1):
                if n == b or names[n - a] != names[first - a]:
                    expected.append(Span(starts[first], ends[n - 1], names[first - a]))
                    first = n
            marked = doc.with_layer("marked", [Span(starts[a], ends[b - 1], "NAME")])
            assert trained_tagger.substructure(marked, "marked") == expected


def test_spans_are_found_where_they_are_missing() -> None:
    trained_tagger = tagger("joint")
    doc = Document.make("Dr. Ann Penn came.")
    assert (
        trained_tagger.substructure(doc)
        == trained_tagger.substructure(trained_tagger(doc))
        == trained_tagger.substructure(trained_tagger(doc), "classhmm")
    )
    assert trained_tagger.substructure(Document.make("")) == []
    cut = doc.with_layer("cut", [Span(5, 10, "NAME")])
    found = trained_tagger.substructure(cut, "cut")
    assert (found[0].start, found[-1].end) == (5, 10)
    assert all(part.source == "classhmm" for part in found)


def test_tokens_in_no_sentence_have_no_part() -> None:
    doc = Document.make("Ann Dr. Bo", tokens=[(0, 3), (4, 7), (8, 10)], sentences=[(4, 10)])
    marked = doc.with_layer("marked", [Span(0, 3, "NAME"), Span(8, 10, "NAME")])
    assert [(part.start, part.end) for part in tagger("joint").substructure(marked, "marked")] == [(8, 10)]


def test_what_has_no_parts_says_so() -> None:
    doc = Document.make("Dr. Ann Penn came.")
    with pytest.raises(ConfigError, match="a cascade cannot divide spans into parts"):
        train(only_names(notes(12)), Cascade(epochs=1)).substructure(doc)
    trained_tagger = tagger("joint")
    with pytest.raises(DataError, match="no layer 'none'"):
        trained_tagger.substructure(doc, "none")
    with pytest.raises(DataError, match="no label 'TOWN'; it has NAME"):
        trained_tagger.substructure(doc.with_layer("gold", [Span(4, 7, "TOWN")]), "gold")
    with pytest.raises(DataError, match="overlap; resolve overlaps first") as caught:
        trained_tagger.substructure(doc.with_layer("gold", [Span(4, 12, "NAME"), Span(8, 12, "NAME")]), "gold")
    assert "Penn" not in str(caught.value)


@pytest.mark.parametrize("name", ["joint", "crf", "IOB2"])
def test_explanations_are_those_of_all_paths_listed(name: str) -> None:
    trained_tagger = tagger(name)
    labels, states = model_of(trained_tagger).labels, state_names(model_of(trained_tagger).labels)
    plain = replace(labels, subs=())
    for text in TEXTS:
        doc = Document.make(text)
        listing = oracle.listing(lattice_of(trained_tagger, doc))
        paths = [
            (s - listing.log_z, path, plain.runs(labels.tag_of[list(path)].astype(np.int32)))
            for s, path in listing.paths
        ]
        starts, ends, T = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist(), len(doc.tokens)
        for a, b in runs_of(T, 2):
            mine = [one for one in paths if (a, b, "NAME") in one[2]]
            rest = [one for one in paths if (a, b, "NAME") not in one[2]]
            why = explain(model_of(trained_tagger), doc, Span(starts[a], ends[b - 1], "NAME"))
            assert [doc.text[step.start : step.end] for step in why.steps] == [step.word for step in why.steps]
            assert why.chance == pytest.approx(math.fsum(math.exp(one[0]) for one in mine), abs=1e-9)
            best = [states[state] for state in mine[0][1]][max(a - 3, 0) : b + 2]
            assert [f"{step.tag.removeprefix('B-').removeprefix('I-')}/{step.number}" for step in why.steps] == best
            near = [(starts[x], ends[y - 1]) for x, y, _ in rest[0][2] if x < b and y > a]
            assert [(one.start, one.end) for one in why.runner_up] == near


def test_an_explanation_in_words() -> None:
    trained_tagger = tagger("joint")
    doc = Document.make("Seen by Dr. Ann Penn today.")
    lines = trained_tagger.explain(doc, Span(12, 20, "NAME")).in_words(with_text=True).splitlines()
    assert lines[0].startswith("[12, 20) NAME: chance ")
    assert "Ann/NAME" in lines[2]
    leads = [line for line in lines[3:] if line.startswith("  NAME")]
    assert leads
    assert any(f'"{word}"' in " ".join(leads) for word in FIRST + LAST)
    assert "/" not in " ".join(lines[3:])
    with pytest.raises(DataError, match="no label 'TOWN'; it has NAME"):
        trained_tagger.explain(doc, Span(12, 20, "TOWN"))
