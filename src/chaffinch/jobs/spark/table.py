"""The notes of a DataFrame as a table with fixed columns: checked, and partitioned by patient if that is needed.

The columns of the table: `key` (the patient, else the id), `number` (the position of the note), `id`, `patient`,
`text`, `entities` if there are any, and `repeated` (whether another note has the same id). Messages name the
parameters of the caller, never a column.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaffinch.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Partition = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

SPANS = "array<struct<start:bigint,end:bigint,label:string>>"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NAMES = ("string", *_WHOLE)  # types of columns that name something


@dataclass(frozen=True, slots=True)
class NoteColumns:
    """The names of the columns of notes; `number` is the position of a note in its input, a whole number."""

    text: str
    id: str
    patient: str | None = None
    number: str | None = None
    entities: str | None = None


def read_notes(df: DataFrame, columns: NoteColumns, *, unique_ids: bool = False) -> DataFrame:
    """Return the notes' columns, renamed, and whether an id repeats; with `unique_ids` that is not checked.

    Raise ConfigError for a column that is missing or of another type.
    """
    functions = import_functions()
    notes = df.select(*(column.alias(name) for name, column in _choose(df, columns).items()))
    if unique_ids:
        return notes.withColumn("repeated", functions.lit(False))
    again = notes.groupBy("id").count().where("count > 1").select(functions.col("id").alias("again"))
    notes = notes.join(functions.broadcast(again), notes["id"] == again["again"], "left")
    return notes.withColumn("repeated", functions.col("again").isNotNull()).drop("again")


def partition_notes(notes: DataFrame, *, by_patient: bool, partitions: int | None = None) -> DataFrame:
    """Divide notes into `partitions` parts; `by_patient`: a patient's notes are in one, sorted; ConfigError below 1."""
    if partitions is not None and partitions < 1:
        raise ConfigError(f"partitions must be at least 1, got {partitions}")
    if not by_patient:
        return notes if partitions is None else notes.repartition(partitions)
    notes = notes.repartition("key") if partitions is None else notes.repartition(partitions, "key")
    return notes.sortWithinPartitions("key", "number", "id")


def map_partitions(notes: DataFrame, work: Partition, schema: str) -> DataFrame:
    """Return a table of the rows that `work` yields for each partition, with this schema."""
    with quiet_pandas():
        return notes.mapInArrow(work, schema)


def import_functions() -> Any:
    """Return the module of Spark's column functions; raise MissingExtraError if PySpark is not installed."""
    try:
        with quiet_pandas():
            from pyspark.sql import functions
    except ImportError:
        raise MissingExtraError("pyspark", "spark") from None
    return functions


@contextmanager
def quiet_pandas() -> Iterator[None]:
    """Ignore PySpark's warning about the version of pandas inside the block: no table goes through pandas here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _choose(df: DataFrame, columns: NoteColumns) -> dict[str, Any]:
    """Return {role: expression} of the chosen columns (text, id …); ConfigError if one is missing, double or unfit."""
    functions = import_functions()
    types = [(field.name, field.dataType.simpleString()) for field in df.schema.fields]

    def find(name: str, parameter: str, allowed: tuple[str, ...], remedy: str) -> Any:
        """Return the column of that name; raise ConfigError if there is none, are several, or it has another type."""
        found = [kind for column, kind in types if column == name]
        if len(found) != 1:
            many = "several columns" if found else "no column"
            raise ConfigError(f"{parameter}: {many} of the {len(types):,} in the table have that name; name another")
        kind = found[0].split("(")[0].split(" collate ")[0]
        if kind not in allowed and found[0] not in allowed:
            raise ConfigError(f"{parameter}: the column is of type {kind.split('<')[0]}, and must be {remedy}")
        return functions.col("`" + name.replace("`", "``") + "`")

    whole = "of strings or whole numbers"
    note_id = find(columns.id, "id", _NAMES, whole).cast("string")
    empty = functions.lit(None).cast("string")
    patient = empty if columns.patient is None else find(columns.patient, "patient", _NAMES, whole).cast("string")
    patient = functions.when(patient != "", patient)  # an empty cell names nobody
    number = functions.lit(None) if columns.number is None else find(columns.number, "number", _WHOLE, "whole numbers")
    chosen = {
        "key": functions.coalesce(patient, note_id),
        "number": number.cast("bigint"),
        "id": note_id,
        "patient": patient,
        "text": find(columns.text, "text", ("string",), "of strings"),
    }
    if columns.entities is not None:
        chosen["entities"] = _entities(df, columns.entities).cast(SPANS)
    return chosen


def _entities(df: DataFrame, name: str) -> Any:
    """Return the column of entities with start, end and label only; ConfigError if it lacks one of them."""
    functions = import_functions()
    kinds = [field.dataType for field in df.schema.fields if field.name == name]
    element: Any = getattr(kinds[0], "elementType", None) if len(kinds) == 1 else None
    fields = set(element.fieldNames()) if hasattr(element, "fieldNames") else set()
    wanted = ("start", "end", "label")
    if not fields >= set(wanted):
        raise ConfigError("entities must be a column of lists of structs with the fields start, end and label")
    column = functions.col("`" + name.replace("`", "``") + "`")
    return functions.transform(column, lambda item: functions.struct(*(item[part].alias(part) for part in wanted)))
