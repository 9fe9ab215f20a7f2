"""A patient larger than a batch: the same bytes in any parts, by any number of workers, whatever kills a process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import NumberedDocument, Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import StorageError
from chaffinch.jobs.batching.batches import Gathered
from chaffinch.jobs.batching.large_patient import Batch, LargePatient, PatientWork, Results
from chaffinch.jobs.job import ReleaseJob, StateTarget, VaultTarget
from chaffinch.jobs.pool.processes import Pool, open_pool
from chaffinch.jobs.pool.worker import UnitSetup
from chaffinch.jobs.release import dry_run, run_release
from chaffinch.jobs.work import Keys, WorkSpec
from chaffinch.text import Document
from chaffinch.text.grouping import Grouping
from tests.deid.releases import CANARY, KEY, SECRET, note
from tests.jobs.copies import copied_workers
from tests.jobs.killing import Killed, killed_after, open_files_of
from tests.jobs.poisoned_rules import POISON, RulesSource

__all__ = ["copied_workers"]

ROOT = Path(__file__).parents[2]
SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")
# Begins the first pass over notes with a canary, in the folder argv[1]; tells that they wait there; waits to be killed.
HOLDS_NOTES = """
import sys, time
from pathlib import Path
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.release.two_passes import PatientRelease
from chaffinch.jobs.batching.sealed import SealedRecords
from tests.jobs.test_large_patients import SURROGATES, notes_of
one = PatientRelease(SURROGATES, detector(by_patient=True), lambda: SealedRecords(Path(sys.argv[1]), memory=100))
one.add(notes_of(20))
if sys.argv[2] == "second":
    results = one.results()
    next(results)
