"""`chaffinch synth`: invent documents with gold spans."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.results import SynthResult
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.synth.notes import Style
from chaffinch.deid.synth.personas import Half
from chaffinch.text.formats import FORMATS, output_format, write
from chaffinch.text.formats.brat import BRAT

synth_app = typer.Typer(help="Invent documents whose spans are known.", rich_markup_mode=None)


@synth_app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Print the help of `synth` if no command is given."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def notes_command(
    output: frame.Out,
    patients: Annotated[int, typer.Option(min=1, help="How many patients.")] = 100,
    notes: Annotated[int, typer.Option(min=1, help="How many notes for each.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same notes.")] = 0,
    names: Annotated[Half, typer.Option(help="All names, or one of two halves that share none.")] = "all",
    style: Annotated[
        Style, typer.Option(help="varied: many more layouts and written forms, and the labels of i2b2 2014.")
    ] = "plain",
    sites: Annotated[
        str | None, typer.Option(help="Sites of varied notes, as a,b,c; no two sites share a template. All: a to f.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Format; else by the suffix of OUT, brat for a folder.")
    ] = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch synth notes -o notes.jsonl --patients 100

    Write invented English notes of invented patients, several for each, with every name, place, number, date, age
    and profession labelled. Train on `--names train` and test on `--names held-out`: the two halves share no name.
    `--style varied` is what a tagger for unknown hospitals is trained on; hold out `--sites` to test one.

    Formats: FORMAT_NAMES.
    """
    form = output_format(output, to or (None if output.suffix else BRAT.name)).name
    chosen = None if sites is None else [site.strip() for site in sites.split(",")]
    documents = synth.notes(patients, notes, seed=seed, names=names, style=style, sites=chosen)
    losses = write(documents, output, format=form)
    labels = Counter(span.label for doc in documents for span in doc.layer())
    result = SynthResult(
        to=form,
        patients=len({doc.group for doc in documents}),
        documents=len(documents),
        tokens=sum(len(doc.tokens) for doc in documents),
        spans=labels.total(),
        seed=seed,
        names=names,
        style=style,
        labels={label: labels[label] for label in synth.labels(style)},
        kinds=dict(sorted(Counter(str(doc.meta["kind"]) for doc in documents).items())),
        lost=dict(losses.counts),
    )
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


notes_command.__doc__ = (notes_command.__doc__ or "").replace(
    "FORMAT_NAMES", ", ".join(sorted(form.name for form in FORMATS))
)
synth_app.command("notes", short_help="Clinical notes with every identifier labelled.")(notes_command)
