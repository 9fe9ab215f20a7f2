"""A class HMM's settings: what is refused, how kappa is chosen, first weights, replicas, custom language packs."""

from __future__ import annotations

import itertools
import math
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import languages
from chaffinch.errors import ConfigError
from chaffinch.features import observe as window
from chaffinch.features import word_types as types
from chaffinch.features.clusters import WordClusters
from chaffinch.features.lexicon import Lexicon
from chaffinch.models.classhmm import fit as classhmm
from chaffinch.models.classhmm.config import CHOICES, ClassHMM
from chaffinch.models.classhmm.model import WordEmissions
from chaffinch.models.classhmm.objectives import Generated, Ground
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.tasks import Task
from chaffinch.models.tagger import load, train
from chaffinch.text import Document
from tests.features.test_word_types import copied
from tests.models.classhmm.test_classhmm import SMALL, TEST, TRAIN, model_of, spans, tagger
from tests.models.notes import hit_rate

CRF = replace(SMALL, calibrate=False)
JOINT = replace(CRF, objective="joint")

NOT_WHOLE, NOT_A_NUMBER = (0, 2.5, "8", True), (-0.5, float("nan"), float("inf"), "1", True)
WRONG: list[tuple[dict[str, Any], str]] = [
    *(({name: "no"}, rf"^{name} must be one of {re.escape(', '.join(choices))}, got 'no'$") for name, choices in
      CHOICES.items()),
    *(({name: value}, f"^{name} must be a whole number, at least 1, got {value!r}$") for value in NOT_WHOLE for name in
      ("states_per_class", "restarts", "evaluations", "cutoff", "outside_states", "floor")),
    ({"seed": -1}, "^seed must be a whole number, at least 0, got -1$"),
    *(({name: value}, f"^{name} must be a number of at least 0, got {value!r}$") for value in NOT_A_NUMBER for name in
      ("kappa", "identity")),
    ({"identity": None}, "^identity must be a number of at least 0, got None$"),
    *(({name: value}, f"^{name} must be a number from 0 to 1, got {value!r}$") for value in (*NOT_A_NUMBER, 1.01, None)
      for name in ("mix", "replicas")),
    *(({"trainer": "em", "objective": other}, f"^trainer em is for the objective joint, got '{other}'$") for other in
      ("crf", "krogh", "mix")),
    ({"language": 3}, "^language must be the name of a language pack, or the path of a folder with one"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"), WRONG, ids=[" ".join(map(str, options.items())) for options, _ in WRONG]
)
def test_settings_that_cannot_be_are_refused_by_name_and_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ClassHMM(**options)


def test_the_published_system_is_settings() -> None:
    config = ClassHMM.published(8, "muc")
    assert (config.states_per_class, config.outside_states, config.features, config.objective) == (
        8,
        None,
        "muc",
        "joint",
    )
    assert (config.kappa, config.shared, config.classes, config.trainer) == (0.25, False, "types", "gradient")
    assert [replace(ClassHMM(), objective=name).conditional for name in ("joint", "krogh", "mix")] == [0.0, 1.0, 0.5]
    assert ClassHMM(kappa=0).kappa == 0


def test_what_a_method_cannot_use_is_refused() -> None:
    lexicon = Resources(lexicon=Lexicon.make({"DRUG": ["aspirin"]}))
    clusters = Resources(clusters=WordClusters(("aspirin",), np.zeros((1, 1), np.int32)))
    for resources in (lexicon, clusters):
        for objective in ("joint", "krogh", "mix"):
            with pytest.raises(ConfigError, match=r"lexicons and clusters .* objective crf only; leave them out"):
                train(TRAIN, replace(CRF, objective=objective), resources=resources)
    with pytest.raises(ConfigError, match="classhmm cannot continue from an earlier model"):
        train(TRAIN, CRF, start=tagger("joint"))
    with pytest.raises(ConfigError, match="no language pack 'xx'; name one of de, en, es, or a folder"):
        train(TRAIN, replace(JOINT, language="xx"))
    assert hit_rate(list(train(TRAIN, CRF, resources=lexicon).annotate(TEST)), "classhmm") > 0.9


# Kappa, replicas, topology


def test_dev_documents_choose_kappa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classhmm, "KAPPAS", (0.1, 3e4))
    trained_tagger = train(TRAIN, JOINT, dev=TEST)
    scores = trained_tagger.manifest.metrics
    assert scores["kappa"] == 0.1  # the other allows next to no weight
    assert scores["F1 on dev"] == pytest.approx(hit_rate(list(trained_tagger.annotate(TEST)), "classhmm"))
    assert scores["F1 on dev"] > 0.8
    given = train(TRAIN, replace(JOINT, kappa=3e4), dev=TEST).manifest.metrics
    assert given["kappa"] == 3e4
    assert given["F1 on dev"] < scores["F1 on dev"]
    assert "kappa" not in train(TRAIN[:5], JOINT).manifest.metrics


