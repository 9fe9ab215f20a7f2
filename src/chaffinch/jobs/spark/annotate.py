"""Tag the notes of a DataFrame, or find relations in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chaffinch import bundle
from chaffinch.deid.release.patient import reason
from chaffinch.errors import ConfigError
from chaffinch.jobs.spark.attempts import Rows, map_notes
from chaffinch.jobs.spark.batches import LAYER, Note, batch_notes, to_record_batch
from chaffinch.jobs.spark.table import NoteColumns, map_partitions, partition_notes, read_notes
from chaffinch.loading import load
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span
from chaffinch.text.document import MAX_CHARS
from chaffinch.text.span import Relation

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_HEAD = "id string, patient string, text string, "
_TAIL = ", status string, reason string, model_sha256 string"
_PLACES = "array<struct<start:int,end:int"
TAG_SCHEMA = f"{_HEAD}spans {_PLACES},label:string,score:double>>{_TAIL}"
RELATE_SCHEMA = (
    f"{_HEAD}relations array<struct<label:string,score:double,arguments:array<struct<role:string,concept:string,"
    f"spans:{_PLACES},label:string>>>>>>{_TAIL}"
)
_TAGGED = "tagged"  # the layer of new spans
_OTHER_KINDS = ("multihmm", "chmm", "relations")  # of models that tag nothing
Align = Literal["recall", "balanced"]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model by its name or absolute path, and the SHA-256 of its file, which must be the same on every worker."""

    name: str
    sha256: str

    @classmethod
    def of(cls, model: str | Path) -> ModelFile:
        """Return name or absolute path of a model, packaged or a file, with the SHA-256 of its file."""
        name = str(model) if str(model) in bundle.list_packaged_models() else str(Path(model).absolute())
        return cls(name, _digest(name))

    def load(self) -> Any:
        """Load the model; raise ConfigError if this machine's file has another SHA-256."""
        if _digest(self.name) != self.sha256:
            raise ConfigError("the model file on this worker is not the one that the job was planned with; copy it")
        return load(self.name)


