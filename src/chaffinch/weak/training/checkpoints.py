"""The steps of a long run: told one by one, and kept in a folder, so that the same call goes on where it was left."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from chaffinch.bundle.manifest import current_versions
from chaffinch.errors import ConfigError
from chaffinch.text import Document

RUN = "run.json"  # whose steps the folder holds
MODEL = ".cfm"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is done: what it is, its number among so many, if it has one, and F1 on dev documents if known."""

    name: str
    number: int = 0
    total: int = 0
    score: float | None = None

    @property
    def file(self) -> str:
        """The name, without a suffix, of the file that keeps what it made."""
        return f"{self.name}-{self.number}".replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Who is told of steps, and the folder that keeps what they made, if there is one."""

    place: Path | None = None
    tell: Callable[[Step], None] | None = None

    @classmethod
    def of(
        cls, folder: str | Path | None, tell: Callable[[Step], None] | None, print_: Callable[[], str]
    ) -> Checkpoints:  # fmt: skip
        """The steps kept in a folder, made if need be; ConfigError if it holds anything but those of the same run.

        `print_` gives the fingerprint of the run; it is asked for only if there is a folder.
        """
        if folder is None:
            return cls(None, tell)
        place, run = Path(folder), print_()
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (place / RUN).is_file():
            if _read(place / RUN).get("run") != run:
                raise ConfigError(
                    f"{place} holds a run with other documents or settings; give the same as before, or an empty folder"
                )
        elif any(not own.name.startswith(".") for own in place.iterdir()):
            raise ConfigError(f"{place} holds other files; choose an empty folder")
        else:
            _write(place / RUN, {"run": run})
        return cls(place, tell)

    def kept(
        self, step: Step, make: Callable[[], T], load: Callable[[Path], T], save: Callable[[T, Path], object]
    ) -> T:  # fmt: skip
        """What an earlier run made in this step, or what is made now, which is kept and told."""
        path = None if self.place is None else self.place / (step.file + MODEL)
        if path is not None and path.is_file():
            return load(path)
        made = make()
        if path is not None:
            save(made, path)
        self.told(step)
        return made

    def facts(self, step: Step, make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Plain data of a step, and whether it was made just now; telling is left to the caller."""
        path = None if self.place is None else self.place / (step.file + ".json")
        if path is not None and path.is_file():
            return _read(path), False
        made = make()
        if path is not None:
            _write(path, made)
        return made, True

    def told(self, step: Step) -> None:
        """Says that a step is done."""
        if self.tell is not None:
            self.tell(step)


def fingerprint(docs: Sequence[Document], dev: Sequence[Document], *settings: object) -> str:
    """A hash of all that a run depends on: documents with layers and soft labels, gold of dev documents, settings."""
    mark = hashlib.sha256(f"{current_versions()} {[in_words(own) for own in settings]}".encode())
    for name, some in (("documents", docs), ("dev", dev)):
        mark.update(f"{name} {len(some)}".encode())
        for doc in some:
            mark.update(print_of(doc))
    return mark.hexdigest()


def print_of(doc: Document) -> bytes:
    """A hash of a document: its patient, text, tokens, sentences, layers and soft labels."""
    parts = [f"{doc.patient!r} {doc.text!r}".encode(), doc.tokens.tobytes(), doc.sentences.tobytes()]
    for name in doc.layers:  # their order is that of sources
        parts.append(f"{name!r} {[(own.start, own.end, own.label, own.score) for own in doc.layers[name]]}".encode())
    for name in doc.soft:
        parts += [f"{name!r} {doc.soft[name].labels}".encode(), doc.soft[name].values.tobytes()]
    return hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def in_words(value: object) -> str:
    """Settings as a string that is the same for the same settings; of a function, its key or its name."""
    if isinstance(value, str | int | float | None):
        return repr(value)
    if isinstance(key := getattr(value, "key", None), str):  # an embedder
        return f"{type(value).__qualname__} {key}"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{own.name}={in_words(getattr(value, own.name))}" for own in fields(value))
        return f"{type(value).__qualname__}({inner})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{in_words(key)}: {in_words(own)}' for key, own in value.items()))}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(in_words, value))}]"
    named: Any = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError):
        raise ConfigError(f"{path} cannot be read; remove its folder and begin anew") from None


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    """Writes a file, complete or not at all."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(facts))
    beside.replace(path)
