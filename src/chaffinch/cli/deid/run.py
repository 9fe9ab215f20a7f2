"""`chaffinch deid run`: notes in, the same notes without identifiers out, and an account of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from chaffinch.bundle import list_packaged_models
from chaffinch.cli import frame
from chaffinch.cli.deid.restore import key_of
from chaffinch.cli.deid.results import RunResult
from chaffinch.cli.deid.spark import run_on_spark
from chaffinch.cli.deid.state import StateKeyFile, state_key
from chaffinch.cli.frame.config_file import ConfigFile
from chaffinch.deid import DEFAULT_POLICY, keys
from chaffinch.deid.dates.order import DateOrder
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.recall_dial import Dial
from chaffinch.deid.keys import Secret
from chaffinch.deid.operators.shift import AMBIGUOUS
from chaffinch.deid.policy import Policy, ready_policies
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.summary_page import html
from chaffinch.errors import ConfigError, WithheldError
from chaffinch.jobs.deid import DEFAULT, check_output, plan
from chaffinch.jobs.effects import check_effects
from chaffinch.jobs.job import COMMAND, NotesInput, Patients, ReleaseJob, SealedTargets, StateTarget, VaultTarget
from chaffinch.jobs.release import Tick, dry_run, run_release
from chaffinch.jobs.run import Interrupted
from chaffinch.jobs.stream import check_stream, release_to_bytes
from chaffinch.jobs.work import RULES, DetectorSpec
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.base import atomic_output, write_text

STREAM = "-"  # stdin as input, stdout as output


_SecretFile = Annotated[
    Path | None,
    typer.Option(help=f"File of the secret of surrogates, date shifts and new ids; else it is in ${keys.VARIABLE}."),
]
_EachNoteAPatient = Annotated[
    bool,
    typer.Option(
        "--each-note-a-patient", help="Declare that no two notes are of one patient; use it in place of --group-by."
    ),
]
_DateOrder = Annotated[
    DateOrder,
    typer.Option(help="How to read 03/04/1998 where a patient's dates do not tell; auto: as nearly all dates."),
]
_Known = Annotated[
    Path | None, typer.Option(help="Table of each patient's identifiers from admission; held in memory only.")
]
_Types = Annotated[
    Path | None,
    typer.Option(help="File of sources that find more kinds of identifiers, as for `weak apply --sources`."),
]
_Apart = Annotated[
    bool,
    typer.Option(
        "--apart", help="Read each note alone: a name found in one note of a patient is not searched for in the others."
    ),
]
_State = Annotated[
    Path | None,
    typer.Option(
        help="Remember releases in this encrypted file: release new notes only, and keep each patient's surrogates."
    ),
]
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


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """The options of `chaffinch deid run`."""

    notes: Annotated[
        Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them; - reads stdin.")
    ]
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write, in the format of IN; - writes to stdout.")
    ] = None
    policy: Annotated[
        str, typer.Option(help="What to do with each kind of identifier: a TOML file, or a ready policy.")
    ] = DEFAULT_POLICY
    model: Annotated[str, typer.Option(help="The detector: a model file, a packaged model, or rules.")] = DEFAULT
    recall: Annotated[
        float | None, typer.Option(help="Share of identifiers to aim for; more recall costs precision.", min=0, max=1)
    ] = None
    fast: Annotated[bool, typer.Option("--fast", help="Leave out the contextual reader: faster, less accurate.")] = (
        False
    )
    secret_file: _SecretFile = None
    group_by: frame.GroupBy = None
    each_note_a_patient: _EachNoteAPatient = False
    date_order: _DateOrder = "auto"
    known: _Known = None
    allow: Annotated[
        Path | None,
        typer.Option(help="File of phrases that are never identifiers, one per line; --deny and --known win."),
    ] = None
    deny: Annotated[Path | None, typer.Option(help="File of phrases that are always identifiers, one per line.")] = None
    types: _Types = None
    apart: _Apart = False
    vault: Annotated[Path | None, typer.Option(help="Keep the originals, encrypted, in this new file.")] = None
    key_file: Annotated[
        Path | None, typer.Option(help="File of the vault's key; else it is in $CHAFFINCH_VAULT_KEY.")
    ] = None
    state: _State = None
    state_key_file: StateKeyFile = None
    ids: Annotated[
        Literal["new", "keep"],
        typer.Option(
            help="keep leaves document ids and file names unchanged; use it only if they contain no identifiers."
        ),
    ] = "new"
    keep: _Keep = field(default_factory=list)
    spans: _Spans = False
    page: Annotated[
        Path | None, typer.Option("--html", help="Write a summary of the run, without note text, as one HTML file.")
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Release nothing; count what would be released.")] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Finish a run that was stopped, with the same options; its finished notes are kept."
        ),
    ] = False
    overwrite: frame.Overwrite = False
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop before any work if there is a warning, such as a setting without full effect."
        ),
    ] = False
    text_column: frame.TextColumns = field(default_factory=list)
    id_column: frame.IdColumn = None
    patient_column: frame.PatientColumn = None
    follow: _Follow = False
    workers: frame.Workers = "1"
    engine: Annotated[
        Literal["plain", "spark"],
        typer.Option(help="spark reads and writes Parquet on a Spark cluster, or on this computer."),
    ] = "plain"
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Of --engine spark: local[N], spark://HOST:PORT, or sc://HOST:PORT."),
    ] = None
    from_: frame.From = None
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(RunOptions)
def run_command(options: RunOptions) -> None:
    """chaffinch deid notes/ -o clean/

    Find identifiers and replace them as the policy says. A document that cannot be read, is too long or fails is
    withheld and listed (exit code 5); hidden files, other files and links that lead out of IN are excluded and listed.
    Beside OUT it writes OUT.manifest.json, which may be published, and OUT.private/ with offsets, risks and ids, which
    must stay with you. OUT appears complete, or not at all. Labels, relations and fields of the input are not released,
    except fields named with --keep.
    """
    target = _check_paths(options)
    workers = frame.count_workers(options.workers)
    spec = _detector_spec(options)
    if options.engine == "spark":
        run_on_spark(options, spec)
        return
    if options.master is not None:
        raise ConfigError("--master is of --engine spark; leave it out, or choose that engine")
    find = spec.build()
    job = _plan(options, target, find, spec.pin(find))
    manifest, rate = _run(job, options, workers)
    _note_ambiguous(manifest, quiet=options.quiet)
    if options.page is not None:
        _write_page(options.page, manifest, job, title=f"Release of {options.notes.name}", dial=_dial_facts(find))
        frame.note(f"wrote {options.page}", quiet=options.quiet)
    output = None if options.dry_run else str(target)
    result = RunResult(dry_run=options.dry_run, output=output, **manifest, notes_per_second=round(rate, 2))
    stream = sys.stderr if _is_stream(target) else None
    tables = [] if options.quiet and not options.dry_run else result.tables()
    frame.emit(result, as_json=options.json, tables=tables, stream=stream)
    _raise_if_withheld(manifest, None if options.dry_run or stream else job.private / "withheld.jsonl")


def _check_paths(options: RunOptions) -> Path:
    """Return the output path; raise ConfigError if an output would replace an input, or cannot be written."""
    target = _target(options.notes, options.output, dry_run=options.dry_run)
    _check_stream(target, as_json=options.json, resume=options.resume)
    given = (
        options.policy, options.model, options.group_by, options.secret_file, options.known, options.allow,
        options.deny, options.types, options.key_file, options.state_key_file, frame.path_of(options.config),
    )  # fmt: skip
    inputs = [Path(path) for path in given if path is not None]
    check_not_input(inputs, output=target, vault=options.vault, state=options.state)
    check_not_input([options.notes], state=options.state)
    frame.check_page(options.page, options.notes, target, private_folder(target), options.vault, options.state, *inputs)
    return target


def _plan(options: RunOptions, target: Path, find: HybridDetector, spec: DetectorSpec) -> ReleaseJob:
    """Return the checked job with its warnings; ConfigError for settings that do not fit or have no effect."""
    release = Release(
        Policy.read(options.policy), _secret(options.secret_file), options.ids == "keep", tuple(options.keep),
        options.spans, options.date_order,
    )  # fmt: skip
    pattern, table = frame.read_group_by(options.group_by)
    key = None if options.vault is None and options.key_file is None else key_of(options.key_file)
    with_state = options.state is not None or options.state_key_file is not None
    state = StateTarget(options.state, state_key(options.state_key_file) if with_state else None)
    reading = ReadOptions(max_chars=options.max_chars, columns=frame.columns_of(options))
    content = sys.stdin.buffer.read() if _is_stream(options.notes) else None
    job = plan(
        NotesInput(options.notes, options.from_, reading, content, options.follow),
        target,
        release,
        find,
        patients=Patients(table if pattern is None else pattern, options.each_note_a_patient),
        sealed=SealedTargets(VaultTarget(options.vault, key), state),
        option_names=COMMAND,
        detector_source=spec,
    )
    if _is_stream(target):
        check_stream(job)
    warnings = _warnings(find, options.recall, options.model, options.policy, frame.file_of(options.config))
    return check_effects(job, warnings=warnings, strict=options.strict)


def _run(job: ReleaseJob, options: RunOptions, workers: int) -> tuple[dict[str, Any], float]:
    """Run the job (dry, to stdout, or to files); return its manifest and notes per second; StoppedEarly on Ctrl-C."""
    began = time.monotonic()
    try:
        with _progress(job, quiet=options.quiet) as tick:
            if options.dry_run:
                manifest = dry_run(job, workers=workers, tick=tick)
            elif _is_stream(job.output):
                manifest, content = release_to_bytes(job, workers=workers, tick=tick)
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
            else:
                manifest = run_release(
                    job, resume=options.resume, overwrite=options.overwrite, workers=workers, tick=tick
                )
    except Interrupted as stop:
        raise frame.StoppedEarly(str(stop)) from None
    return manifest, manifest["documents"]["in"] / max(time.monotonic() - began, 1e-9)


def _target(notes: Path, output: Path | None, *, dry_run: bool) -> Path:
    """Return the output path, by default NOTES.released with --dry-run; ConfigError if missing or among the inputs."""
    if output is None:
        if not dry_run:
            raise ConfigError("say where to write with -o OUT, or only count with --dry-run")
        return notes.with_name(f"{notes.stem}.released{notes.suffix}" if notes.is_file() else notes.name + ".released")
    if not _is_stream(notes) and not _is_stream(output):
        check_output(notes, output)
    return output


def _is_stream(path: Path) -> bool:
    """Tell whether a path is "-": stdin or stdout."""
    return str(path) == STREAM


def _check_stream(target: Path, *, as_json: bool, resume: bool) -> None:
    """Raise ConfigError for --json or --resume with an output on stdout."""
    wrong = [name for name, given in (("--json", as_json), ("--resume", resume)) if given and _is_stream(target)]
    if wrong:
        raise ConfigError(f"{wrong[0]} does not go with -o -, which writes the notes to stdout; name a path with -o")


def check_not_input(inputs: Iterable[Path], **outputs: Path | None) -> None:
    """Raise ConfigError if an output path is one of the input files; keywords are the names of the options."""
    read = {path.resolve() for path in inputs if path.is_file()}
    for name, path in outputs.items():
        if path is not None and path.resolve() in read:
            raise ConfigError(f"--{name} {path} is an input, and would be replaced; name another path")


def _write_page(page: Path, manifest: dict[str, Any], job: ReleaseJob, *, title: str, dial: dict[str, Any]) -> None:
    """Write the HTML summary of a release to `page`, whole or not at all."""
    with atomic_output(page) as beside:
        write_text(beside, html(manifest, job.release.policy, title=title, output=job.output.name, dial=dial))


def _dial_facts(find: HybridDetector) -> dict[str, Any]:
    """Return the recall asked for, what to expect of it, and the model's thresholds by label for it."""
    model, recall = find.model, find.recall
    outlook = model.dial.outlook(recall)._asdict()
    return {"asked": recall, **outlook, "thresholds": model.dial.at(recall) if model.taggers else {}}


