"""The command line: arguments in, one library call, its result out."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import typer

from chaffinch.cli.bench import bench_command
from chaffinch.cli.convert import convert_command
from chaffinch.cli.deid import deid_app
from chaffinch.cli.doctor import doctor_command
from chaffinch.cli.evaluate import compare_command, evaluate_command
from chaffinch.cli.relate import relate_app
from chaffinch.cli.show import show_command
from chaffinch.cli.synth import synth_app
from chaffinch.cli.tag import tag_command
from chaffinch.cli.train import StoppedEarly, train_command
from chaffinch.cli.weak import weak_app
from chaffinch.errors import ChaffinchError, outcome

app = typer.Typer(
    name="chaffinch",
    help="Find spans in clinical and biomedical text, and act on them; on CPUs, offline.",
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with locals would show document text
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("convert", short_help="Read documents in one format, write them in another.")(convert_command)
app.command("train", short_help="Learn a tagger from labelled documents.")(train_command)
app.command("tag", short_help="Find spans in documents with a trained model.")(tag_command)
app.command("evaluate", short_help="Score predictions against gold, with intervals and a report.")(evaluate_command)
app.command("compare", short_help="Whether one system is better than another.")(compare_command)
app.command("show", short_help="What a model file says about itself.")(show_command)
app.command("doctor", short_help="Whether this installation works, and what is missing.")(doctor_command)
app.command("bench", short_help="Our figures beside those of peers (in a checkout).")(bench_command)
app.add_typer(deid_app, name="deid", short_help="Take identifiers out of notes; how much could still leak.")
app.add_typer(synth_app, name="synth", short_help="Invent documents whose spans are known.")
app.add_typer(weak_app, name="weak", short_help="Labels from many noisy sources: rules, lists, models, crowds.")
app.add_typer(relate_app, name="relate", short_help="Relations between entities.")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from importlib.metadata import version as installed

        sys.stdout.write(f"chaffinch {installed('chaffinch')}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit code; errors go to stderr in words, never with document text."""
    try:
        result = app(args=arguments, standalone_mode=False)
    except typer.TyperException as error:
        return _fail(f"{error.format_message().rstrip('.')}; see --help", 2)
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except StoppedEarly as stop:
        return _fail(str(stop), outcome(KeyboardInterrupt()).exit_code)
    except ChaffinchError as error:
        return _fail(str(error), outcome(error).exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has left
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", 1)
    except Exception as error:
        return _fail(f"internal error {type(error).__name__} at {_where(error)}; please report this line", 1)
    code = result if isinstance(result, int) else 0
    return _interrupted() if code == outcome(KeyboardInterrupt()).exit_code else code  # typer turned Ctrl-C into 130


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"chaffinch: {message}\n")
    return code


def _interrupted() -> int:
    return _fail("interrupted; outputs that were not finished were not written", outcome(KeyboardInterrupt()).exit_code)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
