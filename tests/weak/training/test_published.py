"""Alternate training as published: loops, the best of them, interrupt and resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.core.training import PATIENCE, Progress
from chaffinch.models.registry import Config
from chaffinch.models.tagger import Tagger, train
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text import Document, Span
from chaffinch.weak.aggregate import FittedAggregator, fit
from chaffinch.weak.tagger import load
from chaffinch.weak.training import aggregator as aggregator_step
from chaffinch.weak.training import published as alternate_loops
from chaffinch.weak.training.alternate import Alternated, Published, Turn, Watch, alternate
from chaffinch.weak.training.checkpoints import Step
from chaffinch.weak.training.published import _best, _out_of_patience
from chaffinch.weak.training.soft_labels import one_hot_tags
from chaffinch.weak.vote_rules import LongestSpan
from tests.weak.training.made_notes import QUICK, notes

FOUR = replace(QUICK, epochs=4)


def spans_of(made: Alternated) -> list[tuple[Span, ...]]:
    return [doc.layer("alternate") for doc in made.documents]


def run(
    watch: Watch | None = None, *, loops: int = 2, continued: bool = True, dev: bool = True, inside: bool = True
) -> Alternated:  # fmt: skip
    gold = notes(100, 130, gold=True) if dev else []
    how = Published(loops=loops, continued=continued, inside=inside)
    return alternate(notes(0, 20), student=FOUR, how=how, dev=gold, watch=watch)


def test_loops_are_counted_told_and_scored() -> None:
    told: list[Step] = []
    made = run(Watch(told.append))
    names = [(step.name, step.number) for step in told]
    each = [(name, n + (name == "votes")) for n in range(3) for name in ("student", "votes", "loop")]
    assert names == [("votes", 0), *each, *([("votes", made.best + 1)] if made.best < 2 else [])]
    loops = [step for step in told if step.name == "loop"]
    assert [step.number for step in loops] == [turn.loop for turn in made.turns] == [0, 1, 2]
    assert [step.score for step in loops] == [turn.aggregator for turn in made.turns]
    assert all(turn.student is not None and turn.student > 0.6 for turn in made.turns)
    assert all(turn.aggregator is not None and turn.aggregator > 0.7 for turn in made.turns)
    assert made.best == max(range(3), key=lambda loop: (made.turns[loop].aggregator or 0, -loop))


def test_the_best_loop_is_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the loops after it had never been."""
    monkeypatch.setattr(alternate_loops, "_best", lambda turns: min(1, len(turns) - 1))
    made = run(inside=False)
    assert made.best == 1
    made.tagger.save(tmp_path / "best.cfm")
    short = run(loops=1, dev=False)
    short.tagger.save(tmp_path / "short.cfm")
    assert (tmp_path / "best.cfm").read_bytes() == (tmp_path / "short.cfm").read_bytes()
    assert spans_of(made) == spans_of(short)


def test_without_loops_the_first_student_joins_the_votes() -> None:
    made, longer = run(loops=0), run(loops=1)
    assert (len(made.turns), made.best) == (1, 0)
    assert made.turns[0] == longer.turns[0]
    assert spans_of(made) != spans_of(run(loops=1, dev=False))


def test_without_gold_the_last_loop_counts() -> None:
    made = run(dev=False, loops=1)
    assert (len(made.turns), made.best) == (2, 1)
    assert made.turns[0] == Turn(0)


def test_continued_and_restarted_students_differ() -> None:
    continued, restarted = run(loops=1), run(loops=1, continued=False)
    assert continued.turns[0] == restarted.turns[0]
    one, other = (_bytes(run(loops=1, dev=False, continued=way)) for way in (True, False))
    assert one != other


def _bytes(made: Alternated) -> bytes:
    arrays = made.tagger.students.first.model.state().arrays
    return b"".join(arrays[name].tobytes() for name in sorted(arrays))


