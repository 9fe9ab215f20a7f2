"""`chaffinch weak apply`: documents in, the same documents with the votes of every source out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.cli import frame
from chaffinch.errors import ChaffinchError, ConfigError
from chaffinch.text.formats import Reading, by_name, output_format, read, write
from chaffinch.weak.apply import Report, Tally, apply
from chaffinch.weak.sources import Source, layer_of, load_sources
from chaffinch.weak.votes import LINK

KEEPING = ("jsonl", "parquet", "weak")  # formats that keep the votes of several sources


def apply_command(
    notes: Annotated[
        Path, typer.Argument(metavar="NOTES", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")
    ],
    sources: Annotated[Path, typer.Option("--sources", "-s", help="The sources: a .toml or a .py file.")],
    output: frame.Out,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail, and write nothing, if a source fails or anything is lost.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="How many at once, for long runs; any number gives the same output.")
    ] = 1,
    from_: frame.From = None,
    to: Annotated[
        str | None, typer.Option("--to", help="jsonl, parquet or weak (a folder); else by the suffix of VOTES.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Regular expression on the id; its group is the patient.")] = None,
    groups: Annotated[Path | None, typer.Option(help="File of two columns: id and patient.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Take every line as a sentence.")] = False,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak apply notes/ --sources sources.toml -o votes.jsonl

    Runs every source over every document and writes the documents with their votes, one layer "source:NAME" for each.
    A source that fails is named and counted, and the others go on; --strict makes it an error. A Python file of sources
    is run, so use one that you trust.
    """
    if output.resolve() in (notes.resolve(), sources.resolve()):
        raise ConfigError("the output is an input; name another place with -o")
    form = _format(output, to)
    found = load_sources(sources)
    _check_links(form, found)
    how = Reading(split="lines" if lines else "prose", max_chars=max_chars)
    corpus = read(notes, format=from_, how=how, group=group, groups=frame.read_groups(groups))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source's warning may quote the document
        applied = apply(found, frame.progress(corpus, "documents", quiet=quiet), workers=workers, strict=strict)
    try:
        losses = write(applied.documents, output, format=form, strict=strict, losses=how.losses)
    except OSError as error:
        raise ChaffinchError(f"{output}: could not be written ({error.strerror}); nothing was changed there") from None
    result = {"from": corpus.format, "to": form, **_facts(applied.report), "lost": dict(losses.counts)}
    frame.emit(result, as_json=json, tables=[] if quiet else _tables(result))
    for failed in applied.report.sources:
        if failed.errors:
            said = ", ".join(f"{kind} ({number})" for kind, number in failed.errors.items())
            frame.note(f"The source {failed.name!r} had errors: {said}.", quiet=quiet)


def _format(output: Path, to: str | None) -> str:
    """The format that was named, or that the suffix tells; ConfigError for those that would lose the votes."""
    name = to or ("weak" if output.suffix in ("", ".weak") else output_format(output).name)
    form = by_name(name).name
    if form not in KEEPING:
        raise ConfigError(f"{form} cannot hold the votes of several sources; write .jsonl or .parquet, or --to weak")
    return form


def _check_links(form: str, sources: Sequence[Source]) -> None:
    """Refuses a format that has no place for linking rules."""
    linking = [own.name for own in sources if layer_of(own).startswith(LINK)]
    if form == "weak" and linking:
        raise ConfigError(
            f"the format weak cannot hold the linking rule {linking[0]!r}; write .jsonl or .parquet, or leave it out"
        )


def _facts(report: Report) -> dict[str, Any]:
    return {
        "documents": report.documents,
        "votes": sum(own.spans for own in report.sources),
        "sources": [_row(own) for own in report.sources],
    }


def _row(own: Tally) -> dict[str, Any]:
    return {
        "source": own.name, "kind": own.kind, "layer": own.layer, "label": own.label, "on": own.on,
        "negative_reliable": own.negative_reliable, "documents": own.documents, "spans": own.spans,
        "errors": own.errors, "seconds": round(own.seconds, 3),
    }  # fmt: skip


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    yield frame.facts_table({key: value for key, value in result.items() if key not in ("sources", "lost")})
    yield ""
    shown = ("source", "kind", "label", "documents", "spans", "errors", "seconds")
    yield frame.table_of(
        [{key: own[key] if key != "errors" else sum(own[key].values()) for key in shown} for own in result["sources"]]
    )
    if result["lost"]:
        yield ""
        yield frame.table_of([{"not kept": what, "times": number} for what, number in sorted(result["lost"].items())])
