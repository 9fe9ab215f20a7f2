"""`chaffinch weak aggregate`: documents with votes in, the same documents with an aggregated layer out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.train import inputs
from chaffinch.cli.train.progress import live_line
from chaffinch.cli.weak.results import AggregateResult
from chaffinch.cli.weak.votes import (
    EncoderFolder,
    Only,
    Set,
    Votes,
    abort_on_sigint,
    choose_by_name,
    load_embedder,
    method_of,
    read_votes,
    settings_of,
    warn_about_silent_sources,
)
from chaffinch.errors import ConfigError
from chaffinch.models.core.training import Watcher
from chaffinch.text import Document
from chaffinch.text.formats import Format, Losses, ReadOptions, by_name, output_format, write
from chaffinch.weak.aggregate import (
    BY_NAME,
    LAYER,
    LEARNING,
    FittedAggregator,
    aggregator_of,
    check_votes,
    fit,
    load,
    save,
)

MODEL = ".cfm"
DEFAULT = "multihmm"


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregateOptions:
    """The options of `chaffinch weak aggregate`."""

    votes: Votes
    output: frame.Out
    fit_on: Annotated[
        Path | None,
        typer.Option("--fit", metavar="VOTES", help="Learn from these votes, and label those of VOTES."),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="MODEL", help=f"Use this {MODEL} file, which --save wrote, and learn nothing."),
    ] = None
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(BY_NAME)}; default: {DEFAULT}, or that of the model.")
    ] = None
    settings: Set = None
    encoder: EncoderFolder = None
    only: Only = None
    new_layer: frame.NewLayer = LAYER
    save_as: Annotated[
        Path | None,
        typer.Option("--save", metavar="MODEL", help=f"Save what {' or '.join(LEARNING)} learnt, as {MODEL}."),
    ] = None
    from_: frame.From = None
    to: Annotated[str | None, typer.Option("--to", help="Format of the output; else by the suffix of OUT.")] = None
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(AggregateOptions)
def aggregate_command(options: AggregateOptions) -> None:
    """chaffinch weak aggregate votes.jsonl -o labels.jsonl

    Aggregate the votes of all sources into one layer of spans, with soft labels beside it (multihmm, chmm, token-vote).
    Gold is not used. JSONL and Parquet keep the votes too; every other format holds the new layer only.
    """
    form = _check(options).name
    reading = ReadOptions(max_chars=options.max_chars)
    docs = read_votes(options.votes, options.from_, reading, quiet=options.quiet)
    layer, names = options.new_layer or LAYER, choose_by_name(options.only, docs)
    fitted, out = _aggregate(options, docs, names, layer)
    losses = _write(out, options.output, form, layer, reading.losses)
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
    frame.emit(result, as_json=options.json, tables=[] if options.quiet else result.tables())


def _aggregate(
    options: AggregateOptions, docs: list[Document], names: Sequence[str], layer: str
) -> tuple[FittedAggregator, list[Document]]:
    """Fit or load the aggregator, save it if --save is given; return it and the documents with the added layer."""
    other = None
    if options.fit_on is not None:
        other = read_votes(options.fit_on, None, ReadOptions(max_chars=options.max_chars), quiet=options.quiet)
    sources = names if options.only is not None or other is None else None
    quiet = options.quiet
    with warn_about_silent_sources(quiet=quiet), abort_on_sigint(), live_line(quiet=quiet) as show:
        if options.model is None:
            aggregator = method_of(options.method or DEFAULT)
            settings = settings_of(aggregator, options.settings or ())
            embedder = load_embedder(options.encoder, aggregator)
            fitted = fit(docs, settings, fit_on=other, sources=sources, watcher=Watcher(show), embedder=embedder)
        else:
            fitted = _load(options.model, options.method, options.encoder)
        if options.only is None:
            check_votes(fitted, docs)
        out = fitted(docs, layer)
        if options.save_as is not None:
            save(fitted, options.save_as, docs=docs if other is None else other)
    return fitted, out


def _check(options: AggregateOptions) -> Format:
    """Return the output format; raise ConfigError, before anything is read, for options that do not go together."""
    paths = [path for path in (options.votes, options.fit_on, options.model, options.save_as) if path is not None]
    if options.output.resolve() in [path.resolve() for path in paths]:
        raise ConfigError("the output is an input, or the model; name another path with -o")
    learns = method_of(options.method or DEFAULT).learns
    if not learns and (options.model is not None or options.save_as is not None):
        raise ConfigError(
            f"a model file holds what {' or '.join(LEARNING)} learnt, and --method {options.method} learns nothing; "
            "leave one of them out"
        )
    given = {"--save": options.save_as, "--only": options.only, "--fit": options.fit_on, "--set": options.settings}
    wrong = [name for name, value in given.items() if value is not None]
    if options.model is not None and wrong:
        raise ConfigError(f"--model {options.model.name} is trained already; leave out {wrong[0]}")
    if options.save_as is not None:
        inputs.check_model_path(options.save_as, [path for path in (options.votes, options.fit_on) if path is not None])
    return output_format(options.output, options.to)


def _load(path: Path, method: str | None, encoder: Path | None) -> FittedAggregator:
    """Load a saved aggregator, with its encoder if it is not the packaged one; ConfigError if `method` is another."""
    fitted = load(path, embedder=load_embedder(encoder, BY_NAME["chmm"]))
    aggregator = aggregator_of(fitted.config)
    kind = aggregator.name
    if encoder is not None and not aggregator.embeds:
        raise ConfigError(f"--encoder is for a model of chmm, and --model is one of {kind}; leave it out")
    if method not in (None, kind):
        raise ConfigError(f"--method {method} was asked for, and --model is one of {kind}; leave one out")
    return fitted


def _write(docs: list[Document], output: Path, form: str, layer: str, losses: Losses) -> Losses:
    """Write the documents; return what the format lost; ChaffinchError if the output cannot be written."""
    alone = None if by_name(form).can.soft else layer
    with frame.name_unwritable(output):
        return write(docs, output, format=form, layer=alone, losses=losses)
