"""The command line: arguments in, one library call, its result out."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chaffinch import __version__
from chaffinch.errors import ChaffinchError, outcome
from chaffinch.garbage import collect_rarely
from chaffinch.threads import limit_process

if TYPE_CHECKING:
    import typer  # it is loaded when a command line is built: `--version` needs none


class _Verb(NamedTuple):
    """The module and function of a verb, and its line in the list of verbs; a group has sub-verbs."""

    module: str
    name: str
    help: str
    group: bool = False


_VERBS: Mapping[str, _Verb] = {
    "convert": _Verb("convert", "convert_command", "Read documents in one format, write them in another."),
    "train": _Verb("train", "train_command", "Learn a tagger from labelled documents."),
    "tag": _Verb("tag", "tag_command", "Find spans in documents with a trained model."),
    "explain": _Verb("explain", "explain_command", "Explain why a model finds its spans."),
    "evaluate": _Verb("evaluate", "evaluate_command", "Score predictions against gold, with intervals and a report."),
    "compare": _Verb("evaluate", "compare_command", "Test whether one system is better than another."),
    "show": _Verb("show", "show_command", "Show what a model file holds, or the settings of a method."),
    "doctor": _Verb("doctor", "doctor_command", "Check this installation, and say what is missing."),
    "bench": _Verb("bench", "bench_command", "Measure our figures beside those of peers (in a checkout)."),
    "deid": _Verb("deid", "deid_app", "Take identifiers out of notes; estimate what could still leak.", group=True),
    "verify": _Verb("deid.verify", "verify_command", "Check that a release or a review project is as it was written."),
    "synth": _Verb("synth", "synth_app", "Invent documents whose spans are known.", group=True),
    "weak": _Verb(
        "weak", "weak_app", "Label documents by many noisy sources: rules, lists, models, crowds.", group=True
    ),
    "project": _Verb("project", "project_app", "Make, fill, release, back up and purge review projects.", group=True),
    "serve": _Verb(
        "project.serve", "serve_command", "Open a review station, or serve programs (REST), on this computer."
    ),
    "relate": _Verb("relate", "relate_app", "Find relations between entities.", group=True),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit code; errors become one line on stderr, without document text."""
    limit_process()
    collect_rarely()
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        sys.stdout.write(f"chaffinch {__version__}\n")
        return 0
    try:
        result = _build_app(arguments)(args=arguments, standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return _report_error(error)
    code = result if isinstance(result, int) else 0
    return (
        _report_interrupt() if code == outcome(KeyboardInterrupt()).exit_code else code
    )  # typer turned Ctrl-C into 130


def _build_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the app with all verbs; only the verb named in the arguments is imported, the others are placeholders."""
    import typer

    from chaffinch.cli.frame.command import PlainGroup
    from chaffinch.cli.frame.root import do_nothing, show_root

    app = typer.Typer(
        name="chaffinch",
        help="Find spans in clinical and biomedical text, and act on them; on CPUs, offline.",
        add_completion=False,
        pretty_exceptions_enable=False,  # a traceback with locals would show document text
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(cls=PlainGroup, invoke_without_command=True)(show_root)
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, verb in _VERBS.items():
        real = name == asked
        command: Any = getattr(import_module(f"chaffinch.cli.{verb.module}"), verb.name) if real else None
        if verb.group:
            app.add_typer(command or typer.Typer(), name=name, short_help=verb.help)
        else:
            app.command(name, short_help=verb.help)(command or do_nothing)
    if asked in _VERBS:
        _check_commands(app)
    return app


def _check_commands(app: typer.Typer) -> None:
    """Make every command of an app, and of its groups, refuse an option that is given twice."""
    from chaffinch.cli.frame.command import CheckedCommand

    for command in app.registered_commands:
        command.cls = CheckedCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _check_commands(group.typer_instance)


def _report_error(error: BaseException) -> int:
    """Print on stderr, in one line and without document text, why a command ended; return its exit code."""
    import typer

    from chaffinch.cli.frame.command import StoppedEarly

    match error:
        case typer.TyperException():
            return _fail(f"{error.format_message().rstrip('.')}; see --help", 2)
        case typer.Abort() | KeyboardInterrupt():
            return _report_interrupt()
        case StoppedEarly():
            return _fail(str(error), outcome(KeyboardInterrupt()).exit_code)
        case ChaffinchError():
            return _fail(str(error), outcome(error).exit_code)
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has left
            return 1
        case OSError():
            return _fail(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", 1)
    return _fail(f"internal error {type(error).__name__} at {_where(error)}; please report this line", 1)


def _fail(message: str, code: int) -> int:
    """Print an error message on stderr, and return the exit code."""
    sys.stderr.write(f"chaffinch: {message}\n")
    return code


def _report_interrupt() -> int:
    """Print that the command was interrupted, and return the exit code of Ctrl-C."""
    return _fail("interrupted; outputs that were not finished were not written", outcome(KeyboardInterrupt()).exit_code)


def _where(error: BaseException) -> str:
    """Return file names and line numbers of the error's last four frames, innermost first."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
