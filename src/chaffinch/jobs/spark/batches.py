"""The rows of a partition as batches of notes, in a Python worker: whole patients, many of them in a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.formats import Unit
from chaffinch.text.formats.units import same_bytes

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_NOTES = 256  # a batch ends at this many notes or characters; more patients in a call cost less per note
_BATCH_CHARACTERS = 1 << 20
LAYER = "gold"  # of given entities


@dataclass(frozen=True, slots=True)
class Note:
    """A row: a note with its position, or the fault for which it is withheld. The repr shows no text."""

    number: int
    id: str | None = field(repr=False)
    patient: str | None = field(repr=False)
    text: str | None = field(repr=False)
    entities: Sequence[Mapping[str, Any]] | None = field(default=None, repr=False)
    fault: str = ""

    def unit(self, max_chars: int) -> Unit:
        """Return the note as a unit of work; reading it raises DataError if the note has a fault."""
        return Unit("", self.id or "", partial(same_bytes, b""), partial(self._parse, max_chars), number=self.number)

    def document(self, max_chars: int) -> Document:
        """Return the note as a document; raise DataError if it has a fault, LimitError if it is too long."""
        if self.fault or self.text is None or self.id is None:
            raise DataError(self.fault or "has no text")
        layers = {}
        if self.entities is not None:
            layers[LAYER] = [Span(item["start"], item["end"], item["label"]) for item in self.entities]
        return Document.make(self.text, id=self.id, group=self.patient, layers=layers, max_chars=max_chars)

    def _parse(self, max_chars: int, _: bytes) -> Document:
        """Return the note's document; the unit's bytes are ignored."""
        return self.document(max_chars)


def batch_notes(batches: Iterable[pa.RecordBatch], *, need_patient: str = "") -> Iterator[list[Note]]:
    """Yield the notes of a partition in batches of whole patients; `need_patient`: the fault of a note without patient.

    `need_patient` is the fault of notes without a patient; empty if they need none.
    """
    batch: list[Note] = []
    characters = 0
    rows = (row for part in batches for row in _rows(part))
    for _, group in groupby(enumerate(rows, start=1), key=lambda item: item[1]["key"]):
        for place, row in group:
            note = _note(place, row, need_patient)
            batch.append(note)
            characters += len(note.text or "")
        if len(batch) >= BATCH_NOTES or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _note(place: int, row: Mapping[str, Any], need_patient: str) -> Note:
    """Return a row's note, numbered by `place` if it has no number; with a fault and no text if it cannot be used."""
    number = place if row["number"] is None else row["number"]
    fault = ""
    if isinstance(row["text"], _Unreadable) or isinstance(row["id"], _Unreadable):
        fault = "is not valid UTF-8; re-encode the text as UTF-8"
    elif row["id"] is None:
        fault = "has no id; give every note an id"
    elif row["repeated"]:
        fault = "has the id of another note; make the ids differ"
    elif row["text"] is None:
        fault = "has no text"
    elif need_patient and row["patient"] is None:
        fault = need_patient
    name, patient, text = (None if isinstance(row[key], _Unreadable) else row[key] for key in ("id", "patient", "text"))
    return Note(number, name, patient, None if fault else text, row.get("entities"), fault)


class _Unreadable:
    """A cell that is not valid UTF-8."""


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of an Arrow batch as dictionaries; cells that are not UTF-8 as `_Unreadable`."""
    names = batch.schema.names
    columns = [_values(batch.column(name)) for name in names]
    for cells in zip(*columns, strict=True):
        yield dict(zip(names, cells, strict=True))


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column; those that are not valid UTF-8 as `_Unreadable`."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]


def _value(cell: pa.Scalar) -> Any:
    """Return the value of an Arrow cell; `_Unreadable` if it is not UTF-8."""
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return _Unreadable()


def to_record_batch(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Callable[[], Any]]) -> pa.RecordBatch:
    """Return rows as an Arrow batch; `types` has each column and a function that makes its type."""
    import pyarrow as pa

    arrays = [pa.array([row[name] for row in rows], make()) for name, make in types.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(types))
