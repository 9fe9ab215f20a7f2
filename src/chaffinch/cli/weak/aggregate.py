"""`chaffinch weak aggregate`: documents with votes in, the same documents with an aggregated layer out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import common as frame
from chaffinch.cli.train import inputs
from chaffinch.cli.train.progress import live_line
from chaffinch.cli.weak.results import AggregateResult
from chaffinch.cli.weak.votes import (
    Only,
    Votes,
    abort_on_sigint,
    choose,
    method_of,
    read_votes,
    warn_about_silent_sources,
)
from chaffinch.errors import ConfigError
from chaffinch.models.core.training import Watcher
from chaffinch.text import Document
from chaffinch.text.formats import Losses, ReadOptions, by_name, output_format, write
from chaffinch.weak.aggregate import BY_NAME, LAYER, LEARNING, FittedAggregator, aggregator_of, fit, load, save

MODEL = ".cfm"
DEFAULT = "multihmm"


def aggregate_command(
    votes: Votes,
    output: frame.Out,
    fit_on: Annotated[
        Path | None,
        typer.Option("--fit", metavar="VOTES", help="Learn from these votes instead."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="MODEL", help=f"Use this {MODEL} file of --save, and learn nothing."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(BY_NAME)}; default: {DEFAULT}, or that of the model.")
    ] = None,
    only: Only = None,
    new_layer: frame.NewLayer = LAYER,
    save_as: Annotated[
        Path | None,
        typer.Option("--save", metavar="MODEL", help=f"Save what {' or '.join(LEARNING)} learnt, as {MODEL}."),
    ] = None,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of the output; else by the suffix of OUT.")] = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak aggregate votes.jsonl -o labels.jsonl

    Aggregate the votes of all sources into one layer of spans, with soft labels beside it (multihmm, chmm, token-vote).
    Gold is not used. JSONL and Parquet keep the votes too; every other format holds the new layer only.
    """
    layer = new_layer or LAYER
    refused = {"--save": save_as, "--only": only, "--fit": fit_on}
    _check(output, (votes, fit_on, model, save_as), method, refused, model)
    form = output_format(output, to).name
    if save_as is not None:
        inputs.check_model_path(save_as, (votes, fit_on))
    reading = ReadOptions(max_chars=max_chars)
    docs = read_votes(votes, from_, reading, quiet=quiet)
    names, other = choose(only, docs), None
    if fit_on is not None:
        other = read_votes(fit_on, None, ReadOptions(max_chars=max_chars), quiet=quiet)
    fitted_sources = names if only is not None or other is None else None
    with warn_about_silent_sources(quiet=quiet), abort_on_sigint(), live_line(quiet=quiet) as show:
        if model is None:
            how = method_of(method or DEFAULT).settings()
            fitted = fit(docs, how, fit_on=other, sources=fitted_sources, watcher=Watcher(show))
        else:
            fitted = _load(model, method)
        out = fitted(docs, layer)
        if save_as is not None:
            save(fitted, save_as, docs=docs if other is None else other)
    losses = _write(out, output, form, layer, reading.losses)
    labels = Counter(span.label for doc in out for span in doc.layers[layer])
    result = AggregateResult(
        method=aggregator_of(fitted.config).name,
        to=form,
        layer=layer,
        documents=len(out),
        tokens=sum(len(doc.tokens) for doc in out),
        sources=len(names),
        spans=labels.total(),
        soft_labels=any(layer in doc.soft for doc in out),
        labels=dict(sorted(labels.items())),
        lost=dict(losses.counts),
    )
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


def _check(
    output: Path, places: Sequence[Path | None], method: str | None, options: Mapping[str, object], given: Path | None
) -> None:
    """Raise ConfigError for paths and options that do not go together, before anything is read."""
    if output.resolve() in [path.resolve() for path in places if path is not None]:
        raise ConfigError("the output is an input, or the model; name another path with -o")
    if not method_of(method or DEFAULT).learns and (given is not None or options["--save"] is not None):
        raise ConfigError(
            f"a model file holds what {' or '.join(LEARNING)} learnt, and {method} was asked for; leave one of them out"
        )
    wrong = [name for name, value in options.items() if value is not None]
    if given is not None and wrong:
        raise ConfigError(f"--model {given.name} has learnt already; leave out {wrong[0]}")


def _load(path: Path, method: str | None) -> FittedAggregator:
    """Return the model of a file; ConfigError if another method was asked for."""
    fitted = load(path)
    kind = aggregator_of(fitted.config).name
    if method not in (None, kind):
        raise ConfigError(f"--method {method} was asked for, and --model is one of {kind}; leave one out")
    return fitted


def _write(docs: list[Document], output: Path, form: str, layer: str, losses: Losses) -> Losses:
    """Write the documents and return all that was lost; ChaffinchError if the disk refuses them."""
    alone = None if by_name(form).can.soft else layer
    with frame.name_unwritable(output):
        return write(docs, output, format=form, layer=alone, losses=losses)
