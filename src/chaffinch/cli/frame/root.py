"""`chaffinch` without a verb: its version, or the list of verbs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from chaffinch import __version__


def show_root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version with --version and exit, or the list of verbs if no verb is given."""
    if version:
        sys.stdout.write(f"chaffinch {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def do_nothing() -> None:
    """Do nothing; the placeholder of a verb that this call does not need."""
