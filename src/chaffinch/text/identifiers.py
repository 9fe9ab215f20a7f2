"""Kinds of identifiers: the sub-types of i2b2 2014, their names in other guidelines, and the labels that mean them.

A label of any guideline we know leads to one `Kind`. Any other label is a user-defined type: its kind has the label
as its name, its category is OTHER, and it is not on HIPAA's list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

CATEGORIES = ("NAME", "PROFESSION", "LOCATION", "AGE", "DATE", "CONTACT", "ID", "OTHER")

_DIRECT_LABELS = ("PHI",)  # identifies a person, but does not say how
# Words that make any label one of identifiers, as in "patient_first_name". NAME, ID and FAMILY are not among them: a
# drug has a name, a gene an id, a protein a family.
_DIRECT_WORDS = frozenset("PATIENT PERSON DOCTOR CLINICIAN PHONE TELEPHONE FAX EMAIL SSN MRN STREET".split())
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of identifier: its name, its category, and the letter of HIPAA's list, if it is on it.

    `aliases` are its names in other guidelines. `direct`: it leads to a person by itself, and few patients share it
    (a name, a contact, a number, a street); towns, hospitals, professions, ages and dates are shared by many, and are
    labels of newswire and of science as well. `generic`: it is for labels that name only the category.
    """

    name: str
    category: str
    hipaa: str | None
    aliases: tuple[str, ...] = field(default=(), repr=False)
    direct: bool = field(default=False, repr=False)
    generic: bool = field(default=False, repr=False)

    @property
    def is_proper_name(self) -> bool:
        """Tell whether the kind is a name of a person or place, written with capitals."""
        return self.category in ("NAME", "LOCATION")

    @property
    def is_code(self) -> bool:
        """Tell whether the kind is a number or address that identifies one person or thing."""
        return self.category in ("ID", "CONTACT")


