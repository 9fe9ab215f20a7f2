"""Operators that Presidio does not have: consistent surrogates, and dates shifted by patient, under a secret.

`{"type": "surrogate"}` and `{"type": "shift"}` draw from a secret that the server loaded (`"secret": NAME`, or the
default one) and from the patient (`"patient": ID`): the same name becomes the same invented name in every request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaffinch.deid.detect.entity_types import native_label
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release.memory import PatientMemory
from chaffinch.deid.release.patient import PatientState, Release, find_dates
from chaffinch.deid.release.replace import replace_identifiers
from chaffinch.text import Document, Span
from chaffinch.web.api.deidentify import DEFAULT_SECRET
from chaffinch.web.api.engine import Engine
from chaffinch.web.presidio.bodies import field_of, refuse

LAYER = "found"
KEYED = ("shift", "surrogate")
# Surrogates of everything; dates move by the patient's days, for a date has no surrogate.
_POLICY = Policy("presidio", PolicyRule("surrogate"), {"DATE": PolicyRule("shift"), "AGE": PolicyRule("generalise")})


@dataclass(frozen=True, slots=True)
class KeyedSpan:
    """A span with a keyed operator and its parameters."""

    start: int
    end: int
    entity_type: str
    operator: str
    parameters: Mapping[str, Any]


def replace_keyed(engine: Engine, text: str, spans: Sequence[KeyedSpan]) -> list[str]:
    """Return the surrogate or shifted date of each span, drawn by its secret and patient; spans must not overlap."""
    results: dict[int, str] = {}
    for secret, patient in {_secret_and_patient(dict(span.parameters)) for span in spans}:
        numbers = [n for n, span in enumerate(spans) if _secret_and_patient(dict(span.parameters)) == (secret, patient)]
        key = engine.secret(secret)
        found = [_with_native_label(spans[n]) for n in numbers]
        doc = Document.make(text, id=patient, group=patient, layers={LAYER: found})
        release = Release(_POLICY, key)
        patient_state = PatientState.of(find_dates(doc, LAYER), release, PatientMemory(patient), None)
        replaced = replace_identifiers(
            doc, LAYER, _POLICY, key,
            names=patient_state.names, timeline=patient_state.timeline, orders=patient_state.orders,
        )  # fmt: skip
        new = {(one.start, one.end): replaced.text[one.out_start : one.out_end] for one in replaced.replacements}
        for n in numbers:
            results[n] = new[spans[n].start, spans[n].end]
    return [results[n] for n in range(len(spans))]


def _secret_and_patient(parameters: dict[str, Any]) -> tuple[str, str]:
    """Return (secret's name, default if none; patient) of the parameters; raise Problem if there is no patient."""
    patient = field_of(parameters, "patient", str, "")
    if not patient:
        raise refuse("Expected parameter patient: surrogates and shifts are drawn for a patient")
    return field_of(parameters, "secret", str, DEFAULT_SECRET), patient


def _with_native_label(span: KeyedSpan) -> Span:
    """Return the span with our label for its Presidio type; raise Problem if the operator shifts what is no date."""
    label = native_label(span.entity_type)
    if span.operator == "shift" and label != "DATE":
        raise refuse("shift moves dates, and this type is none; use surrogate")
    return Span(span.start, span.end, label)
