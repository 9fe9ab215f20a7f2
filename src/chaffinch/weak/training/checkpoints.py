"""Steps of a long run: reported one by one, and saved in a folder, so that the same call resumes an interrupted run."""

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

RUN = "run.json"  # the fingerprint of the run that the folder belongs to
MODEL = ".cfm"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step: its name, its number and their total if it is one of several, and F1 on dev if known."""

    name: str
    number: int = 0
    total: int = 0
    score: float | None = None

    @property
    def file(self) -> str:
        """Return the file name, without suffix, under which the result of the step is stored."""
        return f"{self.name}-{self.number}".replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """A callback for finished steps, and the folder for their results, if there is one."""

    place: Path | None = None
    tell: Callable[[Step], None] | None = None

    @classmethod
    def of(
        cls, folder: str | Path | None, tell: Callable[[Step], None] | None, print_: Callable[[], str]
    ) -> Checkpoints:  # fmt: skip
        """Open or make a folder of checkpoints, None: no storage; ConfigError if it has another run (`print_`).

        `print_` returns the fingerprint of the run; it is called only if there is a folder.
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
        elif any(not file.name.startswith(".") for file in place.iterdir()):
            raise ConfigError(f"{place} holds other files; choose an empty folder")
        else:
            _write(place / RUN, {"run": run})
        return cls(place, tell)

    def load_or_make(
        self, step: Step, make: Callable[[], T], load: Callable[[Path], T], save: Callable[[T, Path], object]
    ) -> T:  # fmt: skip
        """Load this step's result from the folder; else make it, save it if there is a folder, and report the step."""
        path = None if self.place is None else self.place / (step.file + MODEL)
        if path is not None and path.is_file():
            return load(path)
        made = make()
        if path is not None:
            save(made, path)
        self.report(step)
        return made

    def load_or_make_facts(self, step: Step, make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Load a step's JSON data, or make and save it; return (data, whether it was made now). It reports nothing."""
        path = None if self.place is None else self.place / (step.file + ".json")
        if path is not None and path.is_file():
            return _read(path), False
        made = make()
        if path is not None:
            _write(path, made)
        return made, True

    def report(self, step: Step) -> None:
        """Call the callback, if there is one, with a finished step."""
        if self.tell is not None:
            self.tell(step)


def fingerprint(docs: Sequence[Document], dev: Sequence[Document], *settings: object) -> str:
    """Return a hash of a run's inputs: versions, settings, documents and dev documents with layers and soft labels."""
    mark = hashlib.sha256(f"{current_versions()} {[stable_repr(value) for value in settings]}".encode())
    for name, some in (("documents", docs), ("dev", dev)):
        mark.update(f"{name} {len(some)}".encode())
        for doc in some:
            mark.update(document_digest(doc))
    return mark.hexdigest()


def document_digest(doc: Document) -> bytes:
    """Return a hash of a document: its patient, text, tokens, sentences, layers and soft labels."""
    parts = [f"{doc.patient!r} {doc.text!r}".encode(), doc.tokens.tobytes(), doc.sentences.tobytes()]
    for name in doc.layers:  # their order is that of sources
        spans = [(span.start, span.end, span.label, span.score) for span in doc.layers[name]]
        parts.append(f"{name!r} {spans}".encode())
    for name in doc.soft:
        parts += [f"{name!r} {doc.soft[name].labels}".encode(), doc.soft[name].values.tobytes()]
    return hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def stable_repr(value: object) -> str:
    """Return a string that is equal for equal settings; an embedder gives its key, a function its name."""
    if isinstance(value, str | int | float | None):
        return repr(value)
    if isinstance(key := getattr(value, "key", None), str):  # an embedder
        return f"{type(value).__qualname__} {key}"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{field.name}={stable_repr(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__qualname__}({inner})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{stable_repr(key)}: {stable_repr(item)}' for key, item in value.items()))}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(stable_repr, value))}]"
    named: Any = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; raise ConfigError if the file is damaged."""
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError):
        raise ConfigError(f"{path} cannot be read; remove its folder and start again") from None


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    """Write facts as JSON to a file, whole or not at all."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(facts))
    beside.replace(path)
