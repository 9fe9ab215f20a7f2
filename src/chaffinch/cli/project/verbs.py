"""The verbs of `chaffinch project`: options in, one call, its counts out."""

from __future__ import annotations

import getpass
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.results import ProjectResult
from chaffinch.deid.keys import Secret
from chaffinch.errors import ConfigError
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.base import atomic_output
from chaffinch.web.review import importing, judging, lifecycle, releasing
from chaffinch.web.review.demo import steward_of
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.project import (
    Project,
    ProjectConfig,
    check_key_outside,
    create_project,
    find_key,
    open_project,
)
from chaffinch.web.review.store import trail, users

OPERATOR = "command line"  # the actor of what no user of the project did

_Folder = Annotated[Path, typer.Argument(metavar="PROJECT", help="Folder of the project.", show_default=False)]
_Key = Annotated[
    Path | None, typer.Option("--key-file", help="Key of the project; else that of project.toml or the environment.")
]


def project_command(run: Callable[..., ProjectResult]) -> Callable[..., None]:
    """Return a command with the options of `run` and those that all verbs of a project have; it prints the result.

    A parameter `project` of `run` is given as PROJECT and --key-file; it is opened for the call, and closed after it.
    """
    asked = dict(inspect.signature(run, eval_str=True).parameters)
    opens = asked.pop("project", None) is not None
    given = _options_with_project if opens else _options_of_all
    shared = inspect.signature(given, eval_str=True).parameters
    rest = {name: one for name, one in shared.items() if name not in asked}
    folder = {"folder": rest.pop("folder")} if opens else {}

    def command(**values: Any) -> None:
        """Run the verb with the values of the command line, and print what it returns."""
        as_json, quiet = values.pop("json"), values["quiet"]
        values = {name: value for name, value in values.items() if name in asked or name in ("folder", "key_file")}
        if opens:
            with _open(values.pop("folder"), values.pop("key_file")) as project:
                result = run(project, **values)
        else:
            result = run(**values)
        _emit(result, as_json=as_json, quiet=quiet)

    order = [*folder.values(), *asked.values(), *rest.values()]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in order]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__, command.__name__ = run.__doc__, run.__name__
    return command


def _options_of_all(json: frame.Json = False, quiet: frame.Quiet = False, config: frame.Config = None) -> None:
    """Do nothing: these are the options of all verbs."""


