"""A digest of what a source, or any setting, is made of: phrases, patterns, tables, the arrays of a tagger.

Equal content has an equal digest in every process. What is derived from the rest (fields that are no parameters) does
not count, and a file counts by its content. Python code cannot be looked into: a function counts by its name, its
module and the file it stands in, not by what it reads besides.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chaffinch.bundle import State
from chaffinch.models.tagger import Tagger


def fingerprint(value: object) -> str:
    """Return the digest of a value: plain data, arrays, dataclasses, taggers, files (paths) and functions.

    >>> fingerprint({"a": [1, 2], "b": "x"}) == fingerprint({"b": "x", "a": (1, 2)})
    True
    >>> fingerprint([1, 2]) == fingerprint(["1", 2])
    False
    """
    return _digest(value).hex()


def _digest(value: Any) -> bytes:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return _joined(type(value).__name__, [repr(value).encode("utf-8", "surrogatepass")])
    if isinstance(value, np.generic):
        return _digest(value.item())
    if isinstance(value, Path):
        return _joined("files", _files(value))
    if isinstance(value, np.ndarray):
        return _joined("array", [f"{value.dtype} {value.shape}".encode(), value.tobytes()])
    if isinstance(value, Tagger):
        aligner = None if value.aligner is None else [value.aligner.config, value.aligner.state()]
        return _joined("tagger", map(_digest, [[step.told, step.model.state()] for step in value.steps] + [aligner]))
    if isinstance(value, State):
        return _digest([value.arrays, value.strings])
    if isinstance(value, Mapping):
        return _joined("table", sorted(_digest(key) + _digest(own) for key, own in value.items()))
    if isinstance(value, Set):
        return _joined("set", sorted(map(_digest, value)))
    if isinstance(value, Sequence):
        return _joined("list", map(_digest, value))
    if is_dataclass(value) and not isinstance(value, type):
        return _joined(type(value).__qualname__, (_digest([name, own]) for name, own in _parameters(value)))
    return _joined("code", _code(value)) if callable(value) else _joined("other", [repr(value).encode()])


def _joined(kind: str, parts: Iterable[bytes]) -> bytes:
    whole = hashlib.blake2b(kind.encode(), digest_size=20)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()


def _files(path: Path) -> list[bytes]:
    """Return the content of a file, or the names and contents of a folder's files; the name if there is neither."""
    if path.is_file():
        return [path.read_bytes()]
    found = sorted(own for own in path.rglob("*") if own.is_file())
    return [part for own in found for part in (bytes(own.relative_to(path)), own.read_bytes())] or [bytes(path)]


def _parameters(value: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a dataclass, and what it loaded for them: a tagger, or a pipeline that has `meta`."""
    held = [(own.name, getattr(value, own.name), own.init) for own in fields(value)]
    return [(name, own) for name, own, given in held if given or isinstance(own, Tagger) or _meta(own)]


def _code(value: Any) -> list[bytes]:
    """Return what is known of a function, or of an object of a class that we do not know."""
    named = value if hasattr(value, "__qualname__") else type(value)
    parts = [f"{named.__module__}.{named.__qualname__}".encode(), _digest(_meta(value))]
    with suppress(OSError, TypeError):  # built in, or typed at a prompt
        parts.append(Path(inspect.getsourcefile(named) or "").read_bytes())
    return parts


def _meta(value: Any) -> Mapping[str, Any]:
    """Return what a spaCy pipeline says of itself: name, version, parts."""
    meta = getattr(value, "meta", None)
    return meta if isinstance(meta, Mapping) else {}
