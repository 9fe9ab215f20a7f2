"""Model files: everything comes back, and no damaged byte goes unnoticed."""

from __future__ import annotations

import errno
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chaffinch.bundle import Manifest, load, save
from chaffinch.errors import ConfigError, ModelError

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=6)
ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.uint8, np.bool_]), hnp.array_shapes(min_side=0)
)


def example(path: Path) -> Path:
    save(
        path, Manifest("test", labels=("NAME",), metrics={"f1": 0.5}), {"w": np.arange(6.0)}, {"words": ["a", "é", ""]}
    )
    return path


@given(array=ARRAYS, words=WORDS)
@settings(max_examples=50)
def test_arrays_and_strings_come_back(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, words: list[str]
) -> None:
    path = tmp_path_factory.mktemp("model") / "m.cfm"
    written = save(path, Manifest("test", config={"k": 3}, labels=("A", "B")), {"w": array}, {"words": words})
    bundle = load(path)
    assert bundle.manifest == written
    assert bundle.strings == {"words": tuple(words)}
    assert set(bundle.arrays) == {"w"}
    assert bundle.arrays["w"].dtype == array.dtype
    np.testing.assert_array_equal(bundle.arrays["w"], array)


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = example(tmp_path / "a.cfm"), example(tmp_path / "b.cfm")
    assert first.read_bytes() == second.read_bytes()


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    path = example(tmp_path / "m.cfm")
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flip in (0x01, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(ModelError) as caught:
                load(path)
            assert "m.cfm" in str(caught.value)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = example(tmp_path / "m.cfm")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelError):
        load(path)


def test_an_unknown_format_says_to_update(tmp_path: Path) -> None:
    path = tmp_path / "m.cfm"
    save(path, Manifest("test", format=99), {})
    with pytest.raises(ModelError, match=r"format 99.*update Chaffinch"):
        load(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {"made": "elsewhere"}}).encode()
    for content in (b"", b"hello", b"PK\x03\x04" * 40, struct.pack("<Q", len(header)) + header):
        path = tmp_path / "m.cfm"
        path.write_bytes(content)
        with pytest.raises(ModelError):
            load(path)


def test_objects_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="plain numbers only"):
        save(tmp_path / "m.cfm", Manifest("test"), {"w": np.array([{}], object)})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = example(tmp_path / "m.cfm")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match=r"m\.cfm: cannot be written \(No space left on device\); an existing file is"):
        save(path, Manifest("test"), {"w": np.zeros(3)})
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.cfm"]


def test_a_name_that_is_neither_path_nor_packaged(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no packaged model"):
        load(tmp_path / "absent.cfm")
