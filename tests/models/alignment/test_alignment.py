"""Alignment of repeated words: names found once are found everywhere, and nothing else moves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch import bundle
from chaffinch.errors import ChaffinchError, ConfigError, DataError, ModelError
from chaffinch.kernels import Floats, Ints, best_labels
from chaffinch.models.alignment import graph as alignment_graph
from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment import objective
from chaffinch.models.alignment.config import MODES, Alignment
from chaffinch.models.alignment.fit import cross_fit, fit
from chaffinch.models.alignment.graph import ALIKE, Flags, Graphs, RepeatedWords
from chaffinch.models.alignment.model import Model, align
from chaffinch.models.alignment.objective import B, CliqueWeights, Nodes
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Soft, Span
from tests.models.notes import notes

LABELS = ("O", "NAME", "TOWN")
Chances = Sequence[tuple[str, float, float]]  # a word, and the chance of NAME and of TOWN


def note(words: Chances, *, id: str = "a", group: str | None = None) -> Document:  # noqa: A002
    """Return words with blanks between them; a word likelier a label than O is a span."""
    text = " ".join(word for word, _, _ in words)
    ends = np.cumsum([len(word) + 1 for word, _, _ in words]) - 1
    starts = ends - [len(word) for word, _, _ in words]
    tokens = list(zip(starts.tolist(), ends.tolist(), strict=True))
    values = np.array([(1 - name - town, name, town) for _, name, town in words]).reshape(-1, 3)
    best = values.argmax(axis=1)
    spans = [Span(a, b, LABELS[k], 0.75, "tagger") for (a, b), k in zip(tokens, best, strict=True) if k]
    soft = {"found": Soft(LABELS, values)}
    return Document.make(text, id=id, group=group, tokens=tokens, layers={"found": spans}, soft=soft)


def over(doc: Document, token: int, label: str) -> Span:
    return Span(int(doc.tokens[token, 0]), int(doc.tokens[token, 1]), label)


def found(doc: Document, layer: str = "found") -> list[tuple[str, str]]:
    return [(doc.text[span.start : span.end], span.label) for span in doc.layers[layer]]


def weights(rng: np.random.Generator, features: int = 0, labels: int = 1, edges: float = 1.0) -> CliqueWeights:
    same = rng.normal(size=(2, len(ALIKE)))
    same[:, 1:] *= edges
    return CliqueWeights(rng.normal(size=(2, 2 + B)), same, rng.normal(size=1), rng.normal(size=(features, labels)))


def random_notes(rng: np.random.Generator, count: int = 3, size: int = 4, *, group: str | None = "p") -> list[Document]:
    out = []
    for number in range(count):
        chances = rng.dirichlet([0.6, 0.4, 0.4], size)
        words = rng.choice(["Penn", "PENN", "Bath", "came", "."], size)
        rows = [(str(word), float(row[1]), float(row[2])) for word, row in zip(words, chances, strict=True)]
        out.append(note(rows, id=f"n{number}", group=group))
    return out


def graphs_of(docs: Sequence[Document]) -> tuple[RepeatedWords, Graphs]:
    words = alignment_graph.observe(docs, "found", LABELS)
    return words, alignment_graph.link_words(words, frozenset())


def score_by_hand(weights: CliqueWeights, words: RepeatedWords, nodes: Sequence[int], labels: Sequence[int]) -> float:
    """Return the score by definition: every occurrence, and every pair of occurrences over m - 1."""
    total = 0.0
    for n, y in zip(nodes, labels, strict=True):
        row, chance = weights.unary[min(y, 1)], float(np.clip(words.chances[n, y], 1e-6, 1 - 1e-6))
        bucket = int(np.searchsorted(objective.EDGES, np.log(chance / (1 - chance)), side="right"))
        total += row[0] + row[1] * (words.tags[n] == y) + row[2 + bucket]
    for (n, y), (p, z) in itertools.combinations(zip(nodes, labels, strict=True), 2):
        left = words.folded[words.word_at(words.beside(np.array([n, p]), -1))]
        right = words.folded[words.word_at(words.beside(np.array([n, p]), 1))]
        case = words.case[words.written[[n, p]]]
        alike = [1, words.owners[n] == words.owners[p], left[0] == left[1], right[0] == right[1], case[0] == case[1]]
        worth = weights.same[min(y, 1)] @ np.array(alike, float) if y == z else float(weights.differ[0]) * bool(y and z)
        total += worth / (len(nodes) - 1)
    return float(total)


SURE, UNSURE = ("Penn", 0.99, 0.0), ("Penn", 0.35, 0.0)
AROUND = [("Dr.", 0.0, 0.0), ("came", 0.0, 0.0)]


@pytest.mark.parametrize("groups", [("p", "p"), (None, None)])
def test_a_sure_occurrence_convinces_an_unsure_one_of_the_same_patient_only(groups: tuple[str | None, ...]) -> None:
    pair = [note([AROUND[0], token, AROUND[1]], id=str(k), group=groups[k]) for k, token in enumerate((SURE, UNSURE))]
    first, second = align(pair, Model.default(), layer="found")
    assert found(first) == [("Penn", "NAME")]
    assert found(second) == ([("Penn", "NAME")] if groups[0] else [])
    if groups[0]:
        span = second.layers["found"][0]
        assert (span.source, 0.5 < span.score < 1.0) == ("alignment", True)
        assert first.layers["found"][0].score == 0.75


def test_a_document_alone_is_linked_within_itself_and_unlinked_words_stay() -> None:
    doc = note([AROUND[0], SURE, AROUND[1], ("Lowe", 0.4, 0.0), AROUND[0], UNSURE, ("Hart", 0.6, 0.0)])
    assert found(align([doc], Model.default(), layer="found")[0]) == [
        ("Penn", "NAME"), ("Penn Hart", "NAME"),
    ]  # fmt: skip
    alone = note([SURE, ("Lowe", 0.4, 0.1), AROUND[1]])
    for mode in MODES:
        assert align([alone], Model.default(), layer="found", mode=mode) == [alone]


def test_documents_without_patient_and_id_are_not_linked() -> None:
    pair = [note([AROUND[0], token, AROUND[1]], id="") for token in (SURE, UNSURE)]
    assert align(pair, Model.default(), layer="found") == pair


def test_punctuation_and_rare_findings_of_ordinary_words_are_not_linked() -> None:
    words = [("the", 0.01, 0.0)] * 19 + [("the", 0.6, 0.0), (".", 0.7, 0.0), (".", 0.3, 0.0)]
    assert len(graphs_of([note(words)])[1].nodes) == 0
    assert len(graphs_of([note([*words, ("the", 0.6, 0.0)])])[1].nodes) == 21
    pair = note([("Rose", 0.6, 0.0), ("fell", 0.0, 0.0), ("rose", 0.3, 0.0)])
    words_, graphs = graphs_of([pair])
    assert graphs.nodes.tolist() == [0, 2]
    assert len(alignment_graph.link_words(words_, frozenset({"rose"})).nodes) == 0
    assert found(align([pair], Model.default(common=frozenset({"ROSE"})), layer="found")[0]) == [("Rose", "NAME")]


def test_candidates_are_what_was_found_the_outside_and_likely_runners_up() -> None:
    docs = [note([("Bath", 0.6, 0.0), ("Bath", 0.5, 0.15), ("Ely", 0.2, 0.7), ("Ely", 0.0, 0.1)])]
    graphs = graphs_of(docs)[1]
    assert graphs.candidates.tolist() == [[True, True, False]] * 2 + [[True] * 3] * 2
    docs = [note([("Bath", 0.6, 0.05), ("Bath", 0.5, 0.05)])]
    assert graphs_of(docs)[1].candidates.tolist() == [[True, True, False]] * 2


@pytest.mark.parametrize("edges", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_labelling_is_that_of_listing_them_all(seed: int, edges: float) -> None:
    rng = np.random.default_rng(seed)
    drawn, docs = weights(rng, edges=edges), random_notes(rng)
    model = Model(Alignment(mode="balanced"), drawn)
    words, graphs = graphs_of(docs)
    after = alignment.decide_labels(words, graphs, model, LABELS, "balanced")[0]
    for k in range(int(graphs.graph.max()) + 1):
        nodes = graphs.nodes[graphs.graph == k].tolist()
        labels = np.flatnonzero(graphs.candidates[graphs.graph == k][0]).tolist()
        listed = {y: score_by_hand(drawn, words, nodes, y) for y in itertools.product(labels, repeat=len(nodes))}
        assert listed[tuple(after[nodes].tolist())] == pytest.approx(max(listed.values()), abs=1e-9)


def test_without_edge_features_the_exact_count_over_labels_is_used() -> None:
    rng = np.random.default_rng(5)
    docs = [note([("Penn", float(a), 0.0) for a in rng.random(40)])]
    graphs = graphs_of(docs)[1]
    unary = np.where(graphs.candidates, rng.normal(size=(40, 3)), -np.inf)
    for edges, exact in ((0.0, True), (1.0, False)):
        clique = alignment._clique(weights(rng, edges=edges), graphs, np.arange(40), np.array([0, 1]), unary)
        assert best_labels(clique).exact is exact


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_fixed_occurrences_count_as_evidence(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few free nodes, the best labelling among those in which the surer ones keep what was found."""
    monkeypatch.setattr(alignment, "FREE", limit)
    rng = np.random.default_rng(limit)
    drawn = weights(rng)
    docs = [note([("Penn", float(a), float(1 - a) / 3) for a in rng.random(4)], id=str(k), group="p") for k in (0, 1)]
    words, graphs = graphs_of(docs)
    after = alignment.decide_labels(words, graphs, Model(Alignment(), drawn), LABELS, "balanced")[0]
    free = np.argsort(words.chances[np.arange(8), words.tags], kind="stable")[:limit]
    best = max(
        (y for y in itertools.product(np.flatnonzero(graphs.candidates[0]).tolist(), repeat=8)
         if all(y[n] == words.tags[n] for n in range(8) if n not in free)),
        key=lambda y: score_by_hand(drawn, words, range(8), y),
    )  # fmt: skip
    assert after.tolist() == list(best)


