"""Releasing documents: each goes out de-identified, or is withheld with a reason; never anything between.

    unit  →  document  →  detect  →  act  →  Released | Withheld

Nothing here depends on documents of other patients. What a patient's documents tell together decides which dates tell
of an age that the policy hides, and a detector may read them together, so they must come together. Whatever goes wrong
with a document, its text is in no message: errors of ours have none, and of all others only the type is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
import numpy as np

from chaffinch.deid.dates.telling_ages import DatedText, Timeline, dated_texts, patient_timeline
from chaffinch.deid.detect.class_doubt import settle_classes
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.leakage import Left, Risk, risk
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.replace import Acted, act
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.vault import Kept, Seal
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.text.document import check_text

LAYER = "deid"
BANDS = (("0.99-1", 0.99), ("0.9-0.99", 0.9), ("0.5-0.9", 0.5), ("0-0.5", 0.0))  # of confidence, and from where on

Place = tuple[int, int, str, str, int, int]  # start, end, label, operator, out_start, out_end


@dataclass(frozen=True, slots=True)
class Release:
    """What is done with documents: the policy, its secret, and what goes out beside the text.

    Ids and patients leave as keyed pseudonyms (without a secret ids are numbers, and patients stay behind) unless
    `keep_ids`. Of the other fields of a document only those in `fields` go along. With `spans`, what was replaced is
    marked in the output, which tells surrogates from leaks.
    """

    policy: Policy
    secret: Secret | None = None
    keep_ids: bool = False
    fields: tuple[str, ...] = ()
    spans: bool = False

    def __post_init__(self) -> None:
        if self.policy.keyed and self.secret is None:
            raise ConfigError(
                f"policy {self.policy.name} draws surrogates or date shifts, which needs a secret: make one with "
                "`chaffinch deid secret new FILE` and give --secret-file FILE"
            )

    def settings(self, detector: Detector) -> dict[str, Any]:
        """All that decides what comes out, as plain values without any secret."""
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
        }

    def name(self, original: str, number: int) -> str:
        """The id under which a document goes out."""
        if self.keep_ids:
            return original
        return f"{number:07d}" if self.secret is None else _pseudonym(self.secret, "document", original)

    def patient(self, group: str | None) -> str | None:
        """What the patient is called outside."""
        if self.keep_ids or group is None:
            return group
        return None if self.secret is None else _pseudonym(self.secret, "patient", group)


def _pseudonym(secret: Secret, kind: str, name: str) -> str:
    return f"{next(secret.stream('pseudonym', kind, name)):016x}"


class Released(msgspec.Struct, frozen=True):
    """A document that goes out, and what is told of it; `sealed` are its originals, encrypted for the vault.

    `original` is the id it came with, for the private list of names. The repr shows no text.
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
    patient: str = ""  # a digest, for counting; empty if the document stands alone
    risk: dict[str, Any] | None = None
    sealed: bytes | None = None

    def __repr__(self) -> str:
        return f"Released({len(self.places)} replacements)"

    def document(self, *, spans: bool, tokens: bool = False) -> Document:
        """The document to write; its tokens are found where the format of the output needs them."""
        layers = {LAYER: tuple(Span(p[4], p[5], p[2]) for p in self.places if p[5] > p[4])} if spans else {}
        if not tokens:
            return Document(self.id, self.text, self.group, self.fields, layers=layers)
        size = max(len(self.text), 1)
        return Document.make(self.text, id=self.id, group=self.group, meta=self.fields, layers=layers, max_chars=size)

    def pack(self) -> bytes:
        """The same as bytes."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpack(cls, content: bytes) -> Released:
        """The document that `pack` made bytes of."""
        return msgspec.msgpack.decode(content, type=cls)


@dataclass(frozen=True, slots=True)
class Withheld:
    """A document that does not go out, and why, in words without its text."""

    id: str
    original: str = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class Numbered:
    """A document and its place in the input."""

    number: int
    doc: Document


def release(
    given: Sequence[Numbered], how: Release, detector: Detector, *, seal: Seal | None = None
) -> list[Released | Withheld]:
    """Release documents: what becomes of each, in order; with a seal, their originals come along, encrypted.

    All documents of a patient must come together where the detector or the policy reads them together: names are
    settled over them in the order of their numbers, and their dates tell ages together.
    """
    found = detected([one.doc for one in given], detector)
    together: dict[str, list[Document]] = {}
    for doc in found:
        if isinstance(doc, Document):
            together.setdefault(doc.patient, []).append(doc)
    patients = cache(lambda patient: _Patient(NameBook(), timeline(together[patient], detector.layer)))
    results: dict[int, Released | Withheld] = {}
    for place in sorted(range(len(given)), key=lambda place: given[place].number):
        results[place] = _released(given[place], found[place], how, detector.layer, seal, patients)
    return [results[place] for place in range(len(given))]


@dataclass(frozen=True, slots=True)
class _Patient:
    """What a patient's notes have in common: names and what they became so far, and what their dates tell."""

    names: NameBook
    timeline: Timeline


def timeline(docs: Iterable[Document], layer: str) -> Timeline:
    """Return what the dates of a patient's documents tell of time."""
    found: list[DatedText] = []
    for doc in docs:
        spans = [span for span in doc.layer(layer) if kind_of(span.label).name == "DATE"]
        found += dated_texts(doc.text, spans)
    return patient_timeline(found)


def withheld(original: str, number: int, error: BaseException, how: Release) -> Withheld:
    """A document withheld because of an error."""
    return Withheld(how.name(original, number), original, reason(error))


