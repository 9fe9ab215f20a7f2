"""The suite every tagger passes, and what each of its promises is: privacy, independence, same bytes, interrupts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Span
from tests.models.notes import hit_rate, notes

CONFIGS = {
    "pa": Cascade(epochs=3, private=False),
    "crf": Cascade(objective="crf", epochs=3, private=False),
    "published": replace(Cascade.published(), private=False),
    "IOB2": Cascade(scheme="IOB2", epochs=3, private=False),
    "tokens": Cascade(scheme="tokens", epochs=3, private=False),
}
ONE_STAGE = [name for name in CONFIGS if name != "published"]
every_config = pytest.mark.parametrize("name", CONFIGS)
one_stage = pytest.mark.parametrize("name", ONE_STAGE)
TRAIN, TEST = notes(60, noise=0.06), notes(25, 1)


@cache
def tagger(name: str) -> Tagger:
    return train(TRAIN, CONFIGS[name])


def spans(docs: Sequence[Document]) -> list[tuple[Span, ...]]:
    return [doc.layer("cascade") for doc in docs]


@every_config
def test_the_invented_notes_are_learnt(name: str) -> None:
    found = list(tagger(name).annotate(TEST))
    if name == "tokens":  # every token is a span of its own
        found = [
            doc.with_layer("gold", [s for s in doc.layer("gold") if " " not in doc.text[s.start : s.end]])
            for doc in found
        ]
        assert all(set(doc.layer("gold")) <= set(doc.layer("cascade")) for doc in found)
    else:
        assert hit_rate(found) > 0.95


@every_config
def test_empty_and_tiny_documents_are_read(name: str) -> None:
    docs = [
        Document.make(""),
        Document.make(" \n "),
        Document.make("Ann"),
        Document.make("."),
        Document.make("Dr. Zyxgov qoph."),
        Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[]),
        Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[(0, 0), (2, 3)]),
        Document.make("😀 東京 \u200d"),
    ]
    for confidence in (False, True):
        found = list(tagger(name).annotate(docs, confidence=confidence))
        assert [doc.text for doc in found] == [doc.text for doc in docs]
        assert [found[k].layer("cascade") for k in (0, 1, 5)] == [(), (), ()]
        assert spans(found) == [tagger(name)(doc).layer("cascade") for doc in docs]
    assert list(tagger(name).annotate([])) == []
    for doc in docs:
        assert tagger(name).alternatives(doc, 2)


@every_config
def test_empty_and_tiny_documents_are_learnt_from(name: str) -> None:
    tiny = [
        Document.make("", id="none"),
        Document.make("Ann", id="one", layers={"gold": [Span(0, 3, "NAME")]}),
        Document.make("a b", id="bare", tokens=[(0, 1), (2, 3)], sentences=[], layers={"gold": [Span(0, 1, "NAME")]}),
    ]
    assert hit_rate(list(train([*tiny, *TRAIN], CONFIGS[name]).annotate(TEST))) > (0.4 if name == "tokens" else 0.9)
    only = train(tiny[1:2], CONFIGS[name])
    assert only.labels == ("NAME",)
    assert list(only.annotate([Document.make("Ann"), Document.make("")]))


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(DataError, match="no documents"):
        train([])
    with pytest.raises(DataError, match="holds no span"):
        train([Document.make("Ann came.")])
    bare = Document.make("a", tokens=[(0, 1)], sentences=[], layers={"gold": [Span(0, 1, "A")]})
    with pytest.raises(DataError, match="no sentence"):
        train([bare])


@every_config
def test_a_model_is_the_same_after_saving_and_loading(name: str, tmp_path: Path) -> None:
    tagger(name).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.labels == tagger(name).labels
    one, other = (list(own.annotate(TEST, confidence=True)) for own in (tagger(name), again))
    assert spans(one) == spans(other)
    assert [s.score for doc in one for s in doc.layer("cascade")] == [
        s.score for doc in other for s in doc.layer("cascade")
    ]
    again.save(tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()


@every_config
def test_the_same_seed_gives_the_same_bytes_with_any_number_of_workers(name: str, tmp_path: Path) -> None:
    for workers in (1, 2):
        train(TRAIN, CONFIGS[name], workers=workers).save(tmp_path / str(workers))
    tagger(name).save(tmp_path / "first")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes() == (tmp_path / "first").read_bytes()


@every_config
def test_any_number_of_workers_reads_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.models.tagger.BATCH_TOKENS", 40)
    one, two = (list(tagger(name).annotate(TEST, workers=workers, confidence=True)) for workers in (1, 2))
    assert [doc.id for doc in two] == [doc.id for doc in TEST]
    assert spans(one) == spans(two)
    assert [s.score for doc in one for s in doc.layer("cascade")] == [
        s.score for doc in two for s in doc.layer("cascade")
    ]


def test_another_seed_gives_another_model(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(TRAIN, Cascade(epochs=3, seed=seed)).save(tmp_path / str(seed))
    assert (tmp_path / "0").read_bytes() != (tmp_path / "1").read_bytes()


@every_config
def test_a_documents_spans_do_not_depend_on_its_neighbours(name: str) -> None:
    assert spans([tagger(name)(doc) for doc in TEST]) == spans(list(tagger(name).annotate(TEST)))
    assert spans(list(tagger(name).annotate(TEST[::-1])))[::-1] == spans(list(tagger(name).annotate(TEST)))


@every_config
def test_a_documents_probabilities_do_not_depend_on_its_neighbours(name: str) -> None:
    together = tagger(name).model.posteriors(TEST)
    for doc, rows in zip(TEST, together, strict=True):
        np.testing.assert_allclose(rows, tagger(name).model.posteriors([doc])[0], rtol=0, atol=1e-9)


@every_config
def test_posteriors_are_distributions_and_agree_with_what_is_read(name: str) -> None:
    bare = Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[(2, 3)])
    for doc in tagger(name).posteriors([*TEST, bare]):
        soft = doc.soft["cascade"]
        assert soft.labels == ("O", "DOSE", "DRUG", "NAME", "TOWN")
        assert soft.values.shape == (len(doc.tokens), 5)
        assert (soft.values >= 0).all()
        np.testing.assert_allclose(soft.values.sum(axis=1), 1, rtol=0, atol=1e-9)
        for span in tagger(name)(doc).layer("cascade"):
            inside = (doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)
            assert (soft.values[inside, 1:].argmax(axis=1) + 1 == soft.labels.index(span.label)).all()
    assert soft.values[0].tolist() == [1, 0, 0, 0, 0]


@every_config
def test_confidences_are_probabilities(name: str) -> None:
    scores = [s.score for doc in tagger(name).annotate(TEST, confidence=True) for s in doc.layer("cascade")]
    assert scores
    assert all(0 < score < 1 for score in scores)
    assert len(set(scores)) > 1