def _note_ambiguous(manifest: dict[str, Any], *, quiet: bool) -> None:
    """Print on stderr how many dates became tags because the order of day and month is unknown."""
    number = sum(counts["operators"].get(AMBIGUOUS, 0) for counts in manifest["labels"].values())
    if number:
        frame.note(
            f"dates that may begin with the day or the month, and became tags: {number:,}; if you know the order, give "
            "--date-order mdy or dmy",
            quiet=quiet,
        )


def _doubts_of_recall(dial: Dial, recall: float) -> Iterator[str]:
    """Yield warnings about a recall that the model cannot reach, or that its calibration notes cannot promise."""
    if (reached := dial.reaches(recall)) < recall:
        yield (
            f"recall {recall:g} is more than this model can do: {reached:.3f} on the notes its dial was set on; "
            "estimate what leaks with deid sample, or adapt the model to your notes"
        )
    if (limit := dial.outlook(recall).limit) is not None and limit < recall:
        yield (
            f"recall {recall:g} is more than the {dial.notes:,} notes of this model's dial can promise: at most "
            f"{limit:.3f} with 90 % confidence, if nothing in them were missed; estimate what leaks with deid sample"
        )


def _warnings(
    find: HybridDetector, recall: float | None, model: str, policy: str, config: ConfigFile | None
) -> Iterator[str]:
    """Yield warnings: a recall out of reach, files named like a packaged model or policy, unused config tables."""
    yield from () if recall is None else _doubts_of_recall(find.model.dial, recall)
    for option, name, packaged in (
        ("model", model, (RULES, *list_packaged_models())),
        ("policy", policy, ready_policies()),
    ):
        if name in packaged and Path(name).exists():
            yield f"{option} {name} is the packaged one, not the file of that name here; write ./{name} for the file"
    yield from () if config is None else (warning.removeprefix("--") for warning in config.warnings)


