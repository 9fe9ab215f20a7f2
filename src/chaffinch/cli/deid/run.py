"""`chaffinch deid run`: notes in, the same notes without identifiers out, and an account of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from chaffinch.bundle import packaged_models
from chaffinch.cli import common as frame
from chaffinch.cli.config_file import ConfigFile
from chaffinch.cli.deid.restore import key_of
from chaffinch.cli.deid.results import RunResult
from chaffinch.deid import keys
from chaffinch.deid.dates.order import DateOrder
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy, ready_policies
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.summary_page import html
from chaffinch.errors import ConfigError, WithheldError
from chaffinch.features.lexicon import read_phrases
from chaffinch.jobs.deid import DEFAULT, POLICY, check_output, plan
from chaffinch.jobs.effects import check_effects
from chaffinch.jobs.job import COMMAND, NotesInput, Patients, ReleaseJob, VaultTarget
from chaffinch.jobs.release import Tick, dry_run, run_release
from chaffinch.jobs.run import Interrupted
from chaffinch.jobs.stream import check_stream, release_to_bytes
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.base import atomic_output, write_text
from chaffinch.weak.sources import load_sources

STREAM = "-"  # stdin as input, stdout as output
RULES = "rules"  # the name of the detector without a model: patterns and lists alone


_SecretFile = Annotated[
    Path | None, typer.Option(help=f"Secret of surrogates, date shifts and new ids; default: {keys.VARIABLE}.")
]
_EachNoteAPatient = Annotated[
    bool,
    typer.Option("--each-note-a-patient", help="No two notes belong to one patient; instead of --group-by."),
]
_DateOrder = Annotated[
    DateOrder,
    typer.Option(help="How to read 03/04/1998 where a patient's dates do not tell; auto: as nearly all dates."),
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
    bool,
    typer.Option("--spans", help="Mark replacements in the output; readers can then tell surrogates from originals."),
]
_Follow = Annotated[
    bool, typer.Option("--follow", help="Read links that lead out of IN too; else they are excluded and listed.")
]


def run_command(
    notes: Annotated[
        Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them; - reads stdin.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write, in the format of IN; - writes to stdout.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="What to do with each kind of identifier: a TOML file, or a ready policy.")
    ] = POLICY,
    model: Annotated[str, typer.Option(help="The detector: a model file, a packaged model, or rules.")] = DEFAULT,
    recall: Annotated[
        float | None, typer.Option(help="Share of identifiers to aim for; more recall costs precision.", min=0, max=1)
    ] = None,
    secret_file: _SecretFile = None,
    group_by: frame.GroupBy = None,
    each_note_a_patient: _EachNoteAPatient = False,
    date_order: _DateOrder = "auto",
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Release nothing; count what would be released.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish a run that was stopped.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Take every warning as an error, before any work.")] = False,
    text_column: frame.TextColumns = [],  # noqa: B006  (as above)
    id_column: frame.IdColumn = None,
    patient_column: frame.PatientColumn = None,
    follow: _Follow = False,
    from_: frame.From = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid notes/ -o clean/

    Find identifiers and replace them as the policy says. A document that cannot be read, is too long or fails is
    withheld and listed (exit code 5); hidden files, other files and links that lead out of IN are excluded and listed.
    Beside OUT it writes OUT.manifest.json, which may be published, and OUT.private/
    with offsets, risks and ids, which must stay with you. OUT appears complete, or not at all. Labels, relations and
    fields of the input are not released, except fields named with --keep.
    """
    target = _target(notes, output, dry_run=dry_run)
    _check_stream(target, as_json=json, resume=resume)
    given = (policy, model, group_by, secret_file, known, allow, deny, types, key_file, frame.path_of(config))
    inputs = [Path(path) for path in given if path is not None]
    check_not_input(inputs, output=target, vault=vault)
    frame.check_page(page, notes, target, private_folder(target), vault, *inputs)
    release = Release(Policy.read(policy), _secret(secret_file), ids == "keep", tuple(keep), spans, date_order)
    pattern, table = frame.read_group_by(group_by)
    key = None if vault is None and key_file is None else key_of(key_file)
    find = _detector(model, recall=recall, known=known, lists=(allow, deny), types=types, by_patient=not apart)
    columns = ColumnChoice(tuple(text_column), id_column, patient_column)
    reading = ReadOptions(max_chars=max_chars, columns=columns)
    job = plan(
        NotesInput(notes, from_, reading, sys.stdin.buffer.read() if _is_stream(notes) else None, follow),
        target,
        release,
        find,
        patients=Patients(table if pattern is None else pattern, each_note_a_patient),
        vault=VaultTarget(vault, key),
        option_names=COMMAND,
    )
    if _is_stream(target):
        check_stream(job)
    job = check_effects(job, warnings=_warnings(find, recall, model, policy, frame.file_of(config)), strict=strict)
    manifest, rate = _run(job, dry=dry_run, resume=resume, quiet=quiet)
    if page is not None:
        _write_page(page, manifest, job, title=f"Release of {notes.name}", dial=_dial(find))
        frame.note(f"wrote {page}", quiet=quiet)
    result = RunResult(
        dry_run=dry_run, output=None if dry_run else str(target), **manifest, notes_per_second=round(rate, 2)
    )
    stream = sys.stderr if _is_stream(target) else None
    frame.emit(result, as_json=json, tables=[] if quiet and not dry_run else result.tables(), stream=stream)
    _raise_if_withheld(manifest, None if dry_run or stream else job.private / "withheld.jsonl")


