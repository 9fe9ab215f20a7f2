"""Release documents: each is de-identified and released, or withheld with a reason; there is nothing between.

    unit  →  document  →  detect  →  act  →  Released | Withheld

Nothing depends on other patients. All documents of a patient decide which dates reveal an age that the policy hides,
and a detector may read them together, so they must come together. Whatever goes wrong, a document's text is in no
message: our errors contain none, and of all others only the type is shown.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import chain
from typing import Any, get_args

import msgspec
import numpy as np

from chaffinch.checks import check_choice
from chaffinch.deid.dates.order import DateOrder, DateOrders, count_orders, settle_order
from chaffinch.deid.dates.points import Order
from chaffinch.deid.dates.telling_ages import DatedText, Timeline, find_dated_texts, patient_timeline
from chaffinch.deid.detect.class_doubt import settle_classes
from chaffinch.deid.detect.protocol import Detector, RememberingDetector
from chaffinch.deid.detect.repeats import NameCounts
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.leakage import Left, Risk, risk, sum_chances
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.clinical_classes import count_flagged
from chaffinch.deid.release.kept_fields import check_fields
from chaffinch.deid.release.memory import Memories, NoteMemory, PatientMemory, content_key
from chaffinch.deid.release.replace import ReplacedText, replace_identifiers
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.vault import UndoRecord
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.text.columns import Columns
from chaffinch.text.document import check_text

LAYER = "deid"
BANDS = (("0.99-1", 0.99), ("0.9-0.99", 0.9), ("0.5-0.9", 0.5), ("0-0.5", 0.0))  # of confidence: name and lower limit

Reader = Callable[[Sequence[Document]], Iterable[tuple[Document, NameCounts]]]
Place = tuple[int, int, str, str, int, int]  # start, end, label, operator, out_start, out_end


@dataclass(frozen=True, slots=True)
class Release:
    """The configuration of a release: the policy, its secret, and what is released beside the text.

    Ids and patients become keyed pseudonyms (without a secret ids are numbers, and patients are omitted) unless
    `keep_ids`. Of the other fields of a document only those in `fields` are released. With `spans`, replacements are
    marked in the output, which distinguishes surrogates from leaks.

    `date_order` says how to read 03/04/1998 where neither the note's dates nor the patient's tell; with "auto" it is
    the `counted_order` of a sample of the notes, and without that such a date becomes a tag where dates are shifted.
    """

    policy: Policy
    secret: Secret | None = None
    keep_ids: bool = False
    fields: tuple[str, ...] = ()
    spans: bool = False
    date_order: DateOrder = "auto"
    counted_order: Order | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown date order, or if the policy needs a secret and there is none."""
        check_choice(self.date_order, "date_order", get_args(DateOrder))
        if self.policy.needs_secret and self.secret is None:
            raise ConfigError(
                f"policy {self.policy.name} draws surrogates or date shifts, which needs a secret: make one with "
                "`chaffinch deid secret new FILE` and give --secret-file FILE"
            )

    def settings(self, detector: Detector) -> dict[str, Any]:
        """Return the settings that determine the output, for the manifest; the secret only as a fingerprint."""
        return {
            "chaffinch": version("chaffinch"),
            "model": {
                "name": detector.name,
                "digest": detector.model_digest,
                "layer": detector.layer,
                **detector.facts,
            },
            "policy": {"name": self.policy.name, "digest": self.policy.digest()},
            "secret": None if self.secret is None else self.secret.fingerprint(),
            "ids": "kept" if self.keep_ids else "numbers" if self.secret is None else "pseudonyms",
            "fields": sorted(self.fields),
            "spans": self.spans,
            "date_order": {"asked": self.date_order, "counted": self.counted_order},
        }

    @property
    def job_order(self) -> Order | None:
        """Return the day–month order where a patient's dates do not tell: asked, else counted; None without both."""
        return self.counted_order if self.date_order == "auto" else self.date_order

    def name(self, original: str, number: int) -> str:
        """Return a released document's id: the original with `keep_ids`, else a pseudonym; `number` without secret."""
        if self.keep_ids:
            return original
        return f"{number:07d}" if self.secret is None else _pseudonym(self.secret, "document", original)

    def patient(self, group: str | None) -> str | None:
        """Return a patient's released name: the group with `keep_ids`, else a pseudonym, or None without a secret."""
        if self.keep_ids or group is None:
            return group
        return None if self.secret is None else _pseudonym(self.secret, "patient", group)


