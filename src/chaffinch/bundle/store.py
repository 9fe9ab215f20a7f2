"""Model files: safetensors with arrays, strings as arrays, and a manifest with a checksum of the whole file.

The checksum is the SHA-256 of the file with the 64 digits of the checksum set to zero, so that no byte can change
unnoticed. The file contains no code, and loading runs none.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import msgspec
import numpy as np

from chaffinch.bundle.manifest import FORMAT, Manifest
from chaffinch.bundle.state import Array, State
from chaffinch.checks import nearest
from chaffinch.errors import ConfigError, MissingExtraError, ModelError
from chaffinch.text.formats.temporary import TEMPORARY, hold, remove_left_overs

_KEY = "chaffinch"  # the one entry of safetensors' metadata: the manifest as JSON
_BLANK = "0" * 64
_PREAMBLE = 8  # bytes of a safetensors file that hold the length of its header
_MOST_ARRAYS, _MOST_DIMENSIONS = 10_000, 8  # ours have hundreds and 3; more is no model, or is made to exhaust us
_TEXT, _ENDS = ".utf8", ".ends"  # a list of strings is two arrays: all bytes, and where each string ends


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """The content of a model file."""

    manifest: Manifest
    arrays: Mapping[str, Array]
    strings: Mapping[str, tuple[str, ...]]

    @property
    def state(self) -> State:
        """Return the content as a state, with the entries of the manifest that a model needs to read it."""
        facts = self.manifest
        return State(
            self.arrays, self.strings, facts.kind, facts.config, facts.labels, facts.vocabulary_floor
        )  # fmt: skip


def save(
    path: str | Path,
    manifest: Manifest,
    arrays: Mapping[str, Array],
    strings: Mapping[str, Sequence[str]] | None = None,
) -> Manifest:
    """Write a model file, complete or not at all; return its manifest with checksum; ConfigError, ModelError."""
    from safetensors.numpy import save as serialise

    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, words in (strings or {}).items():
        encoded = [word.encode() for word in words]
        tensors[name + _TEXT] = np.frombuffer(b"".join(encoded), np.uint8)
        tensors[name + _ENDS] = np.cumsum([len(word) for word in encoded], dtype=np.int64)
    for name, array in tensors.items():
        if array.dtype.hasobject or array.dtype.kind not in "biuf":
            raise ConfigError(f"array {name!r} has type {array.dtype}; a model file holds plain numbers only")
    blank = replace(manifest, checksum=_BLANK)
    content = serialise(tensors, metadata={_KEY: msgspec.json.encode(blank, order="sorted").decode()})
    checksum = hashlib.sha256(content).hexdigest()
    _write(Path(path), content.replace(_BLANK.encode(), checksum.encode(), 1))
    return replace(manifest, checksum=checksum)


def read_manifest(path: str | Path) -> Manifest:
    """Return a model file's manifest, without reading arrays or testing the checksum; ModelError if it is damaged."""
    file = find(path)
    try:
        _require_plain_file(file)
        with file.open("rb") as stream:
            length = stream.read(_PREAMBLE)
            content = length + stream.read(min(int.from_bytes(length, "little"), file.stat().st_size))
    except OSError as error:
        raise _unreadable(file, error) from None
    return _manifest(content, file)


