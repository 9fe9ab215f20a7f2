"""`chaffinch weak aggregate`: votes in, the same documents with what they come to out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.cli import common as frame
from chaffinch.cli.train import options as settings
from chaffinch.cli.train.progress import live_line
from chaffinch.cli.weak.votes import Some, Votes, chosen, method_of, read_votes, stop_at_once, told_of_silence
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
        typer.Option("--fit", metavar="OTHER", help=f"Learn from these votes, or use this model of --save ({MODEL})."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(BY_NAME)}; default: {DEFAULT}, or that of the model.")
    ] = None,
    sources: Some = None,
    layer: Annotated[str, typer.Option(help="Name of the new layer.")] = LAYER,
    model: Annotated[
        Path | None,
        typer.Option("--save", metavar="MODEL", help=f"Keep what {' or '.join(LEARNING)} learnt, as {MODEL}."),
    ] = None,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of the output; else by the suffix of OUT.")] = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak aggregate votes.jsonl -o labels.jsonl

    Joins the votes of all sources into one layer of spans, and soft labels beside it (of multihmm, chmm, token-vote).
    No gold is looked at. JSONL and Parquet keep the votes too; every other format holds the new layer alone.
    """
    given_file = fit_on if fit_on is not None and fit_on.suffix == MODEL else None
    _check(output, (votes, fit_on, model), method, {"--save": model, "--sources": sources}, given_file)
    form = output_format(output, to).name
    if model is not None:
        settings.check_place(model, (votes, fit_on))
    reading = ReadOptions(max_chars=max_chars)
    docs = read_votes(votes, from_, reading, quiet=quiet)
    names, other = chosen(sources, docs), None
    if fit_on is not None and given_file is None:
        other = read_votes(fit_on, None, ReadOptions(max_chars=max_chars), quiet=quiet)
    own = names if sources is not None or other is None else None
    with told_of_silence(quiet=quiet), stop_at_once(), live_line(quiet=quiet) as tell:
        if given_file is None:
            how = method_of(method or DEFAULT).settings()
            fitted = fit(docs, how, fit_on=other, sources=own, watcher=Watcher(tell))
        else:
            fitted = _loaded(given_file, method)
        out = fitted(docs, layer)
        if model is not None:
            save(fitted, model, docs=docs if other is None else other)
    losses = _written(out, output, form, layer, reading.losses)
    result = {
        "method": aggregator_of(fitted.config).name,
        "to": form,
        **_facts(out, layer, names),
        "lost": dict(losses.counts),
    }
    frame.emit(result, as_json=json, tables=[] if quiet else _tables(result))


def _check(
    output: Path, places: Sequence[Path | None], method: str | None, options: Mapping[str, object], given: Path | None
) -> None:
    """Refuses places and options that do not go together, before anything is read."""
    if output.resolve() in [path.resolve() for path in places if path is not None]:
        raise ConfigError("the output is an input, or the model; name another place with -o")
    if not method_of(method or DEFAULT).learns and (given is not None or options["--save"] is not None):
        raise ConfigError(
            f"a model file holds what {' or '.join(LEARNING)} learnt, and {method} was asked for; leave one of them out"
        )
    wrong = [name for name, value in options.items() if value is not None]
    if given is not None and wrong:
        raise ConfigError(f"--fit {given.name} is a model, which has learnt already; leave out {wrong[0]}")


def _loaded(path: Path, method: str | None) -> FittedAggregator:
    """The model of a file; ConfigError if another method was asked for."""
    found = load(path)
    kind = aggregator_of(found.config).name
    if method not in (None, kind):
        raise ConfigError(f"--method {method} was asked for, and --fit is a model of {kind}; leave one out")
    return found


def _written(docs: list[Document], output: Path, form: str, layer: str, losses: Losses) -> Losses:
    """All that was lost, once the documents are written; ChaffinchError if the disk refuses them."""
    alone = None if by_name(form).can.soft else layer
    with frame.naming_unwritable(output):
        return write(docs, output, format=form, layer=alone, losses=losses)


def _facts(docs: list[Document], layer: str, names: tuple[str, ...]) -> dict[str, Any]:
    labels = Counter(span.label for doc in docs for span in doc.layers[layer])
    return {
        "layer": layer, "documents": len(docs), "tokens": sum(len(doc.tokens) for doc in docs),
        "sources": len(names), "spans": labels.total(), "soft labels": any(layer in doc.soft for doc in docs),
        "labels": dict(sorted(labels.items())),
    }  # fmt: skip


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    yield frame.facts_table({key: value for key, value in result.items() if key not in ("labels", "lost")})
    for title, name in (("label", "labels"), ("not kept", "lost")):
        if result[name]:
            yield ""
            count = "spans" if name == "labels" else "times"
            yield frame.table_of([{title: what, count: number} for what, number in sorted(result[name].items())])
