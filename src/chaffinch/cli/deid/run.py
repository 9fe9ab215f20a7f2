"""`chaffinch deid run`: notes in, the same notes without identifiers out, and an account of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from chaffinch.cli import common as frame
from chaffinch.cli.deid.restore import key_of
from chaffinch.deid import keys
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.summary_page import html
from chaffinch.errors import ConfigError, WithheldError
from chaffinch.features.lexicon import read_phrases
from chaffinch.jobs.deid import DEFAULT, POLICY, check_output, plan
from chaffinch.jobs.job import COMMAND, NotesInput, Patients, ReleaseJob, VaultTarget
from chaffinch.jobs.release import Tick, dry_run, run_release
from chaffinch.jobs.run import Interrupted
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.base import replacing, write_text
from chaffinch.weak.sources import load_sources

RULES = "rules"  # the name of the model that is none: patterns and lists alone


_SecretFile = Annotated[
    Path | None, typer.Option(help=f"Secret of surrogates, date shifts and new ids; default: {keys.VARIABLE}.")
]
_EachNoteAPatient = Annotated[
    bool,
    typer.Option("--each-note-a-patient", help="No two notes belong to one patient; instead of --group-by."),
]
_Known = Annotated[
    Path | None, typer.Option(help="Table of each patient's identifiers from admission; held in memory only.")
]
_Types = Annotated[
    Path | None, typer.Option(help="More kinds to find: a file of sources, as for `weak apply --sources`.")
]
_Apart = Annotated[bool, typer.Option("--apart", help="Read each note alone, without the patient's other notes.")]
_Keep = Annotated[
    list[str],
    typer.Option(metavar="FIELD", help="Release this field too; it must hold no identifiers. Several times."),
]
_Spans = Annotated[
    bool, typer.Option("--spans", help="Mark replacements in the output; it tells surrogates from leaks.")
]


def run_command(
    notes: Annotated[Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; in the format of IN.")] = None,
    policy: Annotated[
        str, typer.Option(help="What to do with each kind of identifier: a TOML file, or a ready policy.")
    ] = POLICY,
    model: Annotated[str, typer.Option(help="The detector: a model file, a packaged model, or rules.")] = DEFAULT,
    recall: Annotated[
        float | None, typer.Option(help="Share of identifiers to aim for; more recall costs precision.", min=0, max=1)
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Leave out the contextual reader: faster, less accurate.")
    ] = False,
    secret_file: _SecretFile = None,
    group_by: frame.GroupBy = None,
    each_note_a_patient: _EachNoteAPatient = False,
    known: _Known = None,
    allow: Annotated[Path | None, typer.Option(help="File of phrases that are no identifiers, one per line.")] = None,
    deny: Annotated[Path | None, typer.Option(help="File of phrases that are identifiers, one per line.")] = None,
    types: _Types = None,
    apart: _Apart = False,
    vault: Annotated[Path | None, typer.Option(help="Keep the originals, encrypted, in this new file.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="The key of the vault; default: CHAFFINCH_VAULT_KEY.")] = None,
    ids: Annotated[
        Literal["new", "keep"],
        typer.Option(
            help="keep leaves document ids and file names unchanged; use it only if they contain no identifiers."
        ),
    ] = "new",
    keep: _Keep = [],  # noqa: B006  (typer copies it)
    spans: _Spans = False,
    page: Annotated[Path | None, typer.Option("--html", help="Write a summary of the run, one HTML file.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; count what would be released.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish a run that was stopped.")] = False,
    from_: frame.From = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid notes/ -o clean/

    Find identifiers and replace them as the policy says. A document that cannot be read, is too long or fails is
    withheld and listed (exit code 5). Beside OUT it writes OUT.manifest.json, which may be published, and OUT.private/
    with offsets, risks and ids, which must stay with you. OUT appears complete, or not at all. Labels, relations and
    fields of the input are not released, except fields named with --keep.
    """
    place = _place(notes, output, dry_run=dry_run)
    _check_page(page, notes, place, dry_run=dry_run)
    release = Release(Policy.read(policy), _secret(secret_file), ids == "keep", tuple(keep), spans)
    pattern, table = frame.read_group_by(group_by)
    key = None if vault is None and key_file is None else key_of(key_file)
    find = _detector(
        model, recall=recall, known=known, lists=(allow, deny), types=types, by_patient=not apart, fast=fast
    )
    _tell_reached(find, recall, quiet=quiet)
    job = plan(
        NotesInput(notes, from_, ReadOptions(max_chars=max_chars)),
        place,
        release,
        find,
        patients=Patients(table or pattern, each_note_a_patient),
        vault=VaultTarget(vault, key),
        option_names=COMMAND,
    )
    manifest, rate = _run(job, dry=dry_run, resume=resume, quiet=quiet)
    if page is not None:
        title = f"Release of {notes.name}"
        with replacing(page) as beside:
            write_text(beside, html(manifest, release.policy, title=title, output=place.name, dial=_dial(find)))
        frame.note(f"wrote {page}", quiet=quiet)
    result = {"dry run": dry_run, "output": None if dry_run else str(place), **manifest, "notes per second": rate}
    frame.emit(result, as_json=json, tables=[] if quiet else _tables(result))
    _tell_withheld(manifest, None if dry_run else job.private / "withheld.jsonl")


