"""The class HMM: the suite every tagger passes, under each of its settings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.errors import ModelError
from chaffinch.models import registry as methods
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.model import Model
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.models import contract
from tests.models.notes import hit_rate, notes

SMALL = ClassHMM(evaluations=25, private=False)
JOINT = replace(SMALL, objective="joint", evaluations=40)
CONFIGS = {
    "crf": SMALL,
    "joint": JOINT,
    "krogh": replace(SMALL, objective="krogh"),
    "mix": replace(SMALL, objective="mix"),
    "published": replace(ClassHMM.published(2), evaluations=60),
    "em": replace(JOINT, trainer="em", evaluations=80),
    "IOB2": replace(SMALL, classes="IOB2"),
    "joint IOB2": replace(JOINT, classes="IOB2", features="muc"),
    "left-right": replace(SMALL, topology="left-right", states_per_class=3),
    "joint left-right": replace(JOINT, topology="left-right", states_per_class=3, outside_states=4),
    "one state": replace(SMALL, states_per_class=1),
    "joint one state": replace(JOINT, states_per_class=1, shared=False),
    "restarts": replace(JOINT, restarts=3),
    "states alone": replace(SMALL, shared=False, identity=4.0, kappa=0.05),
    "shape": replace(JOINT, features="shape", cutoff=1, replicas=0.5),
    "capitalisation": replace(JOINT, features="capitalisation"),
    "private": replace(SMALL, private=True),
    "joint private": replace(JOINT, private=True, language="es"),
    "by kl": replace(JOINT, decode="kl"),
    "by joint": replace(JOINT, decode="joint"),
    "by posterior": replace(JOINT, decode="posterior", calibrate=False),
}
LEAST = {"published": 0.8, "one state": 0.85, "joint one state": 0.85, "shape": 0.8, "private": 0.8,
         "joint private": 0.8, "by joint": 0.85, "joint IOB2": 0.85}  # fmt: skip
CORE = ("crf", "joint", "krogh", "mix")
every_config = pytest.mark.parametrize("name", CONFIGS)
core = pytest.mark.parametrize("name", CORE)
core_and_iob2 = pytest.mark.parametrize("name", [*CORE, "IOB2"])
seeded = pytest.mark.parametrize("name", [*CORE, "em", "restarts", "shape"])
TRAIN, TEST = notes(30, noise=0.06), notes(10, 1)
LABELS = ("DOSE", "DRUG", "NAME", "TOWN")


@cache
def tagger(name: str) -> Tagger:
    return train(TRAIN, CONFIGS[name])


def model_of(tagger: Tagger) -> Model:
    assert isinstance(tagger.model, Model)
    return tagger.model


def spans(docs: Sequence[Document]) -> list[tuple[Span, ...]]:
    return [doc.layer("classhmm") for doc in docs]


def scored(docs: Sequence[Document]) -> list[tuple[int, int, str, float]]:
    return [(s.start, s.end, s.label, s.score) for doc in docs for s in doc.layer("classhmm")]


@every_config
def test_the_invented_notes_are_learnt(name: str) -> None:
    assert tagger(name).labels == LABELS
    assert tagger(name).layer == tagger(name).manifest.kind == "classhmm"
    assert hit_rate(list(tagger(name).annotate(TEST)), "classhmm") > LEAST.get(name, 0.9)


@every_config
def test_states_and_the_trace_are_what_was_asked_for(name: str) -> None:
    config, model = CONFIGS[name], model_of(tagger(name))
    tags = 4 if config.classes == "types" else 8
    count = config.states_per_class
    assert model.labels.subs == (config.outside_states or count, *[count] * tags)
    assert (model.words is None) == (config.objective == "crf")
    trace = model.portrait.trace
    assert 2 <= len(trace) <= config.evaluations
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    if config.objective in ("crf", "krogh"):
        assert trace[-1] < 0
    several = count > 1 or (config.outside_states or 1) > 1
    assert len(model.portrait.held_out) == (0 if not config.calibrate else 2 if several else 1)
    assert (model.portrait.held_out < 0).all()


@every_config
def test_the_contract_holds_for_every_setting(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.check_tagger(tagger(name), TEST, tmp_path, monkeypatch)


@seeded
def test_the_contract_of_learning(name: str, tmp_path: Path) -> None:
    contract.check_same_bytes(CONFIGS[name], TRAIN, tmp_path, first=tagger(name))
    for seed in range(3):  # other documents are held out
        contract.check_tiny(replace(CONFIGS[name], seed=seed))


@core
def test_a_label_that_most_documents_lack_is_learnt(name: str) -> None:
    contract.check_absent_label(CONFIGS[name], TRAIN)


@pytest.mark.parametrize("name", ["joint", "shape"])
def test_another_seed_gives_another_model(name: str) -> None:
    arrays = [train(TRAIN, replace(CONFIGS[name], seed=seed)).model.state().arrays for seed in (0, 1)]
    assert any(
        not np.array_equal(array, arrays[1][key]) for key, array in arrays[0].items() if key.startswith("tables.")
    )


@core_and_iob2
def test_posteriors_agree_with_what_is_read_where_they_are_sure(name: str) -> None:
    sure = 0
    for doc in tagger(name).posteriors(TEST):
        soft = doc.soft["classhmm"]
        read = np.zeros(len(doc.tokens), np.int64)
        for span in tagger(name)(doc).layer("classhmm"):
            read[(doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)] = soft.labels.index(span.label)
        certain = soft.values.max(axis=1) > 0.99
        assert (soft.values.argmax(axis=1) == read)[certain].all()
        sure += int(certain.sum())
    assert sure


def _tokens_inside(doc: Document) -> int:
    edges = [(span.start, span.end) for span in doc.layer("classhmm")]
    return sum(int(((doc.tokens[:, 0] >= a) & (doc.tokens[:, 1] <= b)).sum()) for a, b in edges)


@core_and_iob2
def test_bias_moves_how_much_is_found(name: str) -> None:
    counts = []
    for value in (-1000.0, -20.0, -5.0, 0.0, 5.0, 20.0, 1000.0):
        found = list(tagger(name).annotate(TEST, bias={"O": value}))
        assert found[0].layer("classhmm") == next(iter(tagger(name).annotate(TEST[:1], bias={"O": value}))).layer(
            "classhmm"
        )
        counts.append(sum(map(_tokens_inside, found)))
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (sum(len(doc.tokens) for doc in TEST), 0)
    assert counts[0] > counts[3] > counts[-1]


@core_and_iob2
def test_alternatives_are_different_readings_of_the_document(name: str) -> None:
    for doc in TEST[:4]:
        readings = [reading.layer("classhmm") for reading in tagger(name).alternatives(doc, 5)]
        edges = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
        for reading in readings:
            assert all(s.start in edges[0] and s.end in edges[1] and s.label in LABELS for s in reading)
            assert all(a.end <= b.start for a, b in itertools.pairwise(reading))
        assert len(readings) == len(set(readings)) == 5
    for doc in TEST:
        best = tagger("by kl").alternatives(doc, 1)[0].layer("classhmm")
        assert best == tagger("by kl")(doc).layer("classhmm")


@pytest.mark.parametrize("name", ["crf", "joint"])
def test_a_model_whose_pieces_do_not_fit_is_refused(name: str, tmp_path: Path) -> None:
    tagger(name).save(tmp_path / "model")
    found = bundle.load(tmp_path / "model")
    for key, array in found.arrays.items():
        fewer = {other: array for other, array in found.arrays.items() if other != key}
        if key != "stops":
            with pytest.raises(ModelError):
                methods.model_of(replace(found.state, arrays=fewer))
        if key.startswith(("tables.", "words.", "subs")):
            for short in (array[1:], array[:, 1:]) if array.ndim == 2 else (array[1:],):
                with pytest.raises(ModelError):
                    methods.model_of(replace(found.state, arrays={**found.arrays, key: short}))
