"""Handling of each kind of identifier in de-identification: a row for each `Kind` of `text/identifiers.py`.

A kind without a row here is handled like its category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from chaffinch.deid.dates.ages import cap_ages
from chaffinch.deid.release.rounding import round_date, round_zip
from chaffinch.deid.surrogates import contacts, ids, names, places
from chaffinch.deid.surrogates.letters import SurrogateSource
from chaffinch.text.identifiers import CATEGORIES, KINDS, KNOWN_LABELS, Kind, fold_label, is_known, kind_of

__all__ = [
    "CATEGORIES",
    "HANDLING",
    "HIPAA",
    "KINDS",
    "KNOWN_LABELS",
    "Handling",
    "Kind",
    "fold_label",
    "handling_of",
    "is_known",
    "kind_of",
]

SurrogateMaker: TypeAlias = Callable[[str, SurrogateSource], str]
Rounding: TypeAlias = Callable[[str, int, int | None], str | None]  # (text, greatest age, reference year)


@dataclass(frozen=True, slots=True)
class Handling:
    """How identifiers of a kind are replaced, learnt and searched for.

    `surrogate` draws an invented value; where it is None, `instead` names the operator to use. `rounding` makes the
    text less exact. `columns` are further names of the kind in admission files. `learnt_as` is the class that taggers
    learn for it, where rules can distinguish the two. `person`: every word of it is part of a person's name; `town`: it
    is a town, a state or a country.
    """

    surrogate: SurrogateMaker | None = None
    rounding: Rounding | None = None
    instead: str = ""
    columns: tuple[str, ...] = ()
    learnt_as: str | None = None
    person: bool = False
    town: bool = False


def _code(learnt_as: str | None = None, *columns: str) -> Handling:
    """Return how a code is handled: same-shape surrogates, the class taggers learn, its columns in admission files."""
    return Handling(ids.identifier, columns=columns, learnt_as=learnt_as)


# fmt: off
HANDLING: Mapping[str, Handling] = {
    "PATIENT": Handling(names.person, person=True, columns=(
        "name", "first", "last", "middle", "maiden", "given", "surname", "alias", "nickname", "first_name", "last_name",
        "middle_name", "full_name",
    )),
    "FAMILY": Handling(names.person, person=True, columns=(
        "next_of_kin", "relative", "spouse", "contact_name", "guardian", "emergency_contact", "mother", "father",
    )),
    "DOCTOR": Handling(names.person, person=True, columns=("pcp", "physician", "doctor", "provider", "attending")),
    "USERNAME": Handling(names.username),
    "NAME": Handling(names.person, person=True),
    "PROFESSION": Handling(places.profession),
    "HOSPITAL": Handling(places.institution),
    "ORGANIZATION": Handling(places.institution, columns=("employer", "company", "school")),
    "STREET": Handling(places.street, columns=(
        "street", "address", "street_address", "address_line", "address1", "address2",
    )),
    "CITY": Handling(places.city, town=True, columns=("city", "town")),
    "STATE": Handling(places.state, town=True),
    "COUNTRY": Handling(places.country, town=True),
    "AGE": Handling(rounding=lambda text, over, _: cap_ages(text, over), instead="generalise"),
    "ZIP": Handling(
        ids.zip_code, lambda text, *_: round_zip(text), columns=("zip", "postcode", "zip_code", "postal_code"),
    ),
    "DATE": Handling(
        rounding=lambda text, _, year: round_date(text, year), instead="shift",
        columns=("dob", "birth_date", "date_of_birth", "born"),
    ),
    "LOCATION-OTHER": Handling(places.place, learnt_as="CITY"),
    "ROOM": Handling(ids.room),
    "DEPARTMENT": Handling(places.department),
    "LOCATION": Handling(places.place),
    "PHONE": Handling(
        contacts.phone, columns=("phone", "telephone", "mobile", "cell", "home_phone", "work_phone"),
    ),
    "FAX": Handling(contacts.phone, learnt_as="PHONE"),
    "EMAIL": Handling(contacts.email, learnt_as="URL"),
    "URL": Handling(contacts.url),
    "IPADDR": Handling(contacts.ip_address, learnt_as="URL"),
    "CONTACT": Handling(contacts.contact),
    "SSN": Handling(ids.social_security, learnt_as="IDNUM"),
    "MEDICALRECORD": _code(None, "mrn", "medical_record", "record", "unit_number"),
    "HEALTHPLAN": _code("IDNUM", "member_id", "policy", "insurance_id", "plan_id"),
    "ACCOUNT": _code("IDNUM", "account", "account_number"),
    "LICENSE": _code("IDNUM"),
    "VEHICLE": _code("IDNUM"),
    "DEVICE": _code("IDNUM"),
    "BIOID": _code("IDNUM"),
    "IDNUM": _code(),
    "ID": _code(),
    "OTHER": _code(),
}
# fmt: on


def handling_of(kind: Kind) -> Handling:
    """Return how a kind is handled: by its own row of the table, else by that of its category."""
    return HANDLING.get(kind.name) or HANDLING[kind.category]


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
