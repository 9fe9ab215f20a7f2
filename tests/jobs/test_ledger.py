"""The ledger forgets nothing that was safe, and believes nothing that was not."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs.ledger import open_ledger

RESULTS = {f"k{number}": f"result {number}\n".encode() * number for number in range(6)}


def filled(folder: Path, results: dict[str, bytes] = RESULTS) -> None:
    with open_ledger(folder, "s") as ledger:
        for key, result in results.items():
            ledger.put(key, result)
            ledger.sync()


def test_results_come_back_and_the_folder_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    filled(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with open_ledger(folder, "s", resume=True) as ledger:
        assert {key: ledger.get(key) for key in RESULTS} == RESULTS
        assert len(ledger) == len(RESULTS)
        assert ledger.get("other") is None
        ledger.put("other", b"new")
        assert ledger.get("other") == b"new"
    assert b"result" not in (folder / "ledger").read_bytes()


@pytest.mark.parametrize("file", ["ledger", "results"])
def test_a_file_cut_anywhere_leaves_a_prefix_that_can_be_gone_on_with(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    filled(folder)
    whole = {name: (folder / name).read_bytes() for name in ("ledger", "results")}
    head = whole["ledger"].index(b"\n") + 1 if file == "ledger" else 0
    keys = list(RESULTS)
    for size in range(head, len(whole[file]), 7):
        for name, content in whole.items():
            (folder / name).write_bytes(content[:size] if name == file else content)
        with open_ledger(folder, "s", resume=True) as ledger:
            there = [key for key in keys if ledger.get(key) is not None]
            assert there == keys[: len(there)]
            assert all(ledger.get(key) == RESULTS[key] for key in there)
            for key in keys[len(there) :]:
                ledger.put(key, RESULTS[key])
        assert {name: (folder / name).read_bytes() for name in whole} == whole


def test_a_result_that_changed_on_the_disk_is_not_believed(tmp_path: Path) -> None:
    filled(tmp_path / "job")
    content = bytearray((tmp_path / "job" / "results").read_bytes())
    content[-1] ^= 1
    (tmp_path / "job" / "results").write_bytes(content)
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get("k4") == RESULTS["k4"]
        assert ledger.get("k5") is None


def test_a_line_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "job")
    path = tmp_path / "job" / "ledger"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"nonsense\n", *lines[2:]]))
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
            ledger.put("a", b"safe")
            ledger.sync()
            monkeypatch.setattr(os, "fsync", full)
            ledger.put("b", b"not safe")
            ledger.sync()

    with pytest.raises(ChaffinchError, match=r"No space left.*--resume"):
        fill()
    monkeypatch.undo()
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get("a") == b"safe"
        assert ledger.get("b") is None


def test_what_was_put_is_safe_when_the_block_ends_by_an_error(tmp_path: Path) -> None:
    def stop() -> None:
        with open_ledger(tmp_path / "job", "s") as ledger:
            ledger.put("a", b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
        assert ledger.get("a") == b"1"