def generated(config: ClassHMM, docs: Sequence[Document] = TRAIN) -> Generated:
    task = Task.of(docs, layer=None, soft=None)
    problem = Ground.of(config, Evidence.of(task, Labels(task.names, "runs"))).problem(Resources())
    assert isinstance(problem, Generated)
    return problem


def test_replicas_are_reproducible_and_lack_only_names() -> None:
    config = replace(JOINT, features="muc", cutoff=1, floor=1)
    none, all_of_them, half = (generated(replace(config, replicas=share)) for share in (0.0, 1.0, 0.5))
    again, other = (generated(replace(config, replicas=0.5, seed=seed)) for seed in (0, 1))
    assert np.array_equal(half.rows, again.rows)
    assert (half.matrix != again.matrix).nnz == 0
    seen = none.ground.seen
    words = [types.words_of(seen)[kind] for kind in seen.types[seen.places]]
    alone = np.array([count == 1 for count in map(Counter(words).__getitem__, words)])
    named = np.isin(none.vocabulary.kinds, types.IDENTITY)
    standing_in = np.flatnonzero(none.vocabulary.kinds == window.UNKNOWN)

    def shown(problem: Generated) -> list[tuple[int, ...]]:
        return [tuple(np.flatnonzero(row).tolist()) for row in problem.matrix.toarray()[problem.rows]]

    for token, (whole, nameless, some, others) in enumerate(
        zip(*map(shown, (none, all_of_them, half, other)), strict=True)
    ):
        assert any(named[number] for number in whole)
        assert not set(whole) & set(standing_in)
        left = whole
        if alone[token]:  # without its name, and with the two features of an unknown word of its kind
            kept, added = ({n for n in nameless if (n in standing_in) == there} for there in (False, True))
            assert kept == {number for number in whole if not named[number]}
            assert len(added) == 2
            left = nameless
        assert nameless == (left if alone[token] else whole)
        assert {some, others} <= ({whole, left} if alone[token] else {whole})
    assert alone.sum() > 10
    assert shown(half) != shown(other) != shown(none) != shown(half)


def test_left_right_begins_with_going_on_to_the_next_state_and_entering_at_the_first() -> None:
    config = replace(JOINT, states_per_class=3, outside_states=1, topology="left-right")
    problem = generated(config)
    moves = problem.ground.first_moves(np.zeros((14, 14)))
    of = problem.ground.labels.tag_of.tolist()
    assert of == [0, *(tag for tag in range(1, 5) for _ in range(3))]
    firsts = {0, 1, 4, 7, 10}
    for a, b in itertools.product(range(14), repeat=2):
        if a == 13 or b == 13:
            assert moves[a, b] == float(b in firsts and a == 13)
        else:
            assert moves[a, b] == float((of[a] == of[b] and b == a + 1) or (of[a] != of[b] and b in firsts))
    assert not generated(replace(config, topology="free")).ground.first_moves(np.zeros((14, 14))).any()


def test_unknown_words_join_the_denominator_of_a_learnt_model() -> None:
    words = model_of(tagger("joint")).words
    assert isinstance(words, WordEmissions)
    seen = types.with_features(window.observe([Document.make("to zyxgov")]), "rich", languages.pack("en"))
    found, tables = words.log_emissions(seen), words.tables
    for kind, new in ((1, False), (2, True)):
        features = slice(seen.lists[kind], seen.lists[kind + 1])
        numbers = words.vocabulary.find(seen.keys[features])
        numbers = np.where((seen.kinds[features] == window.UNKNOWN) & (not new), -1, numbers)
        logit = tables.weights[numbers[numbers >= 0]].sum(axis=0)
        for y in range(len(logit)):
            Z = math.exp(tables.log_z[y]) + (math.exp(logit[y]) if new else 0.0)
            assert math.exp(found[kind, y]) == pytest.approx(math.exp(logit[y]) / Z, rel=1e-9)


@pytest.mark.parametrize("config", [CRF, JOINT], ids=["crf", "joint"])
def test_a_pack_of_one_s_own_travels_with_the_model(config: ClassHMM, tmp_path: Path) -> None:
    folder = copied(tmp_path / "mine")
    trained_tagger = train(TRAIN, replace(config, language=str(folder)))
    trained_tagger.save(tmp_path / "model")
    found = trained_tagger.model.posteriors(TEST)
    shutil.rmtree(folder)
    again = load(tmp_path / "model")
    assert model_of(again).pack.lexica["first"]["zyxgov"] == "hi"
    assert spans(list(again.annotate(TEST))) == spans(list(trained_tagger.annotate(TEST)))
    assert all(np.array_equal(a, b) for a, b in zip(again.model.posteriors(TEST), found, strict=True))
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
