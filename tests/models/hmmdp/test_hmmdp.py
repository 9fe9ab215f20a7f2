"""HMM-DP: the suite every tagger passes under each of its settings; one sub-tag per tag worked by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.hmmdp.rules import Rules, TagRule
from chaffinch.models.latent.decode import DECODERS
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.models import contract
from tests.models.notes import hit_rate, notes

RULES = Rules(
    (("DOSE", "MEDICINE"), ("DRUG", "MEDICINE"), ("NAME", "WHO"), ("TOWN", "WHERE")),
    (TagRule("MEDICINE", "DOSE", pattern="[0-9]"),),
)
SMALL = HMMDP(3, 2, min_count=2, private=False, passes=4, epochs=2)
CHAIN = replace(SMALL, discriminative=False)
CONFIGS = {
    "default": HMMDP(private=False),
    "small": SMALL,
    "chain": CHAIN,
    "published": replace(HMMDP.published(), outside=6, inside=2, passes=3),
    "types": replace(CHAIN, tags="types"),
    "types+": replace(SMALL, tags="types"),
    "stops+": replace(SMALL, sentences="stops"),
    "five classes+": replace(SMALL, word_classes="five"),
    "submitted": replace(HMMDP.submitted(RULES), outside=4, inside=2, passes=3, min_count=2),
    "submitted+": replace(SMALL, rules=RULES),
    "categorical+": replace(SMALL, emissions="categorical"),
    "backoff": replace(CHAIN, emissions="backoff"),
    "mean": replace(CHAIN, parameters="mean"),
    "mean+": replace(SMALL, parameters="mean"),
    "one sub-tag": replace(CHAIN, outside=1, inside=1),
    "one sub-tag+": replace(SMALL, outside=1, inside=1),
    "batches": replace(CHAIN, batches=3),
    "stochastic": replace(CHAIN, batches=3, stochastic=True),
    "atoms": replace(CHAIN, form="atoms", start="context"),
    "factored": replace(CHAIN, states="factored", start="random", passes=2),
    "private": replace(CHAIN, private=True),
    "private+": replace(SMALL, private=True),
    "es": replace(CHAIN, language="es", alpha_sticks=1.0, alpha_emission=0.3),
    "from context": replace(CHAIN, start="context"),
    "from random": replace(CHAIN, start="random"),
    "sticks W2": replace(CHAIN, sticks="W2"),
    "sticks W3": replace(CHAIN, sticks="W3"),
    **{f"by {decoder}": replace(CHAIN, decode=decoder) for decoder in DECODERS if decoder != CHAIN.decode},
    **{
        f"by {decoder}+": replace(SMALL, decode=decoder)
        for decoder in DECODERS
        if decoder in ("posterior", "joint", "brute")
    },
}
every_config = pytest.mark.parametrize("name", CONFIGS)
TRAIN, TEST = notes(30, noise=0.06), notes(10, 1)
LABELS = ("DOSE", "DRUG", "NAME", "TOWN")


@cache
def tagger(name: str) -> Tagger:
    return train(TRAIN, CONFIGS[name])


def model_of(own: Tagger) -> Model:
    assert isinstance(own.model, Model)
    return own.model


def spans(docs: Sequence[Document]) -> list[tuple[Span, ...]]:
    return [doc.layer("hmmdp") for doc in docs]


def scored(docs: Sequence[Document]) -> list[tuple[int, int, str, float]]:
    return [(s.start, s.end, s.label, s.score) for doc in docs for s in doc.layer("hmmdp")]


# The suite


@every_config
def test_the_invented_notes_are_learnt(name: str) -> None:
    assert tagger(name).labels == LABELS
    # Fewer than all: a drug and its dose side by side are one span of one category; pooling is coarse, fading and
    # random starts are slow, private models know no drug by its name.
    least = {
        "by kl-pooled": 0.5,
        "stochastic": 0.8,
        "factored": 0.8,
        "from random": 0.8,
        "private": 0.8,
        "submitted": 0.8,
    }
    assert hit_rate(list(tagger(name).annotate(TEST)), "hmmdp") > least.get(name, 0.9)


@every_config
def test_the_contract_holds_for_every_setting(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.check_tagger(tagger(name), TEST, tmp_path, monkeypatch)
    contract.check_tiny(CONFIGS[name])
    contract.check_same_bytes(CONFIGS[name], TRAIN, tmp_path, first=tagger(name))


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if config.rules is None])
def test_a_label_that_most_documents_lack_is_learnt(name: str) -> None:
    contract.check_absent_label(CONFIGS[name], TRAIN)


@every_config
def test_tiles_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = contract.found(tagger(name), TEST)
    monkeypatch.setattr("chaffinch.models.hmmdp.model.TILE", 30)
    assert contract.found(tagger(name), TEST) == whole


def test_another_seed_gives_another_model(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(TRAIN, replace(CHAIN, seed=seed)).save(tmp_path / str(seed))
    assert (tmp_path / "0").read_bytes() != (tmp_path / "1").read_bytes()


@every_config
def test_posteriors_agree_with_what_is_read_where_they_are_sure(name: str) -> None:
    sure = 0
    for doc in tagger(name).posteriors(TEST):
        soft = doc.soft["hmmdp"]
        read = np.zeros(len(doc.tokens), np.int64)
        for span in tagger(name)(doc).layer("hmmdp"):
            read[(doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)] = soft.labels.index(span.label)
        certain = soft.values.max(axis=1) > 0.99
        found = soft.values.argmax(axis=1)
        if name != "by kl-pooled":  # whose chain is not the model's
            assert (found == read)[certain].all()
        sure += int(certain.sum())
    assert sure or name == "stochastic"


@every_config
def test_bias_moves_how_much_is_found(name: str) -> None:
    values = (-1000.0, -20.0, -5.0, 0.0, 5.0, 20.0, 1000.0)
    counts = []
    for value in values:
        found = list(tagger(name).annotate(TEST, bias={"O": value}))
        assert found[0].layer("hmmdp") == next(iter(tagger(name).annotate(TEST[:1], bias={"O": value}))).layer("hmmdp")
        counts.append(sum(_tokens_inside(doc) for doc in found))
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (sum(len(doc.tokens) for doc in TEST), 0)
    assert counts[0] > counts[3] > counts[-1]


def test_what_a_missed_span_costs_moves_how_much_is_found() -> None:
    own, counts = model_of(tagger("by posterior")), []
    for ratio in (1e-9, 0.1, 1.0, 10.0, 1e9):
        dear = replace(own, config=replace(own.config, cost_ratio=ratio))
        counts.append(sum(end - first for runs in dear.read(TEST) for first, end, _ in runs))
    assert counts == sorted(counts)
    assert counts[0] < counts[2] < counts[-1]


def _tokens_inside(doc: Document) -> int:
    return sum(
        int(((doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)).sum()) for span in doc.layer("hmmdp")
    )


@every_config
def test_alternatives_are_different_readings_of_the_document(name: str) -> None:
    for doc in TEST[:4]:
        readings = [own.layer("hmmdp") for own in tagger(name).alternatives(doc, 5)]
        assert len(readings) == 5
        edges = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
        for own in readings:
            assert all(s.start in edges[0] and s.end in edges[1] and s.label in LABELS for s in own)
            assert all(a.end <= b.start for a, b in itertools.pairwise(own))
        assert len(set(readings)) == 5
        if name in ("chain", "small", "default", "by kl", "published"):
            assert readings[0] == tagger(name)(doc).layer("hmmdp")


# Tables by hand

LETTERS = [
    Document.make(text, id=text, layers={"gold": [Span(a, b, "X") for a, b in own]})
    for text, own in (("dr smith came", [(3, 8)]), ("smith jones came", [(0, 11)]), ("came dr", []))
]
# O: dr came came dr; B-X: smith smith; I-X: jones. Moves from O: O, B, end; from B: O, B, I, end; I likewise.
SHOWN = {("O", "dr"): 2, ("O", "came"): 3, ("B-X", "smith"): 2, ("I-X", "jones"): 1}
MOVED = {
    ("<", "O"): 2, ("<", "B-X"): 1, ("O", "B-X"): 1, ("O", "O"): 1, ("O", ">"): 3, ("B-X", "O"): 1, ("B-X", "I-X"): 1,
    ("I-X", "O"): 1,
}  # fmt: skip
FOLLOW = {"<": ["O", "B-X"], "O": ["O", "B-X", ">"], "B-X": ["O", "B-X", "I-X", ">"], "I-X": ["O", "B-X", "I-X", ">"]}


def by_hand(known: int) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Relative frequencies with 0.5 added to each of the `known` symbols and 0.1 to each move that may be."""
    total = {tag: sum(n for (own, _), n in SHOWN.items() if own == tag) for tag in ("O", "B-X", "I-X")}
    words = {
        (tag, word): (SHOWN.get((tag, word), 0) + 0.5) / (total[tag] + 0.5 * known)
        for tag in total
        for word in ("dr", "came", "smith", "jones")
    }
    moves: dict[tuple[str, str], float] = {}
    for tag, ways in FOLLOW.items():
        left = sum(MOVED.get((tag, to), 0) for to in ways)
        moves |= {(tag, to): (MOVED.get((tag, to), 0) + 0.1) / (left + 0.1 * len(ways)) for to in ways}
    return words, moves


