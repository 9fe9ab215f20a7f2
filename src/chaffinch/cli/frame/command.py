"""How a command is called: repeated options are refused, and one value can hold all options."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, cast, get_type_hints

from typer.core import TyperCommand, TyperGroup

from chaffinch.cli.frame.config_file import ConfigFile
from chaffinch.cli.frame.output import note
from chaffinch.cli.frame.plain_values import settle_values
from chaffinch.errors import ConfigError

Options = TypeVar("Options")


class CheckedCommand(TyperCommand):
    """A command that refuses an option given twice, of which one would have no effect, and tells of unused tables."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise ConfigError if an option that takes one value is given several times."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(given).items():
            plain_flag = getattr(option, "is_flag", False) and not getattr(option, "secondary_opts", ())
            if times > 1 and option.param_type_name == "option" and not option.multiple and not plain_flag:
                name = max(option.opts, key=len)
                raise ConfigError(f"{name} is given {times} times, and takes one value; give it once")
        settle_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; warn of unused tables in its configuration file, or raise ConfigError with --strict."""
        config = ctx.params.get("config")
        for warning in config.warnings if isinstance(config, ConfigFile) else ():
            if ctx.params.get("strict"):
                raise ConfigError(f"--strict: {warning}")
            shown = self.name == "run"  # `deid run` has it in its table and manifest
            note(f"warning: {warning}", quiet=shown or bool(ctx.params.get("quiet")))
        return super().invoke(ctx)


class PlainGroup(TyperGroup):
    """A group of commands whose own options need no further library for their check."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the group."""
        settle_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


class StoppedEarly(Exception):  # noqa: N818  (no error: what is done is kept)
    """The user stopped a command; what was done so far is kept, and the message says where."""


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that turns a function of one options object into a command with an option per field."""
    hints = get_type_hints(options, include_extras=True)

    def wrap(run: Callable[[Options], None]) -> Callable[..., None]:
        """Return a command whose keyword parameters are the fields of the options class, and that calls `run`."""

        def command(**given: Any) -> None:
            """Build the options object from the values of the command line, and call the function."""
            run(options(**given))

        parameters = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=_default(each), annotation=hints[each.name]
            )
            for each in fields(cast(Any, options))
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__, command.__doc__, command.__name__ = hints, run.__doc__, run.__name__
        return command

    return wrap


def _default(option: Field[Any]) -> Any:
    """Return the default of a dataclass field, or `Parameter.empty` if it has none."""
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default
