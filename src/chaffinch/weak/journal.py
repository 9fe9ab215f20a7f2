"""What slow sources said, kept in a file while they are asked: after an interrupt they are not asked again.

Slow are models, spaCy and Python code, as each kind says of itself; rules and lists are quick. The file holds offsets,
labels and hashes of documents, no text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from chaffinch import bundle
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.weak.sources import about
from chaffinch.weak.sources.base import Found, Source, SourceKind, settle
from chaffinch.weak.training.checkpoints import in_words, print_of

_Line = tuple[str, list[tuple[int, int, str, float, str, str]]]  # a key, and fields of spans


@dataclass(frozen=True, slots=True, eq=False)
class Journal:
    """Answers by key, in memory and in a file; made by `opened`."""

    path: Path
    answers: dict[str, list[Span]] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def opened(cls, path: Path, run: str, *, resume: bool) -> Journal:
        """The journal of a run, with its earlier answers if it goes on; ConfigError if they are of another run.

        A line that an interrupt cut off does not count.
        """
        if not resume:
            path.unlink(missing_ok=True)
        journal = cls(path)
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        if lines and lines[0].decode(errors="replace").strip() != run:
            raise ConfigError(f"{path} is of a run with other sources; leave --resume out to begin anew")
        whole = [line for line in lines if line.endswith(b"\n")]
        try:
            found = [msgspec.json.decode(line, type=_Line) for line in whole[1:]]
        except msgspec.MsgspecError:
            raise ConfigError(f"{path} is damaged; leave --resume out to begin anew") from None
        journal.answers.update({key: [Span(*own) for own in spans] for key, spans in found})
        if whole != lines:
            path.write_bytes(b"".join(whole))
        if not whole:
            _append(path, run.encode())
        return journal

    def keep(self, key: str, spans: list[Span]) -> None:
        """Keeps one answer."""
        told = [(own.start, own.end, own.label, own.score, own.source, own.concept) for own in spans]
        with self._lock:
            self.answers[key] = spans
            _append(self.path, msgspec.json.encode((key, told)))

    def close(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Remembered:
    """A source whose answers are kept; in all else it is the source itself."""

    source: Source
    journal: Journal

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def __call__(self, doc: Document) -> Sequence[Found]:
        """What the source said of the document, or says now; answers with errors are not kept."""
        told = in_words((self.name, doc.id, doc.meta)).encode()
        key = hashlib.sha256(told + print_of(doc)).hexdigest()
        if key in self.journal.answers:
            return self.journal.answers[key]
        said = list(self.source(doc))
        spans, errors = settle(said, str(getattr(self.source, "label", "")), len(doc.text))
        if errors:
            return said
        self.journal.keep(key, spans)
        return spans


def remembered(sources: Sequence[Source], journal: Journal) -> list[Source]:
    """The sources; answers of the slow ones are kept."""
    return [Remembered(own, journal) if is_slow(own) else own for own in sources]


def is_slow(source: Source) -> bool:
    """Whether the source's answers are worth keeping."""
    return source.slow if isinstance(source, SourceKind) else True


def run_of(sources: Sequence[Source], file: Path) -> str:
    """A hash of the file of sources and of the models that they read."""
    mark = hashlib.sha256(file.read_bytes())
    for own in sources:
        mark.update(in_words(tuple(about(own).items())).encode())
        for name in own.model_fields if isinstance(own, SourceKind) else ():
            place = getattr(own, name, None)
            if isinstance(place, str | Path):
                mark.update(hashlib.sha256(bundle.find(place).read_bytes()).digest())
    return mark.hexdigest()


def _append(path: Path, line: bytes) -> None:
    """Adds a line; the file is its owner's alone."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as stream:
        stream.write(line + b"\n")
