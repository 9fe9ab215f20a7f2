"""Faults found in HMM-DP, one failing test each; a test moves to its own file once its fault is mended."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.bundle import Bundle
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.features import oov, symbols, window
from chaffinch.models import methods, variational
from chaffinch.models.hmmdp_config import HMMDP
from chaffinch.models.labels import Labels
from chaffinch.models.latent_spans import run_chances
from chaffinch.models.rules import Rule, Rules
from chaffinch.models.tagger import train
from chaffinch.text import Document, Soft
from tests.models import test_hmmdp as suite
from tests.models.notes import hit_rate
from tests.models.test_hmmdp import CHAIN, RULES, SMALL, TEST, TRAIN, rows, tagger
from tests.models.test_soft import BARE, IOB2, softened

pytestmark = pytest.mark.filterwarnings("ignore:One of the clusters is empty")
without_edges = pytest.mark.parametrize("name", ["IO", "IO+"])


# 1. Scheme IO: runs are taken over the tokens of a whole batch, across sentences and documents.


@without_edges
def test_a_span_does_not_cross_into_the_next_document(name: str) -> None:
    docs = [Document.make("Dr. Ann"), Document.make("Ann came.")]
    assert [len(doc.layer("hmmdp")) for doc in tagger(name).annotate(docs)] == [1, 1]  # IndexError


@without_edges
def test_a_span_does_not_cross_into_the_next_sentence(name: str) -> None:
    doc = Document.make("Dr. Ann Ann came.", tokens=[(0, 3), (4, 7), (8, 11), (12, 16)], sentences=[(0, 7), (8, 17)])
    assert [(span.start, span.end) for span in tagger(name)(doc).layer("hmmdp")] == [(4, 7), (8, 11)]


@without_edges
def test_the_suite_without_edges(name: str) -> None:
    suite.test_empty_and_tiny_documents_are_learnt_from(name)


@without_edges
def test_bias_without_edges(name: str) -> None:
    suite.test_bias_moves_how_much_is_found(name)


def test_chances_of_runs_without_edges_know_that_the_span_does_not_begin_earlier() -> None:
    labels, plain = Labels(("X", "Y"), "IO", subs=(2, 1, 2)), Labels(("X", "Y"), "IO")
    batch = suite.random_batch(np.random.default_rng(0), labels, [4])
    listed = suite.chances_by_listing(batch, labels, 0)
    tags = np.array([0, 1, 1, 2])
    starts, ends, _ = plain.run_arrays(tags.astype(np.int32))
    found = run_chances(batch, labels, tags, starts, ends)
    for run, chance in zip([(1, 3, "X"), (3, 4, "Y")], found, strict=True):
        wanted = sum(own for path, own in listed.items() if run in plain.runs(np.array(path, np.int32)))
        assert chance == pytest.approx(wanted, abs=1e-9)


# 2. Scheme IO and soft labels: B-X cannot be spelt, and a bare label may not begin a run (models/tasks.py).


@pytest.mark.parametrize("tags", [IOB2, BARE], ids=["IOB2", "bare"])
@without_edges
def test_soft_labels_teach_a_model_without_edges(name: str, tags: tuple[str, ...]) -> None:
    tagger = train([softened(doc, tags) for doc in TRAIN], suite.CONFIGS[name], soft="votes")
    assert hit_rate(list(tagger.annotate(TEST)), "hmmdp") > 0.8


# 3. Which document has impossible soft labels: numbered as sorted by patient, or not at all.

GOOD, BAD = [[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [1, 0, 0]]


def test_impossible_soft_labels_name_the_document_in_the_order_given() -> None:
    docs = [
        rows("a b", GOOD, group="p"),
        rows("a b", BAD, group="q"),
        rows("a b", GOOD, group="p"),
    ]
    with pytest.raises(DataError, match="document 2"):
        train(docs, CHAIN, soft="votes")


def test_an_impossible_sequence_names_the_document() -> None:
    docs = [rows("a b", GOOD), rows("a b", [[1, 0, 0], [0, 0, 1]])]
    with pytest.raises(DataError, match="document 2"):
        train(docs, CHAIN, soft="votes")


# 4. The bare categories, the last resort of signatures, are put in without their mark and never found.


def test_every_category_is_known_so_that_backing_off_ends() -> None:
    seen = window.observe([Document.make("fever")])
    own = symbols.learn(seen, oov.pack("en"), patients=np.zeros(1, np.int64), min_count=1, min_groups=1)
    assert {f"{oov.MARK}{name}" for name in oov.CATEGORIES} <= set(own.signatures)
    assert all(oov.is_symbol(name) for name in own.signatures)
    for word in ("37947241ZGJ", "x@y.org", "§§", "40%", "555-1234", "12/03"):
        assert own(window.observe([Document.make(word)]))[0, symbols.SIGNATURE] > 0


# 5. Several batches are not memoised: `Course.run` asks for one pass at a time, and each begins without a memo.


def test_batches_keep_their_counts_between_passes() -> None:
    traces = []
    for batches in (1, 3):
        told: list[float] = []
        train(TRAIN, replace(CHAIN, start="random", batches=batches), progress=lambda own, to=told: to.append(own.loss))  # type: ignore[misc]
        traces.append(told)
    assert abs(traces[0][-1] - traces[1][-1]) > 0.01


# 6. k-means of contexts warns the user of empty clusters.


def test_a_start_from_contexts_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(TRAIN, replace(CHAIN, start="context", outside=20))


# 7. Rules: soft labels, posteriors and bias do not go through them; bad defaults and double labels are accepted.


def test_soft_labels_go_through_the_rules() -> None:
    tagger = train([softened(doc) for doc in TRAIN], suite.CONFIGS["submitted"], soft="votes")
    assert hit_rate(list(tagger.annotate(TEST)), "hmmdp") > 0.8  # IndexError; refusing with ConfigError is as good


def test_posteriors_agree_with_the_labels_that_rules_give() -> None:
    doses = 0
    for doc in tagger("submitted").posteriors(TEST):
        soft = doc.soft["hmmdp"]
        for span in tagger("submitted")(doc).layer("hmmdp"):
            inside = (doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)
            found = soft.values[inside]
            if found.max(axis=1).min() > 0.99:
                doses += span.label == "DOSE"
                assert {soft.labels[n] for n in found.argmax(axis=1)} == {span.label}
    assert doses


def test_bias_of_a_label_under_rules_counts_or_is_refused() -> None:
    own = tagger("submitted")
    try:
        found = list(own.annotate(TEST, bias={"TOWN": -1000.0}))
    except ConfigError:
        return
    assert not any(span.label == "TOWN" for doc in found for span in doc.layer("hmmdp"))


@pytest.mark.parametrize("defaults", [(("WHO", "NOBODY"),), (("WHAT", "NAME"),), (("WHO", "TOWN"),)])
def test_defaults_are_labels_of_their_category(defaults: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ConfigError):
        Rules(RULES.categories, (), defaults)


def test_a_label_has_one_category() -> None:
    with pytest.raises(ConfigError):
        Rules((("NAME", "WHO"), ("NAME", "WHERE")))


def test_a_bad_pattern_is_told_once_and_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Rule("NAME", "DOCTOR", pattern="(")
    assert "b'" not in str(caught.value)
    assert capfd.readouterr().err == ""  # re2 writes the pattern to stderr; options.log_errors = False


# 8. An interrupt while the start is made (most of the time with start="split") is not caught.


def test_an_interrupt_during_the_start_keeps_what_was_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, step = itertools.count(), variational.local_step

    def interrupted(*args: Any) -> Any:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(variational, "local_step", interrupted)
    caught = False
    try:
        train(TRAIN, SMALL)
    except KeyboardInterrupt:
        caught = True
    assert not caught


# 9. A file whose tables of symbols are too few or too short is read, and fails later or not at all.


@pytest.mark.parametrize("cut", ["gone", "short"])
def test_tables_that_do_not_fit_the_symbols_are_refused(cut: str, tmp_path: Path) -> None:
    tagger("chain").save(tmp_path / "model")
    found = bundle.load(tmp_path / "model")
    arrays = dict(found.arrays)
    last = arrays.pop("tables.emit5")
    if cut == "short":
        arrays["tables.emit5"] = last[:1]
    with pytest.raises(ModelError):
        methods.model_of(Bundle(found.manifest, arrays, found.strings))


# 10. Values that only fail later, and not as ConfigError.


@pytest.mark.parametrize(
    "options",
    [{"cost_ratio": float("inf")}, {"outside": 2.5}, {"outside": "8"}, {"language": 3}, {"rules": "x"}],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        HMMDP(**options)


# 11. A document without the soft layer is not named by number.


def test_the_document_that_lacks_soft_labels_is_named() -> None:
    soft = Soft(("O", "B-X", "I-X"), np.array([[0.0, 1, 0], [1, 0, 0]]))
    docs = [Document.make("a b").with_soft("votes", soft), Document.make("a b")]
    with pytest.raises(DataError, match="document 2"):
        train(docs, CHAIN, soft="votes")
