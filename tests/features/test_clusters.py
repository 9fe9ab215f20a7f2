"""Word clusters: counts and weights worked out by hand, known groups, and the same bytes each time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from chaffinch.errors import ConfigError, DataError
from chaffinch.features import clusters
from chaffinch.features.clusters import Clusters, WordClusters, fold_word, kmeans, learn, neighbours, ppmi, vectors
from chaffinch.text import Document

GROUPS = [[f"{stem}{letter}" for letter in "abcdefgh"] for stem in ("drug", "site", "verb")]


def block_notes(seed: int = 0, notes: int = 60) -> list[Document]:
    """Sentences of a drug, a verb and a site, each word drawn from its group: only the group tells its neighbours."""
    rng = np.random.default_rng(seed)
    drug, site, verb = (np.array(group) for group in GROUPS)
    texts = [
        "\n".join(f"the {rng.choice(drug)} {rng.choice(verb)} at {rng.choice(site)} now" for _ in range(10))
        for _ in range(notes)
    ]
    return [Document.make(text, id=str(number), split="lines") for number, text in enumerate(texts)]


def rows(learnt: WordClusters, words: list[str], column: int = 0) -> list[int]:
    return [int(learnt.codes[learnt.words.index(word), column]) for word in words]


def test_words_that_share_neighbours_share_a_cluster() -> None:
    learnt = learn(block_notes(), Clusters(sizes=(6, 100), dimensions=6))
    found = [set(rows(learnt, group)) for group in GROUPS]
    assert [len(numbers) for numbers in found] == [1, 1, 1]
    assert len(set.union(*found)) == 3
    assert learnt.codes.shape == (27, 2)
    assert learnt.codes.dtype == np.int16
    assert learnt.codes[:, 1].max() < 27  # 100 was cut to the number of words


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=4), st.integers(1, 3))
def test_neighbours_agree_with_a_walk(sentences: list[list[int]], window: int) -> None:
    """Words 0 to 2 are counted, 3 stands for any other word, 4 for the edge of a sentence."""
    edge = [4] * window
    stream = edge + [number for sentence in sentences for number in (*(min(n, 3) for n in sentence), *edge)]
    expected: Counter[tuple[int, int]] = Counter()
    for place, word in enumerate(stream):
        for step in range(1, window + 1):
            if word < 3:
                expected[word, stream[place - step]] += 1
                expected[word, 5 + stream[place + step]] += 1
    dense = neighbours(np.array(stream, np.int64), 3, window).toarray()
    assert dense.shape == (3, 10)
    assert {(w, c): n for (w, c), n in np.ndenumerate(dense) if n} == expected


def test_ppmi_worked_by_hand() -> None:
    """p(w, c) is 3/8, 1/8, 0 and 1/8, 1/8, 2/8; p(w) is a half each; p(c) is 4/8, 2/8, 2/8."""
    weights = ppmi(csr_matrix(np.array([[3.0, 1, 0], [1, 1, 2]]))).toarray()
    np.testing.assert_allclose(weights, [[math.log(1.5), 0, 0], [0, 0, math.log(2)]], rtol=0, atol=1e-12)


@given(st.integers(0, 10_000))
def test_vectors_keep_the_angles_of_the_best_approximation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random((12, 3)) @ np.diag([8.0, 4, 2]) @ rng.random((3, 20))
    points = vectors(csr_matrix(weights), 3, rng)
    unit = weights / np.linalg.norm(weights, axis=1, keepdims=True)  # of rank 3, so nothing is lost
    np.testing.assert_allclose(points @ points.T, unit @ unit.T, rtol=0, atol=1e-4)


def test_a_word_without_weight_stays_at_nought() -> None:
    points = vectors(csr_matrix(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])), 2, np.random.default_rng(0))
    assert np.linalg.norm(points, axis=1).tolist() == pytest.approx([1, 0, 1])


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 1000))
def test_kmeans_leaves_every_point_with_its_nearest_centre(K: int, V: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((V, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    placed = kmeans(points, min(K, V), rng)
    used = np.unique(placed)
    assert 0 <= used.min() <= used.max() < min(K, V)
    centres = np.array([points[placed == k].sum(axis=0) for k in used])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    cosine = points @ centres.T
    assigned = cosine[np.arange(V), np.searchsorted(used, placed)]
    assert np.all(assigned >= cosine.max(axis=1) - 1e-4)


def test_clusters_that_run_empty_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_spread", lambda points, K, rng: [0] * K)  # all but the first centre get nothing
    angles = np.arange(12) / 4
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert set(kmeans(points, 4, np.random.default_rng(0)).tolist()) == {0, 1, 2, 3}


def test_kmeans_with_fewer_different_points_than_clusters() -> None:
    points = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    placed = kmeans(points, 5, np.random.default_rng(0))
    assert set(placed[:4].tolist()).isdisjoint(placed[4:].tolist())


def test_the_same_documents_give_the_same_bytes_in_any_order() -> None:
    notes, config = block_notes(notes=20), Clusters(sizes=(5, 9), dimensions=8)
    once, again, turned = learn(notes, config), learn(iter(notes), config), learn(notes[::-1], config)
    for other in (again, turned):
        assert other.words == once.words == tuple(sorted(once.words))
        assert other.codes.tobytes() == once.codes.tobytes()
    assert learn(notes, Clusters(sizes=(5, 9), dimensions=8, seed=1)).codes.tobytes() != once.codes.tobytes()


def test_the_result_does_not_hang_on_the_hash_of_strings() -> None:
    code = (
        "from tests.features.test_clusters import *; made = learn(block_notes(notes=9), Clusters(sizes=(5,)));"
        "import hashlib; print(hashlib.sha256(repr(made.words).encode() + made.codes.tobytes()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_word_enters_when_enough_patients_used_it() -> None:
    texts = ["rare rare rare common", "common often often", "common often"]
    notes = [Document.make(text, id=str(n), group="pq"[n > 0]) for n, text in enumerate(texts)]
    assert learn(notes, Clusters(floor=2)).words == ("common",)  # two patients; "often" has two notes of one
    assert learn(notes, Clusters(floor=1)).words == ("common", "often", "rare")
    once_more = [*notes, Document.make("often", id="3", group="r")]
    assert learn(once_more, Clusters(floor=1, min_count=4)).words == ("often",)  # four times, the others three


def test_marks_say_the_cluster_or_nought() -> None:
    learnt = WordClusters(("cd00", "il-0"), np.array([[0, 7], [3, 0]], np.int16))
    marks = learnt.marks(Document.make("CD28 x IL-2", tokens=[(0, 4), (5, 6), (7, 11)]))
    assert marks.tolist() == [[1, 8], [0, 0], [4, 1]]
    assert marks.dtype == np.int16
    assert learnt.marks(Document.make("")).shape == (0, 2)
    assert fold_word("IL-12Rβ1") == "il-00rβ0"


def test_too_little_text_is_an_error_without_the_text() -> None:
    with pytest.raises(DataError, match=r"occurs 3 times in documents of at least 2 patients \(0 different"):
        learn([])
    with pytest.raises(DataError, match=r"2 different words, patients: 1") as caught:
        learn([Document.make("penn station", id="a")])
    assert "penn" not in str(caught.value)
    assert "cd00" not in repr(WordClusters(("cd00",), np.zeros((1, 1), np.int16)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": ()}, "sizes is empty"),
        ({"sizes": (64, 0)}, "sizes must be whole numbers from 1 to 32767, got 0"),
        ({"sizes": (40_000,)}, "got 40000"),
        ({"dimensions": 0}, "dimensions must be a whole number, at least 1, got 0"),
        ({"window": 0}, "window must be a whole number, at least 1"),
        ({"min_count": 0}, "min_count must be a whole number, at least 1"),
        ({"floor": 0}, "floor must be a whole number, at least 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0, got -1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Clusters(**options)  # type: ignore[arg-type]  # values of several types
