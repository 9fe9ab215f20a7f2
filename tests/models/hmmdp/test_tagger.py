"""An HMM-DP as a tagger: going on, interrupts, settings that cannot be."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaffinch as cf
from chaffinch import bundle, deid
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.features import signatures
from chaffinch.features.symbols import KINDS
from chaffinch.kernels.linear import Learner
from chaffinch.models import registry as methods
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core import training as parts
from chaffinch.models.core.training import Progress
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.models.hmmdp import variational
from chaffinch.models.hmmdp.config import CHOICES, HMMDP
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Span
from tests.models.notes import hit_rate, notes

TRAIN, TEST = notes(20), notes(8, 1)
CHAIN = HMMDP(2, 2, min_count=2, passes=3, discriminative=False)
FIELD = replace(CHAIN, discriminative=True, epochs=2)


@pytest.fixture(scope="module")
def chain() -> Tagger:
    return train(TRAIN, CHAIN)


def test_hmmdp_goes_on_from_what_it_knows(tmp_path: Path) -> None:
    field = train(TRAIN, FIELD)
    new = [replace(doc, text=doc.text.replace("Dr.", "Chirurg")) for doc in notes(12, 7)]
    again = field.partial_fit(new)
    assert isinstance(field.model, hmmdp_model.Model)
    assert isinstance(again.model, hmmdp_model.Model)
    assert again.labels == field.labels
    assert again.model.symbols is field.model.symbols
    assert again.model.tables is field.model.tables
    assert again.manifest.documents == len(TRAIN) + len(new)
    assert again.model.latent is not None
    assert field.model.latent is not None
    assert not np.setdiff1d(field.model.latent.vocabulary.keys, again.model.latent.vocabulary.keys).size
    path = tmp_path / "again.cfm"
    again.save(path)
    assert [doc.layers for doc in load(path).annotate(TEST)] == [doc.layers for doc in again.annotate(TEST)]


def test_hmmdp_that_learns_nothing_more_reads_as_before() -> None:
    field = train(TRAIN, FIELD)
    still = field.partial_fit(TRAIN, replace(FIELD, rate=1e-12))
    for one, other in zip(field.model.posteriors(TEST), still.model.posteriors(TEST), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)  # weights are rounded


def test_what_hmmdp_cannot_go_on_from_is_refused(chain: Tagger) -> None:
    with pytest.raises(ConfigError, match="an HMM-DP goes on with the discriminative stage; leave out the model"):
        train(TRAIN, CHAIN, start=chain)
    labels = [replace(doc, layers={"gold": (Span(0, 2, "NEW"),)}) for doc in TRAIN]
    with pytest.raises(ConfigError, match="goes on with the labels it has, and NEW is new"):
        train(labels, FIELD, start=chain)


def test_hmmdp_may_come_before_a_cascade(chain: Tagger, tmp_path: Path) -> None:
    both = train(TRAIN, Cascade(epochs=2), before=chain)
    both.save(tmp_path / "both")
    again = load(tmp_path / "both")
    assert isinstance(again.before[0].model, hmmdp_model.Model)
    found = [list(own.annotate(TEST)) for own in (both, again)]
    assert [doc.layers for doc in found[0]] == [doc.layers for doc in found[1]]
    assert {"hmmdp", "cascade"} <= set(found[0][0].layers)
    assert hit_rate(found[0]) > 0.8


@pytest.mark.parametrize("config", [CHAIN, FIELD], ids=["chain", "field"])
def test_a_model_whose_pieces_do_not_fit_is_refused(config: HMMDP, tmp_path: Path) -> None:
    train(TRAIN, config).save(tmp_path / "model")
    found = bundle.load(tmp_path / "model")
    for name in found.arrays:
        if not name.startswith(("tables.", "subs", "symbols", "latent.", "calibration", "mass")):
            continue
        fewer = {key: own for key, own in found.arrays.items() if key != name}
        with pytest.raises(ModelError):
            methods.model_of(replace(found.state, arrays=fewer))
    for name in ("tables.trans", *(f"tables.emit{kind}" for kind in range(len(KINDS)))):
        for short in (found.arrays[name][1:], found.arrays[name][:, 1:]):
            with pytest.raises(ModelError, match="do not fit its labels"):
                methods.model_of(replace(found.state, arrays={**found.arrays, name: short}))


WRONG: list[tuple[dict[str, Any], str]] = [
    *(({name: "no"}, rf"^{name} must be one of {re.escape(', '.join(own))}, got 'no'$") for name, own in
      CHOICES.items()),
    *(({name: value}, f"^{name} must be a whole number, at least 1, got {value!r}$") for value in (0, 2.5, "8") for name
      in ("outside", "inside", "min_count", "min_patients", "passes", "batches", "epochs")),
    *(({name: value}, f"^{name} must be a number above 0, got {value!r}$") for value in
      (0, -1.5, float("nan"), float("inf"), "1") for name in
      ("alpha_emission", "alpha_tags", "alpha_subtags", "alpha_sticks", "temper", "offset", "rate", "cost_ratio")),
    ({"seed": -1}, "^seed must be a whole number, at least 0, got -1$"),
    ({"floor": 0}, "^floor must be .*at least 1, got 0$"),
    *(({"floor": value}, "^floor must be ") for value in (2.5, "2")),
    *(({"dropout": value}, "^dropout must be ") for value in (None, "0.1")),
    *(({name: None}, f"^{name} must be a number above 0, got None$") for name in
      ("alpha_tags", "alpha_subtags", "temper", "offset", "rate", "cost_ratio")),
    ({"language": 3}, "^language must be the name of a pack"),
    ({"rules": "x"}, "rules must be Rules$"),
    ({"dropout": 1.0}, "^dropout must be a number of at least 0 and below 1, got 1.0$"),
    ({"dropout": -0.1}, "^dropout must be a number of at least 0 and below 1, got -0.1$"),
    ({"emissions": "backoff"}, "starts from factored or categorical emissions, not from backoff"),
    ({"form": "atoms"}, "learnt in one batch, from a context or random start"),
    ({"form": "atoms", "start": "random", "batches": 2}, "learnt in one batch, from a context or random start"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[" ".join(map(str, own.items())) for own, _ in WRONG])
def test_settings_that_cannot_be_are_refused_by_name_and_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HMMDP(**options)


def test_an_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no language pack 'xx'; name one of de, en, es, or a folder"):
        train(TRAIN, replace(CHAIN, language="xx"))


def test_bias_names_labels_of_the_model(chain: Tagger) -> None:
    with pytest.raises(ConfigError, match="bias names label 'PLACE'; this model has O, DOSE, DRUG, NAME, TOWN"):
        chain.annotate(TEST, bias={"PLACE": 1.0})
    with pytest.raises(ConfigError, match="n must be at least 1, got 0"):
        chain.alternatives(TEST[0], 0)
    with pytest.raises(ConfigError, match="workers must be at least 1, got 0"):
        train(TRAIN, CHAIN, workers=0)


def test_published_systems_are_settings() -> None:
    updated, submitted = HMMDP.published(), HMMDP.submitted()
    assert (updated.outside, updated.inside, updated.emissions, updated.decode) == (100, 8, "categorical", "kl")
    assert (submitted.outside, submitted.inside, submitted.emissions, submitted.decode) == (
        20,
        8,
        "categorical",
        "brute",
    )
    assert not updated.discriminative
    assert not submitted.discriminative
    assert HMMDP() == HMMDP(8, 2, "factored")


def test_progress_is_told_pass_by_pass_and_epoch_by_epoch() -> None:
    told: list[Progress] = []
    tagger = train(TRAIN, FIELD, dev=TEST, progress=told.append)
    passes = [own for own in told if own.part == "passes"]
    assert [own.epoch for own in passes] == list(range(1, len(passes) + 1))
    assert isinstance(tagger.model, hmmdp_model.Model)
    assert [-own.loss for own in passes] == tagger.model.portrait.trace.tolist()
    later = [own for own in told if own.part == "discriminative"]
    assert [own.epoch for own in later] == [1, 2]
    assert all(own.score is not None and 0 <= own.score <= 1 for own in later)
    assert tagger.manifest.metrics["discriminative F1 on dev"] == max(own.score or 0.0 for own in later)


@pytest.mark.parametrize("part", ["passes", "discriminative"])
def test_an_interrupt_keeps_what_was_learnt(part: str) -> None:
    def interrupt(told: Progress) -> None:
        if told.part == part:
            raise KeyboardInterrupt

    tagger = train(TRAIN, FIELD, progress=interrupt)
    assert tagger.manifest.metrics["interrupted"] == 1
    assert hit_rate(list(tagger.annotate(TEST)), "hmmdp") > 0.5


def test_an_interrupt_in_the_first_walk_is_no_worse_than_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: Any) -> float:
        raise KeyboardInterrupt

    docs, config = deid.notes(4, 3), HMMDP(3, 1)  # harder than the notes above
    chain = train(docs, replace(config, discriminative=False))
    monkeypatch.setattr(Learner, "walk", walk)
    tagger = train(docs, config)
    assert tagger.manifest.metrics["interrupted"] == 1
    hits = [hit_rate(list(own.annotate(docs)), "hmmdp") for own in (tagger, chain)]
    assert hits[0] >= hits[1]


def interrupt_step(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at that local step, counted from 0."""
    calls, step = itertools.count(), variational.local_step

    def interrupted(*args: Any) -> Any:
        if next(calls) == number:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(variational, "local_step", interrupted)


