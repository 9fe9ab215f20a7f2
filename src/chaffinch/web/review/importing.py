"""Notes into a project: with the marks of a detector, of a layer, or of a finished `deid` run, and their risks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import detect_each, residual_risk
from chaffinch.deid.release.replace import ReplacedText, Replacement
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.web.review.domain.marks import flatten
from chaffinch.web.review.project import LONGEST_LABEL, Project
from chaffinch.web.review.store.notes import NewNote, add_note, make_suggestions

_PART = 200  # notes of one transaction: a killed import loses at most these, and importing again adds the rest


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: notes added, notes that were there already, suggestions, notes without a risk."""

    added: int = 0
    known: int = 0
    suggestions: int = 0
    without_risk: int = 0

    def __add__(self, other: Imported) -> Imported:
        """Return the sums of all counts."""
        return Imported(
            self.added + other.added,
            self.known + other.known,
            self.suggestions + other.suggestions,
            self.without_risk + other.without_risk,
        )


def import_notes(project: Project, notes: Iterable[NewNote], actor: str) -> Imported:
    """Add notes to a project, some hundred in a transaction; count added, known, suggestions, no expected misses."""
    total = Imported()
    rows = iter(notes)
    while part := list(islice(rows, _PART)):
        with project.database.change(actor) as change:
            numbers = [add_note(change, project.database, note) for note in part]
            fresh = [note for note, number in zip(part, numbers, strict=True) if number is not None]
            done = Imported(
                len(fresh), len(part) - len(fresh), sum(len(note.suggestions) for note in fresh),
                sum(note.expected == 0 for note in fresh),
            )  # fmt: skip
            change.record("import", "", added=done.added, known=done.known)
        total += done
    return total


def detect_notes(documents: Iterable[Document], find: HybridDetector) -> Iterator[NewNote]:
    """Yield notes with a detector's marks and the misses that it expects; DataError if it fails on one."""
    for doc in detect_each(list(documents), find):
        if isinstance(doc, Exception):
            raise DataError("the detector failed on a note; nothing of this part was imported") from None
        spans = doc.layer(LAYER)
        replaced = ReplacedText(doc.id, "", tuple(Replacement(s.start, s.end, s.label, "", 0, 0) for s in spans))
        risk = residual_risk(doc, LAYER, replaced, doc.id)
        expected = 0.0 if risk is None else float(risk["expected"])
        yield NewNote(doc, flatten(make_suggestions(spans)), expected)


def read_layer_notes(documents: Iterable[Document], layer: str | None) -> Iterator[NewNote]:
    """Yield notes: a layer's spans as suggestions, sum of 1 - score as expected misses; ConfigError for a bad label."""
    for doc in documents:
        spans = doc.layer(layer)
        yield NewNote(doc, flatten(make_suggestions(_check_labels(spans))), sum(1 - span.score for span in spans))


def notes_of_run(documents: Iterable[Document], output: Path) -> Iterator[NewNote]:
    """Yield the released notes of a deid run, with spans and risks; DataError if the input lacks some of them.

    `documents` are the input of the run; every released one must be among them. Raise DataError otherwise.
    """
    folder = private_folder(output)
    lines = {str(row["id"]): row for row in _rows(folder / "documents.jsonl") if row.get("status") == "released"}
    names = {str(row["document"]): str(row["id"]) for row in _rows(folder / "ids.jsonl", needed=False)}
    risks = {str(row["id"]): float(row["expected"]) for row in _rows(folder / "risks.jsonl", needed=False)}
    found = 0
    for doc in documents:
        name = names.get(doc.id, doc.id)
        line = lines.get(name)
        if line is None:
            continue  # it was withheld or excluded: what is not released needs no review of a release
        found += 1
        spans = _spans_of(line["replacements"], len(doc.text))
        yield NewNote(doc, flatten(make_suggestions(spans)), risks.get(name, 0.0))
    if found != len(lines):
        raise DataError(
            f"{len(lines):,} notes were released by this run, and {found:,} of them are in the input; give the same "
            "input as deid run had",
            path=output,
        )


def _rows(path: Path, *, needed: bool = True) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a private JSON-lines file; DataError if it is damaged, or missing and needed."""
    try:
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=dict[str, Any])
    except FileNotFoundError:
        if needed:
            raise DataError("is not there; name the output of a finished deid run", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", path=path) from None
    except (msgspec.DecodeError, UnicodeError):
        raise DataError("is no list of a deid run; take an untouched copy", path=path) from None


def _spans_of(places: Sequence[Sequence[Any]], length: int) -> list[Span]:
    """Convert the replacements of a run's account to spans; raise DataError if one does not fit the note's length."""
    spans = [Span(int(start), int(end), str(label)) for start, end, label, *_ in places]
    if any(not 0 <= span.start < span.end <= length for span in spans):
        raise DataError("a replacement of the run does not fit its note; give the same input as deid run had")
    return spans


def _check_labels(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans; raise ConfigError if a label is empty or too long for a button."""
    if any(not span.label.strip() or len(span.label) > LONGEST_LABEL for span in spans):
        raise ConfigError(f"a label of the layer is empty or has over {LONGEST_LABEL} characters; rename it first")
    return spans
