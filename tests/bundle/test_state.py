"""State: parts of a model are stored by name and come back unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from chaffinch.bundle import Manifest, State, find, load, read_manifest, save
from chaffinch.errors import ModelError

KEYS = st.text("abc0 ", min_size=1, max_size=4)
WORDS = st.lists(st.text("xyé", max_size=3), max_size=3).map(tuple)
NUMBERS = st.lists(st.integers(0, 9), max_size=4).map(lambda numbers: np.array(numbers, np.int64))
LEAVES = st.builds(State, st.dictionaries(KEYS, NUMBERS, max_size=3), st.dictionaries(KEYS, WORDS, max_size=3))


def assert_same(one: State, other: State) -> None:
    assert one.strings == other.strings
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


PARTS = st.dictionaries(KEYS, st.tuples(LEAVES, st.dictionaries(KEYS, LEAVES, max_size=2)), max_size=3)


def nested(whole: State, parts: Mapping[str, tuple[State, Mapping[str, State]]]) -> State:
    for name, (part, inner) in parts.items():
        child = part
        for deeper, leaf in inner.items():
            child = child.with_child(deeper, leaf)
        whole = whole.with_child(name, child)
    return whole


@given(whole=LEAVES, parts=PARTS)
def test_children_come_back(whole: State, parts: Mapping[str, tuple[State, Mapping[str, State]]]) -> None:
    state = nested(whole, parts)
    for name, (part, inner) in parts.items():
        child = state.child(name)
        assert_same(child, nested(part, {deeper: (leaf, {}) for deeper, leaf in inner.items()}))
        for deeper, leaf in inner.items():
            assert_same(child.child(deeper), leaf)
            assert_same(state.child(f"{name}.{deeper}"), leaf)
    for items in (state.arrays, state.strings):
        assert {key for key in items if "." not in key} == (
            whole.arrays if items is state.arrays else whole.strings
        ).keys()


def test_children_come_back_from_a_file(tmp_path: Path) -> None:
    leaf = State({"w": np.arange(3)}, {"words": ("é", "")})
    state = nested(State({"w": np.zeros(2)}), {"before0": (leaf, {"align": leaf}), "before1": (leaf, {})})
    save(tmp_path / "m.cfm", Manifest("test", {"k": 1}, ("NAME",), vocabulary_floor=3), state.arrays, state.strings)
    found = load(tmp_path / "m.cfm").state
    assert (found.kind, found.config, found.labels, found.floor) == ("test", {"k": 1}, ("NAME",), 3)
    assert_same(found, state)
    for part in (found.child("before1"), found.child("before0").child("align")):
        assert_same(part, leaf)


def test_a_child_holds_nothing_of_its_neighbours() -> None:
    state = State({"stops": np.zeros(1)}, {"step": ("a",)})
    state = state.with_child("step1", State(strings={"words": ("one",)}))
    state = state.with_child("step10", State(strings={"words": ("ten",), "step1.words": ("inner",)}))
    assert sorted(state.strings) == ["step", "step1.words", "step10.step1.words", "step10.words"]
    assert state.child("step1").strings == {"words": ("one",)}
    assert state.child("step10").child("step1").strings == {"words": ("inner",)}
    assert not state.child("step").strings
    assert not state.child("stops").arrays


def test_a_child_has_the_settings_it_is_given_and_the_floor_of_the_whole() -> None:
    state = State(kind="cascade", config={"epochs": 3}, labels=("NAME",), floor=2)
    bare, told = state.child("a"), state.child("a", kind="hmmdp", config={"passes": 1}, labels=["DATE"])
    assert (bare.kind, bare.config, bare.labels, bare.floor) == ("", {}, (), 2)
    assert (told.kind, told.config, told.labels, told.floor) == ("hmmdp", {"passes": 1}, ("DATE",), 2)
    manifest = Manifest("deid", {"rules": True}, ("X",), seed=7, documents=5, notes="public").for_part(told)
    assert (manifest.kind, manifest.config, manifest.labels) == ("hmmdp", {"passes": 1}, ("DATE",))
    assert (manifest.seed, manifest.documents, manifest.notes) == (7, 5, "public")


@pytest.mark.parametrize("again", [State({"w": np.ones(1)}), State(strings={"words": ("b",)})])
def test_two_parts_of_one_name_are_refused(again: State) -> None:
    state = State().with_child("a", State({"w": np.zeros(1)}, {"words": ("a",)}))
    with pytest.raises(ValueError, match=r"the name 'a\.w"):
        state.with_child("a", again)


def test_a_state_shows_no_words() -> None:
    assert "Zyxgov" not in repr(State(strings={"words": ("Zyxgov",)}))


@pytest.mark.parametrize("name", ["genia", "deid-en"])
def test_a_manifest_is_read_without_the_arrays(name: str, tmp_path: Path) -> None:
    assert read_manifest(name) == load(name).manifest
    whole = find(name).read_bytes()
    length = int.from_bytes(whole[:8], "little")
    for cut in (0, 7, 8, 8 + length - 1):
        (tmp_path / "cut.cfm").write_bytes(whole[:cut])
        with pytest.raises(ModelError, match="truncated"):
            read_manifest(tmp_path / "cut.cfm")
    (tmp_path / "cut.cfm").write_bytes(b"\xff" * 8 + whole[8:4_000])
    with pytest.raises(ModelError, match="truncated"):
        read_manifest(tmp_path / "cut.cfm")
    with pytest.raises(ModelError, match="cannot be read"):
        read_manifest(tmp_path)


def _digest(arrays: Mapping[str, NDArray[np.generic]], strings: Mapping[str, tuple[str, ...]]) -> str:
    whole = hashlib.sha256()
    for key in sorted(arrays):
        whole.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode() + arrays[key].tobytes())
    for key in sorted(strings):
        whole.update(key.encode() + "\0".join(strings[key]).encode())
    return whole.hexdigest()


def test_a_packaged_model_is_written_as_it_was(tmp_path: Path) -> None:
    """The names and contents of arrays and strings on disk do not change when a model is loaded and saved again."""
    from chaffinch.deid.detect.model import load as load_detector
    from chaffinch.models.tagger import load as load_tagger

    load_tagger("genia").save(tmp_path / "genia")
    load_detector("deid-en").save(tmp_path / "deid-en")
    for name in ("genia", "deid-en"):
        before, after = load(name), load(tmp_path / name)
        assert sorted(before.arrays) == sorted(after.arrays)
        assert _digest(before.arrays, before.strings) == _digest(after.arrays, after.strings)