def _pseudonym(secret: Secret, kind: str, name: str) -> str:
    """Return 16 hex digits derived from the secret for a name; different for each kind ("document", "patient")."""
    return f"{next(secret.stream('pseudonym', kind, name)):016x}"


class Released(msgspec.Struct, frozen=True):
    """A released document and its figures; `sealed` are its originals, encrypted for the vault.

    `original` is the id in the input, for the private list of ids. The repr shows no text.
    """

    id: str
    original: str
    text: str
    group: str | None
    fields: dict[str, Any]
    places: tuple[Place, ...]
    bands: dict[str, dict[str, int]]  # by label, spans found in each band of confidence
    tokens: int
    characters: int
    patient: str = ""  # a digest, for counting; empty if the document has no patient
    risk: dict[str, Any] | None = None
    sealed: bytes | None = None
    columns: Columns | None = None  # of the table it came from
    over_redaction: dict[str, int] = {}  # words in spans by clinical class; see `clinical_classes`
    note_memory: bytes | None = None  # what is remembered of it, encrypted for the state

    def __repr__(self) -> str:
        """Return the number of replacements, never text."""
        return f"Released({len(self.places)} replacements)"

    def document(self, *, spans: bool, tokens: bool = False) -> Document:
        """Return the released text as a document, replacements as a layer if `spans`; tokens computed if `tokens`."""
        layers = {LAYER: tuple(Span(p[4], p[5], p[2]) for p in self.places if p[5] > p[4])} if spans else {}
        if not tokens:
            return Document(self.id, self.text, self.group, self.fields, layers=layers, columns=self.columns)
        size = max(len(self.text), 1)
        return Document.make(self.text, id=self.id, group=self.group, meta=self.fields, layers=layers, max_chars=size)

    def pack(self) -> bytes:
        """Encode the released document to bytes for the ledger, without the id and patient of the original."""
        return msgspec.msgpack.encode(msgspec.structs.replace(self, original="", patient=""))

    @classmethod
    def unpack(cls, content: bytes, original: str, group: str | None) -> Released:
        """Decode what `pack` encoded, and add the id and patient of the original."""
        packed = msgspec.msgpack.decode(content, type=cls)
        return msgspec.structs.replace(packed, original=original, patient=_patient_digest(group))


@dataclass(frozen=True, slots=True)
class Withheld:
    """A document that is not released, and the reason, without its text."""

    id: str
    original: str = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class NumberedDocument:
    """A document and its position in the input."""

    number: int
    doc: Document


def release(
    documents: Sequence[NumberedDocument],
    config: Release,
    detector: Detector,
    *,
    seal: Seal | None = None,
    memories: Memories | None = None,
) -> list[Released | Withheld]:
    """De-identify documents; return for each, in order, `Released` or `Withheld`; a seal adds encrypted originals.

    All documents of a patient must come together where the detector or the policy reads them together: names get their
    surrogates in the order of the documents' numbers, and their dates reveal ages together. With `memories`, those of
    the patients' earlier notes go on, and each released document has its note memory if the memories have a seal.
    """
    tagged = read_each([numbered.doc for numbered in documents], detector, memories)
    by_patient: dict[str, list[Document]] = {}
    for one in tagged:
        if not isinstance(one, Exception):
            by_patient.setdefault(one[0].patient, []).append(one[0])
    known = memories or Memories({})
    patients = cache(
        lambda patient: PatientState.of(
            chain.from_iterable(find_dates(doc, detector.layer) for doc in by_patient[patient]),
            config, known.of(patient), known.seal,
        )
    )  # fmt: skip
    results: dict[int, Released | Withheld] = {}
    for i in sorted(range(len(documents)), key=lambda i: documents[i].number):
        results[i] = release_one(documents[i], tagged[i], config, detector.layer, seal, patients)
    return [results[i] for i in range(len(documents))]


