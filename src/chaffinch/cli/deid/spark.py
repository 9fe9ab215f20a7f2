"""`chaffinch deid IN -o OUT --engine spark`: a Parquet table in, a Parquet table out, on a Spark session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from chaffinch.cli import frame
from chaffinch.cli.deid.results import SparkResult
from chaffinch.deid import keys
from chaffinch.deid.policy import Policy
from chaffinch.errors import ConfigError, WithheldError
from chaffinch.jobs.work import DetectorSpec

if TYPE_CHECKING:
    from chaffinch.cli.deid.run import RunOptions

DEFAULT_MASTER = "local[*]"
_SUFFIXES = ("", ".parquet", ".pq")


def run_on_spark(options: RunOptions, spec: DetectorSpec) -> None:
    """Release notes on Spark, print the result; ConfigError for unfit options, WithheldError if any is withheld."""
    for flag in _flags_without_effect(options):
        raise ConfigError(f"{flag} does not go with --engine spark; leave it out, or use --engine plain")
    if options.output is None:
        raise ConfigError("say where to write with -o OUT, a new folder")
    if not options.notes.exists() or options.notes.suffix not in _SUFFIXES:
        raise ConfigError(
            f"{options.notes}: --engine spark reads a Parquet file, or a folder of them; convert it first"
        )
    if options.secret_file is None and os.environ.get(keys.VARIABLE):
        raise ConfigError(
            f"--engine spark reads the secret from a file on every worker, not from ${keys.VARIABLE}; give "
            "--secret-file FILE"
        )
    from chaffinch.jobs.spark.deidentify import SecretFile, Settings
    from chaffinch.jobs.spark.parquet import TableRelease, release_table
    from chaffinch.jobs.spark.session import open_session

    settings = Settings(
        ids=options.ids, spans=options.spans, each_note_a_patient=options.each_note_a_patient,
        date_order=options.date_order, max_chars=options.max_chars,
    )  # fmt: skip
    job = TableRelease(
        options.notes,
        options.output,
        frame.columns_of(options),
        Policy.read(options.policy),
        spec,
        None if options.secret_file is None else SecretFile.of(options.secret_file),
        settings,
    )
    began = time.monotonic()
    session = open_session(options.master or DEFAULT_MASTER)
    try:
        manifest = release_table(session, job)
    finally:
        session.stop()
    rate = manifest["documents"]["in"] / max(time.monotonic() - began, 1e-9)
    result = SparkResult(output=str(options.output), **manifest, notes_per_second=round(rate, 2))
    frame.emit(result, as_json=options.json, tables=[] if options.quiet else result.tables())
    documents: Mapping[str, int] = manifest["documents"]
    if documents["withheld"]:
        raise WithheldError(
            f"{documents['withheld']:,} of {documents['in']:,} documents were withheld; the columns status and reason "
            f"of {options.output} say which and why"
        )


def _flags_without_effect(options: RunOptions) -> Iterator[str]:
    """Yield the given flags that have no effect with --engine spark."""
    given = {
        "--vault": options.vault, "--key-file": options.key_file, "--keep": options.keep, "--html": options.page,
        "--dry-run": options.dry_run, "--resume": options.resume, "--group-by": options.group_by,
        "--from": options.from_, "--follow": options.follow, "--strict": options.strict,
        "--workers": options.workers != "1",
    }  # fmt: skip
    yield from (name for name, value in given.items() if value)
