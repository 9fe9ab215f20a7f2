"""A job gives the same bytes however often it was stopped, and never writes half of anything."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.account import check_chain
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.deid.vault import Vault, restore
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs import release as module
from chaffinch.jobs.batching.batches import Gathered, process_batch
from chaffinch.jobs.job import ReleaseJob, VaultTarget
from chaffinch.jobs.ledger import open_ledger
from chaffinch.jobs.release import dry_run, run_release
from chaffinch.jobs.run import Interrupted, WorkItem, key_of, process_batches
from chaffinch.jobs.work import BatchWork
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, read, write
from chaffinch.text.grouping import Grouping
from tests.deid.releases import CANARY, KEY, SECRET, FunctionDetector, detector, find, note
from tests.jobs.killing import Killed

SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(12):
        (folder / f"p{number // 3}-{number:02d}.txt").write_bytes(note(number).encode())
    return folder


def job(
    notes: Path, output: Path, found: FunctionDetector | None = None, how: Release = SURROGATES, **more: Any
) -> ReleaseJob:
    given = open_source(notes, options=ReadOptions(max_chars=1000), grouping=Grouping(r"^(p\d)-"))
    return ReleaseJob(given, output, how, found or detector(), **more)


def content(folder: Path, *, but: Sequence[str] = ("notes",)) -> dict[str, bytes]:
    """All files below a folder, but those of the input."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in but
    }


def test_results_are_in_the_order_of_numbers_and_no_batch_that_is_done_is_done_twice(tmp_path: Path) -> None:
    batches = [[WorkItem(n, key_of("s", str(n)), n) for n in part] for part in ([3, 1], [0], [2])]
    done: list[int] = []

    def each(
        batches: Iterable[Sequence[WorkItem[int]]],
    ) -> Iterator[tuple[Sequence[WorkItem[int]], list[bytes | None]]]:
        for batch in batches:
            done.extend(item.number for item in batch)
            yield batch, [None if item.number == 1 else b"%d" % item.number for item in batch]

    for expected in ([3, 1, 0, 2], [3, 1]):  # 1 has no result that is kept, and 3 is in its batch
        done.clear()
        aside: dict[int, None] = {}
        with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
            process_batches(batches, each, ledger, set_aside=aside.__setitem__)
            assert [ledger.get(number) for number in range(5)] == [b"0", None, b"2", b"3", None]
            assert aside == {1: None}
        assert done == expected


def _find_here(documents: Sequence[Document]) -> Iterator[Document]:
    return find(documents)


@pytest.mark.parametrize("by_patient", [False, True])
def test_a_batch_can_be_processed_by_another_process(by_patient: bool, notes: Path, tmp_path: Path) -> None:
    (notes / "p9-01.txt").write_bytes(b"\xff" + CANARY.encode())
    own = job(notes, tmp_path / "out", detector(_find_here, by_patient=by_patient))
    with Gathered(own) as gathered:
        (batch,) = gathered.batches()
        units = [gathered.codec.decode(item.payload) for item in batch]
    work = BatchWork(own.release, own.detector)
    here = process_batch(work, units)
    there = process_batch(*pickle.loads(pickle.dumps((work, [unit for unit in units if unit.id != "p9-01"]))))
    assert [result for result in here if isinstance(result, bytes)] == there
    assert len(there) == 12


def test_a_release_adds_up(notes: Path, tmp_path: Path) -> None:
    (notes / "p9-01.txt").write_bytes(b"\xff" + CANARY.encode())
    manifest = run_release(job(notes, tmp_path / "out"))
    assert manifest["documents"] == {"in": 13, "released": 12, "withheld": 1, "excluded": 0}
    assert manifest["patients"] == 4
    assert json.loads((tmp_path / "out.manifest.json").read_bytes()) == manifest
    files = content(tmp_path)
    assert check_chain(files["out.private/documents.jsonl"].splitlines(), manifest) == 13
    assert len([name for name in files if name.startswith("out/")]) == 12
    assert CANARY not in str(files)
    ids = [json.loads(line) for line in files["out.private/ids.jsonl"].splitlines()]
    assert ids[0]["document"] == "p0-00"
    assert f"out/{ids[0]['id']}.txt" in files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "out", "out.manifest.json", "out.private"]