def reader_of(detector: Detector, memories: Memories | None) -> Reader:
    """Return a function from documents to (detected document, counts of its names); no counts without memories."""
    if memories is None or not isinstance(detector, RememberingDetector):
        return lambda docs: ((doc, {}) for doc in detector(docs))
    found = {patient: memory.found for patient, memory in memories.patients.items()}
    remembering: RememberingDetector = detector
    return lambda docs: remembering.read(docs, found)


@dataclass(frozen=True, slots=True)
class PatientState:
    """State shared by a patient's notes: names with their surrogates so far, timeline and order of their dates.

    With a seal, what the notes teach is wanted.
    """

    names: NameBook
    timeline: Timeline
    orders: DateOrders
    seal: Seal | None

    @classmethod
    def of(cls, dates: Iterable[DatedText], config: Release, memory: PatientMemory, seal: Seal | None) -> PatientState:
        """Return a patient's state before the first note: the names remembered; timeline and orders of all dates."""
        every = dict.fromkeys(chain(memory.dates, dates))  # neither timeline nor order counts how often a date is there
        orders = DateOrders(settle_order(count_orders(dated.text for dated in every)), config.job_order)
        return cls(memory.book(), patient_timeline(every), orders, seal)

    def teach(self, doc: Document, layer: str, found: NameCounts, config: Release) -> bytes | None:
        """Return what a note that is released now adds to the patient's memory, encrypted; None without a seal.

        It has the names that are new since the last note memory; those of a note between that was withheld do no harm.
        """
        if self.seal is None:
            return None
        names, real = self.names.take_new()
        dates = list(dict.fromkeys(find_dates(doc, layer)))
        return NoteMemory(content_key(doc, config.fields), names, real, found, dates).close(self.seal)


def find_dates(doc: Document, layer: str) -> list[DatedText]:
    """Return the texts of a document's dates, each with the note's day–month order and whether it is of birth."""
    return find_dated_texts(doc.text, date_spans(doc, layer))


def date_spans(doc: Document, layer: str) -> list[Span]:
    """Return the spans of a layer whose kind is DATE."""
    return [span for span in doc.layer(layer) if kind_of(span.label).name == "DATE"]


def withhold(original: str, number: int, error: BaseException, config: Release) -> Withheld:
    """Return the `Withheld` of a document: its released id, its original id, and the error as a safe reason."""
    return Withheld(config.name(original, number), original, reason(error))


def reason(error: BaseException) -> str:
    """Return why a document failed, without text, name or path: our message, or only the type of another error.

    >>> reason(DataError("cannot be read", path="PENN_MARY.txt")), reason(ValueError("Dr. Penn"))
    ('cannot be read', 'failed with ValueError')
    """
    if isinstance(error, DataError):
        return error.message
    return str(error) if isinstance(error, ChaffinchError) else f"failed with {type(error).__name__}"


def detect_each(docs: Sequence[Document], detector: Detector) -> list[Document | Exception]:
    """Return each document with its layer of identifiers, or the exception that detecting it raises.

    Where it fails on several, it is called again by patient, then one by one. One that reads patients together then
    gets all of a patient but those that fail alone; if that fails, all of them do.
    """
    return [one if isinstance(one, Exception) else one[0] for one in read_each(docs, detector, None)]


def read_each(
    docs: Sequence[Document], detector: Detector, memories: Memories | None
) -> list[tuple[Document, NameCounts] | Exception]:
    """Return as `detect_each`, each document with the counts of its names."""
    read = reader_of(detector, memories)
    whole = _read_together(docs, read, detector.layer)
    if not isinstance(whole, Exception):
        return list(whole)
    parts: dict[str, list[int]] = {}
    for number, doc in enumerate(docs):
        parts.setdefault(doc.patient, []).append(number)
    results: dict[int, tuple[Document, NameCounts] | Exception] = {}
    for numbers in parts.values():
        patient = [docs[number] for number in numbers]
        found = whole if len(parts) == 1 else _read_together(patient, read, detector.layer)
        results |= zip(numbers, _spare(patient, found, read, detector), strict=True)
    return [results[number] for number in range(len(docs))]


