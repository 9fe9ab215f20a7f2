"""Names of types: our kinds of identifiers in Presidio's words, and back."""

from __future__ import annotations

from chaffinch.deid.kinds import KINDS, kind_of

# Kinds whose name in Presidio is not that of their category.
_OF_KINDS = {
    "USERNAME": "USERNAME",
    "HOSPITAL": "ORGANIZATION",
    "ORGANIZATION": "ORGANIZATION",
    "DEPARTMENT": "ORGANIZATION",
    "PHONE": "PHONE_NUMBER",
    "FAX": "PHONE_NUMBER",
    "EMAIL": "EMAIL_ADDRESS",
    "URL": "URL",
    "IPADDR": "IP_ADDRESS",
    "SSN": "US_SSN",
    "MEDICALRECORD": "MEDICAL_RECORD_NUMBER",
}
_OF_CATEGORIES = {
    "NAME": "PERSON",
    "PROFESSION": "PROFESSION",
    "LOCATION": "LOCATION",
    "AGE": "AGE",
    "DATE": "DATE_TIME",
    "CONTACT": "CONTACT",
    "ID": "ID",
    "OTHER": "OTHER",
}
# The kind whose surrogate fits a type of Presidio, where several have that type.
_NATIVE = {
    "PERSON": "PATIENT", "ORGANIZATION": "ORGANIZATION", "LOCATION": "CITY", "PHONE_NUMBER": "PHONE", "ID": "IDNUM",
}  # fmt: skip


def presidio_type(label: str) -> str:
    """Return Presidio's entity type for one of our labels.

    >>> [presidio_type(label) for label in ("DOCTOR", "DATE", "SSN", "ZIP")]
    ['PERSON', 'DATE_TIME', 'US_SSN', 'LOCATION']
    """
    kind = kind_of(label)
    return _OF_KINDS.get(kind.name) or _OF_CATEGORIES.get(kind.category, kind.category)


def native_label(entity_type: str) -> str:
    """Return our kind of identifier for an entity type of Presidio's or ours; OTHER if it is unknown.

    >>> native_label("PERSON"), native_label("DOCTOR"), native_label("DATE_TIME"), native_label("ZORRO")
    ('PATIENT', 'DOCTOR', 'DATE', 'OTHER')
    """
    if entity_type in KINDS:
        return entity_type
    if entity_type in _NATIVE:
        return _NATIVE[entity_type]
    return next((name for name in KINDS if presidio_type(name) == entity_type), "OTHER")


def all_types(*, native: bool) -> list[str]:
    """Return the names of all types that can be found, sorted; ours if `native`, else Presidio's."""
    return sorted(KINDS) if native else sorted({presidio_type(name) for name in KINDS})