def test_the_vault_gives_the_files_back_byte_for_byte(notes: Path, tmp_path: Path) -> None:
    run_release(job(notes, tmp_path / "out", vault=VaultTarget(tmp_path / "v", KEY)))
    again = restore(read(tmp_path / "out"), Vault.open(tmp_path / "v", KEY))
    write(again, tmp_path / "again", format="txt")
    assert content(tmp_path / "again") == content(notes)
    assert CANARY.encode() not in b"".join(content(tmp_path, but=("notes", "again")).values())


def test_offsets_lead_from_the_input_to_the_output(notes: Path, tmp_path: Path) -> None:
    run_release(job(notes, tmp_path / "out", how=Release(Policy("tag"), keep_ids=True)))
    assert not (tmp_path / "out.private" / "ids.jsonl").exists()
    for line in (tmp_path / "out.private" / "documents.jsonl").read_bytes().splitlines():
        entry = json.loads(line)
        before = (notes / f"{entry['id']}.txt").read_bytes().decode()
        after = (tmp_path / "out" / f"{entry['id']}.txt").read_bytes().decode()
        assert before[slice(*entry["replacements"][0][:2])] == CANARY
        assert [after[a:b] for *_, a, b in entry["replacements"]] == ["[DOCTOR]", "[DATE]", "[PHONE]", "[DOCTOR]"]


def _killed_after(number: int) -> FunctionDetector:
    seen = 0

    def step(docs: Sequence[Document]) -> Iterator[Document]:
        nonlocal seen
        seen += len(docs)
        if seen > number:
            raise Killed
        return find(docs)

    return detector(step)


@pytest.mark.parametrize("by_patient", [False, True])
def test_a_run_stopped_anywhere_and_resumed_gives_the_same_bytes(
    by_patient: bool, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 3)
    (tmp_path / "whole").mkdir()
    run_release(job(notes, tmp_path / "whole" / "out", detector(by_patient=by_patient)))
    expected = content(tmp_path / "whole")
    (tmp_path / "part").mkdir()
    for stopped, done in enumerate((3, 0, 6, 0)):  # so many more documents, then the end
        stopping = replace(_killed_after(done), by_patient=by_patient)
        with pytest.raises(Killed):
            run_release(job(notes, tmp_path / "part" / "out", stopping), resume=stopped > 0)
        assert [path.name for path in (tmp_path / "part").iterdir()] == ["out.part"]
        assert CANARY not in str(content(tmp_path / "part"))
    run_release(job(notes, tmp_path / "part" / "out", replace(_killed_after(3), by_patient=by_patient)), resume=True)
    assert content(tmp_path / "part") == expected


@pytest.mark.parametrize("moves", range(4))
def test_a_run_stopped_while_things_are_placed_can_be_finished(
    moves: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    run_release(job(notes, tmp_path / "whole" / "out"))
    usual, count = Path.replace, 0

    def stopping(self: Path, target: Path) -> Path:
        nonlocal count
        if self.parent.name == "out.part" and self.name != "ledger.new":
            count += 1
            if count > moves:
                raise Killed
        return usual(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping)
        try:
            run_release(job(notes, tmp_path / "part" / "out"))
        except Killed:
            manifest = (tmp_path / "part" / "out.manifest.json").exists()
            assert manifest or not (tmp_path / "part" / "out").exists()
            patch.undo()
            run_release(job(notes, tmp_path / "part" / "out"), resume=True)
    assert content(tmp_path / "part") == content(tmp_path / "whole")


def test_a_run_stopped_when_all_is_placed_does_nothing_again(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stop)
        with pytest.raises(Killed):
            run_release(job(notes, tmp_path / "out"))
    before = content(tmp_path, but=("notes", "out.part"))
    manifest = run_release(job(notes, tmp_path / "out", _killed_after(0)), resume=True)
    assert manifest["documents"]["released"] == 12
    assert content(tmp_path) == before


def test_kill_9_in_the_middle_then_resume_gives_the_same_bytes(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 1)  # as in the job that is killed
    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    for number in range(12, 60):
        (notes / f"p{number // 3:02d}-{number:02d}.txt").write_bytes(note(number).encode() + b"x" * 30_000)
    given = open_source(notes, grouping=Grouping(r"^(p\d+)-"))
    run_release(ReleaseJob(given, tmp_path / "whole" / "out", SURROGATES, detector()))
    output = tmp_path / "part" / "out"
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.slow_job", notes, output], cwd=Path(__file__).parents[2]
    )
    index = tmp_path / "part" / "out.part" / "index"
    deadline = time.monotonic() + 120
    while not (index.exists() and len(index.read_bytes().strip(b"\0")) > 20 * 52):
        assert time.monotonic() < deadline
        assert child.poll() is None, "it ended by itself"
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not output.exists()
    assert CANARY not in str(content(tmp_path / "part"))
    seen: list[str] = []

    def noting(docs: Sequence[Document]) -> Iterator[Document]:
        seen.extend(doc.id for doc in docs)
        return find(docs)

    with pytest.raises(ConfigError, match="--resume"):
        run_release(ReleaseJob(given, output, SURROGATES, detector(noting)))
    run_release(ReleaseJob(given, output, SURROGATES, detector(noting)), resume=True)
    assert 0 < len(seen) < 45
    assert content(tmp_path / "part") == content(tmp_path / "whole")


