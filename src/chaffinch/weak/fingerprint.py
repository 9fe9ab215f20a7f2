"""Content digests of sources and settings: phrases, patterns, tables, the arrays of a tagger.

Equal content has an equal digest in every process. Derived fields (those that are not parameters) are left out, and a
file contributes its content. Python code cannot be inspected: a function contributes its name, its module and the file
that defines it, not the data that it reads.
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
    """Return a hex hash of a value: plain data, arrays, dataclasses, taggers, contents of files, functions.

    >>> fingerprint({"a": [1, 2], "b": "x"}) == fingerprint({"b": "x", "a": (1, 2)})
    True
    >>> fingerprint([1, 2]) == fingerprint(["1", 2])
    False
    """
    return _digest(value).hex()


def _digest(value: Any) -> bytes:
    """Return the hash of a value by its type, which is part of it; of paths the files' contents, of code its source."""
    if type(value) is str:  # by far the most frequent, so it has a way of its own
        return _hash_text(value)
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return _hash_parts(type(value).__name__, [repr(value).encode("utf-8", "surrogatepass")])
    if isinstance(value, np.generic):
        return _digest(value.item())
    if isinstance(value, Path):
        return _hash_parts("files", _files(value))
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data  # not copied: a model has large arrays
        return _hash_parts("array", [f"{value.dtype} {value.shape}".encode(), content])
    if isinstance(value, Tagger):
        aligner = None if value.aligner is None else [value.aligner.config, value.aligner.state()]
        return _hash_parts(
            "tagger", map(_digest, [[step.manifest_entry, step.model.state()] for step in value.steps] + [aligner])
        )
    if isinstance(value, State):
        return _digest([value.arrays, value.strings])
    if isinstance(value, Mapping):
        return _hash_parts("table", sorted(_digest(key) + _digest(item) for key, item in value.items()))
    if isinstance(value, Set):
        return _hash_parts("set", sorted(map(_digest, value)))
    if isinstance(value, Sequence):
        if len(value) and all(type(item) is str for item in value):
            return _hash_texts(value)
        return _hash_parts("list", map(_digest, value))
    if is_dataclass(value) and not isinstance(value, type):
        return _hash_parts(type(value).__qualname__, (_digest([name, item]) for name, item in _parameters(value)))
    return _hash_parts("code", _code(value)) if callable(value) else _hash_parts("other", [repr(value).encode()])


def _hash_parts(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the hash of a kind and its parts, each with its length before it."""
    whole = hashlib.blake2b(kind.encode(), digest_size=20)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.digest()


_TEXT = hashlib.blake2b(b"str", digest_size=20)


def _hash_text(value: str) -> bytes:
    """Return the hash of a string, the same as of `_hash_parts`, but faster."""
    whole, part = _TEXT.copy(), repr(value).encode("utf-8", "surrogatepass")
    whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()


def _hash_texts(values: Sequence[str]) -> bytes:
    """Return the hash of a list of strings, by their lengths and all their characters: word lists are long."""
    lengths = np.fromiter(map(len, values), np.dtype("<i8"), len(values))
    return _hash_parts("texts", [lengths.tobytes(), "".join(values).encode("utf-8", "surrogatepass")])


def _files(path: Path) -> list[bytes]:
    """Return a file's bytes, or relative paths and contents of a folder's files, sorted; the path if there are none."""
    if path.is_file():
        return [path.read_bytes()]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [part for file in files for part in (bytes(file.relative_to(path)), file.read_bytes())] or [bytes(path)]


def _parameters(value: Any) -> list[tuple[str, Any]]:
    """Return (name, value) of a dataclass's parameters, and of other fields that hold a tagger or spaCy pipeline."""
    items = [(field.name, getattr(value, field.name), field.init) for field in fields(value)]
    return [(name, item) for name, item, init in items if init or isinstance(item, Tagger) or _meta(item)]


def _code(value: Any) -> list[bytes]:
    """Return bytes to hash of a function, or of an object's class: qualified name, digest of metadata, source file."""
    named = value if hasattr(value, "__qualname__") else type(value)
    parts = [f"{named.__module__}.{named.__qualname__}".encode(), _digest(_meta(value))]
    with suppress(OSError, TypeError):  # built in, or typed at a prompt
        parts.append(Path(inspect.getsourcefile(named) or "").read_bytes())
    return parts


def _meta(value: Any) -> Mapping[str, Any]:
    """Return the metadata of a spaCy pipeline: name, version, components; empty for other values."""
    meta = getattr(value, "meta", None)
    return meta if isinstance(meta, Mapping) else {}
