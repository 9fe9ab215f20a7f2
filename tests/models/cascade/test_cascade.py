"""The cascade: the suite every tagger passes, under each of its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from chaffinch.errors import DataError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.models import contract
from tests.models.notes import hit_rate, notes

CONFIGS = {
    "pa": Cascade(epochs=3, private=False),
    "crf": Cascade(objective="crf", epochs=3, private=False),
    "two stages": Cascade(stages=2, scheme="IOB2", documents=False, cutoff=5, dropout=0.0, private=False),
    "published": replace(Cascade.published(), private=False),
    "IOB2": Cascade(scheme="IOB2", epochs=3, private=False),
    "tokens": Cascade(scheme="tokens", epochs=3, private=False),
}
ONE_STAGE = [name for name in CONFIGS if CONFIGS[name].stages == 1]
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
def test_the_contract_holds_for_every_setting(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.check_tagger(tagger(name), TEST, tmp_path, monkeypatch)
    contract.check_tiny(CONFIGS[name])
    contract.check_same_bytes(CONFIGS[name], TRAIN, tmp_path, first=tagger(name))


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(DataError, match="no documents"):
        train([])
    with pytest.raises(DataError, match="holds no span"):
        train([Document.make("Ann came.")])
    bare = Document.make("a", tokens=[(0, 1)], sentences=[], layers={"gold": [Span(0, 1, "A")]})
    with pytest.raises(DataError, match="no sentence"):
        train([bare])


def test_another_seed_gives_another_model(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(TRAIN, Cascade(epochs=3, seed=seed)).save(tmp_path / str(seed))
    assert (tmp_path / "0").read_bytes() != (tmp_path / "1").read_bytes()


@every_config
def test_posteriors_agree_with_what_is_read(name: str) -> None:
    for doc in tagger(name).posteriors(TEST):
        soft = doc.soft["cascade"]
        assert soft.labels == ("O", "DOSE", "DRUG", "NAME", "TOWN")
        for span in tagger(name)(doc).layer("cascade"):
            inside = (doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)
            assert (soft.values[inside, 1:].argmax(axis=1) + 1 == soft.labels.index(span.label)).all()


@every_config
def test_confidences_are_neither_certain_nor_all_alike(name: str) -> None:
    scores = [s.score for doc in tagger(name).annotate(TEST, confidence=True) for s in doc.layer("cascade")]
    assert all(0 < score < 1 for score in scores)
    assert len(set(scores)) > 1