def _secret(path: Path | None) -> Secret | None:
    """Read the secret from the file or the environment variable; None if neither is given."""
    return Secret.read(path) if path is not None or os.environ.get(keys.VARIABLE) else None


def _detector_spec(options: RunOptions) -> DetectorSpec:
    """Return the settings from which workers build the detector, taken from the options."""
    return DetectorSpec(
        None if options.model == RULES else options.model, options.recall, options.known, options.allow, options.deny,
        options.types, not options.apart, options.fast,
    )  # fmt: skip


@contextmanager
def _progress(job: ReleaseJob, *, quiet: bool) -> Iterator[Tick]:
    """Yield a callback that adds finished documents to a line on stderr; it does nothing if quiet or no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} notes"), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("notes", total=None, rate="")
        began = time.monotonic()

        def tick(number: int) -> None:
            """Add finished notes to the display, and update the notes per second."""
            bar.advance(task, number)
            done = bar.tasks[0].completed
            rate = done / max(time.monotonic() - began, 1e-9)
            left = job.source.seen - done if job.by_patient else 0  # else the end is not known yet
            bar.update(task, rate=f"{rate:,.1f} notes/s" + (f", {_clock(left / rate)} left" if left > 0 else ""))

        yield tick


def _clock(seconds: float) -> str:
    """Return seconds as text, H:MM:SS."""
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def _raise_if_withheld(manifest: dict[str, Any], path: Path | None) -> None:
    """Raise WithheldError (exit code 5) with the counts if any document was withheld; `path` lists them."""
    documents = manifest["documents"]
    if documents["withheld"]:
        where = "" if path is None else f"; {path} says which and why"
        raise WithheldError(f"{documents['withheld']:,} of {documents['in']:,} documents were withheld{where}")