# Clinicians, hospitals, professions, states and countries are not on HIPAA's list. A label that leads to OTHER is
# known, but is no identifier of ours. What de-identification does with a kind is in `deid/kinds.py`.
_ROWS = (
    Kind("PATIENT", "NAME", "A", aliases=("NOMBRE_SUJETO_ASISTENCIA", "NAME_PATIENT", "PATIENT_NAME"), direct=True),
    Kind("FAMILY", "NAME", "A", aliases=("NAME_RELATIVE", "RELATIVE"), direct=True),
    Kind(
        "DOCTOR",
        "NAME",
        None,
        aliases=("NOMBRE_PERSONAL_SANITARIO", "NAME_DOCTOR", "STAFF", "HCW", "CLINICIAN"),
        direct=True,
    ),
    Kind("USERNAME", "NAME", "R", aliases=("NAME_USERNAME", "USER"), direct=True),
    Kind("NAME", "NAME", "A", aliases=("NAME_EXT", "NAME_OTHER", "PERSON", "PER", "NAMES"), direct=True, generic=True),
    Kind("PROFESSION", "PROFESSION", None, aliases=("PROFESION", "OCCUPATION")),
    Kind("HOSPITAL", "LOCATION", None, aliases=("LOCATION_HOSPITAL", "CENTRO_SALUD", "HOSP")),
    Kind("ORGANIZATION", "LOCATION", "A", aliases=("INSTITUCION", "LOCATION_ORGANIZATION", "ORGANISATION", "ORG")),
    Kind("STREET", "LOCATION", "B", aliases=("CALLE", "LOCATION_STREET", "STREET_ADDRESS", "ADDRESS"), direct=True),
    Kind("CITY", "LOCATION", "B", aliases=("LOCATION_CITY", "TOWN")),
    Kind("STATE", "LOCATION", None, aliases=("LOCATION_STATE",)),
    Kind("COUNTRY", "LOCATION", None, aliases=("PAIS", "LOCATION_COUNTRY")),
    Kind("ZIP", "LOCATION", "B", aliases=("LOCATION_ZIP", "ZIP_CODE", "POSTCODE", "POSTAL_CODE")),
    Kind("LOCATION-OTHER", "LOCATION", "B", aliases=("TERRITORIO",)),
    Kind("ROOM", "LOCATION", None, aliases=("LOCATION_ROOM",)),
    Kind("DEPARTMENT", "LOCATION", None, aliases=("LOCATION_DEPARTMENT", "WARD")),
    Kind("LOCATION", "LOCATION", "B", aliases=("GEOGRAPHIC_LOCATION", "GPE", "LOC", "PLACE"), generic=True),
    Kind("AGE", "AGE", "C", aliases=("EDAD_SUJETO_ASISTENCIA",)),
    Kind("DATE", "DATE", "C", aliases=("FECHAS", "DATE_TIME", "DATE_BIRTH", "DATE_DEATH", "DATES")),
    Kind(
        "PHONE",
        "CONTACT",
        "D",
        aliases=("NUMERO_TELEFONO", "CONTACT_PHONE", "PHONE_NUMBER", "TELEPHONE", "US_PHONE_NUMBER"),
        direct=True,
    ),
    Kind("FAX", "CONTACT", "E", aliases=("NUMERO_FAX", "CONTACT_FAX", "FAX_NUMBER"), direct=True),
    Kind(
        "EMAIL", "CONTACT", "F", aliases=("CORREO_ELECTRONICO", "CONTACT_EMAIL", "EMAIL_ADDRESS", "E-MAIL"), direct=True
    ),
    Kind("URL", "CONTACT", "N", aliases=("URL_WEB", "CONTACT_URL", "DOMAIN_NAME"), direct=True),
    Kind("IPADDR", "CONTACT", "O", aliases=("DIREC_PROT_INTERNET", "IPADDRESS", "IP_ADDRESS", "IP"), direct=True),
    Kind("CONTACT", "CONTACT", "D", direct=True, generic=True),
    Kind("SSN", "ID", "G", aliases=("SOCIAL_SECURITY_NUMBER", "US_SSN"), direct=True),
    Kind("MEDICALRECORD", "ID", "H", aliases=("ID_SUJETO_ASISTENCIA", "MEDICAL_RECORD_NUMBER", "MRN"), direct=True),
    Kind("HEALTHPLAN", "ID", "I", aliases=("ID_ASEGURAMIENTO", "HEALTH_PLAN_BENEFICIARY_NUMBER"), direct=True),
    Kind(
        "ACCOUNT",
        "ID",
        "J",
        aliases=("ACCOUNT_NUMBER", "CREDIT_CARD", "IBAN_CODE", "IBAN", "US_BANK_NUMBER"),
        direct=True,
    ),
    Kind(
        "LICENSE",
        "ID",
        "K",
        aliases=("ID_TITULACION_PERSONAL_SANITARIO", "CERTIFICATE_LICENSE_NUMBER", "LICENCE", "US_DRIVER_LICENSE"),
        direct=True,
    ),
    Kind("VEHICLE", "ID", "L", aliases=("IDENTIF_VEHICULOS_NRSERIE_PLACAS", "VEHICLE_IDENTIFIER"), direct=True),
    Kind("DEVICE", "ID", "M", aliases=("IDENTIF_DISPOSITIVOS_NRSERIE", "DEVICE_IDENTIFIER"), direct=True),
    Kind("BIOID", "ID", "P", aliases=("IDENTIF_BIOMETRICOS", "BIOMETRIC_IDENTIFIER"), direct=True),
    Kind(
        "IDNUM",
        "ID",
        "R",
        aliases=(
            "ID_CONTACTO_ASISTENCIAL",
            "ID_EMPLEO_PERSONAL_SANITARIO",
            "OTRO_NUMERO_IDENTIF",
            "UNIQUE_IDENTIFIER",
            "US_PASSPORT",
        ),
        direct=True,
    ),
    Kind("ID", "ID", "R", direct=True, generic=True),
    Kind(
        "OTHER",
        "OTHER",
        None,
        aliases=(
            "SEXO_SUJETO_ASISTENCIA",
            "FAMILIARES_SUJETO_ASISTENCIA",
            "OTROS_SUJETO_ASISTENCIA",
            "NAME_TITLE",
            "TITLE",
            "NRP",
            "PHI",
        ),
        generic=True,
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ROWS}


def fold_label(label: str) -> str:
    """Return the spelling by which a label is looked up: upper case, with hyphens for blanks and underscores.

    >>> fold_label("location_other")
    'LOCATION-OTHER'
    """
    return label.strip().upper().replace("_", "-").replace(" ", "-")


_BY_NAME = {
    **{fold_label(alias): kind.name for kind in _ROWS for alias in kind.aliases},
    **{fold_label(kind.name): kind.name for kind in _ROWS},
}
KNOWN_LABELS = tuple(sorted({*KINDS, *(alias for kind in _ROWS for alias in kind.aliases)}))


@lru_cache(maxsize=4096)
def kind_of(label: str) -> Kind:
    """Return the kind of a label, of category OTHER if unknown; letter case, blanks, hyphens, underscores are alike.

    >>> kind_of("NOMBRE_PERSONAL_SANITARIO").name, kind_of("location other").name
    ('DOCTOR', 'LOCATION-OTHER')
    >>> kind_of("Trial arm")
    Kind(name='Trial arm', category='OTHER', hipaa=None)
    """
    name = _BY_NAME.get(fold_label(label), "OTHER")
    return Kind(label, "OTHER", None) if name == "OTHER" else KINDS[name]


def is_known(label: str) -> bool:
    """Tell whether a label belongs to a guideline we know; any other is a user-defined type."""
    return fold_label(label) in _BY_NAME


@lru_cache(maxsize=4096)
def names_identifier(label: str) -> bool:
    """Tell whether text with this label identifies a person by itself (a name, contact, number, street).

    A word in the label can say so too, where no guideline knows the label.

    >>> names_identifier("NOMBRE_SUJETO_ASISTENCIA"), names_identifier("PatientFirstName"), names_identifier("DATE")
    (True, True, False)
    """
    kind = kind_of(label)
    return (
        kind.direct
        or fold_label(label) in _DIRECT_LABELS
        or any(word.upper() in _DIRECT_WORDS for word in _WORD.findall(label))
    )