def reason(error: BaseException) -> str:
    """Why a document failed, without its text, its name or its path.

    >>> reason(DataError("cannot be read", path="PENN_MARY.txt")), reason(ValueError("Dr. Penn"))
    ('cannot be read', 'failed with ValueError')
    """
    if isinstance(error, DataError):
        return error.message
    return str(error) if isinstance(error, ChaffinchError) else f"failed with {type(error).__name__}"


def detected(docs: Sequence[Document], detector: Detector) -> list[Document | Exception]:
    """Each document with the detector's layer, or what went wrong with it; a failure takes no other with it.

    Where the detector fails on several, they are tried again patient by patient, then one by one.
    """
    try:
        found = list(detector(docs))
        _check(docs, found, detector.layer)
    except Exception as error:  # whatever a detector raises, the document must not go out
        if len(docs) == 1:
            return [error]
        return _apart(docs, detector)
    return list(found)


def _apart(docs: Sequence[Document], detector: Detector) -> list[Document | Exception]:
    parts: dict[Any, list[int]] = {}
    patients = {doc.patient for doc in docs}
    for number, doc in enumerate(docs):
        parts.setdefault(doc.patient if len(patients) > 1 else number, []).append(number)
    results: dict[int, Document | Exception] = {}
    for numbers in parts.values():
        results |= zip(numbers, detected([docs[number] for number in numbers], detector), strict=True)
    return [results[number] for number in range(len(docs))]


def _check(docs: Sequence[Document], found: Sequence[Document], layer: str) -> None:
    if len(found) != len(docs):
        raise DataError(f"the detector gave back {len(found)} documents for {len(docs)}")
    for before, after in zip(docs, found, strict=True):
        if (before.id, before.text, before.group) != (after.id, after.text, after.group):
            raise DataError("the detector gave back another document than it got")
        if any(not 0 <= span.start < span.end <= len(after.text) for span in after.layer(layer)):
            raise DataError("the detector found a span outside the text")


def _released(
    one: Numbered,
    found: Document | Exception,
    how: Release,
    layer: str,
    seal: Seal | None,
    patients: Callable[[str], _Patient],
) -> Released | Withheld:
    original = one.doc.id
    if isinstance(found, Exception):
        return withheld(original, one.number, found, how)
    try:
        patient = patients(found.patient)
        spans = settle_classes(found, layer, how.policy)
        settled = found.with_layer(layer, spans)
        acted = act(settled, layer, how.policy, how.secret, names=patient.names, timeline=patient.timeline)
        check_text(acted.text, max_chars=max(len(acted.text), 1))
        name = how.name(original, one.number)
        return Released(
            name, original, acted.text, how.patient(one.doc.group),
            {key: value for key, value in one.doc.meta.items() if key in how.fields},
            tuple((r.start, r.end, r.label, r.operator, r.out_start, r.out_end) for r in acted.replacements),
            bands(spans), len(found.tokens), len(found.text),
            "" if one.doc.group is None else settings_digest({"patient": one.doc.group})[:32],
            left_risk(found, layer, acted, name),
            None if seal is None else sealed(Kept.of(one.doc, acted, name), seal),
        )  # fmt: skip
    except Exception as error:  # whatever goes wrong, the document must not go out
        return withheld(original, one.number, error, how)


def sealed(kept: Kept, seal: Seal) -> bytes:
    """What undoes a release, encrypted for the time until the vault is written."""
    return seal.close(msgspec.msgpack.encode(kept), "waiting", 0)


def unsealed(content: bytes, seal: Seal) -> Kept:
    """What `sealed` encrypted."""
    plain = seal.open(content, "waiting", 0)
    if plain is None:
        raise DataError("a result changed on the disk; remove the folder of the unfinished run and run again")
    return msgspec.msgpack.decode(plain, type=Kept)


def bands(spans: Iterable[Span]) -> dict[str, dict[str, int]]:
    """By label, how many spans were found in each band of confidence."""
    counts: dict[str, dict[str, int]] = {}
    for span in spans:
        own = counts.setdefault(span.label, {})
        band = next((name for name, low in BANDS if span.score >= low), BANDS[-1][0])
        own[band] = own.get(band, 0) + 1
    return counts


def left_risk(doc: Document, layer: str, acted: Acted, name: str) -> dict[str, Any] | None:
    """What is expected to be left in a document, if the detector gave probabilities of its tokens; else None."""
    soft = doc.soft.get(layer)
    if soft is None or "O" not in soft.labels:
        return None
    left = ~_covered(doc, acted)
    other = soft.labels.index("O")
    by: dict[str, Any] = {}
    for number, label in enumerate(soft.labels):
        if number != other:
            category = kind_of(label).category
            by[category] = by.get(category, 0.0) + soft.values[left, number]
    p = np.clip(1 - soft.values[left, other], 0, 1)
    rows = {category: np.clip(row, 0, 1) for category, row in by.items()}
    over = np.maximum(sum(rows.values()) if rows else np.ones_like(p), 1e-12)
    scale = np.minimum(p / over, 1.0)  # rounding must not make the parts more than the whole
    categories: Mapping[str, Any] = {category: row * scale for category, row in rows.items()}
    made: Risk = risk(Left(name, len(doc.tokens), p, np.flatnonzero(left), categories))
    return made.as_dict()


def _covered(doc: Document, acted: Acted) -> Any:
    """(T,) whether each token shares a character with a replacement."""
    starts = np.array([one.start for one in acted.replacements], np.int64)
    ends = np.array([one.end for one in acted.replacements], np.int64)
    if not len(starts):
        return np.zeros(len(doc.tokens), bool)
    first = np.searchsorted(ends, doc.tokens[:, 0], side="right")  # the first replacement that ends behind its start
    return (first < len(starts)) & (starts[np.minimum(first, len(starts) - 1)] < doc.tokens[:, 1])


def settings_digest(settings: Mapping[str, Any]) -> str:
    """SHA-256 of settings."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
