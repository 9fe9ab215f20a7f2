"""Release notes whose detector can end its process: python -m tests.jobs.spark.poison_job MASTER NOTES SECRET LIMIT.

The limit is that of `TestDetectorSource`, in bytes. The rows are printed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.jobs import spark
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.release import run_release
from chaffinch.jobs.spark.annotate import TagPartition
from chaffinch.jobs.spark.attempts import Rows as RowsOfNotes
from chaffinch.jobs.spark.batches import Note
from chaffinch.jobs.spark.deidentify import SCHEMA, _plan
from chaffinch.jobs.spark.session import open_session
from chaffinch.jobs.spark.table import NoteColumns, map_partitions, partition_notes, read_notes
from chaffinch.jobs.work import DetectorSource, DetectorSpec
from tests.deid.releases import note
from tests.jobs.pool_detectors import POISON, TestDetectorSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = dict[str, tuple[Any, ...]]
COLUMNS = NoteColumns("text", "id", "patient", "number")


def write_notes(folder: Path, number: int, *poison: str) -> Path:
    """Write that many notes of four patients, and these notes, each of another patient."""
    texts = [(f"{n:02d}", f"p{n % 4}", note(n)) for n in range(number)]
    texts[3:3] = [(f"bad-{n}", f"p{2 * n}", text) for n, text in enumerate(poison)]
    columns = dict(zip(("id", "patient", "text"), map(list, zip(*texts, strict=True)), strict=True))
    place = folder / "notes.parquet"
    pq.write_table(pa.table(columns | {"number": list(range(1, len(texts) + 1))}), place)
    return place


def release_by_pool(notes: Path, secret: Path, source: TestDetectorSource) -> Rows:
    """What the pool releases and withholds, by released id."""
    release = Release(Policy.read("i2b2-surrogate"), Secret.read(secret), counted_order="mdy")
    output = notes.with_name("pool.parquet")
    found = TestDetectorSource().build()
    run_release(ReleaseJob(open_source(notes), output, release, found, detector_source=source), workers=2)
    rows = {row["id"]: (row["patient"], row["text"], "released", None) for row in pq.read_table(output).to_pylist()}
    patients = {release.name(f"bad-{n}", 0): release.patient(f"p{2 * n}") for n in range(2)}
    for line in (output.with_name("pool.parquet.private") / "withheld.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        rows[row["id"]] = (patients[row["id"]], None, "withheld", row["reason"])
    return rows


def plan_release(session: SparkSession, notes: Path, secret: Path, source: DetectorSource, parts: int) -> DataFrame:
    """The rows of a release as `spark.deidentify` plans it, but with a detector of the tests."""
    file = spark.SecretFile.of(secret)
    work = _plan(Policy.read("i2b2-surrogate"), DetectorSpec(None), file, spark.Settings(number="number"), COLUMNS)
    work = replace(work, spec=replace(work.spec, detector=source, counted_order="mdy"))
    table = read_notes(session.read.parquet(str(notes)), COLUMNS)
    return map_partitions(partition_notes(table, by_patient=True, partitions=parts), work, SCHEMA)


def collect(rows: DataFrame) -> Rows:
    """By id: patient, text, status and reason of each row."""
    found = rows.toArrow().to_pylist()
    by_id = {row["id"]: tuple(row[name] for name in ("patient", "text", "status", "reason")) for row in found}
    assert len(by_id) == len(found), "each once"
    return by_id


@dataclass(frozen=True, slots=True)
class EndingPartition(TagPartition):
    """The work of `spark.tag`, which a note can end."""

    def load(self) -> Callable[[Sequence[Note]], RowsOfNotes]:
        """The function from notes to rows; it ends its process for a note of poison, before it loads a model."""

        def make_or_end(notes: Sequence[Note]) -> RowsOfNotes:
            if any(POISON in (note.text or "") for note in notes):
                os.kill(os.getpid(), signal.SIGKILL)
            return TagPartition.load(self)(notes)

        return make_or_end


if __name__ == "__main__":
    master, notes, secret, limit = sys.argv[1:]
    source = TestDetectorSource(int(limit))
    session = open_session(master)
    print(json.dumps(collect(plan_release(session, Path(notes), Path(secret), source, 1))))  # noqa: T201
    session.stop()
