"""`chaffinch deid adapt`: adapt a model to the user's own notes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.bundle import list_packaged_models
from chaffinch.cli import frame
from chaffinch.cli.deid.results import AdaptResult, CheckResult, KindCount
from chaffinch.cli.train import inputs
from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.keys import Secret
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.training import Progress as Learning
from chaffinch.text import Document
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import ReadOptions

NONE = "none"  # the name of the model that is none: learning from reviewed notes alone
MOST_COUNTED = 500  # notes in which old and new models are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptOptions:
    """The options of `chaffinch deid adapt`."""

    notes: Annotated[Path, typer.Argument(metavar="NOTES", help="Your notes; labels in them are ignored.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")]
    gold: Annotated[
        Path | None,
        typer.Option(metavar="REVIEWED", help="Notes with every identifier marked, or a review project."),
    ] = None
    key_file: Annotated[
        Path | None, typer.Option(help="Key of the review project; else that of project.toml or the environment.")
    ] = None
    model: Annotated[
        str, typer.Option(help="Model to begin with: a file, a packaged model, or none (then give --gold).")
    ] = "deid-en"
    language: Annotated[
        str | None, typer.Option(help="With --model none: the language whose word lists help (en, es, de).")
    ] = None
    group_by: frame.GroupBy = None
    lines: frame.Lines = None
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Score old and new on reviewed notes that are not learnt from; triples the time."
        ),
    ] = True
    adapt_reader: Annotated[
        bool,
        typer.Option(
            "--adapt-reader/--keep-reader",
            help="Let the contextual reader learn from reviewed notes, 20 or more (extra neural), or keep it as it is.",
        ),
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0
    from_: frame.From = None
    text_column: frame.TextColumns = field(default_factory=list)
    id_column: frame.IdColumn = None
    patient_column: frame.PatientColumn = None
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(AdaptOptions)
def adapt_command(options: AdaptOptions) -> None:
    """chaffinch deid adapt notes/ -o ours.cfm

    Adapt a model to your own notes: patterns, lists and the present model vote on them, the votes are aggregated, and
    the tagger learns from the result. Nothing needs to be labelled; reviewed notes (--gold) make it better, set the
    dial, and show what was gained, on notes of patients that were not learnt from. No pattern hit is lost. The
    contextual reader learns only if you ask for it (--adapt-reader). With --model none it learns from reviewed notes
    only, in any language. Use it with `chaffinch deid --model ours.cfm`.
    """
    from chaffinch.deid.training.adapt import SiteLesson, adapt
    from chaffinch.deid.training.cross_check import cross_check, describe_limits
    from chaffinch.deid.training.reader import describe_reader, require_enough

    began = time.perf_counter()
    inputs.check_model_path(options.output, (options.notes, options.gold))
    if options.model == NONE and options.gold is None:
        raise ConfigError("--model none learns from reviewed notes alone; give them with --gold")
    old = None if options.model == NONE else load(options.model)
    documents, reviewed = _read(options.notes, options, must_group=True), _read_reviewed(options)
    if options.adapt_reader:
        require_enough(Model() if old is None else old, reviewed)
    lesson, seed = SiteLesson(reader=options.adapt_reader), options.seed
    with frame.live_line("joining votes", _words, quiet=options.quiet) as show:
        language = options.language
        new = adapt(documents, old, gold=reviewed or None, lesson=lesson, language=language, seed=seed, tell=show)
        gains = None
        if options.check and old is not None:
            gains = cross_check(documents, old, reviewed, lesson=lesson, seed=seed, tell=show)
    saved = new.save(options.output, notes=_describe_origin(options.model, len(documents), len(reviewed), new))
    result = AdaptResult(
        model=str(options.output), from_=options.model, notes=len(documents), reviewed=len(reviewed),
        labels=list(saved.labels), found=_count_by_kind(documents[:MOST_COUNTED], old, saved),
        check=None if gains is None else CheckResult(**asdict(gains)),
        reader=0 if saved.context is None else saved.context.adapted,
        remarks=[*describe_limits(reviewed), *describe_reader(saved)],
        megabytes=round(options.output.stat().st_size / 1e6, 3), seconds=round(time.perf_counter() - began, 1),
    )  # fmt: skip
    frame.emit(result, as_json=options.json, tables=[] if options.quiet else result.tables())


def _describe_origin(model: str, notes: int, reviewed: int, new: Model) -> str:
    """Return sentences for the model file on what it was adapted from, without the name of a user's file."""
    origin = model if model == NONE or model in list_packaged_models() else "a model file"
    reader = " Its contextual reader was adapted." if new.context is not None and new.context.adapted else ""
    return f"Adapted from {origin} to {notes:,} notes, {reviewed:,} of them reviewed.{reader}"


def _read_reviewed(options: AdaptOptions) -> list[Document]:
    """Return the notes of --gold, a file or a review project; [] without; DataError if nothing in them is marked."""
    gold, key_file = options.gold, options.key_file
    by_people = gold is not None and (gold / "project.toml").is_file()
    if key_file is not None and not by_people:
        raise ConfigError("--key-file is the key of a review project, and --gold names none; leave it out")
    if gold is None:
        return []
    reviewed = _read_project(gold, key_file) if by_people else _read(gold, options, must_group=False)
    if not any(doc.layer() for doc in reviewed):
        raise DataError("has no span in a layer gold, so nothing was reviewed; mark its identifiers", path=gold)
    return reviewed


def _read_project(folder: Path, key_file: Path | None) -> list[Document]:
    """Return the closed notes of a review project, people's marks as gold; DataError if none is closed."""
    from chaffinch.web.review.desk import Desk
    from chaffinch.web.review.project import open_project
    from chaffinch.web.review.releasing import gold_documents

    project = open_project(folder, None if key_file is None else Secret.read(key_file))
    try:
        found = list(gold_documents(Desk(project)))
    finally:
        project.close()
    if not found:
        raise DataError("has no closed note yet; let people read some first", path=folder)
    return found


def _read(path: Path, options: AdaptOptions, *, must_group: bool) -> list[Document]:
    """Read all documents of a path, DataError if none; with `must_group` use columns, and --group-by must fit."""
    # Reviewed notes have spans, in a format of their own.
    columns = frame.columns_of(options) if must_group else ColumnChoice()
    how = ReadOptions(split=frame.split_of(options.lines), max_chars=options.max_chars, columns=columns)
    corpus = frame.read_grouped(path, options.from_, how, options.group_by, must_group=must_group)
    found = list(frame.progress(corpus, "documents", quiet=options.quiet))
    if not found:
        raise DataError("holds no document; name a file or a folder of notes", path=path)
    return found


def _count_by_kind(docs: Sequence[Document], old: Model | None, new: Model) -> list[KindCount]:
    """Return, for each kind, how many spans the old model and the new model find in the documents."""
    counts = [
        Counter[str]()
        if model is None
        else Counter(span.label for doc in HybridDetector(model)(docs) for span in doc.layer(LAYER))
        for model in (old, new)
    ]
    return [
        KindCount(kind=name, before=counts[0][name], after=counts[1][name]) for name in sorted(counts[0] | counts[1])
    ]


def _words(step: Learning) -> str:
    """Return the progress of training as text: part, epoch, number of epochs."""
    return f"{step.part}: {step.epoch} of {step.epochs}"