def _run(job: ReleaseJob, *, dry: bool, resume: bool, quiet: bool) -> tuple[dict[str, Any], float]:
    """Return the manifest, and how many notes were done in a second."""
    began = time.monotonic()
    try:
        with _progress(quiet=quiet) as tick:
            manifest = dry_run(job, tick=tick) if dry else run_release(job, resume=resume, tick=tick)
    except Interrupted as stop:
        raise frame.StoppedEarly(str(stop)) from None
    return manifest, manifest["documents"]["in"] / max(time.monotonic() - began, 1e-9)


def _place(notes: Path, output: Path | None, *, dry_run: bool) -> Path:
    """Where the output goes; ConfigError if that is among the inputs."""
    if output is None:
        if not dry_run:
            raise ConfigError("say where to write with -o OUT, or only count with --dry-run")
        return notes.with_name(notes.name + ".released")
    check_output(notes, output)
    return output


def _check_page(page: Path | None, notes: Path, place: Path, *, dry_run: bool) -> None:
    """Refuses a place for the summary that would spoil something, before any work is done."""
    if page is None:
        return
    if dry_run:
        raise ConfigError("--dry-run writes nothing; leave out --html, or write to -o OUT")
    if not page.parent.is_dir():
        raise ConfigError(f"the folder {page.parent} of --html does not exist; make it first")
    if page.is_dir() or any(page.resolve().is_relative_to(taken.resolve()) for taken in (notes, place)):
        raise ConfigError(f"--html {page} is a folder, or in the input or the output; name a file beside them")


def _dial(find: HybridDetector) -> dict[str, Any]:
    """Return how the dial was set: the recall asked for, and the thresholds that gives."""
    model, recall = find.model, find.recall
    return {"asked": recall, "thresholds": model.dial.at(recall) if model.taggers else {}}


def _tell_reached(find: HybridDetector, recall: float | None, *, quiet: bool) -> None:
    """Say so if the dial does not go as far as was asked for."""
    if recall is None:
        return
    reached = find.model.dial.reaches(recall)
    if reached < recall:
        frame.note(
            f"--recall {recall:g} is more than this model can do: {reached:.3f} on the notes its dial was set on; "
            "estimate what leaks with deid sample, or adapt the model to your notes",
            quiet=quiet,
        )


def _secret(path: Path | None) -> Secret | None:
    return Secret.read(path) if path is not None or os.environ.get(keys.VARIABLE) else None


def _detector(
    model: str,
    *,
    recall: float | None,
    known: Path | None,
    lists: tuple[Path | None, Path | None],
    types: Path | None,
    by_patient: bool,
    fast: bool,
) -> HybridDetector:
    allow, deny = ([] if path is None else read_phrases(path) for path in lists)
    own_types = [] if types is None else load_sources(types)
    chosen = None if model == RULES and not Path(model).exists() else model
    return detector(
        chosen, recall=recall, known=known, allow=allow, deny=deny, types=own_types, by_patient=by_patient, fast=fast
    )


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Tick]:
    """Something to tell how many documents are through; shown on stderr, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} notes"), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("notes", total=None, rate="")
        began = time.monotonic()

        def tick(number: int) -> None:
            bar.advance(task, number)
            rate = bar.tasks[0].completed / max(time.monotonic() - began, 1e-9)
            bar.update(task, rate=f"{rate:,.1f} notes/s")

        yield tick


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    settings, leaks, alone = result["settings"], result["expected leaks"], result["without a patient"]
    patients = f"{result['patients']:,}"
    if alone:
        whose = "each note is" if alone == result["documents"]["released"] else f"{alone:,} notes without one are"
        patients += f" ({whose} taken for its own patient; see --group-by)"
    yield frame.facts_table(
        {
            **{f"documents {name}": number for name, number in result["documents"].items()},
            "patients": patients,
            "characters": result["characters"],
            "replacements": result["replacements"],
            "model": settings["model"]["name"],
            "policy": settings["policy"]["name"],
            "ids": settings["ids"],
            "expected leaks": "not known" if leaks is None else f"{leaks['per_note']:.3g} identifier tokens per note",
            "speed": f"{result['notes per second']:,.1f} notes/s",
        }
    )
    if result["labels"]:
        yield ""
        yield frame.table_of([_row(label, facts) for label, facts in result["labels"].items()])
    if result["withheld"]:
        yield ""
        yield frame.table_of([{"withheld because": why, "documents": n} for why, n in result["withheld"].items()])


def _row(label: str, facts: dict[str, Any]) -> dict[str, Any]:
    done = ", ".join(f"{operator} {number:,}" for operator, number in facts["operators"].items())
    return {"kind": label, "found": facts["found"], **facts["bands"], "done": done}


def _tell_withheld(manifest: dict[str, Any], path: Path | None) -> None:
    documents = manifest["documents"]
    if documents["withheld"]:
        where = "" if path is None else f"; {path} says which and why"
        raise WithheldError(f"{documents['withheld']:,} of {documents['in']:,} documents were withheld{where}")