def test_the_student_votes_on_new_documents_and_the_tagger_is_a_file(tmp_path: Path) -> None:
    made = run(loops=1)
    made.tagger.save(tmp_path / "m.cfm")
    back, new = load(tmp_path / "m.cfm"), notes(200, 205)
    one, other = ([doc.layer("weak") for doc in own.annotate(new)] for own in (back, made.tagger))
    assert one == other
    assert any(one)


def test_rules_without_soft_labels_teach_their_spans() -> None:
    made = alternate(notes(0, 20), LongestSpan(), QUICK, how=Published(loops=1))
    for doc, found in zip(notes(0, 20), made.documents, strict=True):
        assert doc.layers == {name: own for name, own in found.layers.items() if name != "alternate"}


def test_a_source_called_student_is_refused() -> None:
    doc = Document.make("He has gout .", layers={"source:student": [Span(7, 11, "Disease")]})
    with pytest.raises(ConfigError, match="student"):
        alternate([doc], how=Published())


@pytest.mark.parametrize("inside", [True, False])
def test_dev_documents_stop_inside_students_and_aggregators(inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see gold and votes, the student's of the last loop included; without `inside`, neither sees any."""
    dev, students, aggregators = notes(100, 103, gold=True), list[Any](), list[Any]()

    def teach(docs: Sequence[Document], config: Config, **more: Any) -> Tagger:
        students.append(more["dev"])
        return train(docs, config, **more)

    def join(docs: Sequence[Document], config: Any, *, dev: Sequence[Document], **more: Any) -> FittedAggregator:
        aggregators.append([(doc.layers.get("gold"), "source:student" in doc.layers) for doc in dev])
        return fit(docs, config, dev=dev, **more)

    monkeypatch.setattr(alternate_loops, "train", teach)
    monkeypatch.setattr(aggregator_step, "fit", join)
    how = Published(loops=1, inside=inside, embedder=lambda doc: np.ones((len(doc.tokens), 2), np.float32))
    alternate(notes(0, 12), CHMM(epochs=1), QUICK, how=how, dev=dev)
    assert students == [dev if inside else []] * 2
    gold = [doc.layer("gold") for doc in dev]
    seen = [[(one, with_student) for one in gold] for with_student in (False, True)] if inside else [[], []]
    assert aggregators[:2] == seen


def test_a_student_that_stops_is_that_of_its_best_epoch() -> None:
    """The oracle is a run that is no longer than that epoch; more epochs after it change no weight."""
    dev = notes(100, 130, gold=True)
    told = list[Progress]()
    docs = with_soft(notes(0, 20))
    long = replace(QUICK, epochs=30)
    found = train(docs, long, soft="weak", layer="gold", dev=dev, progress=told.append)
    scores = [one.score for one in told]
    best = max(range(len(scores)), key=lambda epoch: (scores[epoch], -epoch))
    assert len(scores) == min(best + 1 + PATIENCE, 30)
    assert len(scores) < 30
    again = train(docs, long, soft="weak", layer="gold", dev=dev)
    short = train(docs, replace(QUICK, epochs=best + 1), soft="weak", layer="gold", dev=dev)
    for other in (again, short):
        for name, own in found.model.state().arrays.items():
            np.testing.assert_array_equal(own, other.model.state().arrays[name])


def with_soft(docs: list[Document]) -> list[Document]:
    """Notes with soft labels of the layer of source "a"."""
    return [doc.with_soft("weak", one_hot_tags(doc, "source:a", ("Chemical", "Disease"))) for doc in docs]


def test_patience_and_the_best_loop() -> None:
    turns = [Turn(0, 0.5, 0.4), Turn(1, 0.7, 0.4), Turn(2, 0.7, 0.9), Turn(3, 0.6, 0.4)]
    dev = notes(0, 1)
    assert _best(turns) == 1
    assert _out_of_patience(turns, Published(patience=2), dev)
    assert not _out_of_patience(turns, Published(patience=3), dev)
    assert not _out_of_patience(turns, Published(patience=1), [])
    with pytest.raises(ConfigError):
        Published(loops=-1)
    with pytest.raises(ConfigError):
        Published(patience=0)
    with pytest.raises(ConfigError, match="inside"):
        Published(inside=1)  # type: ignore[arg-type]
