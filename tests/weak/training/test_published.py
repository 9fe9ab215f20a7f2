"""Alternate training as published: loops, the best of them, interrupt and resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.weak.tagger import load
from chaffinch.weak.training import published as alternate_loops
from chaffinch.weak.training.alternate import Alternated, Published, Turn, Watch, alternate
from chaffinch.weak.training.checkpoints import Step
from chaffinch.weak.training.published import _best, _out_of_patience
from chaffinch.weak.vote_rules import LongestSpan
from tests.weak.training.made_notes import QUICK, notes

FOUR = replace(QUICK, epochs=4)


def spans_of(made: Alternated) -> list[tuple[Span, ...]]:
    return [doc.layer("alternate") for doc in made.documents]


def run(watch: Watch | None = None, *, loops: int = 2, continued: bool = True, dev: bool = True) -> Alternated:
    gold = notes(100, 130, gold=True) if dev else []
    how = Published(loops=loops, continued=continued)
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
    made = run()
    assert made.best == 1
    made.tagger.save(tmp_path / "best.cfm")
    short = run(loops=1, dev=False)
    short.tagger.save(tmp_path / "short.cfm")
    assert (tmp_path / "best.cfm").read_bytes() == (tmp_path / "short.cfm").read_bytes()
    assert spans_of(made) == spans_of(short)


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


def test_patience_and_the_best_loop() -> None:
    turns = [Turn(0, 0.5, 0.4), Turn(1, 0.7, 0.4), Turn(2, 0.7, 0.9), Turn(3, 0.6, 0.4)]
    dev = notes(0, 1)
    assert _best(turns) == 1
    assert _out_of_patience(turns, Published(patience=2), dev)
    assert not _out_of_patience(turns, Published(patience=3), dev)
    assert not _out_of_patience(turns, Published(patience=1), [])
    with pytest.raises(ConfigError):
        Published(loops=0)
    with pytest.raises(ConfigError):
        Published(patience=0)