def _spare(
    docs: Sequence[Document], found: list[tuple[Document, NameCounts]] | Exception, read: Reader, detector: Detector
) -> Sequence[tuple[Document, NameCounts] | Exception]:
    """Return what was found in a patient's documents; if that failed, spare those that are not the cause."""
    if not isinstance(found, Exception):
        return found
    if len(docs) == 1:
        return [found]
    results: list[tuple[Document, NameCounts] | Exception] = []
    for doc in docs:
        alone = _read_together([doc], read, detector.layer)
        results += [alone] if isinstance(alone, Exception) else alone
    if not detector.by_patient:
        return results
    good = [number for number, one in enumerate(results) if not isinstance(one, Exception)]
    rest = found if len(good) == len(docs) else _read_together([docs[number] for number in good], read, detector.layer)
    for place, number in enumerate(good):
        results[number] = rest if isinstance(rest, Exception) else rest[place]
    return results


def _read_together(docs: Sequence[Document], read: Reader, layer: str) -> list[tuple[Document, NameCounts]] | Exception:
    """Return each document with its layer and the counts of its names, or the exception that reading them raises."""
    try:
        found = list(read(docs))
        _check_tagged(docs, [doc for doc, _ in found], layer)
    except Exception as error:  # whatever a detector raises, the documents must not go out
        return error
    return found


def _check_tagged(docs: Sequence[Document], tagged: Sequence[Document], layer: str) -> None:
    """Raise DataError unless the detector returned the same documents, with all spans inside the texts."""
    if len(tagged) != len(docs):
        raise DataError(f"the detector returned {len(tagged)} documents for {len(docs)}")
    for before, after in zip(docs, tagged, strict=True):
        if (before.id, before.text, before.group) != (after.id, after.text, after.group):
            raise DataError("the detector returned another document than it got")
        if any(not 0 <= span.start < span.end <= len(after.text) for span in after.layer(layer)):
            raise DataError("the detector found a span outside the text")


def release_one(
    numbered: NumberedDocument,
    found: tuple[Document, NameCounts] | Exception,
    config: Release,
    layer: str,
    seal: Seal | None,
    patients: Callable[[str], PatientState],
) -> Released | Withheld:
    """Replace the identifiers of a detected document and return it as `Released`; `Withheld` if anything fails."""
    original = numbered.doc.id
    if isinstance(found, Exception):
        return withhold(original, numbered.number, found, config)
    try:
        tagged, names = found
        patient = patients(tagged.patient)
        found_spans = tagged.layer(layer)
        spans = _cut_spans(settle_classes(tagged, layer, config.policy), numbered.doc.columns)
        settled = spans is found_spans  # nothing was doubtful, and nothing is
        resolved = tagged.with_layer(layer, spans)
        replaced = replace_identifiers(
            resolved,
            layer,
            config.policy,
            config.secret,
            names=patient.names,
            timeline=patient.timeline,
            orders=patient.orders,
            settled=settled,
        )
        check_text(replaced.text, max_chars=max(len(replaced.text), 1))
        name = config.name(original, numbered.number)
        fields = {key: value for key, value in numbered.doc.meta.items() if key in config.fields}
        check_fields(fields, _hidden_texts(tagged.text, replaced))
        return Released(
            name, original, replaced.text, config.patient(numbered.doc.group),
            fields,
            tuple((r.start, r.end, r.label, r.operator, r.out_start, r.out_end) for r in replaced.replacements),
            count_by_band(spans), len(tagged.tokens), len(tagged.text),
            _patient_digest(numbered.doc.group),
            residual_risk(tagged, layer, replaced, name),
            None if seal is None else seal_record(UndoRecord.of(numbered.doc, replaced, name), seal),
            _move_columns(numbered.doc.columns, replaced), count_flagged(tagged, spans),
            patient.teach(tagged, layer, names, config),
        )  # fmt: skip
    except Exception as error:  # whatever goes wrong, the document must not go out
        return withhold(original, numbered.number, error, config)


def _cut_spans(spans: Sequence[Span], columns: Columns | None) -> Sequence[Span]:
    """Return the spans, cut where one text column ends and the next begins."""
    if columns is None or len(columns.texts) < 2:
        return spans
    return [replace(span, start=a, end=b) for span in spans for a, b in columns.pieces(span.start, span.end)]