@pytest.mark.parametrize(
    ("number", "subs"), [(1, (1, 1)), (3, (2, 2)), (7, (2, 2)), (8, (4, 2))], ids=["one", "halves", "two", "four"]
)
def test_an_interrupt_during_the_start_keeps_what_was_learnt(
    number: int, subs: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass, five with all sub-tags in halves, one with those kept; then five with all of O in halves again."""
    interrupt_step(number, monkeypatch)
    tagger = train(TRAIN, replace(FIELD, outside=4))
    monkeypatch.undo()
    model = tagger.model
    assert isinstance(model, hmmdp_model.Model)
    assert model.labels.subs == (subs[0], *[subs[1]] * 8)
    assert model.latent is None
    assert tagger.manifest.metrics["interrupted"] == 1
    found = list(tagger.annotate(TEST, confidence=True))
    assert hit_rate(found, "hmmdp") > 0.5
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model").annotate(TEST, confidence=True)
    assert [doc.layer("hmmdp") for doc in again] == [doc.layer("hmmdp") for doc in found]


def test_an_interrupt_before_anything_was_learnt_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_step(0, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(TRAIN, FIELD)


def test_batches_keep_their_counts_between_passes() -> None:
    """Learning in batches takes a step after each, so that its bounds are others than those of one batch."""
    traces = []
    for batches in (1, 3):
        model = train(TRAIN, replace(CHAIN, start="random", batches=batches)).model
        assert isinstance(model, hmmdp_model.Model)
        traces.append(model.portrait.trace)
    assert traces[0][0] == pytest.approx(traces[1][0])  # there is nothing to keep before the first pass
    assert abs(traces[0][-1] - traces[1][-1]) > 0.01


def test_the_discriminative_stage_begins_from_a_share_of_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """With next to no rate the first weights stay: a step into a state with its symbols is worth a share in both."""
    monkeypatch.setattr(parts, "LEAST", {**parts.LEAST, "adagrad": 0.0})
    still = replace(FIELD, rate=1e-12, dropout=0.0, epochs=1, calibrate=False)
    for offset in (0.1, 0.5):
        model = train(TRAIN, replace(still, offset=offset)).model
        assert isinstance(model, hmmdp_model.Model)
        (found, _), *_ = model.batches(TEST)[1]
        (chain, _), *_ = replace(model, latent=None).batches(TEST)[1]
        for name in ("start", "trans"):
            one, other = (getattr(own, name)[..., None, :] + own.emit for own in (found, chain))
            np.testing.assert_allclose(one, offset * other, rtol=1e-3, atol=4e-3)  # weights are half floats
        np.testing.assert_allclose(found.end, offset * chain.end, rtol=1e-3, atol=2e-3)
        rows = model.latent.weights.rows  # type: ignore[union-attr]
        assert np.count_nonzero(rows) < rows.size / 2  # symbols that a state never had weigh nothing


def test_alignment_is_learnt_with_the_tagger(tmp_path: Path) -> None:
    docs = notes(20, 3, patients=5)
    tagger = train(docs, CHAIN, align=Alignment(folds=2))
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    found = [list(own.annotate(docs, align="recall")) for own in (tagger, again)]
    assert [doc.layer("hmmdp") for doc in found[0]] == [doc.layer("hmmdp") for doc in found[1]]
    plain = list(tagger.annotate(docs))
    for one, more in zip(plain, found[0], strict=True):
        there = [(span.start, span.end) for span in more.layer("hmmdp")]
        assert all(any(a <= s.start and s.end <= b for a, b in there) for s in one.layer("hmmdp"))


def test_overlapping_spans_name_the_document_in_the_order_given() -> None:
    clash = Document.make("Ann Penn", group="a")
    clash = clash.with_layer("gold", [replace(TRAIN[0].layer("gold")[0], start=s, end=8) for s in (0, 4)])
    docs = [replace(TRAIN[1], group="a"), replace(TRAIN[2], group="b"), clash]
    with pytest.raises(DataError, match=r"document 3 of 3: .* overlap"):
        train(docs, CHAIN)


def test_with_one_tag_for_a_label_neighbours_are_one_span_and_with_two_they_are_not() -> None:
    text = "Seen by Ann Lee today"
    docs = [
        Document.make(text, id=str(n), layers={"gold": [Span(8, 11, "NAME"), Span(12, 15, "NAME")]}) for n in range(9)
    ]
    settings = HMMDP(2, 1, min_count=1, private=False, discriminative=False, passes=3)
    for config, tag_names, spans in (
        (replace(settings, tags="types"), ("O", "I-NAME"), [(8, 15)]),
        (replace(settings, tags="IOB2"), ("O", "B-NAME", "I-NAME"), [(8, 11), (12, 15)]),
    ):
        tagger = train(docs, config)
        found = tagger(Document.make(text)).layer("hmmdp")
        assert isinstance(tagger.model, Model)
        assert (tagger.model.labels.tags, [(span.start, span.end) for span in found]) == (tag_names, spans)


def test_sentences_that_end_at_stops_reach_no_further_than_a_stop_or_a_line(tmp_path: Path) -> None:
    text = "Seen with Dr.\nWhittaker . Reading was 12"
    docs = [Document.make(text, id=str(n), layers={"gold": [Span(14, 23, "NAME")]}) for n in range(9)]
    settings = HMMDP(2, 1, min_count=1, private=False, discriminative=False, passes=3, sentences="stops")
    tagger = train(docs, settings)
    tagger.save(tmp_path / "m.cfm")
    model = cf.load(tmp_path / "m.cfm").model
    assert isinstance(model, Model)
    seen, _, _ = model.observe([docs[0]])
    assert (seen.ends - seen.begins).tolist() == [3, 2, 3]
    whole, _, _ = replace(model, config=replace(model.config, sentences="given")).observe([docs[0]])
    assert (whole.ends - whole.begins).tolist() == [5, 3]
    assert docs[0].layer("gold") == tagger(docs[0]).layer("hmmdp")


def test_five_classes_of_rare_words_have_no_identifiers_and_no_network_names(tmp_path: Path) -> None:
    docs = [
        Document.make(f"Call {n}{n}AB{n} or a{n}@b.org on 12/03", id=str(n), layers={"gold": [Span(0, 4, "X")]})
        for n in range(1, 9)
    ]
    settings = HMMDP(2, 1, private=False, discriminative=False, passes=2)
    kinds: tuple[tuple[signatures.WordClasses, set[str]], ...] = (("five", set()), ("seven", {"ID", "NET"}))
    for classes, held in kinds:
        train(docs, replace(settings, word_classes=classes)).save(tmp_path / "m.cfm")
        model = cf.load(tmp_path / "m.cfm").model
        assert isinstance(model, Model)
        names = {name.partition("|")[0].removeprefix(signatures.MARK) for name in model.symbols.signatures}
        assert names & {"ID", "NET"} == held
        shown = model.symbols.signatures[model.symbols.number("99XY9", 0) - 1]
        assert shown.partition("|")[0] == (f"{signatures.MARK}NUM" if classes == "five" else f"{signatures.MARK}ID")
