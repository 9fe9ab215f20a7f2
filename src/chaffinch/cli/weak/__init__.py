"""`chaffinch weak`: from many noisy sources to labels; one file per command."""

from __future__ import annotations

import sys

import typer

from chaffinch.cli.weak.aggregate import aggregate_command
from chaffinch.cli.weak.alternate import alternate_command
from chaffinch.cli.weak.analyse import analyse_command
from chaffinch.cli.weak.apply import apply_command

weak_app = typer.Typer(help="Labels from many noisy sources: rules, lists, models, crowds.", rich_markup_mode=None)


@weak_app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Print the help of `weak` if no command is given."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


weak_app.command("apply", short_help="Run sources over documents, and keep their votes.")(apply_command)
weak_app.command("analyse", short_help="How good each source is, and their joint result.")(analyse_command)
weak_app.command("aggregate", short_help="Join the votes of all sources into one layer.")(aggregate_command)
weak_app.command("alternate", short_help="Train a tagger from votes, without gold.")(alternate_command)
