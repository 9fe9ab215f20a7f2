"""What a class HMM learns from, and what it keeps: soft labels, interrupts, privacy, and states planted in a text."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.features import word_types as types
from chaffinch.kernels import Ints
from chaffinch.models.classhmm import fit as classhmm
from chaffinch.models.classhmm.conditional import Conditional
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.describe import states as substructure
from chaffinch.models.classhmm.generative import Likelihood, MStepObjective
from chaffinch.models.classhmm.model import Model
from chaffinch.models.classhmm.objectives import Ground
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.tasks import Task
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.tagger import load, train
from chaffinch.text import Document, Soft, Span
from tests.models.classhmm.test_classhmm import LABELS, SMALL, TEST, TRAIN
from tests.models.notes import hit_rate, notes
from tests.models.test_soft import BARE, changed, softened

CRF = replace(SMALL, calibrate=False)
JOINT = replace(CRF, objective="joint")
both = pytest.mark.parametrize("config", [CRF, JOINT], ids=["crf", "joint"])

# Soft labels


@both
@pytest.mark.parametrize("classes", ["types", "IOB2"])
def test_one_hot_rows_teach_exactly_what_spans_teach(config: ClassHMM, classes: Any) -> None:
    config = replace(config, classes=classes)
    hard, soft = train(TRAIN, config), train([softened(doc) for doc in TRAIN], config, soft="votes")
    assert soft.labels == LABELS
    for name, array in hard.model.state().arrays.items():
        assert np.array_equal(array, soft.model.state().arrays[name])


@both
def test_what_is_partly_tagged_teaches_nearly_the_same(config: ClassHMM) -> None:
    rng = np.random.default_rng(0)
    docs = [softened(doc) for doc in TRAIN]
    docs = [changed(doc, rng.random(len(doc.tokens)) < 0.2, 0.0) for doc in docs]
    assert hit_rate(list(train(docs, config, soft="votes").annotate(TEST)), "classhmm") > 0.75
    bare = [softened(doc, BARE) for doc in TRAIN]
    assert hit_rate(list(train(bare, config, soft="votes").annotate(TEST)), "classhmm") > 0.85
    mixed = [
        doc.with_soft("votes", Soft(soft.labels, 0.8 * soft.values + 0.2 / len(soft.labels)))
        for doc in bare
        for soft in [doc.soft["votes"]]
    ]
    assert hit_rate(list(train(mixed, replace(config, evaluations=100), soft="votes").annotate(TEST)), "classhmm") > 0.8


def test_open_documents_change_a_model_that_generates_words() -> None:
    """All readings of an open document are valid: its words say something, its tags nothing."""
    config = replace(JOINT, cutoff=1, floor=1, kappa=0.5)
    few = [softened(doc) for doc in TRAIN[:8]]
    more = [changed(softened(doc), np.ones(len(doc.tokens), np.bool_), 0.0) for doc in notes(25, 5)]
    one, other = (train(docs, config, soft="votes") for docs in (few, few + more))
    found = [np.concatenate(tagger.model.posteriors(TEST)) for tagger in (one, other)]
    assert np.abs(found[0] - found[1]).max() > 0.05
    assert hit_rate(list(other.annotate(TEST)), "classhmm") > 0.7


@both
def test_parts_of_a_text_have_the_value_and_the_slope_of_the_whole(config: ClassHMM) -> None:
    """Sentences with known, weighed and open tokens, shared out among two parts."""
    rng, docs = np.random.default_rng(3), []
    for doc in (softened(note, BARE) for note in TRAIN[:12]):
        soft = doc.soft["votes"]
        values = 0.7 * soft.values + 0.3 * rng.dirichlet(np.ones(len(soft.labels)), len(soft.values))
        values[rng.random(len(values)) < 0.3] = 0.0
        docs.append(doc.with_soft("votes", Soft(soft.labels, values)))
    task = Task.of(docs, layer=None, soft="votes")
    ground = Ground.of(config, Evidence.of(task, Labels(task.names, "runs")))
    assert ground.logs is not None
    problem = ground.problem(Resources())
    x = problem.start(rng) + rng.normal(0, 0.3, len(problem.start(rng)))
    chosen = rng.random(len(task.seen.begins)) < 0.5
    value, slope = problem.objective(0.0)(x)
    parts = [problem.objective(0.0, some)(x) for some in (chosen, ~chosen)]
    assert value == pytest.approx(parts[0][0] + parts[1][0], rel=1e-9)
    np.testing.assert_allclose(slope, parts[0][1] + parts[1][1], rtol=0, atol=1e-4)
    assert min(abs(value) for value, _ in parts) > 1


def test_soft_labels_that_allow_no_sequence_are_refused() -> None:
    doc = Document.make("a b").with_soft("votes", Soft(("O", "B-X", "I-X"), np.array([[1.0, 0, 0], [0, 0, 1]])))
    with pytest.raises(DataError, match="document 1: the soft labels of a sentence allow no sequence of tags"):
        train([doc], replace(CRF, classes="IOB2"), soft="votes")
    assert train([doc], CRF, soft="votes").labels == ("X",)


# Interrupts


def interrupt(kind: type, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C when an objective is asked for the n-th time, counted from 1."""
    calls, usual = itertools.count(1), kind.__call__

    def interrupted(self: Any, x: Any) -> Any:
        if next(calls) == number:
            raise KeyboardInterrupt
        return usual(self, x)

    monkeypatch.setattr(kind, "__call__", interrupted)