def lesson(seed: int) -> tuple[CliqueWeights, Nodes, Flags, Ints]:
    rng = np.random.default_rng(seed)
    words, graphs = graphs_of(random_notes(rng, size=12))
    M = len(graphs.nodes)
    gold = rng.integers(0, 3, M)
    candidates = graphs.candidates.copy()
    candidates[np.arange(M), gold] = True
    shares = graphs.shares(gold, np.ones(M, np.bool_))
    nodes = Nodes.of(words, graphs.nodes, shares, rng.integers(0, 8, (M, 4)))
    return weights(rng, 7, 3), nodes, candidates, gold


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_finite_differences(seed: int) -> None:
    drawn, nodes, candidates, gold = lesson(seed)
    prior = weights(np.random.default_rng(9), 7, 3)

    def value(flat: Floats) -> float:
        return objective.objective(drawn.like(flat), nodes, candidates, gold, penalty=0.3, prior=prior)[0]

    slope = objective.objective(drawn, nodes, candidates, gold, penalty=0.3, prior=prior)[1].flat()
    flat, step = drawn.flat(), 1e-5
    expected = [(value(flat + step * e) - value(flat - step * e)) / (2 * step) for e in np.eye(len(flat))]
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-6)


def test_the_objective_is_the_chance_of_each_label_given_the_others() -> None:
    rng = np.random.default_rng(3)
    drawn, docs = weights(rng, 0, 3), random_notes(rng)
    words, graphs = graphs_of(docs)
    gold = np.array([rng.choice(np.flatnonzero(row)) for row in graphs.candidates])
    nodes = Nodes.of(
        words, graphs.nodes, graphs.shares(gold, np.ones(len(gold), np.bool_)), np.zeros((len(gold), 0), int)
    )
    value, _ = objective.objective(drawn, nodes, graphs.candidates, gold, penalty=0.0, prior=drawn)
    expected = 0.0
    for k, row in zip(range(len(gold)), graphs.candidates, strict=True):
        mates = np.flatnonzero(graphs.graph == graphs.graph[k])
        scores = []
        for label in np.flatnonzero(row):
            y = np.where(mates == k, label, gold[mates])
            scores.append((label, score_by_hand(drawn, words, graphs.nodes[mates].tolist(), y.tolist())))
        expected += np.logaddexp.reduce([s for _, s in scores]) - dict(scores)[gold[k]]
    assert value == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.permutations(range(4)))
