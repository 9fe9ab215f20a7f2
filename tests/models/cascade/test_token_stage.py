"""The published second stage: segments stay, each has one class, the best by listing every choice of classes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.features import observe as window
from chaffinch.features.lexicon import Lexicon
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.token_stage import FIRST, INNER, TokenClasses
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources, columns_of, no_stops, published_columns
from chaffinch.models.tagger import train
from chaffinch.text import Span
from tests.models import contract
from tests.models.cascade.test_cascade import CONFIGS, TEST, TRAIN, tagger
from tests.models.notes import cascade_model, hit_rate


def listed(found: TokenClasses, sentence: int) -> dict[tuple[int, ...], float]:
    """The score of every choice of classes for the segments of a sentence."""
    low, high = int(found.batch.bounds[sentence]), int(found.batch.bounds[sentence + 1])
    tags, labels, lattice = found.tags[low:high], found.labels, found.batch[sentence]
    out = {}
    for choice in itertools.product(range(1, 1 + len(labels.names)), repeat=int((tags == FIRST).sum())):
        left = iter(choice)
        classes: list[int] = []
        for tag in tags.tolist():
            classes.append(next(left) if tag == FIRST else classes[-1] if tag == INNER else 0)
        states = [int(labels.state_of[a, b]) for a, b in zip([0, *classes], classes, strict=False)]
        out[choice] = math.fsum(lattice.emit[t, state] for t, state in enumerate(states))
    return out


def test_classes_are_the_best_and_chances_those_of_all_choices() -> None:
    model = cascade_model(tagger("published").model)
    seen, columns = model.observe(TEST[:6])
    reading = model.readings[-1]
    first_stage = reading.labels, reading.decode(seen, columns)
    found = TokenClasses.of(cast(Linear, model.classifier), seen, columns, first_stage)
    given = iter([name for runs in found.runs() for _, _, name in runs])
    starts, chances, several = found.starts(), found.chances(), 0
    for sentence in range(len(found.batch)):
        scores = listed(found, sentence)
        best = max(scores, key=lambda choice: scores[choice])
        assert [next(given) for _ in best] == [found.labels.names[number - 1] for number in best]
        low, high = found.batch.bounds[sentence : sentence + 2]
        top, here = max(scores.values()), [n for n in starts.tolist() if low <= n < high]
        total = math.fsum(math.exp(score - top) for score in scores.values())
        for place, n in enumerate(here):
            for number in range(1, 1 + len(found.labels.names)):
                chosen = [math.exp(score - top) for choice, score in scores.items() if choice[place] == number]
                assert chances[n, number] == pytest.approx(math.fsum(chosen) / total, abs=1e-6)
        several += len(here) > 1
    assert several


def test_segments_stay_as_the_first_stage_found_them() -> None:
    model = cascade_model(tagger("published").model)
    seen, columns = model.observe(TEST)
    segments = model.readings[-1].labels.runs(model.readings[-1].decode(seen, columns)[seen.places])
    assert sum(len(runs) for runs in model.read(TEST)) == len(segments) > 20
    sizes = [end - first for runs in model.read(TEST) for first, end, _ in runs]
    assert sizes == [end - first for first, end, _ in segments]


def test_the_published_lexicon_and_layers_are_seen_where_the_publication_sees_them() -> None:
    """The lexicon at the word itself, parts of speech from one word before to one after; words with their n-grams."""
    resources = Resources(lexicon=Lexicon.make({"drug": ["warfarin"]}))
    firsts = [doc.tokens[0].tolist() for doc in TEST[:2]]
    docs = [doc.with_layer("pos", [Span(a, b, "NN")]) for doc, (a, b) in zip(TEST[:2], firsts, strict=True)]
    seen = window.observe(docs)
    ours = {column.kind for column in columns_of(seen, docs, no_stops(), ("pos",), resources)}
    theirs = {column.kind for column in published_columns(seen, docs, ("pos",), resources)}
    assert window.LEXICON_HERE in theirs - ours
    assert len({kind for kind in theirs if kind >= window.MARKS}) == 1  # the layer
    assert len({kind for kind in ours if kind >= window.MARKS}) == 2
    assert {window.BIGRAM, window.TRIGRAM} <= theirs
    assert not {window.HEAD, window.HEADER} & theirs


def test_no_weight_is_learnt_for_moves_from_pair_to_pair() -> None:
    model = cascade_model(tagger("published").model)
    for part in (model.readings[0], cast(Linear, model.classifier)):
        np.testing.assert_array_equal(part.weights.moves, part.labels.states.moves)


@pytest.mark.parametrize("objective", ["pa", "lbfgs"])
def test_the_published_single_stage_learns_the_notes(
    objective: Literal["pa", "lbfgs"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(Cascade.published(stages=1, objective=objective), cutoff=2, epochs=40, private=False)
    found = train(TRAIN, config)
    assert hit_rate(list(found.annotate(TEST))) > 0.9
    contract.check_tagger(found, TEST, tmp_path, monkeypatch)
    contract.check_tiny(config)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"classify": "tokens"}, "use stages=2, calibrate=False"),
        ({"classify": "tokens", "stages": 2, "calibrate": False, "scheme": "IOBES"}, "use scheme='IOB2'"),
        ({"features": "published"}, "use documents=False, dropout=0"),
        ({"objective": "lbfgs"}, "use stages=1, features='published', edge_features=True, calibrate=False"),
    ],
)
def test_settings_of_the_publication_need_one_another(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        replace(CONFIGS["pa"], **changed)  # type: ignore[arg-type]


def test_dev_documents_that_would_stop_nothing_are_refused() -> None:
    config = replace(Cascade.published(stages=1, objective="lbfgs"), cutoff=2, epochs=2, private=False)
    with pytest.raises(ConfigError, match="leave out dev"):
        train(TRAIN, config, dev=TEST)
