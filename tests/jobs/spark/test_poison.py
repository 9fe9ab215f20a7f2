"""A note that ends its Python worker is withheld, as the pool does it; a worker killed from outside costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaffinch.jobs.spark.annotate import TAG_SCHEMA, ModelFile
from chaffinch.jobs.spark.table import NoteColumns, map_partitions, read_notes
from tests.deid.releases import CANARY
from tests.jobs.pool_detectors import LARGE, POISON, TestDetectorSource
from tests.jobs.spark.conftest import QUIET, ROOT
from tests.jobs.spark.poison_job import EndingPartition, Rows, collect, plan_release, release_by_pool, write_notes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, *QUIET, pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")]

LIMIT = 1 << 28  # bytes of address space that a worker gets beyond what it has


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notes of four patients; one ends its process by a signal, one by asking for more memory than there is."""
    return write_notes(tmp_path_factory.mktemp("poison"), 8, f"{CANARY} {POISON}", f"{LARGE} {CANARY}")


@pytest.fixture(scope="module")
def expected(notes: Path, secret_file: Path) -> Rows:
    """What the pool releases and withholds."""
    rows = release_by_pool(notes, secret_file, TestDetectorSource(limit=LIMIT))
    reasons = sorted(row[3] for row in rows.values() if row[2] == "withheld")
    assert ["was ended by SIGABRT, each time" in reasons[0], "was ended by SIGKILL, each time" in reasons[1]] == [
        True
    ] * 2
    assert (len(rows), len(reasons)) == (10, 2)
    assert CANARY not in str(rows)
    return rows


def test_notes_that_end_their_worker_are_withheld_as_by_the_pool(
    session: SparkSession, notes: Path, expected: Rows, secret_file: Path
) -> None:
    assert collect(plan_release(session, notes, secret_file, TestDetectorSource(limit=LIMIT), 1)) == expected


def test_a_worker_that_is_killed_once_costs_nothing(session: SparkSession, secret_file: Path, tmp_path: Path) -> None:
    notes, died = write_notes(tmp_path, 8, POISON), tmp_path / "died"
    rows = collect(plan_release(session, notes, secret_file, TestDetectorSource(once=died), 2))
    assert died.exists()
    assert [row[2] for row in rows.values()] == ["released"] * 9
    undisturbed = collect(plan_release(session, notes, secret_file, TestDetectorSource(once=died), 2))
    assert rows == undisturbed


def test_a_tagger_that_is_ended_by_a_note_withholds_it(session: SparkSession) -> None:
    rows = [("a", "IL-2 gene expression."), ("b", POISON), ("c", "NF-kappa B activation.")]
    notes = read_notes(session.createDataFrame(rows, "id string, text string"), NoteColumns("text", "id"))
    found = map_partitions(notes.coalesce(1), EndingPartition(ModelFile.of("genia")), TAG_SCHEMA).toArrow().to_pylist()
    assert [(row["id"], row["status"], bool(row["spans"])) for row in found] == [
        ("a", "done", True), ("b", "withheld", False), ("c", "done", True)
    ]  # fmt: skip
    assert "was ended by SIGKILL, each time" in found[1]["reason"]
    assert found[1]["text"] == POISON


def test_through_connect_such_notes_are_withheld_as_by_the_pool(
    connect: str, notes: Path, expected: Rows, secret_file: Path
) -> None:
    job = [sys.executable, "-W", "ignore", "-m", "tests.jobs.spark.poison_job", connect]
    job += map(str, (notes, secret_file, LIMIT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(job, capture_output=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    assert {name: tuple(row) for name, row in json.loads(done.stdout).items()} == expected
