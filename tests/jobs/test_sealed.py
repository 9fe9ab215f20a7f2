"""Records that wait on the disk come back in order, however many they are, and nobody else can read them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ChaffinchError, StorageError
from chaffinch.jobs.batching import sealed
from chaffinch.jobs.batching.sealed import SealedRecords
from tests.jobs.killing import open_files_of

WORD = b"Quillfeather"
ROOT = Path(__file__).parents[2]
# Adds records with a word to argv[1], tells where they are, and waits to be killed.
HOLDS_RECORDS = """
import os, sys, time
from pathlib import Path
from chaffinch.jobs.batching.sealed import SealedRecords
records = SealedRecords(Path(sys.argv[1]), memory=10_000)
for number in range(500):
    records.add(number.to_bytes(8, "big"), b"Seen by Dr. Quillfeather. " * 20)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("memory", [0, 300, 2_000, 1 << 20])
@given(st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=50)), max_size=60))
def test_records_come_back_sorted_and_equal_keys_in_the_order_of_their_addition(
    memory: int, records: list[tuple[bytes, bytes]]
) -> None:
    with SealedRecords(memory=memory) as store:
        for key, payload in records:
            store.add(key, payload)
        assert len(store) == len(records)
        expected = sorted(records, key=lambda record: record[0])
        assert list(store) == expected
        assert list(store) == expected, "it can be read again"


def test_levels_of_runs_are_merged_so_that_few_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "_FAN", 3)
    with SealedRecords(memory=0) as store:
        for number in range(200):
            store.add(f"{number * 77 % 200:03d}".encode(), b"x")
        assert max(map(len, store._levels)) < 3
        assert len(store._levels) > 3
        assert [int(key) for key, _ in store] == list(range(200))


def test_little_never_reaches_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was made")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with SealedRecords() as store:
        store.add(b"a", WORD)
        assert list(store) == [(b"a", WORD)]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")
def test_nothing_readable_is_on_the_disk_and_nothing_at_all_after_kill_9(tmp_path: Path) -> None:
    contents = open_files_of(HOLDS_RECORDS, tmp_path)
    assert sum(map(len, contents)) > 200_000, "it was on the disk"
    assert WORD not in b"".join(contents)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("harm", ["cut", "emptied", "longer", "unreadable"])
def test_a_file_that_cannot_be_read_whole_is_refused(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SealedRecords(tmp_path, memory=0) as store:
        for key in (b"a", b"b"):
            store.add(key, WORD)
        handle = store._levels[0][0]._file.fileno()
        size = os.fstat(handle).st_size
        if harm == "cut":
            os.ftruncate(handle, size // 2)  # where a block ends
        elif harm == "emptied":
            os.ftruncate(handle, 0)
        elif harm == "longer":
            os.pwrite(handle, b"\x7f", 0)
        else:
            monkeypatch.setattr(os, "pread", _fail)
        with pytest.raises(StorageError, match="cannot be read"):
            list(store)


def _fail(*_: object) -> bytes:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_bytes_that_changed_on_the_disk_are_refused(tmp_path: Path) -> None:
    with SealedRecords(tmp_path, memory=0) as store:
        store.add(b"a", WORD)
        handle = store._levels[0][0]._file.fileno()
        os.pwrite(handle, b"\0", os.fstat(handle).st_size - 3)
        with pytest.raises(ChaffinchError, match="changed on the disk"):
            list(store)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is that of Unix")
def test_a_full_disk_is_a_message_with_advice(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with SealedRecords(tmp_path, memory=0) as store, pytest.raises(ChaffinchError, match="make room"):
            store.add(b"a", WORD * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
