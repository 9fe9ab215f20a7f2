"""`chaffinch convert`: documents from one format to another, with an account of what could not be kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.cli import common as frame
from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.text.formats import FORMATS, ReadOptions, output_format, read, write


def convert_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")],
    output: frame.Out,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of the output; else by the suffix of OUT.")] = None,
    layer: frame.Layer = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail, and write nothing, if anything is lost.")] = False,
    group: Annotated[str | None, typer.Option(help="Regular expression on the id; its group is the patient.")] = None,
    groups: Annotated[Path | None, typer.Option(help="File of two columns: id and patient.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Take every line as a sentence.")] = False,
    tag_names: Annotated[str, typer.Option(help="Names of integer tags: O,B-NAME,I-NAME,…")] = "",
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch convert notes/ -o notes.jsonl

    Reads documents in one format and writes them in another. What the new format cannot hold is counted and
    reported; --strict makes it an error. The output appears complete, or not at all.

    Formats: FORMAT_NAMES.
    """
    names = tuple(name.strip() for name in tag_names.split(",") if name.strip())
    how = ReadOptions(split="lines" if lines else "prose", max_chars=max_chars, tag_names=names)
    corpus = read(source, format=from_, how=how, group=group, groups=frame.read_groups(groups))
    if source.resolve() == output.resolve():
        raise ConfigError("the output is the input; name another place with -o")
    tally = _Tally()
    form = output_format(output, to).name
    documents = tally.count(frame.progress(corpus, "documents", quiet=quiet))
    losses = write(documents, output, format=form, layer=layer, strict=strict, losses=how.losses)
    result = {"from": corpus.format, "to": form, **tally.facts(), "lost": dict(losses.counts)}
    frame.emit(result, as_json=json, tables=[] if quiet else _tables(result))


convert_command.__doc__ = (convert_command.__doc__ or "").replace(
    "FORMAT_NAMES", ", ".join(sorted(form.name for form in FORMATS))
)


class _Tally:
    """Counts documents on their way through."""

    def __init__(self) -> None:
        self.documents = self.spans = self.relations = self.tokens = self.grouped = 0

    def count(self, documents: Iterable[Document]) -> Iterator[Document]:
        for doc in documents:
            self.documents += 1
            self.spans += sum(len(spans) for spans in doc.layers.values())
            self.relations += len(doc.relations)
            self.tokens += len(doc.tokens)
            self.grouped += doc.group is not None
            yield doc

    def facts(self) -> dict[str, int]:
        counts = {"documents": self.documents, "spans": self.spans, "relations": self.relations, "tokens": self.tokens}
        return {**counts, "documents with a patient": self.grouped}


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    facts = {key: value for key, value in result.items() if key != "lost"}
    if not result["documents with a patient"]:
        facts["documents with a patient"] = "none: each document is its own group (see --group)"
    yield frame.facts_table(facts)
    if result["lost"]:
        rows = [{"not kept": what, "times": number} for what, number in sorted(result["lost"].items())]
        yield ""
        yield frame.table_of(rows)