print("ready", flush=True)
time.sleep(600)
"""


def notes_of(number: int) -> list[NumberedDocument]:
    return [NumberedDocument(n, Document.make(note(n), id=str(n), group="p")) for n in range(number)]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A patient with 17 notes, two with a few, interleaved; one note cannot be read; names repeat across notes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(23):
        patient = "large" if number % 4 else f"p{number % 8}"
        said = (
            "Mr. Zimmerle slept." if number == 21 else f"Zimmerle came on 3/{number + 1}/1998."
        )  # said once who it is
        text = note(number) + (said if patient == "large" else "All well.")
        (folder / f"{number:02d}-{patient}.txt").write_bytes(text.encode())
    (folder / "09-x-large.txt").write_bytes(b"\xff")
    return folder


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 4)
    monkeypatch.setattr("chaffinch.jobs.batching.large_patient._MEMORY", 0)


def job(notes: Path, output: Path, source: RulesSource = RulesSource(), **more: Any) -> ReleaseJob:  # noqa: B008
    output.parent.mkdir(exist_ok=True)
    given = open_source(notes, grouping=Grouping(r"-(\w+)$"))
    return ReleaseJob(given, output, SURROGATES, source.build(), detector_source=source, **more)


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ("vault", "state"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def whole(notes: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, bytes]:
    """The release with every patient in one batch, in this process."""
    with monkeypatch.context() as patch:
        patch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 1000)
        run_release(job(notes, folder / "out", **more))
    return content(folder)


def withheld(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "out.private" / "withheld.jsonl").read_bytes().splitlines())
    return {row["file"]: row["reason"] for row in rows}


def test_only_a_patient_larger_than_a_batch_takes_two_passes(notes: Path, tmp_path: Path) -> None:
    with Gathered(job(notes, tmp_path / "out")) as gathered:
        tasks = list(gathered.batches())
    assert sorted(len(task) for task in tasks if isinstance(task, LargePatient)) == [17]
    assert sum(map(len, tasks)) == 24


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [1, 4, 17])
def test_any_batch_and_any_number_of_workers_give_the_same_bytes(
    size: int,
    workers: int,
    notes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if size != 4:
        request.getfixturevalue("copied_workers")
    expected = whole(notes, tmp_path / "whole", monkeypatch, vault=VaultTarget(tmp_path / "whole" / "vault", KEY))
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
    vault = VaultTarget(tmp_path / "parts" / "vault", KEY)
    manifest = run_release(job(notes, tmp_path / "parts" / "out", vault=vault), workers=workers)
    assert manifest["documents"] == {"in": 24, "released": 23, "withheld": 1, "excluded": 0}
    assert content(tmp_path / "parts") == expected
    assert b"Zimmerle" not in b"".join(expected.values())
    dry = dry_run(job(notes, tmp_path / "dry" / "out"), workers=workers)
    assert dry["documents"] == manifest["documents"]


def test_a_state_goes_on_in_two_passes(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for name, size in (("whole", 1000), ("parts", 2)):
        monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
        state = StateTarget(tmp_path / name / "state", KEY)
        run_release(job(notes, tmp_path / name / "out", state=state))
        results.append(content(tmp_path / name))
    assert results[0] == results[1]


@pytest.mark.parametrize("puts", [0, 1, 5, 6, 16, 22])
def test_a_run_killed_between_results_of_a_patient_resumes_with_the_same_bytes(
    puts: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(notes, tmp_path / "whole", monkeypatch)
    with killed_after(puts):
        run_release(job(notes, tmp_path / "parts" / "out"))
    run_release(job(notes, tmp_path / "parts" / "out"), resume=True, workers=1 + puts % 2)
    assert content(tmp_path / "parts") == expected


@pytest.mark.parametrize(("method", "calls"), [("add", 0), ("add", 3), ("take", 0), ("take", 2)])
def test_a_run_killed_within_a_pass_resumes_with_the_same_bytes(
    method: str, calls: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(notes, tmp_path / "whole", monkeypatch)
    usual, done = getattr(PatientWork, method), 0

    def step(self: PatientWork, given: Any) -> Any:
        nonlocal done
        if done == calls:
            raise Killed
        done += 1
        return usual(self, given)

    with monkeypatch.context() as patch:
        patch.setattr(PatientWork, method, step)
        with pytest.raises(Killed):
            run_release(job(notes, tmp_path / "parts" / "out"))
    run_release(job(notes, tmp_path / "parts" / "out"), resume=True)
    assert content(tmp_path / "parts") == expected


@pytest.mark.parametrize(
    ("names", "copied"), [(("55-large",), False), (("00-0-large", "55-large"), True), (("56-p0",), True)]
)
def test_notes_that_end_workers_are_found_in_a_large_patient_and_the_rest_is_as_if_they_could_not_be_read(
    names: tuple[str, ...],
    copied: bool,
    notes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if copied:
        request.getfixturevalue("copied_workers")
    for name in names:
        (notes / f"{name}.txt").write_text(f"Dr. {CANARY}. {POISON}")
    manifest = run_release(job(notes, tmp_path / "pool" / "out"), workers=2)
    assert manifest["documents"]["released"] == 23
    reasons = withheld(tmp_path / "pool")
    assert reasons.keys() == {"09-x-large.txt", *(f"{name}.txt" for name in names)}
    assert all("was ended by SIGKILL" in reasons[f"{name}.txt"] for name in names)
    for name in names:
        (notes / f"{name}.txt").write_bytes(b"\xfe")
    expected = whole(notes, tmp_path / "whole", monkeypatch)
    found = content(tmp_path / "pool")
    texts = {name: text for name, text in found.items() if name.startswith("out/")}
    assert texts == {name: text for name, text in expected.items() if name.startswith("out/")}
    assert len(texts) == 23


@pytest.mark.usefixtures("copied_workers")
def test_a_worker_that_is_killed_once_costs_nothing(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "13-0-large.txt").write_text(POISON)
    source = RulesSource(once=tmp_path / "died")
    run_release(job(notes, tmp_path / "pool" / "out", source), workers=2)
    assert (tmp_path / "died").exists()
    assert content(tmp_path / "pool") == whole(notes, tmp_path / "whole", monkeypatch, source=source)


@pytest.mark.parametrize("workers", [1, 2])
def test_sealed_files_that_cannot_be_written_stop_the_run_and_withhold_nothing(
    workers: int, notes: Path, tmp_path: Path
) -> None:
    for number in range(60, 66):  # more than stays in memory
        (notes / f"{number}-large.txt").write_text("Dr. Penn is well. " * 500)
    own = job(notes, tmp_path / "out")
    with Gathered(own) as gathered, open_pool(own, gathered.codec, workers, folder=tmp_path / "gone") as each:
        large = [task for task in gathered.batches() if isinstance(task, LargePatient)]
        with pytest.raises(StorageError, match="could not be written"):
            list(each(large))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")
@pytest.mark.parametrize("passed", ["first", "second"])
def test_nothing_readable_is_on_the_disk_and_nothing_at_all_after_kill_9(passed: str, tmp_path: Path) -> None:
    contents = open_files_of(HOLDS_NOTES, tmp_path, passed)
    assert sum(map(len, contents)) > 20_000, "the notes wait on the disk"
    for word in (CANARY.encode(), b"Penn", b"Document", CANARY.encode("utf-16-le")):
        assert not [file for file in contents if word in file]
    assert not list(tmp_path.iterdir())


def test_a_batch_may_follow_a_large_patient_in_the_same_worker(notes: Path, tmp_path: Path) -> None:
    """One worker of a pool, used twice for large patients and for batches between them."""
    for number in range(6):
        (notes / f"{30 + number}-other.txt").write_bytes(note(number).encode())
    own = job(notes, tmp_path / "out")
    spec = WorkSpec.of(own.release, RulesSource())
    with Gathered(own) as gathered, open_pool(own, gathered.codec, 1) as each:
        expected = sorted(pairs(each(gathered.batches())))
    with Gathered(own) as gathered, closing(Pool(UnitSetup(gathered.codec.shared, spec, Keys(SECRET)), 1)) as pool:
        found = sorted(pairs(pool.map(gathered.batches())))
    assert found == expected
    assert len(found) == 29


def pairs(parts: Iterable[tuple[Batch, Results]]) -> Iterator[tuple[int, bytes]]:
    """Yield number and result of all released notes."""
    for items, results in parts:
        for item, result in zip(items, results, strict=True):
            if isinstance(result, bytes):
                yield item.number, result