def test_the_order_of_documents_does_not_matter(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    docs, model = random_notes(rng, 4), Model(Alignment(), weights(rng))
    straight = align(docs, model, layer="found", mode="balanced")
    turned = align([docs[i] for i in order], model, layer="found", mode="balanced")
    assert [straight[i] for i in order] == turned
    scores = [[span.score for span in doc.layers["found"]] for doc in turned]
    assert scores == [[span.score for span in straight[i].layers["found"]] for i in order]


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_recall_never_turns_an_identifier_into_o(seed: int) -> None:
    rng = np.random.default_rng(seed)
    docs, model = random_notes(rng), Model(Alignment(mode="recall"), weights(rng))
    for before, after in zip(docs, align(docs, model, layer="found"), strict=True):
        tags = [alignment_graph.token_labels(doc, doc.layers["found"], dict(zip(LABELS, range(3), strict=True)))
                for doc in (before, after)]  # fmt: skip
        assert not ((tags[0] > 0) & (tags[1] == 0)).any()


def test_balanced_can_take_an_identifier_back() -> None:
    rows = [("Penn", 0.02, 0.0), ("came", 0.0, 0.0), ("Penn", 0.02, 0.0), ("came", 0.0, 0.0), ("Penn", 0.55, 0.0)]
    doc, agree = note(rows), Model.default("balanced")
    unary = agree.weights.unary.copy()
    unary[1, 1] = 0.0  # what the tagger found has no more weight than its chance
    agree = replace(agree, weights=replace(agree.weights, unary=unary))
    assert found(align([doc], agree, layer="found")[0]) == []
    assert found(align([doc], agree, layer="found", mode="recall")[0]) == [("Penn", "NAME")]


TEXT = "Dr. Ann van Penn, Bath.\nPenn - Lowe Ely"


def relabelled(spans: Iterable[Span], **changes: str) -> list[tuple[str, str, float]]:
    doc = Document.make(TEXT, layers={"found": spans})
    new = {doc.words().index(word): (label, 0.5) for word, label in changes.items()}
    made = alignment_graph.to_spans(doc, doc.layers["found"], new)
    return [(doc.text[span.start : span.end], span.label, span.score) for span in made]


def test_changed_tokens_become_spans_join_split_or_vanish() -> None:
    ann, penn = Span(4, 7, "X", 0.9), Span(12, 16, "X", 0.8)
    assert relabelled([ann, penn], van="X") == [("Ann van Penn", "X", 0.5)]
    assert relabelled([ann], van="Y") == [("Ann", "X", 0.9), ("van", "Y", 0.5)]
    assert relabelled([ann], Bath="X") == [("Ann", "X", 0.9), ("Bath", "X", 0.5)]
    whole = Span(4, 16, "X", 0.9)
    assert relabelled([whole], van="Y") == [("Ann", "X", 0.9), ("van", "Y", 0.5), ("Penn", "X", 0.9)]
    assert relabelled([whole], van="O") == [("Ann", "X", 0.9), ("Penn", "X", 0.9)]
    assert relabelled([whole], Ann="Y", van="Y", Penn="Y") == [("Ann van Penn", "Y", 0.5)]
    lowe = Span(24, 35, "X", 0.9)  # Penn - Lowe: the dash goes with the word before it
    assert relabelled([lowe], Lowe="Y") == [("Penn -", "X", 0.9), ("Lowe", "Y", 0.5)]
    near = [Span(31, 35, "X", 0.9), Span(36, 39, "X", 0.9)]
    assert relabelled(near, Ann="Z")[1:] == [("Lowe", "X", 0.9), ("Ely", "X", 0.9)]
    halves = [Span(4, 5, "X", 0.9), Span(5, 7, "Y", 0.9)]  # spans inside a token
    assert relabelled(halves, van="Z") == [("A", "X", 0.9), ("nn", "Y", 0.9), ("van", "Z", 0.5)]


@settings(max_examples=60)
@given(st.data())
def test_every_word_has_the_label_it_was_given(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(["Penn", "Bath", "-", ",", "\n"]), min_size=1, max_size=9))
    doc = Document.make(" ".join(words))
    T = len(doc.tokens)
    cuts = sorted(data.draw(st.sets(st.integers(0, T), max_size=5)))
    spans = [
        Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), data.draw(st.sampled_from("XY")))
        for a, b in itertools.pairwise(cuts)
        if data.draw(st.booleans())
    ]
    index = {"O": 0, "X": 1, "Y": 2}
    wanted = alignment_graph.token_labels(doc, spans, index)
    plain = [t for t, word in enumerate(doc.words()) if word.isalpha()]
    news = {t: data.draw(st.sampled_from("OXY")) for t in plain if data.draw(st.booleans())}
    news = {t: label for t, label in news.items() if index[label] != wanted[t]}
    made = alignment_graph.to_spans(doc, spans, {t: (label, 0.5) for t, label in news.items()})
    wanted[list(news)] = [index[label] for label in news.values()]
    assert alignment_graph.token_labels(doc, made, index)[plain].tolist() == wanted[plain].tolist()
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        untouched = not any(t in news for t in range(max(first - 1, 0), end + 1))
        assert not untouched or any(span is other for other in made)


