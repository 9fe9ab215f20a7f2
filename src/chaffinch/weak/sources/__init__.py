"""All kinds of sources, and the project file that lists them: `sources.toml`, or a Python file.

    [[source]]
    kind = "lexicon"
    name = "drugs"
    phrases = "drugs.txt"      # beside this file
    label = "Chemical"

The keys are the parameters of the kind's class; paths are relative to the folder of the file. Every module of this
package that defines a `SourceKind` adds a kind; there is no list of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError, DataError, MissingExtraError
from chaffinch.weak.sources.base import (
    Found,
    Source,
    SourceKind,
    is_plain_data,
    kind_of,
    layer_of,
    needs,
    negative_reliable,
    order_sources,
)
from chaffinch.weak.sources.documents import Abbreviations, History
from chaffinch.weak.sources.files import Annotations, read_annotations
from chaffinch.weak.sources.links import ChunkLink, Link
from chaffinch.weak.sources.models import FromFunction, FromSpacy, FromTagger, source
from chaffinch.weak.sources.rules import Context, Lexicon, Regex, Suffix
from chaffinch.weak.sources.token_patterns import Token, TokenPattern

__all__ = [
    "Abbreviations",
    "Annotations",
    "ChunkLink",
    "Context",
    "Found",
    "FromFunction",
    "FromSpacy",
    "FromTagger",
    "History",
    "Lexicon",
    "Link",
    "Regex",
    "Source",
    "SourceKind",
    "Suffix",
    "Token",
    "TokenPattern",
    "describe_source",
    "is_plain_data",
    "layer_of",
    "load_sources",
    "needs",
    "negative_reliable",
    "of_data",
    "order_sources",
    "read_annotations",
    "source",
    "to_data",
]


def _find_kinds() -> dict[str, type[SourceKind]]:
    """Return the kinds of sources that the modules of this package define, by name."""
    found: dict[str, type[SourceKind]] = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, SourceKind) and hasattr(value, "kind"):
                found[value.kind] = value
    return found


KINDS: Mapping[str, type[SourceKind]] = _find_kinds()
IN_FILES = {name: kind for name, kind in KINDS.items() if kind.in_files}


def load_sources(path: str | Path) -> list[Source]:
    """Load the sources of a TOML or Python file, in order; ConfigError if it has none or is not valid."""
    path = Path(path)
    if path.suffix not in (".toml", ".py"):
        raise ConfigError(f"{path.name}: a file of sources ends in .toml or .py; rename it")
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file; check the path")
    found = _of_module(path) if path.suffix == ".py" else _of_toml(path)
    if not found:
        raise ConfigError(f"{path}: has no sources; add [[source]] tables, or functions decorated with @source")
    try:
        order_sources(found)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return found


def to_data(source_: Source) -> dict[str, Any]:
    """Return a source as plain JSON data for `of_data`; raise ConfigError if it is not plain data.

    >>> to_data(Suffix("itis", ["itis"], label="Disease"))["endings"]
    ['itis']
    """
    if not is_plain_data(source_):
        what = source_.beyond_data if isinstance(source_, SourceKind) else "Python code"
        raise ConfigError(
            f"the source {source_.name!r} is {what} and cannot be stored in a file; "
            "give it again where the file is used"
        )
    names = [field.name for field in fields(source_) if field.init]  # type: ignore[arg-type]  # all plain kinds are dataclasses
    return {"kind": kind_of(source_), **{name: _plain(getattr(source_, name)) for name in names}}


def of_data(data: Mapping[str, Any]) -> Source:
    """Rebuild a source from the plain data of `to_data`; raise ConfigError for other data."""
    kind = data.get("kind")
    plain = [name for name, known in IN_FILES.items() if not known.beyond_data]
    if kind not in plain:
        raise ConfigError(f"a source of the kind {kind!r} is not plain data; {did_you_mean(kind, plain)}")
    return _build(data)[0]


def describe_source(source_: Source) -> dict[str, Any]:
    """Return the properties of a source: name, kind, layer, label, what it builds on, if its silence means O."""
    return {
        "name": source_.name,
        "kind": kind_of(source_),
        "layer": layer_of(source_),
        "label": str(getattr(source_, "label", "")),
        "on": list(needs(source_)),
        "negative_reliable": bool(getattr(source_, "negative_reliable", False)),
    }


def _plain(value: Any) -> Any:
    """Return a field's value as JSON data: tuples as lists, tokens as dicts of what is set; others stay as they are."""
    if isinstance(value, Token):
        named = {name: item for name, item in asdict(value).items() if not name.startswith("_")}
        return {name: _plain(item) for name, item in named.items() if item not in ((), "", False) or name == "mark"}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _of_toml(path: Path) -> list[Source]:
    """Return the sources of a TOML file; raise ConfigError or DataError that names the file and the source."""
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None
    for key in content:
        if key != "source":
            raise ConfigError(f"{path}: unknown key {key!r}; every source is a table [[source]]")
    tables = content.get("source", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{path}: every source is a separate table; write [[source]] with two brackets")
    found: list[Source] = []
    for number, table in enumerate(tables, start=1):
        try:
            found += _build(_place_files(table, _kind_of_table(table), path.parent))
        except (ConfigError, DataError, MissingExtraError) as error:
            raise _locate_error(path, number, table.get("name"), error) from None
    return found


def _locate_error(path: Path, number: int, name: object, error: Exception) -> Exception:
    """Return the error with file and number of its source in the message; a MissingExtraError as it is."""
    where = f"{path}: source {number}" + (f" ({name!r})" if isinstance(name, str) else "")
    if isinstance(error, MissingExtraError):
        return error
    return DataError(f"{where}: {error}") if isinstance(error, DataError) else ConfigError(f"{where}: {error}")


def _place_files(table: Mapping[str, Any], kind: type[SourceKind], folder: Path) -> dict[str, Any]:
    """Return the table, and those in it, with paths put under a folder: file keys always, others if a file exists."""
    out = dict(table)
    for key, value in table.items():
        if isinstance(value, str) and (
            key in kind.file_fields or (key in kind.place_fields and (folder / value).exists())
        ):
            out[key] = folder / value
        elif isinstance(value, list):
            out[key] = [_place_files(part, kind, folder) if isinstance(part, dict) else part for part in value]
    return out


def _kind_of_table(table: Mapping[str, Any]) -> type[SourceKind]:
    """Return the class that a table's `kind` names; raise ConfigError if it is missing or unknown."""
    kind = table.get("kind")
    if kind is None:
        raise ConfigError(f"has no kind; choose one of {', '.join(IN_FILES)}")
    if not isinstance(kind, str) or kind not in IN_FILES:
        raise ConfigError(f"unknown kind {kind!r}; {did_you_mean(kind, IN_FILES)}")
    return IN_FILES[kind]


def _build(table: Mapping[str, Any]) -> list[Source]:
    """Build the sources of one table, several for a file of annotators; ConfigError for unknown or missing keys."""
    kind = _kind_of_table(table)
    factory = kind.factory()
    known = inspect.signature(factory).parameters
    for key in table:
        if key != "kind" and key not in known:
            raise ConfigError(f"unknown key {key!r} for the kind {kind.kind}; {did_you_mean(key, known)}")
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in table:
            raise ConfigError(f"a source of the kind {kind.kind} needs {key}")
    built = factory(**{key: value for key, value in table.items() if key != "kind"})
    return built if isinstance(built, list) else [built]


def _of_module(path: Path) -> list[Source]:
    """Run a Python file and return its top-level sources in order of definition; ConfigError if it fails."""
    spec = importlib.util.spec_from_file_location(f"chaffinch_sources_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except MissingExtraError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: cannot be run ({type(error).__name__}{_line(error, path)}); correct it") from None
    return list(_sources_of(module))


def _line(error: Exception, path: Path) -> str:
    """Return " at line N" for the last line of a file that an error came through; "" if there is none."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(path) else line
        trace = trace.tb_next
    return f" at line {line}" if line else ""


def _sources_of(module: ModuleType) -> Iterable[Source]:
    """Yield the sources among a module's values, and in its lists: callables with a name, each once."""
    seen: set[int] = set()
    for value in list(vars(module).values()):
        for item in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
            named = isinstance(getattr(item, "name", None), str) and not isinstance(item, type)
            if named and callable(item) and id(item) not in seen:
                seen.add(id(item))
                yield item
