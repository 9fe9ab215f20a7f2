"""The recipe from votes to a tagger: sources stay, the student adds, nothing leaks, files come back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError, MissingExtraError, ModelError
from chaffinch.models.core.runs import span_f1
from chaffinch.text import Document, Span
from chaffinch.weak import tagger as weak_tagger
from chaffinch.weak.apply import apply
from chaffinch.weak.sources import Lexicon
from chaffinch.weak.tagger import THRESHOLD, WeakTagger, load, with_added
from chaffinch.weak.training import network as students_network
from chaffinch.weak.training import students
from chaffinch.weak.training.alternate import Alternated, Recipe, _best_threshold, alternate
from chaffinch.weak.training.soft_labels import as_tags
from chaffinch.weak.training.students import Answer, Plan, cross_fit, with_columns
from chaffinch.weak.vote_rules import LongestSpan
from tests.weak.training.made_notes import DISEASES, QUICK, note, notes


@pytest.fixture(scope="module")
def done() -> Alternated:
    return alternate(notes(0, 40), student=QUICK, how=Recipe(folds=3))


def spans_of(docs: Sequence[Document], layer: str) -> list[list[tuple[Span, str]]]:
    return [[(span, span.source) for span in doc.layer(layer)] for doc in docs]


def test_the_labels_of_sources_stay_and_the_student_only_adds(done: Alternated) -> None:
    settled = done.tagger.aggregator(notes(0, 40), "settled")
    for doc, own in zip(done.documents, settled, strict=True):
        fixed = done.tagger.text(own, own.layer("settled"))
        found = doc.layer("alternate")
        assert set(fixed) <= set(found)
        added = [span for span in found if span not in fixed]
        assert all(span.source == "student" and span.score >= THRESHOLD for span in added)
        assert not any(span.overlaps(other) for span in added for other in fixed)


def test_it_finds_more_than_the_sources(done: Alternated) -> None:
    gold = [doc.layer("gold") for doc in notes(0, 40, gold=True)]
    settled = [doc.layer("s") for doc in done.tagger.aggregator(notes(0, 40), "s")]
    assert span_f1(gold, [doc.layer("alternate") for doc in done.documents]) > span_f1(gold, settled) + 0.05


def test_new_documents_with_votes_and_with_text_alone(done: Alternated) -> None:
    new, gold = notes(100, 110), [doc.layer("gold") for doc in notes(100, 110, gold=True)]
    assert span_f1(gold, [doc.layer("weak") for doc in done.tagger.annotate(new)]) > 0.85
    bare = [replace(doc, layers={}) for doc in new]
    alone = list(done.tagger.annotate(bare, text_alone=True))
    assert span_f1(gold, [doc.layer("weak") for doc in alone]) > 0.8
    with_votes = list(done.tagger.annotate(new, text_alone=True))
    assert spans_of(with_votes, "weak") == spans_of(alone, "weak")  # no vote is looked at
    assert done.tagger(bare[0].with_layer("source:a", []).with_layer("source:b", []).with_layer("source:c", []))


def test_documents_without_votes_are_refused_unless_sources_are_there(done: Alternated) -> None:
    with pytest.raises(DataError, match="source:a"):
        done.tagger(Document.make("The patient has gout ."))


def test_the_same_again(done: Alternated) -> None:
    again = alternate(notes(0, 40), student=QUICK, how=Recipe(folds=3))
    assert spans_of(again.documents, "alternate") == spans_of(done.documents, "alternate")


def test_save_load_and_label_alike(done: Alternated, tmp_path: Path) -> None:
    done.tagger.save(tmp_path / "weak.cfm")
    back = load(tmp_path / "weak.cfm")
    new = notes(200, 210)
    assert spans_of(list(back.annotate(new)), "weak") == spans_of(list(done.tagger.annotate(new)), "weak")
    alone = [list(own.annotate(new, text_alone=True)) for own in (back, done.tagger)]
    assert spans_of(alone[0], "weak") == spans_of(alone[1], "weak")
    back.save(tmp_path / "again.cfm")
    assert (tmp_path / "again.cfm").read_bytes() == (tmp_path / "weak.cfm").read_bytes()


class Shouting:
    """A source in Python, which no file can hold."""

    name = "shouting"

    def __call__(self, doc: Document) -> list[Span]:
        return [
            Span(int(a), int(b), "Disease") for a, b in doc.tokens if doc.text[a:b].isupper() and b - a > 2
        ]  # fmt: skip


def test_plain_sources_travel_and_python_sources_must_be_supplied(tmp_path: Path) -> None:
    lexicon = Lexicon("list", list(DISEASES[:6]), label="Disease")
    python = Shouting()
    docs = [replace(doc, layers={}) for doc in notes(0, 20)]
    voted = apply([lexicon, python], docs).documents
    made = alternate(voted, LongestSpan(), QUICK, sources=[lexicon, python], how=Recipe(stacked=False)).tagger
    made.save(tmp_path / "m.cfm")
    with pytest.raises(ModelError, match="shouting"):
        load(tmp_path / "m.cfm")
    back = load(tmp_path / "m.cfm", sources=[python])
    doc = Document.make("The patient has gout and MEASLES .")
    found = back(doc).layer("weak")
    assert found == made(doc).layer("weak")
    assert Span(16, 20, "Disease") in found


def test_dev_documents_without_votes_are_shown_to_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [Lexicon("list", list(DISEASES[:6]), label="Disease")]
    voted = apply(sources, [replace(doc, layers={}) for doc in notes(0, 12)]).documents
    dev = [replace(doc, layers={"gold": doc.layer("gold")}) for doc in notes(300, 330, gold=True)]
    seen: list[Document] = []

    def chosen(tagger: WeakTagger, docs: Sequence[Document]) -> float:
        seen.extend(tagger.with_votes(docs))
        return _best_threshold(tagger, docs)

    monkeypatch.setattr(import_module("chaffinch.weak.training.alternate"), "_best_threshold", chosen)
    alternate(voted, LongestSpan(), QUICK, sources=sources, dev=dev, how=Recipe(folds=2, stacked=False))
    assert any(doc.layer("source:list") for doc in seen)
    with pytest.raises(DataError, match="source:list"):
        alternate(voted, LongestSpan(), QUICK, dev=dev, how=Recipe(folds=2, stacked=False))


def test_a_function_as_aggregator_works_and_is_not_saved(tmp_path: Path) -> None:
    def fit(docs: Sequence[Document]) -> object:
        return lambda some, layer: [doc.with_layer(layer, doc.layer("source:a")) for doc in some]

    made = alternate(notes(0, 12), fit, QUICK, how=Recipe(stacked=False))  # type: ignore[arg-type]
    assert all(set(doc.layer("source:a")) <= set(doc.layer("alternate")) for doc in made.documents)
    with pytest.raises(ConfigError, match="function"):
        made.tagger.save(tmp_path / "m.cfm")


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(DataError, match="no document has a layer of a source"):
        alternate([Document.make("Nothing here .")])
    with pytest.raises(DataError, match="nothing to learn"):
        alternate([Document.make("Nothing here .", layers={"source:a": []})], LongestSpan())
    with pytest.raises(ConfigError):
        Recipe(folds=1)
    with pytest.raises(ConfigError):
        Recipe(threshold=1.5)


def test_no_student_sees_the_document_it_reads() -> None:
    """Every document, and one with a brother of the same patient, has a word of its own."""
    docs = [note(number, canary=f"canary{number}") for number in range(12)]
    docs[3] = replace(docs[3], group="family")
    docs[7] = replace(docs[7], group="family")
    seen: list[str] = []

    def fit(part: list[Document], number: int, total: int) -> students.Reader:
        learnt = " ".join(doc.text for doc in part)

        def read(held: Sequence[Document]) -> list[Answer]:
            for doc in held:
                seen.append(doc.id)
                assert doc.words()[-1] not in learnt.split()
                assert not {doc.patient} & {own.patient for own in part}
            return [Answer((Span(0, 1, doc.id),), np.ones((len(doc.tokens), 1))) for doc in held]

        return read

    found = cross_fit(docs, fit, folds=5, seed=0, labels=0)
    assert sorted(seen) == sorted(doc.id for doc in docs)
    assert [own.spans[0].label for own in found] == [doc.id for doc in docs]  # in the given order


def test_a_label_in_one_document_alone_is_never_learnt_for_it() -> None:
    """A planted word whose label only its own document shows: a student that had seen it would find it again."""
    docs = notes(0, 10)
    planted = note(99, canary="zyxomycosis . zyxomycosis . zyxomycosis")
    places = [match.span() for match in re.finditer("zyxomycosis", planted.text)]
    more = [Span(start, end, "Disease") for start, end in places]
    docs.append(planted.with_layer("source:a", [*planted.layer("source:a"), *more]))
    labelled = [doc.with_layer("own", doc.layer("source:a")) for doc in docs]
    _, answers = students.learn(labelled, "own", Plan(QUICK))
    assert not any("zyxomycosis" in planted.text[s.start : s.end] for s in answers[-1].spans)
    everything, _ = students.learn(labelled, "own", Plan(replace(QUICK, floor=1, epochs=10), stacked=False))
    assert any("zyxomycosis" in planted.text[s.start : s.end] for s in everything([planted])[0].spans)


def test_one_patient_has_no_students_answers() -> None:
    doc = note(0)
    found = cross_fit([doc, replace(doc, id="n0")], lambda *_: lambda docs: [], folds=5, seed=0, labels=1)
    assert [own.spans for own in found] == [(), ()]
    assert cross_fit([], lambda *_: lambda docs: [], folds=5, seed=0, labels=1) == []


def test_a_fold_without_labels_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(students_network, "LEAST_STEPS", 20)
    docs = [Document.make("He has gout .", id=str(n), layers={"source:a": []}) for n in range(3)]
    docs[0] = docs[0].with_layer("source:a", [Span(7, 11, "Disease")])
    for how in (Recipe(), Recipe(embedder=embedder)):
        made = alternate(docs, LongestSpan(), replace(QUICK, epochs=1), how=how)
        assert made.documents[0].layer("alternate") == (Span(7, 11, "Disease"),)


def test_added_spans_touch_none_and_reach_the_threshold() -> None:
    doc = Document.make("aa bb cc dd")
    chances = np.array([[0.1, 0.9], [0.4, 0.6], [0.5, 0.5], [0.0, 1.0]])
    answer = Answer((Span(0, 5, "D"), Span(6, 8, "D"), Span(9, 11, "D")), chances)
    assert with_added(doc, [], answer, ("D",), 0.6) == (Span(0, 5, "D"), Span(9, 11, "D"))
    assert with_added(doc, [Span(3, 5, "E")], answer, ("D",), 0.5) == (
        Span(3, 5, "E"), Span(6, 8, "D"), Span(9, 11, "D")
    )  # fmt: skip


def test_columns_by_hand() -> None:
    doc = Document.make("gout and Gout gout")
    chances = np.array([[0.05, 0.95], [0.99, 0.01], [0.6, 0.4], [1.0, 0.0]])
    found = with_columns([doc], [[Answer((), chances)]])[0]
    assert [(s.start, s.label) for s in found.layer("student0:own")] == [(0, "0:6"), (9, "0:3")]
    # elsewhere: (0.4 + 0) / 2, none, (0.95 + 0) / 2, (0.95 + 0.4) / 2
    assert [(s.start, s.label) for s in found.layer("student0:elsewhere")] == [(0, "2"), (9, "3"), (14, "4")]


def test_chances_of_labels_become_those_of_tags() -> None:
    doc = Document.make("aa bb cc")
    soft = as_tags(doc, [Span(0, 5, "D"), Span(6, 8, "D")], np.array([[0.2, 0.8], [0.5, 0.5], [0.1, 0.9]]), ("D",))
    assert soft.labels == ("O", "B-D", "I-D")
    np.testing.assert_allclose(soft.values, [[0.2, 0.8, 0], [0.5, 0.1, 0.4], [0.1, 0.9, 0]], rtol=0, atol=1e-12)


def test_dev_documents_choose_the_threshold(done: Alternated) -> None:
    dev = notes(300, 340, gold=True)
    best = _best_threshold(done.tagger, dev)
    gold = [doc.layer("gold") for doc in dev]
    scores = {
        at: span_f1(gold, [doc.layer("weak") for doc in replace(done.tagger, threshold=at).annotate(dev)])
        for at in (0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
    }
    assert scores[best] == max(scores.values())
    assert _best_threshold(done.tagger, dev[:3]) == THRESHOLD  # too little gold to choose by


def embedder(doc: Document) -> NDArray[np.float32]:
    """A toy encoder: a word's letters."""
    out = np.zeros((len(doc.tokens), 26), np.float32)
    for t, word in enumerate(doc.words()):
        for sign in word.lower():
            if "a" <= sign <= "z":
                out[t, ord(sign) - 97] += 1
    return out


