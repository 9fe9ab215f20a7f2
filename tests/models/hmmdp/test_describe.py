"""Portraits of sub-tags of a model set up by hand; paths of explanations against every path of short sentences."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.features import observe as window
from chaffinch.features import symbols
from chaffinch.features.symbols import Symbols
from chaffinch.kernels import Batch, Floats, Lattice
from chaffinch.models.core.labels import Labels
from chaffinch.models.hmmdp import describe as portrait
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.describe import Subtag, SubtagPath
from chaffinch.models.hmmdp.model import Model, Portrait, emissions_for
from chaffinch.models.hmmdp.rules import Rules, TagRule
from chaffinch.models.hmmdp.variational import LogTables
from chaffinch.models.latent.describe_words import Lead, PathStep, shorten_signature
from chaffinch.models.latent.span_probabilities import run_chances
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.kernels import oracle
from tests.models.notes import notes

TEXTS = ["Dr. Ann Penn came.", "Mr. Voss saw Dora.", "No aspirin.", "Ann", "Dr. was York Ida"]
Form = Literal["categorical", "factored", "backoff"]

START = [0.8, 0.2, 0.0, 0.0]  # to O₁, O₂, B-NAME₁, I-NAME₁
MOVES = [  # the same, and the end
    [0.5, 0.3, 0.0, 0.0, 0.2],
    [0.0, 0.0, 0.75, 0.0, 0.25],
    [0.25, 0.0, 0.0, 0.5, 0.25],
    [0.5, 0.0, 0.0, 0.0, 0.5],
]
MASS = np.array([100.0, 40.0, 30.0, 0.5])
SENTENCES = 100 * 0.2 + 40 * 0.25 + 30 * 0.25 + 0.5 * 0.5


def log(values: object) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.asarray(values, float)))


def known() -> Symbols:
    seen = window.observe([Document.make("Seen by Ann Penn")])
    found = symbols.learn(seen, "en", patients=np.zeros(1, np.int64), min_count=1, min_groups=1)
    return replace(found, words=("the", "Ann", "Penn", "by"), signatures=("‹NUM", "‹ALPHA|Cap"))


def by_hand(form: Form, emit: list[Floats], *, scale: float = 1.0) -> Model:
    """A model of NAME with two sub-tags of O; rows of moves add up to `scale`, as those of geometric means to less."""
    config = HMMDP(2, 1, form, discriminative=False)
    moves = log(MOVES) + math.log(scale)
    types = np.ones(3, np.int64) if form == "backoff" else None
    emissions = emissions_for(config, tuple(map(len, emit)), types)
    tables = LogTables(
        log(START) + math.log(scale), moves[:, :4], moves[:, 4], tuple(emissions.temper * own for own in emit)
    )
    labels = Labels(("NAME",), "IOB2", subs=(2, 1, 1))
    return Model(config, ("NAME",), labels, known(), emissions, tables, Portrait(MASS, np.array([-9.0, -5.0])))


def column(*shares: float) -> Floats:
    """The same log shares for all four states."""
    return np.tile(log(shares)[:, None], 4)


# symbol 0 is any other; then the, Ann, Penn, by; in one table then any other signature, NUM, ALPHA
ONE_TABLE = [column(0.0, 0.5, 0.125, 0.004, 0.121, 0.0, 0.15, 0.1)]
FACTORED = [column(0.0, 0.25, 0.125, 0.5, 0.125), column(0.25, 0.25, 0.5), *[column(0.5, 0.5)] * 4]
BACKING = [column(0.0, 0.5, 0.25, 0.25, 0.0), column(0.0, 0.25, 0.75), column(0.8, 0.2)]


def close(found: tuple[tuple[str, float], ...], expected: dict[str, float]) -> bool:
    return [name for name, _ in found] == list(expected) and [share for _, share in found] == pytest.approx(
        list(expected.values()), abs=1e-12
    )


@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_a_portrait_worked_by_hand(scale: float) -> None:
    first, second, begins, goes_on = portrait.subtags(by_hand("categorical", ONE_TABLE, scale=scale))
    assert [own.name for own in (first, second, begins, goes_on)] == ["O₁", "O₂", "B-NAME₁", "I-NAME₁"]
    assert (first.tag, first.number, first.tokens) == ("O", 1, 100.0)
    assert (second.tag, second.number) == ("O", 2)
    assert second.share == pytest.approx(40 / 140)
    assert begins.share == goes_on.share == 1.0
    flows = {"O₁": 100 * 0.3, "begin": SENTENCES * 0.2}
    assert close(second.before, {name: flow / sum(flows.values()) for name, flow in flows.items()})
    flows = {"O₁": 100 * 0.5, "begin": SENTENCES * 0.8, "B-NAME₁": 30 * 0.25}
    total = sum(flows.values()) + 0.5 * 0.5  # from I-NAME₁, too seldom to be listed
    assert close(first.before, {name: flow / total for name, flow in flows.items()})
    assert close(begins.before, {"O₂": 1.0})
    assert close(first.after, {"O": 0.8, "end": 0.2})
    assert close(second.after, {"B-NAME": 0.75, "end": 0.25})
    assert close(begins.after, {"I-NAME": 0.5, "O": 0.25, "end": 0.25})


def test_words_and_signatures_of_each_kind_of_emissions() -> None:
    own = portrait.subtags(by_hand("categorical", ONE_TABLE))[0]
    assert close(own.words, {"the": 0.5, "Ann": 0.125, "by": 0.121})  # Penn: less than half of one of 100 tokens
    assert close(own.signatures, {"‹NUM": 0.15, "‹ALPHA|Cap": 0.1})
    own = portrait.subtags(by_hand("factored", FACTORED))[0]
    assert close(own.words, {"Penn": 0.5, "the": 0.25, "Ann": 0.125, "by": 0.125})
    assert close(own.signatures, {"‹ALPHA|Cap": 0.5, "‹NUM": 0.25})
    own = portrait.subtags(by_hand("backoff", BACKING))[0]
    assert close(own.words, {"the": 0.4, "Ann": 0.2, "Penn": 0.2})
    assert close(own.signatures, {"‹ALPHA|Cap": 0.15, "‹NUM": 0.05})


def test_lists_are_cut() -> None:
    size = 20
    model = by_hand("categorical", [column(*[0.0] + [2.0**-k for k in range(1, size + 1)] + [0.0, 0.1, 0.1])])
    words = tuple(f"w{k}" for k in range(1, size + 1))
    wide = replace(model.symbols, words=words, keys=(np.arange(size, dtype=np.uint64), *model.symbols.keys[1:]))
    own = portrait.subtags(replace(model, symbols=wide, portrait=Portrait(MASS * 1e6, np.zeros(1))))[0]
    assert [word for word, _ in own.words] == [f"w{k}" for k in range(1, portrait.WORDS + 1)]


def test_a_subtag_without_tokens_has_no_portrait() -> None:
    model = replace(by_hand("factored", FACTORED), portrait=Portrait(np.array([100.0, 0.0, 30.0, 0.0]), np.zeros(1)))
    own = portrait.subtags(model)[1]
    assert (own.tokens, own.share) == (0.0, 0.0)
    assert own.before == own.after == ()
    assert portrait.subtags(model)[3].share == 0.0


def test_use_by_hand() -> None:
    outside, begins, goes_on = portrait.use(by_hand("factored", FACTORED))
    p = 100 / 140
    assert (outside.tag, outside.subtags, outside.effective, outside.tokens) == ("O", 2, 2, 140.0)
    assert outside.perplexity == pytest.approx(p**-p * (1 - p) ** -(1 - p))
    assert outside.full
    assert (begins.effective, begins.perplexity, begins.full) == (1, 1.0, True)
    assert (goes_on.effective, goes_on.full) == (0, False)
    empty = replace(by_hand("factored", FACTORED), portrait=Portrait(np.zeros(4), np.zeros(1)))
    assert [(own.effective, own.perplexity) for own in portrait.use(empty)] == [(0, 0.0)] * 3


SMALL = HMMDP(2, 1, min_count=2, passes=3, epochs=2)
CONFIGS = {
    "discriminative": SMALL,
    "chain": replace(SMALL, discriminative=False),
    "categorical": replace(SMALL, emissions="categorical", discriminative=False),
    "backoff": replace(SMALL, emissions="backoff", discriminative=False),
}
every_config = pytest.mark.parametrize("name", CONFIGS)


@cache
def tagger(name: str) -> Tagger:
    """A tagger of one label, so that paths can be listed."""
    docs = [replace(doc, layers={"gold": tuple(s for s in doc.layer() if s.label == "NAME")}) for doc in notes(30)]
    return train(docs, CONFIGS[name])


def model_of(name: str) -> Model:
    found = tagger(name).model
    assert isinstance(found, Model)
    return found


def told(name: str, doc: Document, span: Span) -> SubtagPath:
    return portrait.explain(model_of(name), doc, span)


def lattice_of(model: Model, doc: Document) -> Lattice:
    assert len(doc.sentences) == 1
    return next(batch for batch, _ in model.batches([doc])[1])[0]


def spans_of(doc: Document) -> list[tuple[int, int, Span]]:
    """Every run of up to three tokens."""
    starts, ends = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist()
    T = len(starts)
    return [(a, b, Span(starts[a], ends[b - 1], "NAME")) for a in range(T) for b in range(a + 1, min(a + 3, T) + 1)]


def weight(paths: list[Any]) -> float:
    return math.fsum(math.exp(own[0]) for own in paths)


@every_config
def test_paths_and_probabilities_are_those_of_all_paths_listed(name: str) -> None:
    model, seen = model_of(name), 0
    for text in TEXTS:
        doc = Document.make(text)
        listing = oracle.listing(lattice_of(model, doc))
        log_z, labels = listing.log_z, model.labels
        paths = [(s - log_z, path, labels.runs(np.array(path, np.int32))) for s, path in listing.paths]
        for a, b, span in spans_of(doc):
            mine = [own for own in paths if (a, b, "NAME") in own[2]]
            rest = [own for own in paths if (a, b, "NAME") not in own[2]]
            why = told(name, doc, span)
            numbers = [
                int(state) - int(np.searchsorted(labels.tag_of, labels.tag_of[state])) + 1 for state in mine[0][1]
            ]
            tags = [labels.tags[labels.tag_of[state]] for state in mine[0][1]]
            whole = list(zip(doc.words(), tags, numbers, strict=True))
            assert [(own.word, own.tag, own.number) for own in why.steps] == whole[max(a - 3, 0) : b + 2]
            assert why.chance == pytest.approx(weight(mine), abs=1e-9)
            assert weight(mine) + weight(rest) == pytest.approx(1.0)
            pair = [
                weight([own for own in paths if (labels.tag_of[list(own[1])] == labels.tag_of[list(best[1])]).all()])
                for best in (mine[0], rest[0])
            ]
            assert math.log(why.ratio) == pytest.approx(math.log(pair[0] / pair[1]), abs=1e-6)
            near = [own[:2] for own in rest[0][2] if own[0] < b and own[1] > a]
            found = [(one.start, one.end) for one in why.runner_up]
            assert found == [(int(doc.tokens[x, 0]), int(doc.tokens[y - 1, 1])) for x, y in near]
            seen += 1
    assert seen > 25


@pytest.mark.parametrize("name", ["discriminative", "chain"])
def test_the_chance_of_a_span_is_that_of_reading_with_confidence(name: str) -> None:
    model = model_of(name)
    for text in TEXTS:
        doc = Document.make(text)
        batch = Batch.of([lattice_of(model, doc)])
        for a, b, span in spans_of(doc):
            tags = model.labels.encode([(a, b, 0)], len(doc.tokens))
            expected = run_chances(batch, model.labels, tags, np.array([a]), np.array([b]))
            assert told(name, doc, span).chance == pytest.approx(float(expected[0]), abs=1e-9)


@every_config
def test_subtags_of_a_path_are_described_as_the_portrait_does(name: str) -> None:
    model = model_of(name)
    every = {own.name: own for own in portrait.subtags(model)}
    doc = Document.make("She was seen by Dr. Ann Penn today.")
    why = told(name, doc, Span(20, 28, "NAME"))
    several = {own.tag for own in portrait.use(model) if own.subtags > 1}
    names = [own.subtag.name for own in why.leads]
    assert names == list(dict.fromkeys(own.name for own in why.steps if own.tag in several))
    assert [own.subtag for own in why.leads] == [every[name] for name in names]
    after = [*(own.tag for own in why.steps[1:])]
    for step, following in zip(why.steps, after, strict=False):
        if step.tag in several:
            lead = next(own for own in why.leads if (own.subtag.tag, own.subtag.number) == (step.tag, step.number))
            state = model.labels.tags.index(step.tag), step.number
            row = int(np.searchsorted(model.labels.tag_of, state[0])) + state[1] - 1
            moves = np.exp(model.tables.trans[row])
            share = moves[model.labels.tag_of == model.labels.tags.index(following)].sum()
            total = moves.sum() + math.exp(model.tables.end[row])
            assert dict(lead.to)[following] == pytest.approx(share / total)


def test_shares_of_real_portraits_add_up() -> None:
    model = model_of("chain")
    for tag in portrait.use(model):
        own = [one for one in portrait.subtags(model) if one.tag == tag.tag]
        assert len(own) == tag.subtags
        assert sum(one.tokens for one in own) == pytest.approx(tag.tokens)
        assert sum(one.share for one in own) == pytest.approx(1.0)
        for one in own:
            for shares in (one.words, one.signatures, one.before, one.after):
                assert sum(share for _, share in shares) <= 1 + 1e-9
                assert [share for _, share in shares] == sorted((share for _, share in shares), reverse=True)


WELDER = Subtag("B-PROFESSION", 2, 9.0, 1.0, (), (("‹ALPHA|lower|job=hi|common=0", 0.9),), (("O₁₇", 1.0),), ())
RETIRED = Subtag("O", 17, 30.0, 0.1, (("worked", 0.5), ("retired", 0.4)), (), (("O₃", 0.7), ("begin", 0.3)), ())
PATH = SubtagPath(
    Span(12, 18, "PROFESSION"),
    (PathStep("retired", "O", 17), PathStep("welder", "B-PROFESSION", 2)),
    (Lead(RETIRED, (("B-PROFESSION", 0.712), ("O", 0.001))), Lead(WELDER, (("end", 1.0),))),
    0.9341, (), 14.2, discriminative=False,
)  # fmt: skip


def test_a_path_in_words() -> None:
    why = PATH.explanation("hmmdp")
    assert why.in_words(with_text=True).splitlines() == [
        "[12, 18) PROFESSION: chance .934, margin +2.653 over no span",
        "tagger hmmdp: [12, 18) PROFESSION, chance .934, margin +2.653",
        "  retired/O₁₇ → welder/B-PROFESSION₂",
        '  O₁₇ follows O₃ and begin, shows "worked" and "retired", and leads to B-PROFESSION with .71 and to O with '
        "<.01",
        "  B-PROFESSION₂ follows O₁₇, shows ALPHA lower job=hi, and leads to end with 1.00",
    ]
    assert str(why).splitlines()[2:] == ["  O₁₇ → B-PROFESSION₂"]
    rare = replace(PATH, chance=0.0001, ratio=0.31, runner_up=(Span(12, 18, "NAME"), Span(19, 20, "AGE")), leads=())
    expected = "chance <.001, margin -1.171 over [12, 18) NAME, [19, 20) AGE"
    assert str(rare.explanation("hmmdp")).splitlines()[0] == f"[12, 18) PROFESSION: {expected}"
    assert rare.explanation("hmmdp").voices[0].spans == rare.runner_up
    sure = replace(PATH, chance=0.99999, ratio=1e9, discriminative=True).explanation("hmmdp")
    assert "chance >.999, margin +20.723" in str(sure)
    assert "generative stage" in sure.in_words(with_text=True).splitlines()[-1]
    bare = Lead(replace(RETIRED, words=(), before=()), (("O", 0.5),))
    assert str(bare) == "O₁₇ leads to O with .50"


def test_signatures_in_few_words() -> None:
    assert (
        shorten_signature("‹ALPHA|Cap|first=0|last=hi|common=1|len=5-8|hyphen=0") == "ALPHA Cap last=hi common len=5-8"
    )
    assert shorten_signature("‹NUM|digits=1|age=1") == "NUM digits=1 age"


def test_what_quotes_a_document_or_the_vocabulary_hides_it_from_repr() -> None:
    doc = Document.make("Dr. Quillfeather came.")
    why = told("discriminative", doc, Span(4, 16, "NAME"))
    found = why.explanation("hmmdp")
    assert "Quillfeather/" in found.in_words(with_text=True)
    assert "Quillfeather" not in repr(why) + repr(why.steps) + repr(why.leads)
    assert "Quillfeather" not in str(found) + repr(found) + str(found.to_dict())
    assert "retired" not in repr(PATH) + repr(RETIRED) + repr(PATH.leads)


@pytest.mark.parametrize("span", [(1, 3), (0, 2), (4, 11), (3, 4), (0, 24), (8, 9)])
def test_a_span_off_token_edges_or_over_two_sentences_is_refused(span: tuple[int, int]) -> None:
    doc = Document.make("Dr. Ann Penn. No fever.")
    with pytest.raises(DataError, match="not a run of whole tokens in one sentence") as caught:
        told("chain", doc, Span(*span, "NAME"))
    assert "Penn" not in str(caught.value)


@pytest.mark.parametrize(("sentences", "span"), [([], (0, 3)), ([(4, 10)], (0, 3))])
def test_a_span_in_no_sentence_is_refused(sentences: list[tuple[int, int]], span: tuple[int, int]) -> None:
    doc = Document.make("Ann Dr. Bo", tokens=[(0, 3), (4, 7), (8, 10)], sentences=sentences)
    with pytest.raises(DataError, match="not a run of whole tokens"):
        told("chain", doc, Span(*span, "NAME"))


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(DataError, match="no label 'TOWN'; it has NAME"):
        told("chain", Document.make("Dr. Ann"), Span(4, 7, "TOWN"))


@pytest.mark.parametrize("tile", [3, 8_000])
def test_a_span_of_the_second_sentence(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmmdp_model, "TILE", tile)
    doc = Document.make("No fever. Dr. Ann Penn came.")
    assert len(doc.sentences) == 2
    why = told("chain", doc, Span(14, 22, "NAME"))
    assert [step.word for step in why.steps] == ["Dr.", "Ann", "Penn", "came", "."]
    alone = told("chain", Document.make("Dr. Ann Penn came."), Span(4, 12, "NAME"))
    assert [own.name for own in why.steps] == [own.name for own in alone.steps]
    assert [doc.text[own.start : own.end] for own in why.steps] == [own.word for own in why.steps]
    assert why.chance == pytest.approx(alone.chance)


def test_a_label_that_rules_name_is_explained_by_its_category() -> None:
    rules = Rules((("DOCTOR", "WHO"), ("PATIENT", "WHO")), (TagRule("WHO", "DOCTOR", triggers=("dr.",)),))
    docs = [
        doc.with_layer("gold", [Span(s.start, s.end, "DOCTOR") for s in doc.layer() if s.label == "NAME"])
        for doc in notes(30)
    ]
    own = train(docs, replace(SMALL, discriminative=False, rules=rules))
    doc = Document.make("Dr. Ann Penn came.")
    why = own.explain(doc, Span(4, 12, "DOCTOR"))
    assert why.voices[0].path[1].state.startswith("B-WHO")
    assert {span.label for span in why.runner_up} <= {"DOCTOR", "PATIENT"}
    with pytest.raises(DataError, match="no label 'WHO'; it has DOCTOR, PATIENT"):
        own.explain(doc, Span(4, 12, "WHO"))
