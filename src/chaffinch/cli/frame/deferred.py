"""Groups of commands whose modules are imported when a command is called: listing them needs none."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.main import get_command

from chaffinch.cli.frame.command import CheckedCommand, PlainGroup
from chaffinch.cli.frame.root import do_nothing


class DeferredCommand(NamedTuple):
    """The module and function of a command, and its line in the list of commands."""

    module: str
    name: str
    help: str


class DeferredGroup(PlainGroup):
    """A group with placeholders for its commands; the one that is called is imported then."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; without any, as if --help was given."""
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put the command that the arguments name in the place of its placeholder, and return it."""
        if args and args[0] in self.deferred:
            self.commands[args[0]] = _build(args[0], self.deferred[args[0]])
        return super().resolve_command(ctx, args)


def defer_app(about: str, group: type[DeferredGroup]) -> typer.Typer:
    """Return an app that lists the deferred commands of a group, and imports the one that is called."""
    app = typer.Typer(help=about, cls=group, rich_markup_mode=None)
    for name, command in group.deferred.items():
        app.command(name, short_help=command.help)(do_nothing)
    return app


def _build(name: str, command: DeferredCommand) -> Any:
    """Import a command, and return it as typer builds it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    function = getattr(import_module(command.module), command.name)
    app.command(name, short_help=command.help, cls=CheckedCommand)(function)
    return get_command(app)