def test_blanks_join_but_lines_do_not() -> None:
    doc = Document.make("Ann\nPenn Lowe", layers={"found": [Span(0, 3, "X")]})
    made = alignment_graph.to_spans(doc, doc.layers["found"], {1: ("X", 0.6), 2: ("X", 0.7)})
    assert [(span.start, span.end, span.score) for span in made] == [(0, 3, 1.0), (4, 13, 0.6)]


def test_a_word_ten_thousand_times_takes_a_moment() -> None:
    rng = np.random.default_rng(0)
    rows = [(word, float(chance), 0.0) for chance in rng.random(10_000) for word in ("Penn", "came")]
    doc = note([(word, chance if word == "Penn" else 0.0, 0.0) for word, chance, _ in rows])
    model = Model(Alignment(), weights(rng))
    align([note([SURE, UNSURE])], model, layer="found")
    begin = time.process_time()
    align([doc], model, layer="found")
    align([doc], Model.default(), layer="found")
    assert time.process_time() - begin < 4.0


def trained(docs: list[Document]) -> Tagger:
    return train(docs, Cascade(epochs=2, documents=False))


@pytest.fixture(scope="module")
def crossed() -> list[Document]:
    return cross_fit(notes(120, patients=30, noise=0.2), trained, folds=3, seed=1)


