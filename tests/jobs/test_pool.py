"""A pool gives the same bytes as one process; what ends a worker is found, withheld, and costs nobody else."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob, VaultTarget
from chaffinch.jobs.pool.processes import Pool
from chaffinch.jobs.release import run_release
from chaffinch.jobs.run import WorkItem
from chaffinch.jobs.work import DetectorSpec, Keys, WorkSpec, load_work
from chaffinch.text.grouping import Grouping
from tests.deid.releases import CANARY, KEY, SECRET, note
from tests.jobs.copies import copied_workers
from tests.jobs.pool_detectors import LARGE, POISON, HousekeepingSetup, TestDetectorSource

__all__ = ["copied_workers"]

SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")
SECRETS = (SECRET.key, KEY.key)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Thirty notes of ten patients, interleaved, and one that cannot be read."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02d}-p{number % 10}.txt").write_bytes(note(number).encode())
    (folder / "bad-p9.txt").write_bytes(b"\xff")
    return folder


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 6)


def job(notes: Path, output: Path, source: TestDetectorSource, **more: Any) -> ReleaseJob:
    output.parent.mkdir(exist_ok=True)
    given = open_source(notes, grouping=Grouping(r"-(p\d)$"))
    return ReleaseJob(given, output, SURROGATES, source.build(), detector_source=source, **more)


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "vault")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def withheld(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "out.private" / "withheld.jsonl").read_bytes().splitlines())
    return {row["file"]: row["reason"] for row in rows}


@pytest.mark.parametrize(("by_patient", "size"), [(True, 1), (True, 64), (False, 6)])
def test_any_number_of_workers_and_any_batch_size_give_the_same_bytes(
    by_patient: bool,
    size: int,
    notes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if size == 64:
        request.getfixturevalue("copied_workers")
    source = TestDetectorSource(by_patient=by_patient)
    run_release(job(notes, tmp_path / "one" / "out", source, vault=VaultTarget(tmp_path / "one" / "vault", KEY)))
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
    vault = VaultTarget(tmp_path / "many" / "vault", KEY)
    manifest = run_release(job(notes, tmp_path / "many" / "out", source, vault=vault), workers=2)
    assert manifest["documents"] == {"in": 31, "released": 30, "withheld": 1, "excluded": 0}
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.parametrize("memory", [0, 3_000])
def test_notes_that_are_sorted_on_the_disk_give_the_same_bytes(
    memory: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TestDetectorSource()
    run_release(job(notes, tmp_path / "memory" / "out", source))
    monkeypatch.setattr("chaffinch.jobs.batching.sealed.MEMORY", memory)
    run_release(job(notes, tmp_path / "disk" / "out", source))
    assert content(tmp_path / "disk") == content(tmp_path / "memory")


def test_one_poison_note_is_found_and_withheld_and_the_rest_is_as_if_it_could_not_be_read(
    notes: Path, tmp_path: Path
) -> None:
    (notes / "55-p3.txt").write_text(f"Dr. {CANARY}. {POISON}")
    source = TestDetectorSource()
    manifest = run_release(job(notes, tmp_path / "pool" / "out", source), workers=2)
    assert manifest["documents"] == {"in": 32, "released": 30, "withheld": 2, "excluded": 0}
    reasons = withheld(tmp_path / "pool")
    assert reasons.keys() == {"55-p3.txt", "bad-p9.txt"}
    assert "was ended by SIGKILL" in reasons["55-p3.txt"]
    (notes / "55-p3.txt").write_bytes(b"\xfe")
    run_release(job(notes, tmp_path / "plain" / "out", source))
    texts = [content(tmp_path / name / "out") for name in ("pool", "plain")]
    assert texts[0] == texts[1]
    assert CANARY not in str(content(tmp_path / "pool"))


@pytest.mark.usefixtures("copied_workers")
def test_two_poison_notes_of_one_patient_are_both_found(notes: Path, tmp_path: Path) -> None:
    for name in ("55-p3.txt", "56-p3.txt"):
        (notes / name).write_text(POISON)
    manifest = run_release(job(notes, tmp_path / "pool" / "out", TestDetectorSource()), workers=2)
    assert manifest["documents"]["released"] == 30
    assert withheld(tmp_path / "pool").keys() == {"55-p3.txt", "56-p3.txt", "bad-p9.txt"}


def test_a_worker_that_is_killed_once_costs_nothing(notes: Path, tmp_path: Path) -> None:
    (notes / "55-p3.txt").write_text(POISON)
    source = TestDetectorSource(once=tmp_path / "died")
    run_release(job(notes, tmp_path / "pool" / "out", source), workers=2)
    assert (tmp_path / "died").exists()
    run_release(job(notes, tmp_path / "one" / "out", source))
    assert content(tmp_path / "pool") == content(tmp_path / "one")
    assert withheld(tmp_path / "pool").keys() == {"bad-p9.txt"}


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
@pytest.mark.usefixtures("copied_workers")
def test_a_note_that_takes_more_memory_than_there_is_is_withheld(notes: Path, tmp_path: Path) -> None:
    (notes / "55-p3.txt").write_text(LARGE)
    output = tmp_path / "pool" / "out"
    planned = job(notes, output, TestDetectorSource())
    source = TestDetectorSource(limit=1 << 28)
    limited = ReleaseJob(planned.source, output, SURROGATES, planned.detector, detector_source=source)
    manifest = run_release(limited, workers=2)
    assert manifest["documents"]["released"] == 30
    assert "was ended by SIGABRT" in withheld(tmp_path / "pool")["55-p3.txt"]


def test_a_detector_of_this_process_cannot_be_given_to_others(notes: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="DetectorSpec"):
        cf.deid.run(notes, tmp_path / "out", cf.deid.detector(), settings=cf.deid.RunSettings(workers=2))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["notes"]
    cf.deid.run(notes, tmp_path / "out", DetectorSpec(), settings=cf.deid.RunSettings(workers=2))
    cf.deid.run(notes, tmp_path / "one", DetectorSpec())
    assert content(tmp_path / "out") == content(tmp_path / "one")


def test_a_model_that_changes_under_a_job_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deny.txt").write_text("Project Wren\n")
    spec = DetectorSpec(deny=tmp_path / "deny.txt")
    pinned = spec.pin(spec.build())
    assert pinned.build().digest == pinned.digest
    (tmp_path / "deny.txt").write_text("Project Lark\n")
    with pytest.raises(ConfigError, match="changed while the job was running"):
        pinned.build()


def test_a_spec_holds_no_secret_and_work_needs_the_right_one() -> None:
    spec = WorkSpec.of(SURROGATES, DetectorSpec())
    packed = pickle.dumps(spec)
    assert len(packed) < 4000
    assert not [key for key in SECRETS if key in packed]
    assert load_work(spec, Keys(SECRET)).release == SURROGATES
    with pytest.raises(ConfigError, match="not the one"):
        load_work(spec, Keys(KEY))
    assert load_work(spec, Keys(SECRET)).detector is load_work(spec, Keys(SECRET)).detector, "it is loaded once"


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes of workers that are started."""
    started: list[subprocess.Popen[bytes]] = []
    usual = subprocess.Popen

    def start(*arguments: Any, **more: Any) -> Any:
        started.append(usual(*arguments, **more))
        return started[-1]

    monkeypatch.setattr("chaffinch.jobs.pool.processes.subprocess.Popen", start)
    yield started
    assert all(process.poll() is not None for process in started), "none is left"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")