def _move_columns(columns: Columns | None, replaced: ReplacedText) -> Columns | None:
    """Return the text columns with offsets moved to the released text; None if there are none."""
    if columns is None:
        return None
    return columns.move((r.start, r.end, r.out_start, r.out_end) for r in replaced.replacements)


def _hidden_texts(text: str, replaced: ReplacedText) -> list[str]:
    """Return the original texts of all replacements that changed them."""
    return [
        text[one.start : one.end]
        for one in replaced.replacements
        if text[one.start : one.end] != replaced.text[one.out_start : one.out_end]
    ]


def _patient_digest(group: str | None) -> str:
    """Return 32 hex digits of a hash of the patient, for counting patients; "" for None."""
    return "" if group is None else settings_digest({"patient": group})[:32]


def seal_record(record: UndoRecord, seal: Seal) -> bytes:
    """Encrypt the record that restores a document, for the ledger."""
    return seal.close(msgspec.msgpack.encode(record), "waiting", 0)


def unseal_record(content: bytes, seal: Seal) -> UndoRecord:
    """Decrypt what `seal_record` encrypted; raise DataError if it was changed."""
    plain = seal.open(content, "waiting", 0)
    if plain is None:
        raise DataError("a result changed on the disk; remove the folder of the unfinished run and run again")
    return msgspec.msgpack.decode(plain, type=UndoRecord)


def count_by_band(spans: Iterable[Span]) -> dict[str, dict[str, int]]:
    """Return {label: {band of confidence: number of spans}}, without zeros."""
    counts: dict[str, dict[str, int]] = {}
    for span in spans:
        by_band = counts.setdefault(span.label, {})
        band = next((name for name, low in BANDS if span.score >= low), BANDS[-1][0])
        by_band[band] = by_band.get(band, 0) + 1
    return counts


def residual_risk(doc: Document, layer: str, replaced: ReplacedText, name: str) -> dict[str, Any] | None:
    """Return the expected leaks, by category, of tokens not replaced, as a dict; None without probabilities."""
    soft = doc.soft.get(layer)
    if soft is None or "O" not in soft.labels:
        return None
    left = ~_is_covered(doc, replaced)
    values = soft.values[left].T
    by_category = _columns_by_category(soft.labels)
    rows = np.zeros((len(by_category), values.shape[1]), np.result_type(values.dtype, 0.0))
    for number, columns in enumerate(by_category.values()):
        for column in columns:
            rows[number] += values[column]
    p = np.clip(1 - values[soft.labels.index("O")], 0, 1)
    np.clip(rows, 0, 1, out=rows)
    over = np.maximum(sum(rows) if len(rows) else np.ones_like(p), 1e-12)
    rows *= np.minimum(p / over, 1.0)  # rounding must not make the categories' sum exceed p
    categories: Mapping[str, Any] = dict(zip(by_category, rows, strict=True))
    places = np.flatnonzero(left)
    residual: Risk = sum_chances(name, len(doc.tokens), p, places, categories)
    if math.isnan(residual.expected + sum(residual.categories.values())):  # no other number can be out of range here
        residual = risk(Left(name, len(doc.tokens), p, places, categories))  # says so
    return residual.as_dict()


@lru_cache(maxsize=256)
def _columns_by_category(labels: tuple[str, ...]) -> dict[str, list[int]]:
    """Return {category: the columns of its labels} of soft labels, without O, cached."""
    columns: dict[str, list[int]] = {}
    for number, label in enumerate(labels):
        if label != "O":
            columns.setdefault(kind_of(label).category, []).append(number)
    return columns


def _is_covered(doc: Document, replaced: ReplacedText) -> Any:
    """Return (T,) whether each token overlaps a replacement."""
    starts = np.array([one.start for one in replaced.replacements], np.int64)
    ends = np.array([one.end for one in replaced.replacements], np.int64)
    if not len(starts):
        return np.zeros(len(doc.tokens), bool)
    first = np.searchsorted(
        ends, doc.tokens[:, 0], side="right"
    )  # the first replacement that ends after the token's start
    return (first < len(starts)) & (starts[np.minimum(first, len(starts) - 1)] < doc.tokens[:, 1])


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of settings as JSON with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