CALIBRATED = replace(JOINT, calibrate=True)
CASES: dict[str, tuple[ClassHMM, type, int]] = {
    "crf": (replace(CRF, calibrate=True), Conditional, 12),
    "joint": (CALIBRATED, Likelihood, 12),
    "judging": (CALIBRATED, Likelihood, CALIBRATED.evaluations + 6),
    "restarts": (replace(CALIBRATED, restarts=3), Likelihood, 27),
    "first of the long climb": (replace(CALIBRATED, restarts=2), Likelihood, 41),
    "em": (replace(CALIBRATED, trainer="em"), Likelihood, 3),
    "em inside": (replace(CALIBRATED, trainer="em"), MStepObjective, 14),
}


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_keeps_what_was_learnt(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, kind, number = CASES[name]
    interrupt(kind, number, monkeypatch)
    trained_tagger = train(TRAIN, config)
    monkeypatch.undo()
    assert trained_tagger.manifest.metrics["interrupted"] == 1
    found = list(trained_tagger.annotate(TEST, confidence=True))
    assert hit_rate(found, "classhmm") > 0.4
    trained_tagger.save(tmp_path / "model")
    again = load(tmp_path / "model").annotate(TEST, confidence=True)
    assert [doc.layer("classhmm") for doc in again] == [doc.layer("classhmm") for doc in found]


@pytest.mark.parametrize("config", [CRF, JOINT, replace(JOINT, trainer="em"), replace(JOINT, restarts=2)])
def test_an_interrupt_before_anything_was_learnt_is_one(config: ClassHMM, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(Conditional if config.objective == "crf" else Likelihood, 1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(TRAIN, config)


def raised(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("part", ["kappa 0.25", "held out", "reading dev", "describing"])
def test_an_interrupt_between_climbs_keeps_what_was_learnt(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(progress: Progress) -> None:
        if progress.part == part and (part == "held out" or progress.epoch > 8):
            raise KeyboardInterrupt

    if part == "reading dev":
        monkeypatch.setattr(Model, "read", raised)
    if part == "describing":
        monkeypatch.setattr(substructure, "describe", raised)
    watcher = Watcher(tell)
    dev = TEST if part == "reading dev" else ()
    model = classhmm.fit(TrainingSet(TRAIN, dev=dev), replace(JOINT, calibrate=True), watcher=watcher)
    monkeypatch.undo()
    assert watcher.interrupted
    assert sum(map(len, model.read(TEST))) > 5


# Privacy


def _keys_of(word: str, doc: Document) -> set[int]:
    """The keys of features made of letters that a word shows in a document, by itself and with the words after it."""
    seen = window.observe([doc])
    kind = types.words_of(seen).index(word)
    features = slice(int(seen.lists[kind]), int(seen.lists[kind + 1]))
    found = set(seen.keys[features][np.isin(seen.kinds[features], list(vocabulary.LEXICAL))].tolist())
    for column in window.contexts(seen, np.zeros(0, np.uint64)):
        found |= set(vocabulary.salt_keys(column.keys[seen.types == kind], column.kind).tolist())
    return found


@pytest.mark.parametrize("objective", ["crf", "joint"])
def test_identifiers_leave_no_trace_in_a_private_model(objective: Any, tmp_path: Path) -> None:
    """A name that many patients bear is known to an open model, and to a private one neither by name nor in part."""
    docs = [
        Document.make(f"Seen by Dr. Zyxgov at {n} today.", id=f"{n}", layers={"gold": [Span(12, 18, "NAME")]})
        for n in range(10, 22)
    ]
    hidden = _keys_of("Zyxgov", docs[0])
    known = {}
    for private in (False, True):
        config = replace(CRF, objective=objective, private=private, floor=2)
        own_tagger = train(docs, config)
        own_tagger.save(tmp_path / str(private))
        state = own_tagger.model.state()
        (keys,) = (array for name, array in state.arrays.items() if name.endswith(".keys"))
        known[private] = hidden & set(keys.tolist())
        assert ("zyxgov" in " ".join(text for texts in state.strings.values() for text in texts).lower()) is not private
        assert (b"yxgov" in (tmp_path / str(private)).read_bytes()) is not private
    assert len(known[False]) >= 5
    assert not known[True]


# Planted states


def planted(seed: int, sentences: int) -> tuple[list[Document], list[list[int]]]:
    """Text of a class HMM with one state for O and two for NAME, which follow one another nearly always."""
    rng = np.random.default_rng(seed)
    words = [[f"o{n}" for n in range(30)], [f"a{n}" for n in range(8)], [f"b{n}" for n in range(8)]]
    moves = np.array([[0.6, 0.25, 0.15], [0.2, 0.05, 0.75], [0.35, 0.6, 0.05]])
    docs, states = [], []
    for number in range(sentences):
        path = [0]
        while len(path) < 12:
            path.append(int(rng.choice(3, p=moves[path[-1]])))
        text = [words[state][int(rng.integers(len(words[state])))] for state in path]
        starts = np.cumsum([0, *(len(word) + 1 for word in text)])
        spans = []
        for inside, run in itertools.groupby(range(12), key=lambda t: path[t] > 0):
            numbers = list(run)
            if inside:
                spans.append(Span(int(starts[numbers[0]]), int(starts[numbers[-1] + 1]) - 1, "NAME"))
        tokens = [(int(a), int(b) - 1) for a, b in itertools.pairwise(starts)]
        docs.append(Document.make(" ".join(text), id=str(number), tokens=tokens, layers={"gold": spans}))
        states.append(path)
    return docs, states


def shared_information(one: Ints, other: Ints) -> float:
    """Mutual information over the mean of both entropies."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1 / len(one))

    def entropy(p: Any) -> float:
        return float(-sum(x * math.log(x) for x in np.ravel(p) if x > 0))

    a, b = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    return 2 * (a + b - entropy(table)) / (a + b)


@pytest.mark.parametrize("trainer", ["gradient", "em"])
def test_planted_states_are_found(trainer: Any) -> None:
    """Names of words say nothing of the state: only what stands beside them does."""
    docs, states = planted(0, 120)
    config = ClassHMM(
        2, 1, objective="joint", features="basic", kappa=0.02, shared=False, trainer=trainer, restarts=5, cutoff=1,
        replicas=0.0, calibrate=False, evaluations=200, private=False,
    )  # fmt: skip
    model = classhmm.fit(TrainingSet(docs), config)
    reading = model.reading(docs)
    gold = np.concatenate(states)
    tags = np.zeros(len(reading.seen.types), np.int64)
    tags[reading.seen.places] = (gold > 0).astype(int)
    found = reading.paths(tags)[reading.seen.places]
    inside = gold > 0
    assert not found[~inside].any()
    assert shared_information(found[inside], gold[inside]) > 0.9