def _run(job: ReleaseJob, *, dry: bool, resume: bool, quiet: bool) -> tuple[dict[str, Any], float]:
    """Return the manifest, and how many notes were done in a second."""
    began = time.monotonic()
    try:
        with _progress(quiet=quiet) as tick:
            if dry:
                manifest = dry_run(job, tick=tick)
            elif _is_stream(job.output):
                manifest, content = release_to_bytes(job, tick=tick)
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
            else:
                manifest = run_release(job, resume=resume, tick=tick)
    except Interrupted as stop:
        raise frame.StoppedEarly(str(stop)) from None
    return manifest, manifest["documents"]["in"] / max(time.monotonic() - began, 1e-9)


def _target(notes: Path, output: Path | None, *, dry_run: bool) -> Path:
    """Return the path of the output; ConfigError if it is among the inputs."""
    if output is None:
        if not dry_run:
            raise ConfigError("say where to write with -o OUT, or only count with --dry-run")
        return notes.with_name(f"{notes.stem}.released{notes.suffix}" if notes.is_file() else notes.name + ".released")
    if not _is_stream(notes) and not _is_stream(output):
        check_output(notes, output)
    return output


def _is_stream(path: Path) -> bool:
    """Tell whether a path stands for stdin or stdout."""
    return str(path) == STREAM


def _check_stream(target: Path, *, as_json: bool, resume: bool) -> None:
    """Raise ConfigError for options that do not go with an output on stdout."""
    wrong = [name for name, given in (("--json", as_json), ("--resume", resume)) if given and _is_stream(target)]
    if wrong:
        raise ConfigError(f"{wrong[0]} does not go with -o -, which writes the notes to stdout; name a path with -o")


def check_not_input(inputs: Iterable[Path], **outputs: Path | None) -> None:
    """Raise ConfigError if an output would replace a file that the command reads."""
    read = {path.resolve() for path in inputs if path.is_file()}
    for name, path in outputs.items():
        if path is not None and path.resolve() in read:
            raise ConfigError(f"--{name} {path} is an input, and would be replaced; name another path")


def _write_page(page: Path, manifest: dict[str, Any], job: ReleaseJob, *, title: str, dial: dict[str, Any]) -> None:
    with atomic_output(page) as beside:
        write_text(beside, html(manifest, job.release.policy, title=title, output=job.output.name, dial=dial))


def _dial(find: HybridDetector) -> dict[str, Any]:
    """Return how the dial was set: the recall asked for, and the thresholds that gives."""
    model, recall = find.model, find.recall
    return {"asked": recall, "thresholds": model.dial.at(recall) if model.taggers else {}}


def _warnings(
    find: HybridDetector, recall: float | None, model: str, policy: str, config: ConfigFile | None
) -> Iterator[str]:
    """Yield warnings about settings that have less effect than they seem to have."""
    reached = None if recall is None else find.model.dial.reaches(recall)
    if recall is not None and reached is not None and reached < recall:
        yield (
            f"recall {recall:g} is more than this model can do: {reached:.3f} on the notes its dial was set on; "
            "estimate what leaks with deid sample, or adapt the model to your notes"
        )
    for option, name, packaged in (("model", model, (RULES, *packaged_models())), ("policy", policy, ready_policies())):
        if name in packaged and Path(name).exists():
            yield f"{option} {name} is the packaged one, not the file of that name here; write ./{name} for the file"
    yield from () if config is None else (warning.removeprefix("--") for warning in config.warnings)


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
) -> HybridDetector:
    allow, deny = ([] if path is None else read_phrases(path) for path in lists)
    more_types = [] if types is None else load_sources(types)
    if lists[1] is not None and not deny:
        raise ConfigError(f"--deny {lists[1]} has no phrase; write one per line, or leave it out")
    chosen = None if model == RULES else model
    return detector(chosen, recall=recall, known=known, allow=allow, deny=deny, types=more_types, by_patient=by_patient)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Tick]:
    """Yield a callback that counts finished documents, shown on stderr if that is a terminal."""
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


def _raise_if_withheld(manifest: dict[str, Any], path: Path | None) -> None:
    documents = manifest["documents"]
    if documents["withheld"]:
        where = "" if path is None else f"; {path} says which and why"
        raise WithheldError(f"{documents['withheld']:,} of {documents['in']:,} documents were withheld{where}")
