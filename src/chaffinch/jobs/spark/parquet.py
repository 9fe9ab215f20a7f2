"""Release a Parquet table to a Parquet table on a Spark session, for the command line."""

from __future__ import annotations

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
from chaffinch.jobs.spark.table import import_functions
from chaffinch.jobs.work import DetectorSpec
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats._shared.columns import SAMPLE, choose_columns
from chaffinch.text.formats.base import atomic_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATIENTS = ("group", "patient", "patient_id", "subject_id")  # as `text.formats.base.group_of_meta` looks for them
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

    The output appears complete or not at all. Raise ConfigError if it exists, or if columns are not sure.
    """
    if job.output.exists():
        raise ConfigError(f"{job.output} exists and is not overwritten; name another path with -o")
    source = session.read.parquet(str(job.notes.absolute()))
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
    part = job.output.with_name(job.output.name + ".part").absolute()
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
    """Return counts and settings of a written table as a dict, without text and ids."""
    functions = import_functions()
    counts = released.groupBy("status", "reason").count().collect()
    withheld = {row["reason"]: row["count"] for row in counts if row["status"] != RELEASED}
    total = sum(row["count"] for row in counts)
    models = released.select("model_sha256").limit(1).collect()
    kept = released.where(functions.col("patient").isNotNull()).select("patient").distinct().count()
    settings: Mapping[str, Any] = {
        "engine": "spark",
        "model": {"name": job.detector.model or "rules", "digest": models[0][0] if models else None},
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