def test_cross_fitting_leaves_each_patient_out(crossed: list[Document]) -> None:
    seen: list[tuple[set[str], set[str]]] = []

    class Spy:
        layer = "spy"

        def __init__(self, docs: list[Document]) -> None:
            self.patients = {doc.patient for doc in docs}

        def annotate(self, documents: Iterable[Document]) -> list[Document]:
            held = [doc.with_layer("spy", []) for doc in documents]
            seen.append((self.patients, {doc.patient for doc in held}))
            return held

        def posteriors(self, documents: Iterable[Document]) -> list[Document]:
            return [doc.with_soft("spy", Soft(("O",), np.ones((len(doc.tokens), 1)))) for doc in documents]

    docs = notes(20, patients=7)
    out = cross_fit(docs, Spy, folds=3, seed=4)
    assert [doc.id for doc in out] == [doc.id for doc in docs]
    assert len(seen) == 3
    assert all(not known & held for known, held in seen)
    assert set.union(*(held for _, held in seen)) == {doc.patient for doc in docs}
    assert all("cascade" in doc.layers and "cascade" in doc.soft for doc in crossed)
    with pytest.raises(ConfigError, match="2 patients"):
        cross_fit(docs[:1], Spy, folds=3, seed=0)


def test_a_fitted_model_is_saved_and_loaded_as_it_is(crossed: list[Document]) -> None:
    model = fit(crossed, Alignment(), layer="cascade", common=frozenset({"The"}))
    state = replace(model.state(), config=asdict(model.config))
    arrays, again = state.arrays, Model.of(state)
    assert len(model.keys) > 10
    assert again.common == frozenset({"the"})
    assert align(crossed, again, layer="cascade") == align(crossed, model, layer="cascade")
    np.testing.assert_array_equal(again.weights.flat(), model.weights.flat())
    twin = fit(crossed, Alignment(), layer="cascade", common=frozenset({"The"}))
    np.testing.assert_array_equal(twin.weights.flat(), model.weights.flat())
    for name in arrays:
        with pytest.raises(ModelError, match="fit it again"):
            Model.of(replace(state, arrays={key: array for key, array in arrays.items() if key != name}))
        with pytest.raises(ModelError, match="fit it again"):
            Model.of(replace(state, arrays={**arrays, name: arrays[name][..., :-1]}))
    with pytest.raises(ModelError, match="fit it again"):
        Model.of(replace(state, arrays={**arrays, "differ": np.array([np.nan])}))
    with pytest.raises(ModelError, match="the settings of its alignment cannot be read"):
        Model.of(replace(state, config={"folds": "five"}))


