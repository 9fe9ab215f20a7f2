"""HMM-DP: what soft labels teach, and input that is bad, odd or large."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Floats
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Soft, Span
from tests.models.hmmdp.test_hmmdp import CHAIN, CONFIGS, LABELS, SMALL, TEST, TRAIN, model_of, spans, tagger
from tests.models.notes import hit_rate, note, notes
from tests.models.test_soft import BARE, changed, softened

# Soft labels


def tables_of(own: Tagger) -> list[Floats]:
    tables = model_of(own).tables
    return [tables.start, tables.trans, tables.end, *tables.emit]


@pytest.mark.parametrize("name", ["chain", "published", "backoff", "small", "private"])
def test_one_hot_rows_teach_exactly_what_spans_teach(name: str) -> None:
    soft = train([softened(doc) for doc in TRAIN], CONFIGS[name], soft="votes")
    assert soft.labels == LABELS
    for one, other in zip(tables_of(tagger(name)), tables_of(soft), strict=True):
        assert np.array_equal(one, other)
    assert spans(list(soft.annotate(TEST))) == spans(list(tagger(name).annotate(TEST)))


partly = pytest.mark.parametrize("name", ["small", "chain", "published", "backoff", "from random", "batches"])


@partly
def test_what_is_partly_tagged_teaches_nearly_the_same(name: str) -> None:
    rng = np.random.default_rng(0)
    docs = [softened(doc) for doc in TRAIN]
    docs = [changed(doc, rng.random(len(doc.tokens)) < 0.2, 0.0) for doc in docs]
    assert hit_rate(list(train(docs, CONFIGS[name], soft="votes").annotate(TEST)), "hmmdp") > 0.75


@partly
def test_documents_without_any_tag_may_stand_among_others(name: str) -> None:
    docs = [softened(doc) for doc in TRAIN]
    docs += [changed(softened(doc), np.ones(len(doc.tokens), np.bool_), 0.0) for doc in notes(6, 5)]
    assert hit_rate(list(train(docs, CONFIGS[name], soft="votes").annotate(TEST)), "hmmdp") > 0.7


def test_rows_that_leave_a_choice_or_weigh_it_are_learnt_from() -> None:
    docs = []
    for doc in map(softened, TRAIN):
        soft = doc.soft["votes"]
        docs.append(doc.with_soft("votes", Soft(soft.labels, 0.8 * soft.values + 0.2 / len(soft.labels))))
    assert hit_rate(list(train(docs, SMALL, soft="votes").annotate(TEST)), "hmmdp") > 0.8
    bare = [softened(doc, BARE) for doc in TRAIN]
    assert hit_rate(list(train(bare, CHAIN, soft="votes").annotate(TEST)), "hmmdp") > 0.9


# Bad input


def rows(text: str, values: Sequence[Sequence[float]], *, group: str | None = None) -> Document:
    return Document.make(text, group=group).with_soft("votes", Soft(("O", "B-X", "I-X"), np.array(values, float)))


GOOD = [[0, 1, 0], [1, 0, 0]]
bad_rows = pytest.mark.parametrize(
    "values", [[[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]], ids=["inside after outside", "inside at the beginning"]
)


@pytest.mark.parametrize("config", [SMALL, CHAIN], ids=["small", "chain"])
@bad_rows
def test_soft_labels_that_allow_no_sequence_are_refused(config: HMMDP, values: Sequence[Sequence[float]]) -> None:
    with pytest.raises(DataError, match=r"soft labels .*allow no .*allow more") as caught:
        train([rows("Ann came", GOOD), rows("Canary sings", values)], config, soft="votes")
    assert "anary" not in str(caught.value)


@bad_rows
def test_impossible_soft_labels_name_the_document_in_the_order_given(values: Sequence[Sequence[float]]) -> None:
    docs = [rows("a b", GOOD, group="p"), rows("a b", values, group="q"), rows("a b", GOOD, group="p")]
    with pytest.raises(DataError, match="document 2:"):
        train(docs, CHAIN, soft="votes")
    with pytest.raises(DataError, match="document 3:"):
        train([docs[0], docs[2], docs[1]], CHAIN, soft="votes")


def test_soft_labels_that_allow_no_tag_at_a_token_are_refused() -> None:
    other = Document.make("Canary sings").with_soft("votes", Soft(("O", "E-X"), np.array([[1.0, 0], [0, 1.0]])))
    with pytest.raises(DataError, match="document 2: the soft labels of a sentence allow no sequence") as caught:
        train([rows("Ann came", GOOD), other], CHAIN, soft="votes")
    assert "anary" not in str(caught.value)


def test_the_document_that_lacks_soft_labels_is_named() -> None:
    docs = [rows("Ann came", GOOD, group="p"), Document.make("Bo came", group="q"), rows("a b", GOOD, group="p")]
    with pytest.raises(DataError, match=r"document 2 has no soft layer 'votes' .*all training documents need it"):
        train(docs, CHAIN, soft="votes")


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(DataError, match="no documents"):
        train([], CHAIN)
    with pytest.raises(DataError, match="holds no span"):
        train([Document.make("Ann came.")], CHAIN)
    bare = Document.make("a", tokens=[(0, 1)], sentences=[], layers={"gold": [Span(0, 1, "A")]})
    with pytest.raises(DataError, match="no sentence"):
        train([bare], CHAIN)


@pytest.mark.parametrize("name", ["chain", "small", "submitted", "by posterior"])
def test_a_patient_with_one_document_may_be_aligned(name: str) -> None:
    doc = note([[("Dr.", ""), ("Ann Penn", "NAME"), ("came. Penn left.", "")]], id="one", group="alone")
    plain, aligned = tagger(name)(doc), next(iter(tagger(name).annotate([doc], align="recall")))
    inside = [(span.start, span.end) for span in aligned.layer("hmmdp")]
    assert aligned.soft == {}
    for span in plain.layer("hmmdp"):
        assert any(start <= span.start and span.end <= end for start, end in inside)


@pytest.mark.parametrize("name", ["chain", "small", "published"])
def test_a_word_repeated_ten_thousand_times_is_learnt_and_read_in_seconds(name: str) -> None:
    text = "Penn " * 10_000
    doc = Document.make(text, layers={"gold": [Span(0, 4, "NAME"), Span(500, 504, "NAME")]})
    assert list(tagger(name).annotate(TEST, align="recall", confidence=True))  # kernels are compiled
    begin = time.process_time()
    own = train([doc, *TRAIN], CONFIGS[name])
    found = next(iter(own.annotate([doc], align="recall", confidence=True)))
    assert time.process_time() - begin < 5
    assert found.text == text
