"""`chaffinch deid`: notes without identifiers; one file per command. `chaffinch deid IN -o OUT` is `deid run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from chaffinch.checks import nearest
from chaffinch.cli.frame.deferred import DeferredCommand, DeferredGroup, defer_app
from chaffinch.errors import ConfigError

_ABOUT = "Take identifiers out of notes. `chaffinch deid IN -o OUT` is short for `deid run`."


def _command(module: str, name: str, about: str) -> DeferredCommand:
    """Return the deferred command NAME_command of a module of this folder, with `about` as its help."""
    return DeferredCommand(f"{__name__}.{module}", f"{name}_command", about)


class _SecretGroup(DeferredGroup):
    """The commands of `deid secret`."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {
        "new": _command("secret", "new", "Make a secret."),
        "rotate": _command("secret", "rotate", "Put a new secret in place of an old one."),
    }


class _OrRun(DeferredGroup):
    """The group; what begins with no command's name is meant for `run`."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {
        "run": _command("run", "run", "Release notes without their identifiers."),
        "adapt": _command("adapt", "adapt", "Adapt a model to your own notes."),
        "explain": _command("explain", "explain", "Explain which voices found each identifier."),
        "sample": _command("sample", "sample", "Draw the notes that somebody should read again."),
        "estimate": _command("estimate", "estimate", "Estimate how much still leaks, from a sample that was read."),
        "state": _command("state", "state", "Say what earlier releases are remembered, and where a patient is."),
        "restore": _command("restore", "restore", "Restore the originals, with the vault and its key."),
        "rekey": _command("restore", "rekey", "Put a vault under a new key."),
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; `run` is put before those that name no command; ConfigError for a misspelt command."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            near = None if args[0].startswith("-") or Path(args[0]).exists() else nearest(args[0], self.commands)
            if near is not None:
                raise ConfigError(f"deid has no command {args[0]!r}, and there is no such file; did you mean {near!r}?")
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Turn off core dumps, then run the command."""
        from chaffinch.jobs.pool.worker import turn_off_core_dumps

        turn_off_core_dumps()
        return super().invoke(ctx)


deid_app = defer_app(_ABOUT, _OrRun)
secret_app = defer_app("The secret of surrogates and date shifts.", _SecretGroup)
deid_app.add_typer(secret_app, name="secret", short_help="Make and rotate secrets.")