def load(path: str | Path) -> Bundle:
    """Return a model file's content, found as by `find`; ModelError if damaged, changed, or of an unknown format."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialise

    file = find(path)
    try:
        _require_plain_file(file)
        content = file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from None
    manifest = _manifest(content, file)
    if _checksum(content, manifest.checksum) != manifest.checksum:
        raise ModelError("its checksum does not match: the file was damaged or changed; copy it again", path=file)
    try:
        tensors = deserialise(content)
    except (SafetensorError, ValueError, KeyError):
        raise ModelError("its arrays cannot be read; copy the file again", path=file) from None
    try:
        strings = {name.removesuffix(_ENDS): _strings(tensors, name) for name in tensors if name.endswith(_ENDS)}
    except (KeyError, ValueError):
        raise ModelError("its strings cannot be read; take the file of its maker, or retrain", path=file) from None
    arrays = {name: array for name, array in tensors.items() if not name.endswith((_TEXT, _ENDS))}
    _check_arrays(arrays, file)
    return Bundle(manifest, arrays, strings)


@contextmanager
def building(path: str | Path) -> Iterator[None]:
    """Turn any error inside the block, except MissingExtraError, into ModelError with the path of the file.

    A checksum says that a file is as somebody wrote it, not that its arrays, strings and settings fit together.
    """
    try:
        yield
    except ModelError as error:
        raise ModelError(error.message, path=error.path or find(path)) from None
    except MissingExtraError:
        raise
    except Exception:  # whatever a file made to be wrong leads to, also in libraries that raise bare exceptions
        message = "its arrays, strings and settings do not fit together; take the file of its maker, or retrain"
        raise ModelError(message, path=find(path)) from None


def _check_arrays(arrays: Mapping[str, Array], file: Path) -> None:
    """Raise ModelError, which names the file, for too many arrays, too many dimensions or an unknown type."""
    if len(arrays) > _MOST_ARRAYS:
        raise ModelError(f"has {len(arrays):,} arrays; a model has at most {_MOST_ARRAYS:,}", path=file)
    for name, array in arrays.items():
        if array.ndim > _MOST_DIMENSIONS or array.dtype.kind not in "biuf":
            raise ModelError(f"array {name!r} has an unknown form; take the file of its maker, or retrain", path=file)


def find(model: str | Path) -> Path:
    """Return the packaged model's file of that name, else the path if it exists; ModelError if there is neither.

    >>> find("deid-en").name
    'deid-en.cfm'
    """
    path, packaged = Path(model), list_packaged_models()
    if isinstance(model, str) and model in packaged:
        return packaged[model]
    if path.exists():
        return path
    if str(model) in packaged:
        return packaged[str(model)]
    names = {name.replace("-", "_"): name for name in packaged}
    near = names.get(path.name.replace("-", "_")) or nearest(path.name, packaged)
    hint = "check the path" if near is None else f"did you mean {near!r}?"
    raise ModelError(f"there is no such file, and no packaged model of that name; {hint}", path=path)


def list_packaged_models() -> dict[str, Path]:
    """Return {name: file} of the packaged models."""
    folder = resources.files("chaffinch") / "packaged"
    files = [file for file in folder.iterdir() if file.name.endswith(".cfm")] if folder.is_dir() else []
    return {file.name.removesuffix(".cfm"): file for file in files if isinstance(file, Path)}


def _require_plain_file(file: Path) -> None:
    """Raise OSError unless a path is a plain file: reading a pipe or a device could block for ever."""
    if not file.is_file():
        raise OSError(errno.EINVAL, "it is no plain file")


def _unreadable(file: Path, error: OSError) -> ModelError:
    """Return (not raise) the ModelError for a file that cannot be opened."""
    return ModelError(f"cannot be read ({error.strerror}); check the path and its permissions", path=file)


def _manifest(content: bytes, file: Path) -> Manifest:
    """Return the manifest at the head of a model file; ModelError if it is damaged or of another format."""
    length = int.from_bytes(content[:_PREAMBLE], "little")
    if len(content) < _PREAMBLE or length > len(content) - _PREAMBLE:
        raise ModelError("is truncated or not a model file; copy it again, or retrain the model", path=file)
    try:
        header = msgspec.json.decode(content[_PREAMBLE : _PREAMBLE + length])
        facts = msgspec.json.decode(header["__metadata__"][_KEY])
        number = facts["format"]
    except (msgspec.DecodeError, UnicodeError, KeyError, TypeError, RecursionError):
        raise ModelError(
            "is damaged or not a Chaffinch model; copy it again, or retrain the model", path=file
        ) from None
    if number != FORMAT:
        message = f"has model format {number!r}; this version reads format {FORMAT}; update Chaffinch or retrain"
        raise ModelError(message, path=file)
    try:
        manifest = msgspec.convert(facts, Manifest)
    except msgspec.ValidationError:
        raise ModelError("its manifest is damaged; copy the file again, or retrain the model", path=file) from None
    if len(manifest.checksum) != len(_BLANK):
        raise ModelError("its checksum is damaged; copy the file again", path=file)
    return manifest


def _checksum(content: bytes, written: str) -> str:
    """Return the SHA-256, in hex, of a file in which the first place of the checksum is blank; nothing is copied."""
    before, parts = written.encode(), memoryview(content)
    place = content.find(before)
    if place < 0:  # it is written in another way than ours
        return ""
    whole = hashlib.sha256(parts[:place])
    whole.update(_BLANK.encode())
    whole.update(parts[place + len(before) :])
    return whole.hexdigest()


def _strings(tensors: Mapping[str, Array], ends_name: str) -> tuple[str, ...]:
    """Return a list of strings from its two arrays; raise KeyError or ValueError unless they fit together."""
    parts, places = tensors[ends_name.removesuffix(_ENDS) + _TEXT], tensors[ends_name]
    if parts.dtype != np.uint8 or parts.ndim != 1 or places.dtype != np.int64 or places.ndim != 1:
        raise ValueError(ends_name)
    text, ends = parts.tobytes(), places.tolist()
    if [0, *ends] != sorted([0, *ends]) or (ends[-1] if ends else 0) != len(text):
        raise ValueError(ends_name)
    return tuple(text[start:end].decode() for start, end in zip([0, *ends], ends, strict=False))


def _write(path: Path, content: bytes) -> None:
    """Write a file beside its place, sync it, rename it: whole or not at all; ConfigError or ModelError if it fails."""
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} of the model file does not exist; make it first")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is not an ordinary file, and saving the model would replace it; choose another path")
    remove_left_overs(path.parent)
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:  # with the permissions that the umask leaves
            hold(stream.fileno())
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ModelError(f"cannot be written ({error.strerror}); an existing file is unchanged", path=path) from None
    finally:
        temporary.unlink(missing_ok=True)
