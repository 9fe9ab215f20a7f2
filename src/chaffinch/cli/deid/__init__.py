"""`chaffinch deid`: notes without identifiers; one file per command. `chaffinch deid IN -o OUT` is `deid run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from chaffinch.checks import nearest
from chaffinch.cli.deid.adapt import adapt_command
from chaffinch.cli.deid.estimate import estimate_command
from chaffinch.cli.deid.explain import explain_command
from chaffinch.cli.deid.restore import rekey_command, restore_command
from chaffinch.cli.deid.run import run_command
from chaffinch.cli.deid.sample import sample_command
from chaffinch.cli.deid.secret import new_command, rotate_command
from chaffinch.errors import ConfigError
from chaffinch.jobs.worker import turn_off_core_dumps

_ABOUT = "Take identifiers out of notes. `chaffinch deid IN -o OUT` is short for `deid run`."


class _OrRun(TyperGroup):
    """The group; what begins with no command's name is meant for `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `run` before arguments that begin with no command; raise ConfigError for a misspelt command."""
        if not args:
            args = ["--help"]
        elif args[0] not in self.commands and args[0] not in ("-h", "--help"):
            near = None if args[0].startswith("-") or Path(args[0]).exists() else nearest(args[0], self.commands)
            if near is not None:
                raise ConfigError(f"deid has no command {args[0]!r}, and there is no such file; did you mean {near!r}?")
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Turn off core dumps, then run the command."""
        turn_off_core_dumps()
        return super().invoke(ctx)


deid_app = typer.Typer(help=_ABOUT, cls=_OrRun, rich_markup_mode=None)
secret_app = typer.Typer(help="The secret of surrogates and date shifts.", no_args_is_help=True, rich_markup_mode=None)
secret_app.command("new", short_help="Make a secret.")(new_command)
secret_app.command("rotate", short_help="Put a new secret in place of an old one.")(rotate_command)

deid_app.command("run", short_help="Release notes without their identifiers.")(run_command)
deid_app.command("adapt", short_help="Adapt a model to your own notes.")(adapt_command)
deid_app.command("explain", short_help="Explain which voices found each identifier.")(explain_command)
deid_app.command("sample", short_help="Draw the notes that somebody should read again.")(sample_command)
deid_app.command("estimate", short_help="Estimate how much still leaks, from a sample that was read.")(estimate_command)
deid_app.command("restore", short_help="Restore the originals, with the vault and its key.")(restore_command)
deid_app.command("rekey", short_help="Put a vault under a new key.")(rekey_command)
deid_app.add_typer(secret_app, name="secret", short_help="Make and rotate secrets.")
