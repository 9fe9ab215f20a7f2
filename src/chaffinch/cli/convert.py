"""`chaffinch convert`: documents from one format to another, with an account of what could not be kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.results import ConvertResult
from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import FORMATS, ReadOptions, output_format, write


def convert_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")],
    output: frame.Out,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of the output; else by the suffix of OUT.")] = None,
    layer: frame.Layer = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail, and write nothing, if anything is lost.")] = False,
    group_by: frame.GroupBy = None,
    lines: frame.Lines = None,
    text_column: frame.TextColumns = [],  # noqa: B006  (typer copies it)
    id_column: frame.IdColumn = None,
    patient_column: frame.PatientColumn = None,
    documents: Annotated[
        str,
        typer.Option(metavar="sentence|block:N|file", help="What a document is in column files without -DOCSTART-."),
    ] = "file",
    tag_names: frame.TagNames = "",
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch convert notes/ -o notes.jsonl

    Read documents in one format and write them in another. What the new format cannot hold is counted and
    reported; --strict makes it an error. The output appears complete, or not at all.

    Formats: FORMAT_NAMES.
    """
    names, cut = frame.names_of_tags(tag_names), frame.documents_of(documents)
    columns = ColumnChoice(tuple(text_column), id_column, patient_column)
    how = ReadOptions(
        split=frame.split_of(lines), max_chars=max_chars, tag_names=names, documents=cut, columns=columns
    )  # fmt: skip
    corpus = frame.read_grouped(source, from_, how, group_by)
    if source.resolve() == output.resolve():
        raise ConfigError("the output is the input; name another path with -o")
    tally = _Tally()
    form = output_format(output, to).name
    counted = tally.count(frame.progress(corpus, "documents", quiet=quiet))
    losses = write(
        counted, output, format=form, layer=layer, strict=strict, losses=how.losses, keep_columns=bool(columns)
    )
    result = tally.result(corpus.format, form, dict(losses.counts))
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


convert_command.__doc__ = (convert_command.__doc__ or "").replace(
    "FORMAT_NAMES", ", ".join(sorted(form.name for form in FORMATS))
)


class _Tally:
    """Count documents as they pass."""

    def __init__(self) -> None:
        """Start all counts at zero."""
        self.documents = self.spans = self.relations = self.tokens = self.grouped = 0

    def count(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents unchanged, and count them, their spans, relations, tokens and patients."""
        for doc in documents:
            self.documents += 1
            self.spans += sum(len(spans) for spans in doc.layers.values())
            self.relations += len(doc.relations)
            self.tokens += len(doc.tokens)
            self.grouped += doc.group is not None
            yield doc

    def result(self, source: str, form: str, lost: dict[str, int]) -> ConvertResult:
        """Return the counts as the command's result, with formats of input (`source`), output (`form`), and losses."""
        return ConvertResult(
            from_=source,
            to=form,
            documents=self.documents,
            spans=self.spans,
            relations=self.relations,
            tokens=self.tokens,
            documents_with_patient=self.grouped,
            lost=lost,
        )
