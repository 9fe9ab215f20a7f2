"""Whatever happens to Spark's Python workers, its disk or its input, every note is there once, with the same bytes."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.synth.notes import notes as invent
from chaffinch.errors import ChaffinchError
from chaffinch.jobs import spark
from chaffinch.jobs.spark.parquet import TableRelease, release_table
from chaffinch.jobs.work import DetectorSpec
from chaffinch.text.columns import ColumnChoice
from tests.attacks.sizes import sized
from tests.deid.releases import CANARY
from tests.jobs.pool_detectors import POISON, TestDetectorSource
from tests.jobs.spark.conftest import QUIET
from tests.jobs.spark.poison_job import Rows, collect, plan_release, release_by_pool, write_notes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.drill, pytest.mark.slow, *QUIET,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux"),
]  # fmt: skip

KILLS = {"once": 1, "again": 3}  # of workers in a round; four attempts outlive three
ROUNDS = sized(1, 14)  # of each kind below
FULL = sized(1, 4)  # rounds with a full disk, and with a vanished file: with the rest, fifty


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of invented notes in four files."""
    folder = tmp_path_factory.mktemp("drill") / "notes"
    folder.mkdir()
    docs = list(invent(sized(60, 120), 2, seed=3))
    for number in range(4):
        part = docs[number::4]
        columns = {"id": [d.id for d in part], "patient": [d.group for d in part], "text": [d.text for d in part]}
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet")
    return folder


def release(session: SparkSession, table: Path, secret: Path, output: Path) -> Rows:
    """Release a table, and read the rows that were written."""
    policy, file = Policy.read("i2b2-surrogate"), spark.SecretFile.of(secret)
    how = spark.Settings(partitions=3)
    release_table(session, TableRelease(table, output, ColumnChoice(), policy, DetectorSpec(None), file, how))
    rows = pq.read_table(output).to_pylist()
    by_id = {row["id"]: tuple(row[name] for name in ("patient", "text", "status", "reason")) for row in rows}
    assert len(by_id) == len(rows), "each once"
    return by_id


@pytest.fixture(scope="module")
def undisturbed(
    session: SparkSession, table: Path, secret_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Rows, float]:
    """The rows of a run that is left alone, and the seconds that it takes when Spark is warm."""
    folder = tmp_path_factory.mktemp("whole")
    release(session, table, secret_file, folder / "cold")
    began = time.monotonic()
    rows = release(session, table, secret_file, folder / "warm")
    assert {row[2] for row in rows.values()} == {"released"}
    return rows, time.monotonic() - began


def jvm_of(session: SparkSession) -> int:
    return int(session.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def python_workers(jvm: int) -> list[int]:
    """The Python workers of Spark: the children of its daemon."""
    daemons = [pid for pid in children(jvm) if b"pyspark.daemon" in read(f"/proc/{pid}/cmdline")]
    return [worker for daemon in daemons for worker in children(daemon)]


def children(parent: int) -> list[int]:
    """The processes that any thread of this one started."""
    return [
        int(pid) for task in Path(f"/proc/{parent}/task").glob("*/children") for pid in read(str(task)).decode().split()
    ]


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # it has just ended
        return b""


@contextmanager
def killer(session: SparkSession, times: int, seconds: float, draw: random.Random) -> Iterator[list[int]]:
    """Kill a Python worker that many times within the block, at moments of the first seconds; yield those killed."""
    jvm, over, killed = jvm_of(session), threading.Event(), list[int]()
    moments = sorted(draw.uniform(0, seconds / 2) for _ in range(times))
    began = time.monotonic()

    def kill() -> None:
        """Wait for each moment, and for a worker, and kill it."""
        for moment in moments:
            over.wait(max(0.0, moment - (time.monotonic() - began)))
            while not over.is_set() and not python_workers(jvm):
                time.sleep(0.01)
            workers = python_workers(jvm)
            if over.is_set() or not workers:
                return
            victim = draw.choice(workers)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("kind", KILLS)
def test_workers_that_are_killed_change_no_byte(
    session: SparkSession, table: Path, undisturbed: tuple[Rows, float], secret_file: Path, tmp_path: Path, kind: str
) -> None:
    rows, seconds = undisturbed
    draw, dead = random.Random(kind), 0
    for number in range(ROUNDS):
        with killer(session, KILLS[kind], seconds, draw) as killed:
            found = release(session, table, secret_file, tmp_path / f"{number}")
        assert found == rows
        dead += len(killed)
    assert dead >= max(1, ROUNDS // 2)


def test_a_poison_note_is_withheld_while_workers_are_killed(
    session: SparkSession, secret_file: Path, tmp_path: Path
) -> None:
    notes = write_notes(tmp_path, 8, f"{CANARY} {POISON}")
    rows = release_by_pool(notes, secret_file, TestDetectorSource())
    assert sorted(row[2] for row in rows.values()) == ["released"] * 8 + ["withheld"]
    draw, dead = random.Random(17), 0
    for _ in range(ROUNDS):
        with killer(session, 1, 4.0, draw) as killed:
            found = collect(plan_release(session, notes, secret_file, TestDetectorSource(), 3))
        assert found == rows
        dead += len(killed)
    assert dead > 0


@pytest.mark.parametrize("number", range(FULL))
def test_a_full_disk_leaves_no_output_and_the_next_run_is_whole(
    session: SparkSession, table: Path, undisturbed: tuple[Rows, float], secret_file: Path, tmp_path: Path, number: int
) -> None:
    jvm, most = jvm_of(session), random.Random(number).randrange(1_000, 40_000)
    soft, hard = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (most, hard))  # no file may become larger: as if the disk were full
    try:
        with pytest.raises(ChaffinchError) as caught:
            release(session, table, secret_file, tmp_path / "out")
    finally:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, (soft, hard))
    assert "a disk is full" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert release(session, table, secret_file, tmp_path / "out") == undisturbed[0]


@pytest.mark.parametrize("number", range(FULL))
def test_a_file_that_vanishes_leaves_no_output_or_a_whole_one(
    session: SparkSession, table: Path, undisturbed: tuple[Rows, float], secret_file: Path, tmp_path: Path, number: int
) -> None:
    rows, seconds = undisturbed
    shutil.copytree(table, tmp_path / "notes")
    victim = tmp_path / "notes" / f"part-{number % 4}.parquet"
    timer = threading.Timer(random.Random(number).uniform(0.2, 0.7) * seconds, victim.unlink)
    found, failure = None, ""
    timer.start()
    try:
        found = release(session, tmp_path / "notes", secret_file, tmp_path / "out")
    except ChaffinchError as error:
        failure = str(error)
    timer.join()
    if found is None:
        assert "vanished while it was read" in failure
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]
        shutil.copy(table / victim.name, victim)
        found = release(session, tmp_path / "notes", secret_file, tmp_path / "out")
    assert found == rows