def test_no_secret_is_on_a_command_line_or_in_the_environment_and_no_socket_is_open(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setenv("CHAFFINCH_SECRET", SECRET.key.decode())
    seen: list[bytes] = []
    usual = Pool._wait_for_replies

    def look(self: Pool) -> Any:
        for worker in self._workers:
            place = Path(f"/proc/{worker.process.pid}")
            seen.append((place / "cmdline").read_bytes() + (place / "environ").read_bytes())
            kinds = [str(link.readlink()) for link in (place / "fd").iterdir() if link.is_symlink()]
            assert not [kind for kind in kinds if kind.startswith("socket")]
        return usual(self)

    monkeypatch.setattr(Pool, "_wait_for_replies", look)
    run_release(job(notes, tmp_path / "pool" / "out", TestDetectorSource()), workers=2)
    assert len(workers) == 2
    assert seen
    assert not [key for key in SECRETS if key in b"".join(seen)]


def test_an_interrupt_ends_the_workers_and_the_run_can_be_resumed(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: list[subprocess.Popen[bytes]]
) -> None:
    from chaffinch.jobs.run import Interrupted

    ticks: list[int] = []

    def stop(number: int) -> None:
        ticks.append(number)
        if len(ticks) == 3:
            raise KeyboardInterrupt

    source = TestDetectorSource()
    with pytest.raises(Interrupted, match="--resume"):
        run_release(job(notes, tmp_path / "pool" / "out", source), workers=2, tick=stop)
    assert all(process.poll() is not None for process in workers)
    run_release(job(notes, tmp_path / "pool" / "out", source), workers=2, resume=True)
    run_release(job(notes, tmp_path / "one" / "out", source))
    assert content(tmp_path / "pool") == content(tmp_path / "one")


@pytest.mark.skipif(sys.platform != "linux", reason="the signal of a dead parent is that of Linux")
def test_workers_end_with_their_parent_and_the_run_can_be_resumed(notes: Path, tmp_path: Path) -> None:
    cf.deid.Secret(SECRET.key).write(tmp_path / "secret")
    for number in range(30, 200):
        (notes / f"{number:02d}-p{number % 10}.txt").write_bytes(note(number).encode() * 8)
    command = ["deid", str(notes), "--model", "rules", "--policy", "i2b2-surrogate", "--group-by", r"-(p\d)$"]
    command += ["--secret-file", str(tmp_path / "secret"), "--quiet", "--workers", "2"]
    (tmp_path / "killed").mkdir()
    (tmp_path / "whole").mkdir()
    output = tmp_path / "killed" / "out"
    parent = subprocess.Popen([sys.executable, "-m", "chaffinch", *command, "-o", str(output)])
    children: list[int] = []
    deadline = time.monotonic() + 60
    while len(children) < 2 or not output.with_name("out.part").exists():
        assert time.monotonic() < deadline
        assert parent.poll() is None, "it ended by itself"
        children = [int(pid) for pid in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not output.exists()
    assert main([*command, "-o", str(output), "--resume"]) == 5
    assert main([*command, "-o", str(tmp_path / "whole" / "out")]) == 5
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


@pytest.mark.parametrize("value", ["0", "many", "-1", "2000", "1.5"])
def test_a_number_of_workers_that_cannot_be_is_refused(
    value: str, notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["deid", str(notes), "-o", str(tmp_path / "out"), "--model", "rules", f"--workers={value}"]) == 2
    assert "--workers" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_worker_looks_for_cycles_as_rarely_as_a_command_and_not_in_what_it_has_loaded() -> None:
    pool = Pool(HousekeepingSetup(), 1)
    try:
        ((_, (result,)),) = pool.map([[WorkItem(1, "", b"")]])
    finally:
        pool.close()
    assert isinstance(result, bytes)
    threshold, frozen, is_command = json.loads(result)
    assert threshold > 10_000
    assert frozen > 1_000
    assert is_command