def _digest(model: str) -> str:
    """Return the SHA-256, in hex, of a model's file."""
    with Path(bundle.find(model)).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tag(
    df: DataFrame,
    model: str | Path,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002  (the name of the output column too)
    patient: str | None = None,
    align: Align | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return a row per note with the spans that a model finds; ConfigError for a model that tags nothing.

    The columns are id, patient, text, spans, status, reason and model_sha256.
    With `align`, a word gets one answer in all notes of a patient, as with `Tagger.annotate`. A note that fails has the
    status "withheld", a reason and no spans.
    """
    kind = bundle.read_manifest(model).kind
    if kind in _OTHER_KINDS:
        raise ConfigError(f"a model of kind {kind!r} tags nothing; give a tagger, or a detector of identifiers")
    if align is not None and (kind in ("deid", "weak") or patient is None):
        raise ConfigError("align joins the notes of a patient by a tagger's model; give both, or leave it out")
    columns = NoteColumns(text, id, patient)
    notes = partition_notes(read_notes(df, columns), by_patient=align is not None, partitions=partitions)
    return map_partitions(notes, TagPartition(ModelFile.of(model), align), TAG_SCHEMA)


def relate(
    df: DataFrame,
    model: str | Path,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002  (as above)
    entities: str | None = None,
    precision: float | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return a row per note with the relations that an extractor finds; ConfigError for another kind of model.

    `entities` names a column of lists of structs (start, end, label); extractors that find them by themselves need
    none. With `precision`, the threshold is the lowest of this cross-validated precision. A note that fails has the
    status "withheld", a reason and no relations.
    """
    kind = bundle.read_manifest(model).kind
    if kind != "relations":
        raise ConfigError(f"a model of kind {kind!r} finds no relations; train one with chaffinch relate train")
    notes = read_notes(df, NoteColumns(text, id, entities=entities))
    notes = partition_notes(notes, by_patient=False, partitions=partitions)
    return map_partitions(notes, RelatePartition(ModelFile.of(model), precision), RELATE_SCHEMA)


@dataclass(frozen=True, slots=True)
class TagPartition:
    """The work of `tag` on a partition, as Spark sends it to its workers."""

    model: ModelFile
    align: Align | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches of a partition: a row per note with its spans, or why it failed."""
        import pyarrow as pa

        place = [("start", pa.int32()), ("end", pa.int32()), ("label", pa.string()), ("score", pa.float64())]
        kinds = _kinds("spans", pa.list_(pa.struct(place)))
        for rows in map_notes(self, batch_notes(batches)):
            yield to_record_batch(rows, kinds)

    def load(self) -> Callable[[Sequence[Note]], Rows]:
        """Load the model once per process; return the function from notes to rows with their spans."""
        tagger = _load(self.model, None)

        def annotate(docs: Sequence[Document]) -> list[list[dict[str, Any]]]:
            """Return by document the spans that the model finds."""
            if isinstance(tagger, Tagger):
                found = tagger.annotate(docs, layer=_TAGGED, align=self.align)
            else:
                found = tagger.annotate(docs, layer=_TAGGED)
            return [[_span(span) | {"score": span.score} for span in doc.layers[_TAGGED]] for doc in found]

        return lambda notes: _rows(notes, annotate, "spans", self.model.sha256)

    def withhold(self, note: Note, reason: str) -> Mapping[str, Any]:
        """Return the row of a note that is withheld for a reason."""
        return _withheld_row(note, reason, "spans", self.model.sha256)


@dataclass(frozen=True, slots=True)
class RelatePartition:
    """The work of `relate` on a partition, as Spark sends it to its workers."""

    model: ModelFile
    precision: float | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches of a partition: a row per note with its relations, or why it failed."""
        import pyarrow as pa

        place = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", pa.string())])
        argument = pa.struct([("role", pa.string()), ("concept", pa.string()), ("spans", pa.list_(place))])
        relation = pa.struct([("label", pa.string()), ("score", pa.float64()), ("arguments", pa.list_(argument))])
        kinds = _kinds("relations", pa.list_(relation))
        for rows in map_notes(self, batch_notes(batches)):
            yield to_record_batch(rows, kinds)

    def load(self) -> Callable[[Sequence[Note]], Rows]:
        """Load the model once per process; return the function from notes to rows with their relations."""
        extractor = _load(self.model, self.precision)
        layer = getattr(extractor.config, "layer", None) or LAYER

        def annotate(docs: Sequence[Document]) -> list[list[dict[str, Any]]]:
            """Return by document the relations that the extractor finds."""
            given = [replace(doc, layers={layer: doc.layers[LAYER]}) if LAYER in doc.layers else doc for doc in docs]
            return [list(map(_relation, doc.relations)) for doc in extractor.annotate(given)]

        return lambda notes: _rows(notes, annotate, "relations", self.model.sha256)

    def withhold(self, note: Note, reason: str) -> Mapping[str, Any]:
        """Return the row of a note that is withheld for a reason."""
        return _withheld_row(note, reason, "relations", self.model.sha256)


@lru_cache(maxsize=2)  # of this Python worker: a model is loaded once
def _load(model: ModelFile, precision: float | None) -> Any:
    """Load a model, once per process; an extractor at `precision`, if given."""
    return model.load() if precision is None else model.load().with_precision(precision)


def _kinds(found: str, kind: Any) -> dict[str, Callable[[], Any]]:
    """Return {column: function that makes its Arrow type} of a result table; its column `found` has the type `kind`."""
    import pyarrow as pa

    names = ("id", "patient", "text", found, "status", "reason", "model_sha256")
    return dict.fromkeys(names, pa.string) | {found: lambda: kind}


def _rows(
    notes: Sequence[Note], annotate: Callable[[Sequence[Document]], list[list[dict[str, Any]]]], found: str, sha256: str
) -> list[Mapping[str, Any]]:
    """Return a row for each note, in order: what `annotate` found, in column `found`, or the reason if it failed."""
    docs: dict[int, Document] = {}
    results: dict[int, list[dict[str, Any]] | Exception] = {}
    for place, note in enumerate(notes):
        try:
            docs[place] = note.document(MAX_CHARS)
        except Exception as error:
            results[place] = error
    results |= zip(docs, _annotate_each(list(docs.values()), annotate), strict=True)
    rows: list[Mapping[str, Any]] = []
    for place, note in enumerate(notes):
        result = results[place]
        if isinstance(result, Exception):
            rows.append(_withheld_row(note, reason(result), found, sha256))
        else:
            rows.append(_row(note, found, sha256) | {found: result, "status": "done"})
    return rows


def _annotate_each(
    docs: Sequence[Document], annotate: Callable[[Sequence[Document]], list[list[dict[str, Any]]]]
) -> list[list[dict[str, Any]] | Exception]:
    """Annotate documents together; if that fails, patient by patient, then one by one. Return results or exceptions."""
    if not docs:
        return []
    try:
        return list(annotate(docs))
    except Exception as error:
        if len(docs) == 1:
            return [error]
    patients = {doc.patient for doc in docs}
    parts: dict[object, list[int]] = {}
    for place, doc in enumerate(docs):
        parts.setdefault(doc.patient if len(patients) > 1 else place, []).append(place)
    results: dict[int, list[dict[str, Any]] | Exception] = {}
    for places in parts.values():
        results |= zip(places, _annotate_each([docs[place] for place in places], annotate), strict=True)
    return [results[place] for place in range(len(docs))]


def _withheld_row(note: Note, why: str, found: str, sha256: str) -> Mapping[str, Any]:
    """Return the row of a note withheld for the reason `why`; `found` is its empty column, `sha256` the model's."""
    return _row(note, found, sha256) | {"status": "withheld", "reason": why}


def _row(note: Note, found: str, sha256: str) -> dict[str, Any]:
    """Return the row of a note, its column `found`, status and reason still None; `sha256` is the model's."""
    return {
        "id": note.id, "patient": note.patient, "text": note.text, found: None, "status": None, "reason": None,
        "model_sha256": sha256,
    }  # fmt: skip


def _span(span: Span) -> dict[str, Any]:
    """Return a span as a dict of start, end and label."""
    return {"start": span.start, "end": span.end, "label": span.label}


def _relation(relation: Relation) -> dict[str, Any]:
    """Return a relation as a dict: label, score, arguments with role, concept and spans."""
    arguments = [
        {"role": item.role, "concept": item.concept or None, "spans": list(map(_span, item.spans))}
        for item in relation.arguments
    ]
    return {"label": relation.label, "score": relation.score, "arguments": arguments}