def test_any_model_fits_a_model_file(tmp_path: Path) -> None:
    model = Model.default("balanced")
    state = model.state()
    bundle.save(tmp_path / "a.cfm", bundle.Manifest("alignment", asdict(model.config)), state.arrays, state.strings)
    again = Model.of(bundle.load(tmp_path / "a.cfm").state)
    np.testing.assert_array_equal(again.weights.flat(), model.weights.flat())
    assert (again.labels, again.common, len(again.keys)) == (("O",), frozenset(), 0)


def test_names_enter_no_vocabulary() -> None:
    """Keys of words come from outside of gold spans only, and from two patients where there are many."""
    docs = [note([("Dr.", 0, 0), SURE, ("came", 0, 0), (f"w{k}", 0, 0), UNSURE], id=str(k)) for k in range(25)]
    docs = [doc.with_layer("gold", [over(doc, t, "NAME") for t in (1, 4)]) for doc in docs]
    model = fit(docs, Alignment(), layer="found")
    keys = {word: crc32(word.lower().encode()) for word in ("Dr.", "Penn", "came", "w0")}
    kept = {int(key) & 0xFFFFFFFF for key in model.keys if (int(key) >> 40) % 2 == 0 or int(key) >> 40 == 21}
    assert {keys["Dr."], keys["came"]} <= kept
    assert not {keys["Penn"], keys["w0"]} & kept


def test_learning_finds_which_occurrences_follow() -> None:
    """Names that the tagger missed half of the time: the fitted model finds them, the words that vary it leaves."""
    rng = np.random.default_rng(0)

    def made(k: int) -> Document:
        name, town = 0.9, 0.3 + 0.3 * rng.random()
        rows: list[tuple[str, float, float]] = [
            ("Dr.", 0, 0),
            ("Penn", name, 0),
            ("saw", 0, 0),
            ("old", 0, 0),
            ("Penn", 0.2, 0),
            ("today", 0, 0),
        ]
        rows += [("Bath", 0, 0.9), ("the", 0, 0), ("bath", 0, town)]
        doc = note(rows, id=f"d{k}")
        return doc.with_layer("gold", [over(doc, t, LABELS[1 + (t == 6)]) for t in (1, 4, 6)])

    model = fit([made(k) for k in range(40)], Alignment(mode="balanced"), layer="found")
    doc = align([made(99)], model, layer="found")[0]
    assert set(doc.layers["found"]) == set(doc.layers["gold"])


def test_errors_name_the_remedy_and_no_text() -> None:
    doc = note([("Quillfeather", 0.9, 0.0), ("Quillfeather", 0.1, 0.0)])
    double = doc.with_layer("found", [Span(0, 12, "NAME"), Span(3, 12, "TOWN")])
    strange = replace(doc, soft={"found": Soft(("NAME",), np.ones((2, 1)))})
    broken = replace(doc, soft={"found": Soft(LABELS, np.full((2, 3), np.nan))})
    tags = replace(doc, soft={"found": Soft(("O", "B-NAME", "I-NAME"), np.ones((2, 3)) / 3)})
    single = note([("Quillfeather", 0.9, 0.0)]).with_layer("gold", [])
    cases = [
        ([replace(doc, soft={})], "Tagger.posteriors"), ([replace(doc, layers={})], "Tagger.annotate"),
        ([double], "chaffinch.resolve"), ([strange], "no column O"), ([broken], "not a finite number"),
        ([tags], "by label"),
    ]  # fmt: skip
    for docs, remedy in cases:
        with pytest.raises(DataError, match=remedy) as caught:
            align(docs, Model.default(), layer="found")
        assert "Quill" not in str(caught.value)
    with pytest.raises(DataError, match=r"Model\.default") as error:
        fit([single], Alignment(), layer="found")
    assert "Quill" not in str(error.value) + repr(Model.default())
    for wrong in ({"mode": "f1"}, {"penalty": 0.0}, {"folds": 1}, {"seed": -1}):
        with pytest.raises(ChaffinchError):
            Alignment(**wrong)
    with pytest.raises(ConfigError, match="recall, balanced"):
        align([doc], Model.default(), layer="found", mode="all")


def test_empty_documents_and_no_documents() -> None:
    empty = note([], id="e")
    assert align([], Model.default(), layer="found") == []
    assert align([empty, empty], Model.default(), layer="found") == [empty, empty]
