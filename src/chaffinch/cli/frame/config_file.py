"""Configuration files of the command line: TOML tables named like the commands, whose keys are options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError

_SHORT = "run"  # `chaffinch deid IN` is `chaffinch deid run IN`


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file: its path, and the tables inside the command's table, such as [train.hmmdp]."""

    path: Path
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()  # about tables that this command does not read


def load_config(context: typer.Context, path: Path | None) -> ConfigFile | None:
    """Make a TOML file's values the command's defaults; return its tables, or None without file; ConfigError if unfit.

    Keys outside a table, and those of the command's table, are options of the command. A table or key that nobody
    knows is refused. Tables of other commands are left to them, and are a warning.
    """
    if path is None:
        return None
    content = _read(path)
    command = _path_of(context)
    verbs = _verbs(context)
    for name, value in content.items():
        if isinstance(value, dict) and name not in verbs:
            raise ConfigError(f"--config {path}: unknown table [{name}]; {did_you_mean(name, verbs)}")
    values, tables = _command_values(content, command, _siblings(context), path)
    options = {option.lstrip("-").replace("-", "_"): p for p in context.command.params for option in p.opts}
    chosen = {key.replace("-", "_"): value for key, value in values.items()}
    for key, value in chosen.items():
        if key not in options:
            raise ConfigError(f"--config {path}: unknown key {key!r}; {did_you_mean(key, options)}")
        try:  # also where a flag wins: a value that cannot be right is a mistake to tell
            if options[key].callback is None:
                options[key].process_value(context, value)
        except typer.BadParameter as error:
            raise ConfigError(f"--config {path}: {key}: {error.format_message()}") from None
    context.default_map = {**(context.default_map or {}), **{str(options[key].name): v for key, v in chosen.items()}}
    unused = [f"[{name}]" for name, value in content.items() if isinstance(value, dict) and name != command[0]]
    inner = content.get(command[0], {})
    unused += [f"[{command[0]}.{name}]" for name in inner if len(command) > 1 and isinstance(inner[name], dict)
               and name != command[1]]  # fmt: skip
    ignored = (f"--config {path}: tables of other commands have no effect here: {', '.join(unused)}",) if unused else ()
    return ConfigFile(path, tables, ignored)


Config = Annotated[
    Path | None,
    typer.Option("--config", is_eager=True, callback=load_config, help="TOML file of options; flags win."),
]


def _read(path: Path) -> dict[str, Any]:
    """Parse a TOML file; raise ConfigError if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"--config {path} cannot be read ({reason})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--config {path} is not valid TOML: {error}") from None


def _path_of(context: typer.Context) -> list[str]:
    """Return the names from the verb down to a command, such as ["deid", "run"]."""
    names: list[str] = []
    here: Any = context
    while here is not None and here.parent is not None:
        names.insert(0, here.command.name or "")
        here = here.parent
    return names


def _verbs(context: typer.Context) -> list[str]:
    """Return the names of all verbs of the command line."""
    root: Any = context.find_root().command
    return list(root.commands)


def _siblings(context: typer.Context) -> list[str]:
    """Return the names of all commands in this command's group; [] for a verb without a group."""
    group: Any = context.parent.command if context.parent is not None else None
    inside = context.parent is not None and context.parent.parent is not None
    return list(group.commands) if inside and group is not None else []


def _command_values(
    content: Mapping[str, Any], command: list[str], siblings: Iterable[str], path: Path
) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """Return (values, inner tables) that a TOML file has for a command; ConfigError for an unknown table or key."""
    values = {key: value for key, value in content.items() if not isinstance(value, dict)}
    table = content.get(command[0], {})
    for depth, name in enumerate(command[1:], start=1):
        known = list(siblings) if depth == len(command) - 1 else [name]
        for key, value in table.items():
            if isinstance(value, dict) and known and key not in known:
                where = ".".join([*command[:depth], key])
                raise ConfigError(f"--config {path}: unknown table [{where}]; {did_you_mean(key, known)}")
            if not isinstance(value, dict):
                if name != _SHORT:
                    where = ".".join(command)
                    raise ConfigError(f"--config {path}: unknown key {key!r} in [{command[0]}]; put it under [{where}]")
                values[key] = value
        table = table.get(name, {})
    values |= {key: value for key, value in table.items() if not isinstance(value, dict)}
    return values, {key: value for key, value in table.items() if isinstance(value, dict)}
