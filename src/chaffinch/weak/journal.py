"""Journal of slow sources: their answers are kept in a file, so that an interrupted run does not repeat them.

Models, spaCy and Python code are slow (`SourceKind.slow`); rules and lists are not. The file holds offsets, labels and
hashes of documents, no text.
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
from chaffinch.weak.sources import describe_source
from chaffinch.weak.sources.base import Found, Source, SourceKind, collect_spans
from chaffinch.weak.training.checkpoints import document_digest, stable_repr

_Line = tuple[str, list[tuple[int, int, str, float, str, str]]]  # a key, and fields of spans


@dataclass(frozen=True, slots=True, eq=False)
class Journal:
    """Answers by key, in memory and in a file; created by `Journal.open`."""

    path: Path
    answers: dict[str, list[Span]] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def open(cls, path: Path, run: str, *, resume: bool) -> Journal:
        """Open a run's journal with its answers if `resume`, else empty; ConfigError if another run's or damaged.

        A line that an interrupt cut off is dropped.
        """
        if not resume:
            path.unlink(missing_ok=True)
        journal = cls(path)
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        if lines and lines[0].decode(errors="replace").strip() != run:
            raise ConfigError(f"{path} is of a run with other sources; leave --resume out to start again")
        whole = [line for line in lines if line.endswith(b"\n")]
        try:
            found = [msgspec.json.decode(line, type=_Line) for line in whole[1:]]
        except msgspec.MsgspecError:
            raise ConfigError(f"{path} is damaged; leave --resume out to start again") from None
        journal.answers.update({key: [Span(*values) for values in spans] for key, spans in found})
        if whole != lines:
            path.write_bytes(b"".join(whole))
        if not whole:
            _append(path, run.encode())
        return journal

    def keep(self, key: str, spans: list[Span]) -> None:
        """Store an answer under its key, in memory and in the file."""
        rows = [(span.start, span.end, span.label, span.score, span.source, span.concept) for span in spans]
        with self._lock:
            self.answers[key] = spans
            _append(self.path, msgspec.json.encode((key, rows)))

    def close(self) -> None:
        """Delete the file of the journal."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RememberedSource:
    """A source whose answers a journal keeps; all other attributes are those of the source."""

    source: Source
    journal: Journal

    @property
    def name(self) -> str:
        """Return the name of the source."""
        return self.source.name

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the wrapped source."""
        return getattr(self.source, name)

    def __call__(self, doc: Document) -> Sequence[Found]:
        """Return the kept answer for the document, or ask the source and keep its answer unless it has errors."""
        identity = stable_repr((self.name, doc.id, doc.meta)).encode()
        key = hashlib.sha256(identity + document_digest(doc)).hexdigest()
        if key in self.journal.answers:
            return self.journal.answers[key]
        answer = list(self.source(doc))
        spans, errors = collect_spans(answer, str(getattr(self.source, "label", "")), len(doc.text))
        if errors:
            return answer
        self.journal.keep(key, spans)
        return spans


def remember_answers(sources: Sequence[Source], journal: Journal) -> list[Source]:
    """Return the sources, with slow ones wrapped so that the journal stores and returns their answers."""
    return [RememberedSource(source, journal) if is_slow(source) else source for source in sources]


def is_slow(source: Source) -> bool:
    """Tell whether a source's answers are worth storing, because it runs a model or a user's code."""
    return source.slow if isinstance(source, SourceKind) else True


def sources_digest(sources: Sequence[Source], file: Path) -> str:
    """Return a hash of the file of sources, their descriptions, and the model files that they read."""
    mark = hashlib.sha256(file.read_bytes())
    for source in sources:
        mark.update(stable_repr(tuple(describe_source(source).items())).encode())
        for name in source.model_fields if isinstance(source, SourceKind) else ():
            model = getattr(source, name, None)
            if isinstance(model, str | Path):
                mark.update(hashlib.sha256(bundle.find(model).read_bytes()).digest())
    return mark.hexdigest()


def _append(path: Path, line: bytes) -> None:
    """Append a line to the file; create it with mode 0600 if it is absent."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as stream:
        stream.write(line + b"\n")
