"""De-identify the notes of a DataFrame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chaffinch.deid import DEFAULT_POLICY
from chaffinch.deid.dates.order import MOST_CONTRARY, DateOrder, count_orders, find_numeric_dates, settle_order
from chaffinch.deid.dates.points import Order
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release, Released, Withheld
from chaffinch.deid.release.two_passes import takes_two_passes
from chaffinch.errors import ConfigError
from chaffinch.garbage import collect_rarely
from chaffinch.jobs.batching.batches import release_units
from chaffinch.jobs.batching.large_patient import PatientWork
from chaffinch.jobs.date_order import SAMPLE_CHARACTERS, SAMPLE_NOTES, settle_date_order
from chaffinch.jobs.deid import DEFAULT
from chaffinch.jobs.pool.worker import turn_off_core_dumps
from chaffinch.jobs.spark.attempts import Rows, map_notes
from chaffinch.jobs.spark.batches import BATCH_NOTES, Note, batch_notes, to_record_batch
from chaffinch.jobs.spark.table import NoteColumns, map_partitions, partition_notes, read_notes
from chaffinch.jobs.work import BatchWork, DetectorSpec, Keys, WorkSpec, load_work
from chaffinch.text.document import MAX_CHARS
from chaffinch.text.view import plain_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCHEMA = (
    "id string, patient string, text string, spans array<struct<start:int,end:int,label:string,operator:string>>, "
    "status string, reason string, model_sha256 string, policy_sha256 string"
)
_COLUMNS = ("id", "patient", "text", "spans", "status", "reason", "model_sha256", "policy_sha256")  # of SCHEMA
RELEASED, WITHHELD = "released", "withheld"
_VOTES = "characters bigint, mdy bigint, dmy bigint"
DEFAULT_DETECTOR = DetectorSpec(DEFAULT)


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A file of the secret on every machine that works, and the fingerprint of the secret in it.

    Only path and fingerprint travel; a worker whose file has another secret stops the job.
    """

    path: str
    fingerprint: str

    @classmethod
    def of(cls, path: str | Path) -> SecretFile:
        """Read the file on this machine, and return its absolute path and the fingerprint of its secret."""
        return cls(str(Path(path).absolute()), Secret.read(path).fingerprint())


@dataclass(frozen=True, slots=True)
class Settings:
    """Further settings of `deidentify`.

    `ids`: "new" replaces ids and patients by pseudonyms of the secret (or by numbers, without a secret), "keep" leaves
    them. `spans`: whether the rows say where replacements are, which distinguishes surrogates from leaks.
    `each_note_a_patient`: no two notes are of one patient. `unique_ids`: all ids differ, so that it is not checked.
    `number` names a column with the position of each note in its input, a whole number: names get their surrogates in
    that order, else in that of the ids. `partitions`: of the notes, by patient; Spark's choice by default.
    """

    ids: Literal["new", "keep"] = "new"
    spans: bool = True
    each_note_a_patient: bool = False
    date_order: DateOrder = "auto"
    unique_ids: bool = False
    partitions: int | None = None
    number: str | None = None
    max_chars: int = MAX_CHARS


NO_SETTINGS = Settings()


def deidentify(
    df: DataFrame,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002  (the name of the output column too)
    patient: str | None = "patient",
    policy: str | Path | Policy = DEFAULT_POLICY,
    detector: DetectorSpec = DEFAULT_DETECTOR,
    secret_file: str | Path | SecretFile | None = None,
    settings: Settings = NO_SETTINGS,
) -> DataFrame:
    """Return a row per note: new id, patient, released text, spans, status, reason, and digests of model and policy.

    `text`, `id` and `patient` name columns; `patient=None` says that there is none. Each worker reads `secret_file` on
    its own machine. A note that fails has the status "withheld", a reason and no text. Nothing is computed until the
    rows are asked for, except that a policy that shifts dates by "auto" counts the order of day and month in a sample.
    """
    rules = policy if isinstance(policy, Policy) else Policy.read(policy)
    columns = NoteColumns(text, id, patient, settings.number)
    secret = SecretFile.of(secret_file) if isinstance(secret_file, str | Path) else secret_file
    work = _plan(rules, detector, secret, settings, columns)
    if settings.date_order == "auto" and "auto" in rules.date_orders:
        order = _count_order(read_notes(df, columns, unique_ids=True), settings.max_chars)
        work = replace(work, spec=replace(work.spec, counted_order=order))
    notes = read_notes(df, columns, unique_ids=settings.unique_ids)
    table = partition_notes(notes, by_patient=work.by_patient, partitions=settings.partitions)
    return map_partitions(table, work, SCHEMA)