def test_one_sub_tag_per_tag_is_a_smoothed_hmm_worked_by_hand() -> None:
    config = HMMDP(
        1, 1, "categorical", discriminative=False, parameters="mean", min_count=1, min_patients=1, alpha_emission=0.5,
        alpha_tags=0.1, passes=3, decode="brute",
    )  # fmt: skip
    model = model_of(train(LETTERS, config))
    tags, tables = model.labels.tags, model.tables
    known = model.symbols.sizes[0] + model.symbols.sizes[1]
    words, moves = by_hand(known)
    assert tables.emit[0].shape == (known, 3)
    for place, word in enumerate(model.symbols.words, start=1):
        wanted = [math.log(words[tag, word]) for tag in tags]
        np.testing.assert_allclose(tables.emit[0][place], wanted, rtol=0, atol=1e-6)
    for a, tag in enumerate(tags):
        wanted = [math.log(moves[tag, to]) if (tag, to) in moves else -math.inf for to in tags]
        np.testing.assert_allclose(tables.trans[a], wanted, rtol=0, atol=1e-6)
        assert tables.end[a] == pytest.approx(math.log(moves[tag, ">"]), abs=1e-6)
        assert tables.start[a] == pytest.approx(math.log(moves["<", tag]) if ("<", tag) in moves else -math.inf)
    np.testing.assert_allclose(model.portrait.mass, [5, 2, 1], rtol=0, atol=1e-9)
    text = ("dr", "smith", "jones", "came")
    chances = {}
    for path in itertools.product(tags, repeat=4):
        steps = list(itertools.pairwise(("<", *path, ">")))
        if all(step in moves for step in steps):
            chances[path] = math.prod(moves[step] for step in steps) * math.prod(
                words[tag, word] for tag, word in zip(path, text, strict=True)
            )
    doc = Document.make(" ".join(text))
    inside = [sum(own for path, own in chances.items() if path[t] != "O") for t in range(4)]
    found = model.posteriors([doc])[0]
    np.testing.assert_allclose(found[:, 1], np.array(inside) / sum(chances.values()), rtol=0, atol=1e-6)
    best = max(chances, key=lambda path: chances[path])
    assert best == ("O", "B-X", "I-X", "O")
    assert model.read([doc]) == [[(1, 3, "X")]]
    spans_there = sum(own for path, own in chances.items() if path[1:3] == best[1:3] and path[3] != "I-X")
    assert model.read_with_confidence([doc])[0][1] == pytest.approx(spans_there / sum(chances.values()), abs=1e-6)
