"""`chaffinch deid explain`: which voices found each identifier of a note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.explain import Explained, SpanNumber, WithText, print_explanations
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.explain import DEFAULT, explain
from chaffinch.errors import DataError
from chaffinch.features.lexicon import read_phrases
from chaffinch.jobs.work import RULES
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions
from chaffinch.weak.sources import load_sources


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainOptions:
    """The options of `chaffinch deid explain`."""

    notes: Annotated[Path, typer.Argument(metavar="NOTE", help="A note, or a file or folder of notes.")]
    span: SpanNumber = None
    with_text: WithText = False
    model: Annotated[str, typer.Option(help="The detector: a model file, a packaged model, or rules.")] = DEFAULT
    recall: Annotated[float | None, typer.Option(help="As in deid run.", min=0, max=1)] = None
    fast: Annotated[bool, typer.Option("--fast", help="As in deid run.")] = False
    known: Annotated[Path | None, typer.Option(help="As in deid run.")] = None
    allow: Annotated[Path | None, typer.Option(help="As in deid run.")] = None
    deny: Annotated[Path | None, typer.Option(help="As in deid run.")] = None
    types: Annotated[Path | None, typer.Option(help="As in deid run.")] = None
    apart: Annotated[bool, typer.Option("--apart", help="As in deid run.")] = False
    group_by: frame.GroupBy = None
    from_: frame.From = None
    text_column: frame.TextColumns = field(default_factory=list)
    id_column: frame.IdColumn = None
    patient_column: frame.PatientColumn = None
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(ExplainOptions)
def explain_command(options: ExplainOptions) -> None:
    """chaffinch deid explain note.txt --span 1 --with-text

    Explain every identifier that `deid run` would replace: the patterns, lists, taggers, the contextual reader, known
    identifiers and repeats that spoke for it, their chances, the threshold of the dial and the runner-up. Without
    --span, one line per voice; with it, or with --json, everything. Notes and spans are numbered as they come; no text
    is shown unless --with-text asks for it.
    """
    find = detector(
        None if options.model == RULES else options.model,
        recall=options.recall,
        known=options.known,
        allow=[] if options.allow is None else read_phrases(options.allow),
        deny=[] if options.deny is None else read_phrases(options.deny),
        types=[] if options.types is None else load_sources(options.types),
        by_patient=not options.apart,
        fast=options.fast,
    )
    how = ReadOptions(max_chars=options.max_chars, columns=frame.columns_of(options))
    notes = list(frame.read_grouped(options.notes, options.from_, how, options.group_by))
    if not notes:
        raise DataError("holds no note; name a file or a folder of notes", path=options.notes)
    told = list(frame.progress(_explain_notes(notes, find, options), "notes", quiet=options.quiet, total=len(notes)))
    print_explanations(options.model, told, span=options.span, with_text=options.with_text, as_json=options.json)


def _explain_notes(notes: Sequence[Document], find: HybridDetector, options: ExplainOptions) -> Iterator[Explained]:
    """Yield (note, explanations of its identifiers), the patient's other notes read along if the detector does so."""
    members: defaultdict[str, list[Document]] = defaultdict(list)
    for note in notes:
        members[note.patient].append(note)
    full = options.json or options.span is not None
    for note in notes:
        others = [other for other in members[note.patient] if other is not note] if find.by_patient else []
        yield note, explain(note, find, others=others, features=full)
