"""`chaffinch deid sample`: which notes to read again, and a form for the reader."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from chaffinch.checks import did_you_mean
from chaffinch.cli import frame
from chaffinch.cli.deid.results import SampleResult, StratumRow
from chaffinch.deid import leakage
from chaffinch.deid.kinds import KINDS
from chaffinch.deid.leakage import Allocation
from chaffinch.deid.leakage import files as leakage_files
from chaffinch.errors import ConfigError, DataError
from chaffinch.text.formats.base import atomic_output, write_text


def sample_command(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="What deid run wrote; or risks of all notes, JSON lines: id, tokens, expected."
        ),
    ],
    output: frame.Out,
    notes: Annotated[int, typer.Option("--notes", "-n", min=1, help="How many notes to read.")] = 300,
    form: Annotated[
        Path | None, typer.Option("--form", help="The form to fill in, .csv or .jsonl; default: OUT with .csv.")
    ] = None,
    category: Annotated[
        list[str], typer.Option("--category", help="A column of the form for leaks of this kind; several times.")
    ] = [],  # noqa: B006  (typer copies it)
    strata: Annotated[
        str, typer.Option(help="Quantiles of risk to cut at, or a number of equal parts; 1: a plain random sample.")
    ] = "0.5,0.8,0.95",
    least: Annotated[int, typer.Option(min=1, help="Draw at least this many notes from each stratum.")] = 5,
    allocation: Annotated[
        Allocation, typer.Option(help="neyman finds the most leaks, proportional gives the lowest bound.")
    ] = "mixed",
    seed: Annotated[int, typer.Option(min=0, help="Same notes and seed, same sample.")] = 0,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid sample clean -o sample.json --notes 300

    Draw notes at random within strata of risk, and write the sample and a form. Read the de-identified notes named
    in the form, write into `leaks` how many identifiers are still there (0 if there are none), then run: chaffinch
    deid estimate.
    """
    target = output.with_suffix(".csv") if form is None else form
    if target.suffix not in {".csv", ".jsonl"} or target == output:
        raise ConfigError(f"--form {target} must be a file of its own and end in .csv or .jsonl")
    _check_categories(category, release)
    if target.exists():
        raise DataError("is there already, perhaps filled in; choose another with --form, or remove it", path=target)
    risks = leakage_files.find_risks(release)
    try:
        rows = leakage_files.parse_risks(leakage_files.read_text(risks))
    except DataError as error:
        raise error.at(risks) from None
    tokens = {row.id: row.tokens for row in rows}
    drawn = leakage.sample(
        tokens, {row.id: row.expected for row in rows}, notes, seed=seed, strata=_strata(strata), least=least,
        allocation=allocation,
    )  # fmt: skip
    page = leakage_files.form(drawn, tokens, categories=category, as_csv=target.suffix == ".csv")
    for path, content in ((target, page), (output, drawn.to_json().decode())):
        with atomic_output(path) as beside:
            write_text(beside, content)
    frame.note(f"wrote {output} and {target}", quiet=quiet)
    strata_rows = [_row(number, part) for number, part in enumerate(drawn.strata, start=1)]
    result = SampleResult(notes=drawn.notes, tokens=drawn.tokens, read=len(drawn.ids), seed=seed, strata=strata_rows)
    frame.emit(result, as_json=json, tables=[frame.table_of([msgspec.structs.asdict(row) for row in strata_rows])])


def _check_categories(categories: Iterable[str], release: Path) -> None:
    """Raise ConfigError for a --category that is no kind or category of identifiers, and no label of the release."""
    manifest = release.with_name(f"{release.name}.manifest.json")
    labels = msgspec.json.decode(manifest.read_bytes()).get("labels", {}) if manifest.is_file() else {}
    known = list(dict.fromkeys([*(kind.category for kind in KINDS.values()), *KINDS, *labels]))
    for category in categories:
        if category not in known:
            raise ConfigError(f"--category {category!r} is no kind of identifier; {did_you_mean(category, known)}")


def _strata(text: str) -> int | list[float]:
    """Parse --strata: a whole number of equal parts, or quantiles with commas; ConfigError for other text."""
    try:
        return int(text) if text.strip().isdecimal() else [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--strata must be like 0.5,0.8,0.95 or like 4, got {text!r}") from None


def _row(number: int, part: leakage.Stratum) -> StratumRow:
    """Return the row of a stratum: range of risk, notes, tokens, expected leaks, notes drawn."""
    return StratumRow(
        stratum=number,
        lowest_risk=part.lowest_risk,
        highest_risk=part.highest_risk,
        notes=part.size,
        tokens=part.tokens,
        expected_leaks=part.expected,
        read=len(part.drawn),
    )