def test_ctrl_c_keeps_what_is_done(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 3)
    calls = 0

    def step(docs: Sequence[Document]) -> Iterator[Document]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return find(docs)

    with pytest.raises(Interrupted, match=r"6 documents are done.*--resume"):
        run_release(job(notes, tmp_path / "out", detector(step)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "out.part"]
    assert run_release(job(notes, tmp_path / "out", detector(step)), resume=True)["documents"]["released"] == 12
    assert calls == 5


@pytest.mark.parametrize("where", ["write", "sync"])
def test_a_full_disk_leaves_no_output_and_can_be_resumed(
    where: str, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    run_release(job(notes, tmp_path / "whole" / "out"))
    with monkeypatch.context() as patch:
        if where == "write":
            patch.setattr(Path, "write_bytes", full)
        else:
            patch.setattr(module, "_sync", full)
        with pytest.raises(ChaffinchError, match=r"No space left.*--resume"):
            run_release(job(notes, tmp_path / "part" / "out"))
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["out.part"]
    run_release(job(notes, tmp_path / "part" / "out"), resume=True)
    assert content(tmp_path / "part") == content(tmp_path / "whole")


def test_other_settings_do_not_go_on_with_a_job(notes: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run_release(job(notes, tmp_path / "out", _killed_after(0)))
    with pytest.raises(ConfigError, match="other settings"):
        run_release(job(notes, tmp_path / "out", how=Release(Policy("tag"), SECRET)), resume=True)
    with pytest.raises(ConfigError, match="other settings"):
        run_release(job(notes, tmp_path / "out", vault=VaultTarget(tmp_path / "v", KEY)), resume=True)


def test_an_input_that_changed_since_is_read_anew(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 3)
    with pytest.raises(Killed):
        run_release(job(notes, tmp_path / "out", _killed_after(6)))
    (notes / "p0-01.txt").write_bytes(b"Dr. Lowe wrote this later.")
    run_release(job(notes, tmp_path / "out", how=SURROGATES), resume=True)
    (tmp_path / "whole").mkdir()
    run_release(job(notes, tmp_path / "whole" / "out"))
    assert content(tmp_path, but=("notes", "whole")) == content(tmp_path / "whole")


def test_the_size_of_batches_changes_no_byte_and_no_socket_is_opened(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refused)
    found = []
    for size in (1, 5, 64):
        monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
        (tmp_path / str(size)).mkdir()
        for by_patient in (False, True):
            run_release(job(notes, tmp_path / str(size) / f"{by_patient}", detector(by_patient=by_patient)))
        found.append(content(tmp_path / str(size)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 2 * 15


@pytest.mark.parametrize("size", [1, 64])
def test_a_birth_date_and_the_year_of_another_note_do_not_tell_an_age_over_89(
    size: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
    (notes / "p8-00.txt").write_text("DOB 03/04/1925.")
    (notes / "p8-77.txt").write_text("Seen 06/07/2013.")  # 88 years
    (notes / "p9-00.txt").write_text("DOB 03/04/1925.")
    (notes / "p9-77.txt").write_text("Seen 06/07/2018.")  # 93 years
    for number in range(70):
        (notes / f"p7-{number:02d}.txt").write_text("Seen 06/07/2018.")
    run_release(job(notes, tmp_path / "out", detector()))
    births = [text for path in (tmp_path / "out").iterdir() if (text := path.read_text())[:3] == "DOB"]
    assert sorted(re.sub(r"\d", "9", text) for text in births) == ["DOB 99/99/9999.", "DOB [DATE]."]


def test_a_dry_run_counts_the_same_and_writes_nothing(notes: Path, tmp_path: Path) -> None:
    before = content(tmp_path, but=())
    manifest = dry_run(job(notes, tmp_path / "out"))
    assert content(tmp_path, but=()) == before
    real = run_release(job(notes, tmp_path / "out"))
    assert {key: real[key] for key in manifest} == manifest


def test_a_note_of_100_megabytes_is_withheld(notes: Path, tmp_path: Path) -> None:
    with (notes / "p9-01.txt").open("wb") as stream:
        stream.truncate(100_000_000)
    manifest = run_release(
        ReleaseJob(open_source(notes, grouping=Grouping(r"^(p\d)-")), tmp_path / "out", SURROGATES, detector())
    )
    assert manifest["documents"] == {"in": 13, "released": 12, "withheld": 1, "excluded": 0}
    assert list(manifest["withheld"]) == ["… characters, the limit is …; raise it with --max-chars"]
    (line,) = (tmp_path / "out.private" / "withheld.jsonl").read_bytes().splitlines()
    assert "100,000,000 characters" in json.loads(line)["reason"]


def test_two_documents_of_one_name_do_not_share_a_file(notes: Path, tmp_path: Path) -> None:
    (notes / "p0-00.TXT").write_bytes(b"Dr. Lowe.")
    manifest = run_release(job(notes, tmp_path / "out"))
    assert manifest["documents"] == {"in": 13, "released": 12, "withheld": 1, "excluded": 0}
    assert "earlier document" in next(iter(manifest["withheld"]))


def test_places_that_are_taken_are_refused_before_any_work(notes: Path, tmp_path: Path) -> None:
    stopping = _killed_after(0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "v").touch()
    with pytest.raises(DataError, match="not empty"):
        run_release(job(notes, tmp_path / "full", stopping))
    with pytest.raises(ConfigError, match="never overwritten"):
        run_release(job(notes, tmp_path / "out", stopping, vault=VaultTarget(tmp_path / "v", KEY)))
    with pytest.raises(ConfigError, match="does not exist"):
        run_release(job(notes, tmp_path / "no" / "out", stopping))
    with pytest.raises(DataError, match="folder"):
        run_release(job(notes, tmp_path / "v", stopping))
    with pytest.raises(ConfigError, match="needs a key"):
        job(notes, tmp_path / "out", vault=VaultTarget(tmp_path / "w"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "notes", "v"]


@pytest.mark.parametrize(("form", "name"), [
    ("i2b2", "out"), ("brat", "out"), ("jsonl", "out.jsonl"), ("csv", "out.csv"), ("parquet", "out.parquet"),
    ("csv", "out.tsv"),
])  # fmt: skip
def test_every_format_goes_out_as_it_came_in_and_can_be_restored(form: str, name: str, tmp_path: Path) -> None:
    docs = [
        Document.make(note(n).replace("\0", ""), id=f"00{n}-01", group=f"00{n}" if form != "brat" else None)
        for n in range(3)
    ]
    place = tmp_path / ("notes" if form in ("i2b2", "brat") else f"notes.{form}")
    write([doc.with_layer("gold", []) for doc in docs], place, format=form)
    given = open_source(place)
    assert given.form.name == form
    alone = form == "brat"  # it names no patients
    run_release(
        ReleaseJob(
            given,
            tmp_path / name,
            SURROGATES,
            detector(),
            vault=VaultTarget(tmp_path / "v", KEY),
            each_note_a_patient=alone,
        )
    )
    out = read(tmp_path / name)
    assert out.format == form
    assert all(CANARY not in doc.text for doc in out)
    again = sorted(restore(out, Vault.open(tmp_path / "v", KEY)), key=lambda doc: doc.id)
    assert again == list(read(place))
