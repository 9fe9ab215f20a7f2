"""HIPAA's list of identifiers, and the kinds that our labels lead to."""

from __future__ import annotations

from collections.abc import Mapping

from chaffinch.text.identifiers import CATEGORIES, KINDS, KNOWN_LABELS, Kind, folded, is_known, kind_of

__all__ = ["CATEGORIES", "HIPAA", "KINDS", "KNOWN_LABELS", "Kind", "folded", "is_known", "kind_of"]

# 45 CFR 164.514(b)(2)(i): the identifiers of the individual, of relatives, employers and household members.
HIPAA: Mapping[str, str] = {
    "A": "names",
    "B": "geographic subdivisions smaller than a state",
    "C": "elements of dates but the year, and ages over 89",
    "D": "telephone numbers",
    "E": "fax numbers",
    "F": "e-mail addresses",
    "G": "social security numbers",
    "H": "medical record numbers",
    "I": "health plan beneficiary numbers",
    "J": "account numbers",
    "K": "certificate and license numbers",
    "L": "vehicle identifiers and license plates",
    "M": "device identifiers and serial numbers",
    "N": "web addresses",
    "O": "internet protocol addresses",
    "P": "biometric identifiers",
    "Q": "full-face photographs",
    "R": "any other unique identifying number, characteristic or code",
}