def _plan(
    policy: Policy, detector: DetectorSpec, secret: SecretFile | None, settings: Settings, columns: NoteColumns
) -> DeidentifyPartition:
    """Check the settings, and return the work of a partition; raise ConfigError if they do not fit together."""
    if policy.needs_secret and secret is None:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or date shifts, which needs a secret: make one with `chaffinch "
            "deid secret new FILE`, copy it to every worker, and give secret_file=FILE"
        )
    if settings.ids == "new" and secret is None and columns.number is None:
        raise ConfigError(
            "new ids are drawn from a secret, or are numbers of the notes; give secret_file, Settings(number=…), or "
            'Settings(ids="keep") if the ids contain no identifiers'
        )
    if settings.each_note_a_patient and columns.patient is not None:
        raise ConfigError(
            "each_note_a_patient says that no two notes are of one patient, but patient names a column of patients; "
            "give patient=None, or leave it out"
        )
    if policy.needs_secret and columns.patient is None and not settings.each_note_a_patient:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or shifts dates by patient: name the column of patients, or give "
            "each_note_a_patient=True if every note is of another patient"
        )
    if settings.date_order != "auto":
        _check_date_order(policy, settings.date_order)
    found = detector.build()
    spec = WorkSpec(
        detector.pin(found), policy, settings.ids == "keep", (), settings.spans, settings.date_order, None,
        "" if secret is None else secret.fingerprint,
    )  # fmt: skip
    alone = (
        f"has no patient, and policy {policy.name} draws surrogates or shifts dates by patient"
        if policy.needs_secret and not settings.each_note_a_patient
        else ""
    )
    return DeidentifyPartition(
        spec, None if secret is None else secret.path, found.model_digest, policy.digest(), settings.max_chars, alone,
        found.by_patient or policy.reads_patients,
    )  # fmt: skip


def _check_date_order(policy: Policy, order: DateOrder) -> None:
    """Raise ConfigError if the date order has no effect, or is another than that of the policy."""
    secret = Secret.new() if policy.needs_secret else None  # of no use but to make the release
    settle_date_order(Release(policy, secret, date_order=order), [], "date_order")


@dataclass(frozen=True, slots=True)
class DeidentifyPartition:
    """The work on the notes of a partition, as Spark sends it to its workers: paths, digests and settings."""

    spec: WorkSpec
    secret_path: str | None
    model_digest: str
    policy_digest: str
    max_chars: int
    need_patient: str = ""
    by_patient: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches of a partition: a row per note, released, or withheld with the reason."""
        import pyarrow as pa

        span = [("start", pa.int32()), ("end", pa.int32()), ("label", pa.string()), ("operator", pa.string())]
        kinds: dict[str, Any] = dict.fromkeys(_COLUMNS, pa.string) | {"spans": lambda: pa.list_(pa.struct(span))}
        for rows in map_notes(self, batch_notes(batches, need_patient=self.need_patient)):
            yield to_record_batch(rows, kinds)

    def load(self) -> Callable[[Sequence[Note]], Rows]:
        """Load the detector and read the secret, once per process; return the function from notes to their rows."""
        work = _load(self.spec, self.secret_path)

        def make_rows(notes: Sequence[Note]) -> Rows:
            """Return the row of each note of a batch, in order."""
            results = release_notes(work, notes, self.max_chars)
            return [
                self._row(note, work.release, _outcome(result, spans=self.spec.spans))
                for note, result in zip(notes, results, strict=True)
            ]

        return make_rows

    def withhold(self, note: Note, reason: str) -> Mapping[str, Any]:
        """Return the row of a note that is withheld for a reason."""
        release = _read_release(self.spec, self.secret_path)
        return self._row(note, release, _outcome(Withheld("", "", reason), spans=False))

    def _row(self, note: Note, release: Release, outcome: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the row of a note with its outcome."""
        return {
            "id": None if note.id is None else release.name(note.id, note.number),
            "patient": release.patient(note.patient),
            **outcome,
            "model_sha256": self.model_digest,
            "policy_sha256": self.policy_digest,
        }


