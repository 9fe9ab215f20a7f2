"""Release a Parquet table to a Parquet table on a Spark session, for the command line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import settings_digest
from chaffinch.deid.release.verify import digest_files
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import versions
from chaffinch.jobs.spark.deidentify import NO_SETTINGS, RELEASED, SecretFile, Settings, deidentify
from chaffinch.jobs.spark.failures import explain_failures
from chaffinch.jobs.spark.table import import_functions
from chaffinch.jobs.work import DetectorSpec
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats._shared.columns import SAMPLE, choose_columns
from chaffinch.text.formats.base import atomic_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATIENTS = ("group", "patient", "patient_id", "subject_id")  # as `text.formats.base.group_of_meta` looks for them
_MARK = re.compile(r"_SUCCESS|_(common_)?metadata|\..*\.crc")  # of files that Spark writes beside tables
_PATIENT, _NUMBER = "chaffinch patient", "chaffinch number"  # of columns that are added


@dataclass(frozen=True, slots=True)
class TableRelease:
    """A release of a Parquet table: where it is and goes, and what is done with it."""

    notes: Path
    output: Path
    columns: ColumnChoice
    policy: Policy
    detector: DetectorSpec
    secret: SecretFile | None = None
    settings: Settings = NO_SETTINGS


def release_table(session: SparkSession, job: TableRelease) -> dict[str, Any]:
    """De-identify a Parquet table to Parquet files; write a manifest beside and return it; ConfigError if unfit.

    The output appears complete or not at all. Raise ConfigError if it exists, if columns are not sure, or if the input
    has files that Spark does not read; DataError if one cannot be read.
    """
    if job.output.exists():
        raise ConfigError(f"{job.output} exists and is not overwritten; name another path with -o")
    part = job.output.with_name(job.output.name + ".part").absolute()
    try:
        with explain_failures():
            return _release_to(session, job, part)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # it is there only if the job failed


def _release_to(session: SparkSession, job: TableRelease, part: Path) -> dict[str, Any]:
    """Release the table to the folder `part`, and move that to the output when it is complete; return the manifest."""
    source = session.read.parquet(str(job.notes.absolute()))
    _check_files(job.notes, source)
    df, text, name, patient = _choose(session, source, job)
    settings = replace(job.settings, number=_NUMBER)
    released = deidentify(
        df,
        text=text,
        id=name,
        patient=None if settings.each_note_a_patient else patient,
        policy=job.policy,
        detector=job.detector,
        secret_file=job.secret,
        settings=settings,
    )
    released.write.mode("overwrite").parquet(str(part))
    if not part.is_dir():
        raise ConfigError("-o is not on a disk that this computer and the workers share; name a path that is")
    for unneeded in (*part.rglob("*.crc"), part / "_SUCCESS"):
        unneeded.unlink(missing_ok=True)
    manifest = _manifest(session.read.parquet(str(part)), job) | {"files": digest_files(part)}
    with atomic_output(job.output.with_name(f"{job.output.name}.manifest.json")) as beside:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    shutil.move(part, job.output)
    return manifest


def _check_files(notes: Path, source: DataFrame) -> None:
    """Raise ConfigError if a folder has files that Spark leaves out without a word."""
    if not notes.is_dir():
        return
    files = [path for path in notes.rglob("*") if path.is_file() and not _MARK.fullmatch(path.name)]
    if left := len(files) - len(source.inputFiles()):
        raise ConfigError(
            f"Spark would leave out {left:,} of {len(files):,} files of the input: their names begin with _ or ., or "
            "they are in folders within it; move them, or give --engine plain"
        )


def _choose(session: SparkSession, source: DataFrame, job: TableRelease) -> tuple[DataFrame, str, str, str | None]:
    """Return the table with numbers and patients added, and its columns of text, id and patient; or ConfigError."""
    functions = import_functions()
    sample = [row.asDict() for row in source.limit(SAMPLE).collect()]
    chosen = choose_columns(source.columns, sample, job.columns)
    if len(chosen.texts) != 1:
        raise ConfigError(f"--engine spark takes one text column, and there are {len(chosen.texts)}; name one")
    if chosen.id is None:
        raise ConfigError("no column is surely the id of the notes; name it with --id-column")
    if job.columns.patient is not None:
        names = [str(chosen.patient)]
    else:
        names = [column for known in _PATIENTS for column in source.columns if column.lower() == known]
    df = _number(session, source)
    cells = [functions.col("`" + name.replace("`", "``") + "`").cast("string") for name in names]
    if cells:
        df = df.withColumn(_PATIENT, functions.coalesce(*(functions.when(cell != "", cell) for cell in cells)))
    return df, chosen.texts[0], chosen.id, _PATIENT if cells else None


def _number(session: SparkSession, source: DataFrame) -> DataFrame:
    """Return the table with a column of row numbers from 1 on; its files count in order of name."""
    functions = import_functions()
    path, row = functions.col("_metadata.file_path"), functions.col("_metadata.row_index")
    placed = source.select("*", path.alias("chaffinch path"), row.alias("chaffinch row"))
    rows = sorted((row[0], row[1]) for row in placed.groupBy("chaffinch path").count().collect())
    starts, total = [], 1
    for file, number in rows:
        starts.append((file, total))
        total += number
    files = session.createDataFrame(starts, "`chaffinch path` string, `chaffinch start` bigint")
    numbered = placed.join(functions.broadcast(files), "chaffinch path", "left")
    number = functions.col("chaffinch start") + functions.col("chaffinch row")
    return numbered.withColumn(_NUMBER, number).drop("chaffinch path", "chaffinch row", "chaffinch start")


def _manifest(released: DataFrame, job: TableRelease) -> dict[str, Any]:
    """Return the manifest of a written table: counts and settings, without text and ids."""
    functions = import_functions()
    counts = released.groupBy("status", "reason", "model_sha256").count().collect()
    withheld = {row["reason"]: row["count"] for row in counts if row["status"] != RELEASED}
    total = sum(row["count"] for row in counts)
    kept = released.where(functions.col("patient").isNotNull()).select("patient").distinct().count()
    settings: Mapping[str, Any] = {
        "engine": "spark",
        "model": {"name": job.detector.model or "rules", "digest": counts[0]["model_sha256"] if counts else None},
        "policy": {"name": job.policy.name, "digest": job.policy.digest()},
        "secret": None if job.secret is None else job.secret.fingerprint,
        "ids": "kept" if job.settings.ids == "keep" else "numbers" if job.secret is None else "pseudonyms",
        "spans": job.settings.spans,
        "date_order": job.settings.date_order,
        "format": "parquet",
    }
    return {
        "settings": settings,
        "settings_digest": settings_digest(settings),
        "versions": versions(),
        "documents": {"in": total, "released": total - sum(withheld.values()), "withheld": sum(withheld.values())},
        "withheld": dict(sorted(withheld.items())),
        "patients": kept,
    }
