"""Pairs of students, encoders as students, and an aggregator that reads words: learnt, kept, gone on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.core.runs import span_f1
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.tagger import Tagger, train
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text import Document, Soft
from chaffinch.weak import tagger as weak_tagger
from chaffinch.weak.tagger import load
from chaffinch.weak.training import published as alternate_loops
from chaffinch.weak.training.alternate import Alternated, Published, Recipe, Watch, alternate
from chaffinch.weak.training.students import LINEAR, Plan, configs_of, read
from tests.features import tiny_encoder
from tests.weak.training.made_notes import QUICK, notes
from tests.weak.training.test_alternate import embedder, spans_of
from tests.weak.training.test_resume import stop_after

GOLD = [doc.layer("gold") for doc in notes(0, 20, gold=True)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_encoder.make(tmp_path_factory.mktemp("encoder"))
    return Encoder(str(folder), epochs=4, rate=5e-3, head=2.0, length=48, words=True)


def both(docs: list[Document], made: Alternated) -> tuple[Any, Any]:
    """What each of the two students says by itself."""
    assert made.tagger.students.last is not None
    return tuple(read(own, docs, made.tagger.labels) for own in made.tagger.students.taggers)  # type: ignore[return-value]


def test_of_a_pair_the_spans_are_the_last_ones_and_chances_the_mean(encoder: Encoder, tmp_path: Path) -> None:
    new = notes(50, 55)
    for how in (Recipe(folds=2), Published(loops=1)):
        made = alternate(notes(0, 20), student=(QUICK, encoder), how=how)
        assert [own.manifest.kind for own in made.tagger.students.taggers] == ["cascade", "encoder"]
        first, last = both(new, made)
        for answer, one, other in zip(made.tagger.students(new), first, last, strict=True):
            assert answer.spans == other.spans
            np.testing.assert_allclose(answer.chances, (one.chances + other.chances) / 2, rtol=0, atol=1e-12)
        assert span_f1(GOLD, [doc.layer("alternate") for doc in made.documents]) > 0.7
        made.tagger.save(tmp_path / "m.cfm")
        back = load(tmp_path / "m.cfm")
        assert spans_of(list(back.annotate(new)), "weak") == spans_of(list(made.tagger.annotate(new)), "weak")


def test_a_second_cascade_is_stacked_on_the_first_unless_told_otherwise() -> None:
    assert Plan((QUICK, QUICK)).last(1) == replace(QUICK, layers=("student0:own", "student0:elsewhere"))
    assert Plan((QUICK, QUICK), stacked=False).last(1) == QUICK
    assert Plan((QUICK, Encoder())).last(2) == Encoder()
    assert Plan(QUICK, stacked=False).last(1) is None
    assert Plan(Encoder()).last(1) == replace(LINEAR, layers=("student0:own", "student0:elsewhere"))
    assert configs_of(None) == (LINEAR,)
    with pytest.raises(ConfigError, match="got 3"):
        alternate(notes(0, 2), student=(QUICK, QUICK, QUICK))  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [Recipe(folds=2), Published(loops=1)])
def test_a_pair_goes_on_after_an_interrupt(encoder: Encoder, how: Recipe | Published, tmp_path: Path) -> None:
    pair = (QUICK, replace(encoder, epochs=2))
    whole = alternate(notes(0, 12), student=pair, how=how)
    steps = 4 if isinstance(how, Published) else 8
    with pytest.raises(KeyboardInterrupt):
        alternate(notes(0, 12), student=pair, how=how, watch=Watch(stop_after(steps), tmp_path))
    again = alternate(notes(0, 12), student=pair, how=how, watch=Watch(folder=tmp_path))
    assert spans_of(again.documents, "alternate") == spans_of(whole.documents, "alternate")
    whole.tagger.save(tmp_path / "whole.cfm")
    again.tagger.save(tmp_path / "again.cfm")
    assert (tmp_path / "again.cfm").read_bytes() == (tmp_path / "whole.cfm").read_bytes()


def test_an_encoder_learns_soft_labels_as_they_are(encoder: Encoder) -> None:
    """Of a word that is a Disease in 70 of 100 cases it says just that, for that has the least KL divergence."""
    labels, docs = ("O", "B-Disease", "I-Disease"), []
    for number in range(30):
        doc = Document.make("he has gout .", id=str(number))
        rows = np.array([[1.0, 0, 0], [1.0, 0, 0], [0.3, 0.7, 0], [1.0, 0, 0]])
        docs.append(doc.with_soft("soft", Soft(labels, rows)))
    tagger = train(docs, replace(encoder, epochs=30), soft="soft")
    chances = read(tagger, docs[:1], ("Disease",))[0].chances
    np.testing.assert_allclose(chances[:, 1], [0, 0, 0.7, 0], rtol=0, atol=0.07)


def test_in_loops_an_encoder_goes_on_from_its_last_weights(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, float, bool]] = []

    def watched(docs: Any, config: Encoder, *, start: Tagger | None = None, **more: Any) -> Tagger:
        seen.append((config.epochs, config.rate, start is not None))
        return train(docs, config, start=start, **more)

    monkeypatch.setattr(alternate_loops, "train", watched)
    for continued in (True, False):
        alternate(notes(0, 6), student=encoder, how=Published(loops=2, continued=continued))
    rate = encoder.rate  # halved by the encoder itself when it goes on
    assert seen[:3] == [(4, rate, False), (2, rate, True), (2, rate, True)]
    assert seen[3:] == [(4, rate, False)] * 3


def test_a_conditional_hmm_joins_the_votes_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator, how = CHMM(passes=2, epochs=1), Recipe(folds=2, stacked=False, embedder=embedder)
    whole = alternate(notes(0, 20), aggregator, QUICK, how=how)
    with pytest.raises(KeyboardInterrupt):
        alternate(notes(0, 20), aggregator, QUICK, how=how, watch=Watch(stop_after(3), tmp_path / "run"))
    assert (tmp_path / "run" / "votes-0.cfm").exists()
    again = alternate(notes(0, 20), aggregator, QUICK, how=how, watch=Watch(folder=tmp_path / "run"))
    assert spans_of(again.documents, "alternate") == spans_of(whole.documents, "alternate")
    assert span_f1(GOLD, [doc.layer("alternate") for doc in again.documents]) > 0.7
    again.tagger.save(tmp_path / "m.cfm")
    monkeypatch.setattr(weak_tagger, "load_packaged_embedder", lambda: embedder)
    back, new = load(tmp_path / "m.cfm"), notes(50, 55)
    assert spans_of(list(back.annotate(new)), "weak") == spans_of(list(whole.tagger.annotate(new)), "weak")
