"""Alternate training, interrupted and gone on with: the same spans, the same file, and nothing done twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.tagger import Tagger, train
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document, Soft, Span
from chaffinch.weak.training import network as students_network
from chaffinch.weak.training import students
from chaffinch.weak.training.alternate import Alternated, Published, Recipe, Watch, alternate
from chaffinch.weak.training.checkpoints import Checkpoints, Step, fingerprint, stable_repr
from tests.weak.training.made_notes import QUICK, note, notes
from tests.weak.training.test_alternate import embedder

DEV = notes(100, 130, gold=True)
RECIPE = Recipe(folds=2, embedder=embedder)
STEPS = [  # of that recipe
    "votes", "text sources", "student fold", "student fold", "embeddings", "network fold", "network fold", "network",
    "student", "last student fold", "last student fold", "last student",
]  # fmt: skip


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(students_network, "LEAST_STEPS", 20)


def recipe(watch: Watch | None = None) -> Alternated:
    return alternate(notes(0, 16), student=QUICK, how=RECIPE, dev=DEV, watch=watch)


def loops(watch: Watch | None = None) -> Alternated:
    return alternate(notes(0, 16), student=QUICK, how=Published(loops=2), dev=DEV, watch=watch)


def stop_after(steps: int) -> Callable[[Step], None]:
    """Someone who interrupts when so many steps have been told."""
    told = 0

    def tell(_: Step) -> None:
        nonlocal told
        told += 1
        if told == steps:
            raise KeyboardInterrupt

    return tell


def all_of(made: Alternated, place: Path) -> tuple[Any, ...]:
    """The spans with their scores, the turns, and the bytes of the model file."""
    spans = [[(own, own.score, own.source) for own in doc.layer("alternate")] for doc in made.documents]
    made.tagger.save(place)
    return spans, made.turns, made.best, hashlib.sha256(place.read_bytes()).hexdigest()


@pytest.mark.parametrize("run", [recipe, loops])
def test_wherever_it_is_interrupted_the_end_is_the_same(
    run: Callable[[Watch | None], Alternated], tmp_path: Path
) -> None:
    told: list[Step] = []
    whole = all_of(run(Watch(told.append)), tmp_path / "whole.cfm")
    if run is recipe:
        assert [step.name for step in told] == STEPS
    for steps in (1, 3, 6, 7, len(told) - 2, len(told)):
        folder = tmp_path / str(steps)
        with pytest.raises(KeyboardInterrupt):
            run(Watch(stop_after(steps), folder))
        again: list[Step] = []
        assert all_of(run(Watch(again.append, folder)), tmp_path / "again.cfm") == whole
        kept = [step for step in told[:steps] if (folder / f"{step.file}.cfm").exists() or step.name == "loop"]
        assert not set(kept) & set(again), "nothing that was kept is done twice"
        assert [step for step in told if step in again and step.name != "votes"] == [
            step for step in again if step.name != "votes"
        ]


def test_interrupted_twice_and_when_all_is_done(tmp_path: Path) -> None:
    whole = all_of(recipe(), tmp_path / "whole.cfm")
    for steps in (4, 5):
        with pytest.raises(KeyboardInterrupt):
            recipe(Watch(stop_after(steps), tmp_path / "run"))
    assert all_of(recipe(Watch(folder=tmp_path / "run")), tmp_path / "again.cfm") == whole
    again: list[Step] = []
    assert all_of(recipe(Watch(again.append, tmp_path / "run")), tmp_path / "again.cfm") == whole
    assert [step.name for step in again] == ["votes", "text sources", "embeddings"]  # which are quick, and not kept


def test_a_kept_student_is_really_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []

    def counted(docs: Any, *args: Any, **options: Any) -> Tagger:
        trained.append(len(docs))
        return train(docs, *args, **options)

    monkeypatch.setattr(students, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        recipe(Watch(stop_after(STEPS.index("last student fold") + 1), tmp_path))
    assert len(trained) == 4
    recipe(Watch(folder=tmp_path))
    assert len(trained) == 6


def test_half_a_student_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt during training ends it early, and the tagger says so; the step does not count."""

    def interrupted(*args: Any, **options: Any) -> Tagger:
        made = train(*args, **options)
        return replace(made, manifest=replace(made.manifest, metrics={"interrupted": 1.0}))

    for place, run in (
        ("chaffinch.weak.training.published.train", loops),
        ("chaffinch.weak.training.students.train", recipe),
    ):
        monkeypatch.setattr(place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(Watch(folder=tmp_path / run.__name__))
        assert [own.name for own in (tmp_path / run.__name__).iterdir()] == ["run.json"]


def test_the_folder_is_private_and_holds_no_document(tmp_path: Path) -> None:
    docs = [note(number, canary="zyxomycosis") for number in range(12)]
    alternate(docs[:1] + notes(1, 12), student=QUICK, how=RECIPE, watch=Watch(folder=tmp_path / "run"))
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    text = docs[0].text.split(" . ")[0]
    assert not any(text.encode() in path.read_bytes() for path in (tmp_path / "run").iterdir())


def changed() -> dict[str, tuple[Any, ...]]:
    """Runs that differ from (notes, dev, settings) in one thing."""
    docs, dev, settings = notes(0, 3), notes(5, 7, gold=True), (MultiHMM(), QUICK, Recipe())
    first, others = docs[0], docs[1:]
    soft = first.with_soft("source:a", Soft(("O", "B-Disease", "I-Disease"), np.ones((len(first.tokens), 3)) / 3))
    moved = [replace(doc, layers={**doc.layers, "gold": ()}) for doc in dev]
    return {
        "text": ([Document.make(first.text + " x", id=first.id, layers=first.layers), *others], dev, *settings),
        "patient": ([replace(first, group="other"), *others], dev, *settings),
        "votes": ([first.with_layer("source:b", [Span(0, 3, "Disease")]), *others], dev, *settings),
        "links": ([first.with_layer("link:l", [Span(0, 3, "TOGETHER")]), *others], dev, *settings),
        "soft votes": ([soft, *others], dev, *settings),
        "order": (docs[::-1], dev, *settings),
        "dev": (docs, dev[:1], *settings),
        "gold": (docs, moved, *settings),
        "no dev": ([*docs, *dev], [], *settings),
        "aggregator": (docs, dev, MultiHMM(passes=3), *settings[1:]),
        "student": (docs, dev, settings[0], replace(QUICK, epochs=9), settings[2]),
        "pair": (docs, dev, settings[0], (QUICK, QUICK), settings[2]),
        "how": (docs, dev, *settings[:2], Recipe(folds=7)),
        "embedder": (docs, dev, *settings[:2], Recipe(embedder=embedder)),
        "published": (docs, dev, *settings[:2], Published()),
    }


def test_the_fingerprint_covers_all_that_a_run_depends_on() -> None:
    usual = fingerprint(notes(0, 3), notes(5, 7, gold=True), MultiHMM(), QUICK, Recipe())
    assert usual == fingerprint(notes(0, 3), notes(5, 7, gold=True), MultiHMM(), QUICK, Recipe())
    found = {name: fingerprint(*own) for name, own in changed().items()}
    assert len({usual, *found.values()}) == len(found) + 1


def test_settings_in_words() -> None:
    assert stable_repr(Published()) == ("Published(loops=2, patience=5, continued=True, inside=True, embedder=None)")
    assert stable_repr({"b": 1, "a": (None, "x")}) == "{'a': [None, 'x'], 'b': 1}"
    assert stable_repr(embedder) == "tests.weak.training.test_alternate.embedder"


def test_a_folder_of_another_run_or_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        recipe(Watch(stop_after(4), tmp_path / "run"))
    with pytest.raises(ConfigError, match="other documents or settings"):
        alternate(notes(1, 17), student=QUICK, how=RECIPE, dev=DEV, watch=Watch(folder=tmp_path / "run"))
    with pytest.raises(ConfigError, match="other documents or settings"):
        loops(Watch(folder=tmp_path / "run"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="other files"):
        recipe(Watch(folder=tmp_path / "mine"))
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        recipe(Watch(folder=tmp_path / "run"))


def test_without_a_folder_no_fingerprint_is_made() -> None:
    def never() -> str:
        raise AssertionError

    assert Checkpoints.of(None, None, never).place is None