def test_a_network_on_embeddings_is_one_more_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(students_network, "LEAST_STEPS", 300)
    made = alternate(notes(0, 30), student=QUICK, how=Recipe(embedder=embedder, folds=3))
    gold = [doc.layer("gold") for doc in notes(0, 30, gold=True)]
    assert span_f1(gold, [doc.layer("alternate") for doc in made.documents]) > 0.85
    made.tagger.save(tmp_path / "m.cfm")
    back, new = load(tmp_path / "m.cfm", embedder=embedder), notes(50, 55)
    assert spans_of(list(back.annotate(new)), "weak") == spans_of(list(made.tagger.annotate(new)), "weak")
    monkeypatch.setattr(weak_tagger, "load_packaged_embedder", lambda: embedder)  # the packaged one is found by itself
    assert spans_of(list(load(tmp_path / "m.cfm").annotate(new)), "weak") == spans_of(list(back.annotate(new)), "weak")
    for other in (lambda doc: embedder(doc) + 1, lambda doc: embedder(doc)[:, :20]):
        with pytest.raises(ModelError, match="another embedder"):
            load(tmp_path / "m.cfm", embedder=other)

    def missing() -> NoReturn:
        raise MissingExtraError("torch", "neural,minilm")

    monkeypatch.setattr(weak_tagger, "load_packaged_embedder", missing)
    with pytest.raises(ModelError, match="torch is not installed"):
        load(tmp_path / "m.cfm")


def test_the_votes_have_an_estimate_without_gold(done: Alternated) -> None:
    assert done.outlook is not None
    assert done.outlook.f1 is not None
    assert 0.5 < done.outlook.f1 <= 1.0
    with_gold = alternate(notes(0, 40, gold=True), student=QUICK, how=Recipe(folds=3))
    assert with_gold.outlook == done.outlook  # gold of the documents is not looked at
    assert spans_of(with_gold.documents, "alternate") == spans_of(done.documents, "alternate")
    assert alternate(notes(0, 8), LongestSpan(), QUICK, how=Recipe(folds=2, stacked=False)).outlook is None