def release_notes(work: BatchWork, notes: Sequence[Note], max_chars: int) -> Iterator[Released | Withheld]:
    """Yield the outcome of each note, in order; a patient with more notes than a batch takes two passes."""
    sizes = Counter(note.patient for note in notes)
    splits = takes_two_passes(work.detector)

    def is_large(note: Note) -> bool:
        """Tell whether a note is of a large patient; batches end with one, so that there is one at most."""
        return splits and note.patient is not None and sizes[note.patient] > BATCH_NOTES

    for large, group in groupby(notes, key=is_large):
        units = [note.unit(max_chars) for note in group]
        if large:
            with closing(PatientWork(work, None, None)) as patient:
                patient.add(units)
                yield from patient.results()
        else:
            yield from release_units(work, units)


def _outcome(result: Released | Withheld, *, spans: bool) -> dict[str, Any]:
    """Return text, spans, status and reason of a result as a dict; no text or spans if it is withheld."""
    if isinstance(result, Withheld):
        return {"text": None, "spans": None, "status": WITHHELD, "reason": result.reason}
    places = (
        [{"start": p[4], "end": p[5], "label": p[2], "operator": p[3]} for p in result.places if p[5] > p[4]]
        if spans
        else None
    )
    return {"text": result.text, "spans": places, "status": RELEASED, "reason": None}


@lru_cache(maxsize=2)  # of this Python worker: the model is loaded and the secret is read once
def _load(spec: WorkSpec, secret_path: str | None) -> BatchWork:
    """Load the work of a spec once per process, with the secret of the file."""
    return load_work(spec, Keys.read(secret_path))


@lru_cache(maxsize=2)  # as above
def _read_release(spec: WorkSpec, secret_path: str | None) -> Release:
    """Return the release of a spec, with the secret of the file; no model is loaded."""
    return spec.release(Keys.read(secret_path).secret)


@dataclass(frozen=True, slots=True)
class CountPartition:
    """The count of dates by their order of day and month in each note of a partition; no text leaves the workers.

    Notes that are too long count as empty: they are withheld.
    """

    max_chars: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches: a row per note of its characters, and unambiguous dates in each order."""
        import pyarrow as pa

        turn_off_core_dumps()
        collect_rarely()
        for notes in batch_notes(batches):
            rows: list[dict[str, int]] = []
            for note in notes:
                text = "" if note.text is None or len(note.text) > self.max_chars else note.text
                votes = count_orders(find_numeric_dates(plain_text(text)))
                rows.append({"characters": len(text), "mdy": votes["mdy"], "dmy": votes["dmy"]})
            yield to_record_batch(rows, dict.fromkeys(("characters", "mdy", "dmy"), pa.int64))


def _count_order(notes: DataFrame, max_chars: int) -> Order | None:
    """Return the order of day and month of nearly all unambiguous dates in the first notes; None if mixed or none."""
    first = notes.orderBy("number", "id").limit(SAMPLE_NOTES)
    votes: Counter[Order] = Counter()
    characters = 0
    for row in map_partitions(first, CountPartition(max_chars), _VOTES).collect():
        if characters >= SAMPLE_CHARACTERS:
            break
        characters += row["characters"]
        votes.update(mdy=row["mdy"], dmy=row["dmy"])
    return settle_order(votes, most_contrary=MOST_CONTRARY)
