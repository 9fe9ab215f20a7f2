"""A table that Spark releases appears whole or not at all; bad input is refused or withheld, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaffinch.deid.policy import Policy
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs import spark
from chaffinch.jobs.spark import parquet
from chaffinch.jobs.spark.failures import explain
from chaffinch.jobs.work import DetectorSpec
from chaffinch.text.columns import ColumnChoice
from tests.deid.releases import CANARY
from tests.jobs.spark.conftest import QUIET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, *QUIET]

ROWS = [(f"n{n}", f"p{n % 3}", f"Dr. {CANARY} was seen. Call 617-555-01{n:02d} on a day of June.") for n in range(12)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of twelve notes of three patients in three files."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(3):
        write(folder / f"part-{number}.parquet", ROWS[number * 4 : number * 4 + 4])
    return folder


def write(place: Path, rows: list[tuple[Any, ...]]) -> None:
    """Write rows of id, patient and text."""
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip(("id", "patient", "text"), map(list, columns), strict=True))), place)


def release(session: SparkSession, table: Path, secret: Path) -> dict[str, Any]:
    """Release a table beside it to `out`; the manifest."""
    columns, policy, file = ColumnChoice(), Policy.read("i2b2-surrogate"), spark.SecretFile.of(secret)
    job = parquet.TableRelease(table, table.with_name("out"), columns, policy, DetectorSpec(None), file)
    return parquet.release_table(session, job)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_bad_rows_are_counted_by_reason(session: SparkSession, table: Path, secret_file: Path) -> None:
    write(table / "part-3.parquet", [("n1", "p1", "twice"), ("n20", None, "alone"), ("n21", "p1", None)])
    manifest = release(session, table, secret_file)
    assert manifest["documents"] == {"in": 15, "released": 11, "withheld": 4}
    assert sorted(manifest["withheld"].values()) == [1, 1, 2]
    rows = pq.read_table(table.with_name("out")).to_pylist()
    assert (len(rows), sum(row["status"] == "released" for row in rows)) == (15, 11)
    assert names(table.parent) == ["notes", "out", "out.manifest.json"]


def test_an_output_that_exists_is_not_touched(session: SparkSession, table: Path, secret_file: Path) -> None:
    table.with_name("out").write_text("mine")
    with pytest.raises(ConfigError, match="exists and is not overwritten"):
        release(session, table, secret_file)
    assert table.with_name("out").read_text() == "mine"
    assert names(table.parent) == ["notes", "out"]


def damage(table: Path) -> None:
    (table / "part-1.parquet").write_text(f"{CANARY} is no Parquet. " * 40)


def change_type(table: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "patient": ["p"], "text": [17]}), table / "part-1.parquet")


@pytest.mark.parametrize("spoil", [damage, change_type])
def test_a_file_that_is_not_like_the_others_stops_the_job(
    session: SparkSession, table: Path, secret_file: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(table)
    with pytest.raises(DataError, match="a file of the input cannot be read") as caught:
        release(session, table, secret_file)
    assert CANARY not in str(caught.value)
    assert names(table.parent) == ["notes"]


def test_a_file_that_vanishes_after_planning_stops_the_job(
    session: SparkSession, table: Path, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_and_lose_a_file(*given: Any, **more: Any) -> Any:
        """Plan the release, and delete a file of its input."""
        planned = spark.deidentify(*given, **more)
        (table / "part-2.parquet").unlink()
        return planned

    monkeypatch.setattr("chaffinch.jobs.spark.parquet.deidentify", plan_and_lose_a_file)
    with pytest.raises(DataError, match="a file of the input vanished while it was read"):
        release(session, table, secret_file)
    assert names(table.parent) == ["notes"]


@pytest.mark.parametrize("name", ["_more.parquet", ".more.parquet", "2026/more.parquet"])
def test_files_that_spark_leaves_out_are_refused(
    session: SparkSession, table: Path, secret_file: Path, name: str
) -> None:
    (table / name).parent.mkdir(exist_ok=True)
    write(table / name, ROWS[:1])
    (table / "_SUCCESS").touch()
    with pytest.raises(ConfigError, match="leave out 1 of 4 files"):
        release(session, table, secret_file)
    assert names(table.parent) == ["notes"]


@pytest.mark.parametrize(
    ("message", "kind", "expected"),
    [
        (
            f"{CANARY}\nchaffinch.errors.ConfigError: the secret is another\n\n at x",
            ConfigError,
            "the secret is another",
        ),
        (f"[FAILED_READ_FILE.FILE_NOT_EXIST] {CANARY}", DataError, "vanished"),
        (f"java.io.IOException: No space left on device {CANARY}", DataError, "a disk is full"),
        (f"Python worker exited unexpectedly (crashed) {CANARY}", DataError, "spark.task.maxFailures"),
        (f"[OUT_OF.LUCK] {CANARY} [X]", ChaffinchError, r"stopped the job \(OUT_OF.LUCK\)"),
        (CANARY, ChaffinchError, r"stopped the job \(RuntimeError\)"),
    ],
)
def test_failures_of_spark_are_said_in_our_words(message: str, kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind, match=expected) as caught:
        raise explain(RuntimeError(message))
    assert CANARY not in str(caught.value)
