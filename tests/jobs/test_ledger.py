"""The ledger forgets nothing that was safe, and believes nothing that was not."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs.ledger import open_ledger

RESULTS = {number: f"result {number}\n".encode() * number for number in range(6)}
RECORD = 52  # bytes of a record of the index


def key(number: int) -> str:
    return f"{number:040x}"


def filled(folder: Path, results: dict[int, bytes] = RESULTS) -> None:
    with open_ledger(folder, "s") as ledger:
        for number, result in results.items():
            ledger.put(number, key(number), result)
            ledger.sync()


def test_results_come_back_and_the_folder_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    filled(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with open_ledger(folder, "s", resume=True) as ledger:
        assert {number: ledger.get(number, key(number)) for number in RESULTS} == RESULTS
        assert len(ledger) == len(RESULTS)
        assert ledger.get(9) is None
        assert ledger.get(2, key(3)) is None, "the result of another item, or of what this one was before"
        ledger.put(9, key(9), b"new")
        assert ledger.get(9, key(9)) == b"new"
        ledger.forget(2)
        assert ledger.get(2) is None
        assert len(ledger) == len(RESULTS)
    with open_ledger(folder, "s", resume=True) as ledger:
        assert ledger.get(2) is None
        assert len(ledger) == len(RESULTS)
    assert b"result" not in (folder / "ledger").read_bytes() + (folder / "index").read_bytes()


@pytest.mark.parametrize("file", ["index", "results"])
def test_a_file_cut_anywhere_loses_what_was_cut_and_can_be_gone_on_with(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    filled(folder)
    whole = {name: (folder / name).read_bytes() for name in ("index", "results")}
    for size in range(0, len(whole[file]), 7):
        for name, content in whole.items():
            (folder / name).write_bytes(content[:size] if name == file else content)
        with open_ledger(folder, "s", resume=True) as ledger:
            there = [number for number in RESULTS if ledger.get(number, key(number)) is not None]
            assert there == list(RESULTS)[: len(there)]
            assert all(ledger.get(number) == RESULTS[number] for number in there)
            assert len(there) < len(RESULTS)
            for number in RESULTS.keys() - set(there):
                ledger.put(number, key(number), RESULTS[number])
        with open_ledger(folder, "s", resume=True) as ledger:
            assert {number: ledger.get(number, key(number)) for number in RESULTS} == RESULTS


@pytest.mark.parametrize("byte", range(RECORD))
def test_a_record_torn_at_any_byte_is_not_believed(byte: int, tmp_path: Path) -> None:
    filled(tmp_path / "job")
    content = bytearray((tmp_path / "job" / "index").read_bytes())
    content[4 * RECORD + byte] ^= 1
    (tmp_path / "job" / "index").write_bytes(content)
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get(4) is None
        assert ledger.get(5) == RESULTS[5]


def test_a_result_that_changed_on_the_disk_is_not_believed(tmp_path: Path) -> None:
    filled(tmp_path / "job")
    content = bytearray((tmp_path / "job" / "results").read_bytes())
    content[-1] ^= 1
    (tmp_path / "job" / "results").write_bytes(content)
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get(4) == RESULTS[4]
        assert ledger.get(5) is None


def test_a_line_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "job")
    path = tmp_path / "job" / "ledger"
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    with pytest.raises(DataError, match="damaged"), open_ledger(tmp_path / "job", "s", resume=True):
        pass


def test_another_job_and_a_second_run_unasked_are_refused(tmp_path: Path) -> None:
    filled(tmp_path / "job")
    with pytest.raises(ConfigError, match="--resume"), open_ledger(tmp_path / "job", "s"):
        pass
    with pytest.raises(ConfigError, match="other settings"), open_ledger(tmp_path / "job", "t", resume=True):
        pass


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (
        open_ledger(tmp_path / "job", "s"),
        pytest.raises(ConfigError, match="another run"),
        open_ledger(tmp_path / "job", "s", resume=True),
    ):
        pass


def test_marks_and_notes_are_kept(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "job", "s", notes={"salt": "1"}) as ledger:
        assert not ledger.is_marked("placing")
        ledger.mark("placing")
    with open_ledger(tmp_path / "job", "s", notes={"salt": "2"}, resume=True) as ledger:
        assert ledger.is_marked("placing")
        assert ledger.notes == {"salt": "1"}


def test_a_full_disk_stops_the_job_and_keeps_what_was_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill() -> None:
        with open_ledger(tmp_path / "job", "s") as ledger:
            ledger.put(1, key(1), b"safe")
            ledger.sync()
            monkeypatch.setattr(os, "fsync", full)
            ledger.put(2, key(2), b"not safe")
            ledger.sync()

    with pytest.raises(ChaffinchError, match=r"No space left.*--resume"):
        fill()
    monkeypatch.undo()
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get(1) == b"safe"
        assert ledger.get(2) is None


def test_what_was_put_is_safe_when_the_block_ends_by_an_error(tmp_path: Path) -> None:
    def stop() -> None:
        with open_ledger(tmp_path / "job", "s") as ledger:
            ledger.put(1, key(1), b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get(1) == b"1"
