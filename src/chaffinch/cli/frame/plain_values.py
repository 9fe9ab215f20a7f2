"""Values of options that need no check, without the library that typer loads to check the others.

That library takes 0.1 CPU seconds to load, a tenth of a short run. Values of which only typer knows whether they are
right go to typer, so that messages and results are the same; see `tests/cli/frame/test_plain_values.py`.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

_UNSURE = object()


class PlainValues:
    """The check of one option's values, in place of typer's `RuntimeParam`, to which it gives way when it must."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of an option as its command gets it; raise what typer raises for a wrong one."""
        found = settle_value(value, param)
        if found is not _UNSURE:
            return found
        param._runtime_param = None  # typer makes its own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def settle_values(params: list[Any]) -> None:
    """Let plain values of these options pass without typer's check."""
    for param in params:
        if getattr(param, "_runtime_param", _UNSURE) is None:  # as typer has it from 0.29 on
            param._runtime_param = PlainValues()


def settle_value(value: Any, param: Any) -> Any:
    """Return the value as a command gets it, or `_UNSURE` if only typer can tell."""
    kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
    if param.multiple or param.nargs == -1:
        return () if value is None else [] if value in ((), []) and get_origin(kind) is list else _UNSURE
    if value is None:
        return None
    if info.parser is not None:
        return _UNSURE
    if kind is Path:
        return _settle_path(value, info)
    if kind is str:
        return value if type(value) is str and value.isascii() else _UNSURE
    if get_origin(kind) is Literal:
        return value if type(value) is str and value in get_args(kind) else _UNSURE
    if kind not in (int, float) or type(value) is not kind:
        return _UNSURE
    low, high = -math.inf if info.min is None else info.min, math.inf if info.max is None else info.max
    return value if low <= value <= high else _UNSURE


def _settle_path(value: Any, info: Any) -> Any:
    """Return a path that has only to be readable if it exists; else `_UNSURE`."""
    asked = (info.exists, info.writable, info.resolve_path, info.allow_dash) != (
        False,
    ) * 4 or info.path_type is not None
    plain = isinstance(value, Path) or (type(value) is str and value.isascii() and "\0" not in value)
    if asked or not plain or not (info.file_okay and info.dir_okay):
        return _UNSURE
    path = Path(value)
    return path if not path.exists() or os.access(path, os.R_OK) else _UNSURE
