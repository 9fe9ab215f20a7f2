"""`chaffinch weak apply`: documents in, the same documents with the votes of every source out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.weak.results import ApplyResult, VoteCounts
from chaffinch.errors import ChaffinchError, ConfigError
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import Losses, ReadOptions, by_name, output_format, write
from chaffinch.weak.apply import Applied, ApplyReport, Tally, apply
from chaffinch.weak.journal import Journal, is_slow, remember_answers, sources_digest
from chaffinch.weak.sources import Source, describe_source, layer_of, load_sources
from chaffinch.weak.votes import LINK


def apply_command(
    notes: Annotated[
        Path, typer.Argument(metavar="NOTES", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")
    ],
    sources: Annotated[Path, typer.Option("--sources", "-s", help="The sources: a .toml or a .py file.")],
    output: frame.Out,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail, and write nothing, if a source fails, gets a hint, or loses anything."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Reuse the answers of slow sources that an interrupted run kept.")
    ] = False,
    workers: frame.Workers = "1",
    from_: frame.From = None,
    to: Annotated[
        str | None, typer.Option("--to", help="jsonl, parquet or weak (a folder); else by the suffix of VOTES.")
    ] = None,
    group_by: frame.GroupBy = None,
    lines: frame.Lines = None,
    text_column: frame.TextColumns = [],  # noqa: B006  (typer copies it)
    id_column: frame.IdColumn = None,
    patient_column: frame.PatientColumn = None,
    documents: frame.Documents = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak apply notes/ --sources sources.toml -o votes.jsonl

    Run every source over every document and write the documents with their votes, one layer "source:NAME" for each.
    A source that fails is named and counted, with the line, and the others go on; one that finds nothing gets a hint;
    --strict makes both an error. A Python file of sources is executed, so use one that you trust. Ctrl-C leaves no
    partial output; answers of slow sources (models, spaCy, Python) are kept beside it, and --resume goes on from there.
    """
    if output.resolve() in (notes.resolve(), sources.resolve()):
        raise ConfigError("the output is an input; name another path with -o")
    form = _format(output, to)
    found = load_sources(sources)
    _check_links(form, found)
    columns = ColumnChoice(tuple(text_column), id_column, patient_column)
    how = ReadOptions(
        split=frame.split_of(lines), max_chars=max_chars, columns=columns, documents=frame.documents_of(documents)
    )  # fmt: skip
    corpus = frame.read_grouped(notes, from_, how, group_by)
    with _journal(found, sources, output, resume=resume, quiet=quiet) as journal, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source's warning may quote the document
        asked = found if journal is None else remember_answers(found, journal)
        applied = apply(
            asked, frame.progress(corpus, "documents", quiet=quiet), workers=frame.count_workers(workers), strict=strict
        )
        losses = _write(applied, output, form, how, strict=strict)
    counts = [_vote_counts(tally, source) for tally, source in zip(applied.report.sources, found, strict=True)]
    number, votes, lost = applied.report.documents, sum(count.spans for count in counts), dict(losses.counts)
    result = ApplyResult(from_=corpus.format, to=form, documents=number, votes=votes, sources=counts, lost=lost)
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())
    _note_errors(applied.report, quiet=quiet)
    frame.note_cut(how, quiet=quiet)


def _note_errors(report: ApplyReport, *, quiet: bool) -> None:
    """Print on stderr the errors of sources, and hints on their settings or on why they found nothing."""
    for tally in report.sources:
        if tally.errors:
            errors = ", ".join(f"{kind} ({number})" for kind, number in tally.errors.items())
            frame.note(f"The source {tally.name!r} had errors: {errors}.", quiet=quiet)
        for hint in tally.hints:
            frame.note(f"The source {tally.name!r}: {hint}.", quiet=quiet)


@contextmanager
def _journal(
    found: Sequence[Source], file: Path, output: Path, *, resume: bool, quiet: bool
) -> Iterator[Journal | None]:  # fmt: skip
    """Yield a journal of slow sources' answers (None if none is slow); keep it if stopped, StoppedEarly on Ctrl-C."""
    if not any(map(is_slow, found)) or not output.parent.is_dir():
        yield None
        return
    journal = Journal.open(output.with_name(output.name + ".journal"), sources_digest(found, file), resume=resume)
    kept = f"what slow sources said is kept in {journal.path}: go on with --resume"
    try:
        yield journal
    except KeyboardInterrupt:
        if journal.answers:
            raise frame.StoppedEarly(f"interrupted; nothing was written, and {kept}") from None
        journal.close()
        raise
    except ChaffinchError:
        if journal.answers:
            frame.note(f"{kept[0].upper()}{kept[1:]}.", quiet=quiet)
        else:
            journal.close()
        raise
    journal.close()


def _write(applied: Applied, output: Path, form: str, how: ReadOptions, *, strict: bool) -> Losses:
    """Write the documents; return what the format lost; ChaffinchError if the output cannot be written."""
    with frame.name_unwritable(output):
        return write(applied.documents, output, format=form, strict=strict, losses=how.losses)


def _format(output: Path, to: str | None) -> str:
    """Return the format of --to, or that of the suffix; raise ConfigError if it cannot hold votes."""
    name = to or ("weak" if output.suffix in ("", ".weak") else output_format(output).name)
    if not by_name(name).can.votes:
        raise ConfigError(f"{name} cannot hold the votes of several sources; write .jsonl or .parquet, or --to weak")
    return name


def _check_links(form: str, sources: Sequence[Source]) -> None:
    """Raise ConfigError if the format cannot hold the linking rules among the sources."""
    linking = [source.name for source in sources if layer_of(source).startswith(LINK)]
    if linking and not by_name(form).can.vote_links:
        raise ConfigError(
            f"the format {form} cannot hold the linking rule {linking[0]!r}; write .jsonl or .parquet, or leave it out"
        )


def _vote_counts(tally: Tally, source: Source) -> VoteCounts:
    """Return the counts of a source for the result: documents, spans, errors, hints, seconds."""
    return VoteCounts(
        source=tally.name,
        kind=str(describe_source(source)["kind"]),
        layer=tally.layer,
        label=tally.label,
        on=list(tally.on),
        negative_reliable=tally.negative_reliable,
        documents=tally.documents,
        spans=tally.spans,
        errors=dict(tally.errors),
        hints=list(tally.hints),
        seconds=round(tally.seconds, 3),
    )