def _options_with_project(
    folder: _Folder,
    key_file: _Key = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """Do nothing: these are the options of verbs that open a project."""


@project_command
def new_command(
    folder: _Folder,
    name: Annotated[str | None, typer.Option(help="Name of the project; default: that of the folder.")] = None,
    policy: Annotated[str, typer.Option(help="What a release does with each type: a file, or a ready policy.")] = (
        "safe-harbor"
    ),
    model: Annotated[str, typer.Option(help="Detector of suggestions: a model file, a packaged one, or rules.")] = (
        "deid-en"
    ),
    readers: Annotated[int, typer.Option(min=1, max=2, help="Readers of each note.")] = 2,
    without_suggestions: Annotated[
        float, typer.Option(min=0, max=1, help="Share of notes whose second reader sees no suggestion.")
    ] = 0.2,
    random: Annotated[float, typer.Option(min=0, max=1, help="Share of the queue that is drawn at random.")] = 0.2,
    key_file: _Key = None,
    secret_file: Annotated[Path | None, typer.Option(help="Secret of surrogates and date shifts.")] = None,
    database: Annotated[str, typer.Option(metavar="URL", help="PostgreSQL instead of a file in the folder.")] = "",
) -> ProjectResult:
    """chaffinch project new cardiology --key-file cardiology.key

    Make a project: a folder that only you can open, with project.toml, and a database whose notes are sealed with the
    key. Make the key first: chaffinch deid secret new cardiology.key
    """
    if key_file is not None:
        check_key_outside(folder, key_file)
    chosen = ProjectConfig(
        name or folder.resolve().name, policy, model, readers, without_suggestions if readers > 1 else 0.2, random,
        key_file="" if key_file is None else str(key_file.resolve()),
        secret_file="" if secret_file is None else str(secret_file.resolve()), database=database,
    )  # fmt: skip
    key = find_key(folder, chosen)
    create_project(folder, chosen, key).close()
    return ProjectResult(project=str(folder), did="new", counts={})


@project_command
def user_command(
    project: Project,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.", show_default=False)],
    role: Annotated[str, typer.Option(help="reader, adjudicator, steward or auditor.")] = "reader",
    quota: Annotated[int | None, typer.Option(min=1, help="Most notes to assign to a reader.")] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
) -> ProjectResult:
    """chaffinch project user cardiology ann --role reader

    Add a user; the password is asked for, or read from stdin. For a name that exists, the new password replaces
    the old one, and all sessions of the user end.
    """
    password = sys.stdin.readline().rstrip("\n") if password_stdin else getpass.getpass(f"password of {name}: ")
    with project.database.change(OPERATOR) as change:
        known = users.find_user(change.connection, name)
        if known is None:
            users.add_user(change, name, role, password=password, quota=quota)
        else:
            users.set_password(change, known, password)
    did = "user added" if known is None else "password set"
    return ProjectResult(project=str(project.folder), did=did, counts={"users": 1})


@project_command
def import_command(
    project: Project,
    notes: Annotated[Path, typer.Argument(metavar="NOTES", help="Notes in any format.", show_default=False)],
    layer: Annotated[str | None, typer.Option(help="Suggest the spans of this layer of the notes.")] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Suggest what a finished deid run of these notes replaced.")
    ] = None,
    group_by: frame.GroupBy = None,
    from_: frame.From = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    quiet: frame.Quiet = False,
) -> ProjectResult:
    """chaffinch project import cardiology notes/

    Add notes to a project. Suggestions and expected misses come from the project's detector, or from a layer of the
    notes, or from a finished run of deid. Notes that the project has already are left alone.
    """
    if layer is not None and run is not None:
        raise ConfigError("--layer and --run both say where suggestions come from; give one of them")
    corpus = frame.read_grouped(notes, from_, ReadOptions(max_chars=max_chars), group_by)
    documents = frame.progress(corpus, "notes", quiet=quiet)
    if run is not None:
        found = importing.notes_of_run(documents, run)
    elif layer is not None:
        found = importing.read_layer_notes(documents, layer)
    else:
        found = importing.detect_notes(documents, project.detector())
    done = importing.import_notes(project, found, OPERATOR)
    if done.without_risk:
        frame.note(f"{done.without_risk:,} notes have no expected misses, and come last in the queue", quiet=quiet)
    return ProjectResult(project=str(project.folder), did="import", counts=asdict(done))


@project_command
def status_command(
    project: Project,
    assign: Annotated[bool, typer.Option("--assign", help="Assign notes without readers, by quota, first.")] = False,
) -> ProjectResult:
    """chaffinch project status cardiology --assign

    Show how many notes are without readers, being read, to be settled, agreed and settled.
    """
    desk = Desk(project)
    if assign:
        judging.assign_notes(desk, steward_of(project))
    counts = dict(judging.progress(desk).counts)
    return ProjectResult(project=str(project.folder), did="status", counts=counts)


@project_command
def release_command(
    project: Project,
    output: frame.Out,
) -> ProjectResult:
    """chaffinch project release cardiology -o clean.jsonl

    Release all notes with the marks of people instead of a detector's, by the project's policy, with manifest and
    private lists as deid run writes them. Refused (exit code 4) while a note is open.
    """
    manifest = releasing.release_notes(Desk(project), steward_of(project), output)
    counts = {**manifest["documents"], "replacements": manifest["replacements"]}
    return ProjectResult(project=str(project.folder), did="release", counts=counts, output=str(output))


@project_command
def export_command(
    project: Project,
    output: frame.Out,
    to: Annotated[str | None, typer.Option("--to", help="Format; else by the suffix of OUT.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail, and write nothing, if anything is lost.")] = False,
) -> ProjectResult:
    """chaffinch project export cardiology -o gold.jsonl

    Write the closed notes with their final marks as the layer gold, in any format: labelstudio, doccano, brat,
    uima-json, … The output holds the notes as they are: keep it as safe as the project.
    """
    notes, losses = releasing.export_notes(Desk(project), steward_of(project), output, form=to, strict=strict)
    counts = {"notes": notes, **{f"lost {what}": number for what, number in losses.counts.items()}}
    return ProjectResult(project=str(project.folder), did="export", counts=counts, output=str(output))


