"""`chaffinch deid estimate`: how much could still leak, from a sample that was read again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.deid import leakage
from chaffinch.deid.leakage import files as leakage_files
from chaffinch.errors import DataError, GateError


def estimate_command(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="The file that deid sample wrote.")],
    form: Annotated[Path, typer.Argument(metavar="FORM", help="The form, filled in: CSV or JSON lines.")],
    recall: Annotated[
        float, typer.Option(help="Share of the leaks in a note that the person who reads it finds.", min=0, max=1)
    ] = 0.9,
    planted: Annotated[
        int | None,
        typer.Option(
            help="Number of planted identifiers on which --recall was measured; without it, --recall is exact.", min=1
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the upper bounds.", min=0, max=1)] = 0.95,
    most_per_note: Annotated[
        int, typer.Option(help="Most leaks that one note can have; bounds on leaks grow with it.", min=1)
    ] = 10,
    fail_over: Annotated[
        float | None, typer.Option(help="Exit with code 4 if more than this share of the notes may leak.", min=0, max=1)
    ] = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid estimate sample.json sample.csv --recall 0.95 --planted 200

    Estimate how many notes may still hold an identifier, and how many leaks there may be per note and per 1,000 tokens,
    with upper bounds that are valid for the way the sample was drawn; by category where the form has them.
    """
    try:
        drawn = leakage.Sample.from_json(leakage_files.read_text(sample).encode())
    except DataError as error:
        raise error.at(sample) from None
    try:
        reviewed = leakage_files.parse_form(leakage_files.read_text(form))
        reader = leakage.Reader(recall, planted)
        result = leakage.estimate(drawn, reviewed, reader=reader, confidence=confidence, most_per_note=most_per_note)
    except DataError as error:
        raise error.at(form) from None
    frame.emit(result.as_dict(), as_json=json, tables=[result.sentence(), "", frame.table_of(result.rows())])
    if fail_over is not None and result.total.share.upper > fail_over:
        raise GateError(
            f"up to {result.total.share.upper:.4f} of the notes may leak, more than --fail-over {fail_over}"
        )