@project_command
def audit_command(
    project: Project,
    output: frame.Out,
) -> ProjectResult:
    """chaffinch project audit cardiology -o audit.jsonl

    Write the audit trail, one JSON object a line, each with the hash of the one before.
    """
    with project.database.read() as connection:
        lines = list(trail.lines(connection))
        number, last = trail.check(lines, project.database.key)
    with atomic_output(output) as beside:
        beside.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    counts = {"entries": number}
    return ProjectResult(project=str(project.folder), did="audit", counts=counts, output=str(output), hash=last)


@project_command
def backup_command(
    project: Project,
    output: frame.Out,
) -> ProjectResult:
    """chaffinch project backup cardiology -o cardiology.backup

    Write the whole project to one new file, while it is in use if need be. Notes in it stay sealed: keep the key.
    """
    rows = lifecycle.back_up(project, output, OPERATOR)
    return ProjectResult(project=str(project.folder), did="backup", counts={"rows": rows}, output=str(output))


@project_command
def restore_command(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="What project backup wrote.", show_default=False)],
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="PROJECT", help="The new folder.")],
    key_file: _Key = None,
    database: Annotated[str | None, typer.Option(metavar="URL", help="Another database than it had.")] = None,
) -> ProjectResult:
    """chaffinch project restore cardiology.backup -o cardiology

    Make a project from a backup, and check all of it; on any failure nothing is left.
    """
    key = None if key_file is None else Secret.read(key_file)
    project = lifecycle.restore(backup, folder, key, database=database)
    try:
        checked = lifecycle.check_project(project)
    finally:
        project.close()
    return _describe_check(folder, checked, "restore")


@project_command
def purge_command(
    project: Project,
    yes: Annotated[bool, typer.Option("--yes", help="Really remove it; there is no way back.")] = False,
    audit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the audit trail here first.")] = None,
) -> ProjectResult:
    """chaffinch project purge cardiology --audit cardiology.audit.jsonl --yes

    Remove a project for good: its notes, decisions and users. Copies that you made stay; destroy the key as well, and
    backups can be read by nobody.
    """
    if not yes:
        raise ConfigError("this removes all notes and decisions for good; say so with --yes")
    notes = lifecycle.purge(project, audit=audit)
    output = None if audit is None else str(audit)
    return ProjectResult(project=str(project.folder), did="purge", counts={"notes": notes}, output=output)


def verify_project(folder: Path, key_file: Path | None, *, json: bool, quiet: bool) -> None:
    """Check a project's audit trail, decisions and notes, and print the counts; DataError if anything differs."""
    with _open(folder, key_file) as project:
        checked = lifecycle.check_project(project)
    _emit(_describe_check(folder, checked, "verify"), as_json=json, quiet=quiet)


def _describe_check(folder: Path, checked: lifecycle.Checked, did: str) -> ProjectResult:
    """Return the result of a command that checked a project: counts of entries, decisions, notes; last hash."""
    counts = {"entries": checked.entries, "decisions": checked.decisions, "notes": checked.notes}
    return ProjectResult(project=str(folder), did=did, counts=counts, hash=checked.last)


@contextmanager
def _open(folder: Path, key_file: Path | None) -> Iterator[Project]:
    """Yield the project of a folder, opened with the key file or its configured key; close it at the end."""
    project = open_project(folder, None if key_file is None else Secret.read(key_file))
    try:
        yield project
    finally:
        project.close()


def _emit(result: ProjectResult, *, as_json: bool, quiet: bool) -> None:
    """Print the result of a project command as JSON, or as a table unless quiet."""
    facts = {"did": result.did, **result.counts}
    facts |= {name: value for name, value in (("output", result.output), ("hash", result.hash)) if value is not None}
    frame.emit(result, as_json=as_json, tables=[] if quiet else [frame.facts_table(facts)])
