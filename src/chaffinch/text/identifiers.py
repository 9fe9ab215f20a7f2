"""The kinds of identifiers: the sub-types of i2b2 2014, what other guidelines call them, and which labels name them.

A label of any guideline we know leads to one `Kind`. A label nobody knows is a type of the user's own: its kind bears
the label's name, its category is OTHER, and HIPAA says nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

CATEGORIES = ("NAME", "PROFESSION", "LOCATION", "AGE", "DATE", "CONTACT", "ID", "OTHER")

# A name, a contact, a number or a street leads to a person by itself, and few patients share it. Towns, hospitals,
# organisations, professions, ages and dates are shared by many, and are labels of newswire and of science as well.
_DIRECT_CATEGORIES, _DIRECT_KINDS = ("NAME", "CONTACT", "ID"), ("STREET",)
_DIRECT_LABELS = ("PHI",)  # says no more than that it identifies
# Words that make any label one of identifiers, as in "patient_first_name". NAME, ID and FAMILY are not among them: a
# drug has a name, a gene an id, a protein a family.
_DIRECT_WORDS = frozenset("PATIENT PERSON DOCTOR CLINICIAN PHONE TELEPHONE FAX EMAIL SSN MRN STREET".split())
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of identifier: its name, its category, and the letter of HIPAA's list, if it is on it."""

    name: str
    category: str
    hipaa: str | None


# By category: name, and after a colon the letter of HIPAA's list. Clinicians, hospitals, professions, states and
# countries are not on the list. A name of a category stands for labels that say no more than the category.
_TABLE = {
    "NAME": "PATIENT:A FAMILY:A DOCTOR USERNAME:R NAME:A",
    "PROFESSION": "PROFESSION",
    "LOCATION": "HOSPITAL ORGANIZATION:A STREET:B CITY:B STATE COUNTRY ZIP:B LOCATION-OTHER:B ROOM DEPARTMENT "
    "LOCATION:B",
    "AGE": "AGE:C",
    "DATE": "DATE:C",
    "CONTACT": "PHONE:D FAX:E EMAIL:F URL:N IPADDR:O CONTACT:D",
    "ID": "SSN:G MEDICALRECORD:H HEALTHPLAN:I ACCOUNT:J LICENSE:K VEHICLE:L DEVICE:M BIOID:P IDNUM:R ID:R",
    "OTHER": "OTHER",
}

KINDS: Mapping[str, Kind] = {
    entry.partition(":")[0]: Kind(entry.partition(":")[0], category, entry.partition(":")[2] or None)
    for category, entries in _TABLE.items()
    for entry in entries.split()
}

# What other guidelines call our kinds; a label that leads to OTHER is known, but is no identifier of ours.
_OTHER_NAMES = {
    "PATIENT": "NOMBRE_SUJETO_ASISTENCIA NAME_PATIENT PATIENT_NAME",
    "FAMILY": "NAME_RELATIVE RELATIVE",
    "DOCTOR": "NOMBRE_PERSONAL_SANITARIO NAME_DOCTOR STAFF HCW CLINICIAN",
    "USERNAME": "NAME_USERNAME USER",
    "NAME": "NAME_EXT NAME_OTHER PERSON PER NAMES",
    "PROFESSION": "PROFESION OCCUPATION",
    "HOSPITAL": "LOCATION_HOSPITAL CENTRO_SALUD HOSP",
    "ORGANIZATION": "INSTITUCION LOCATION_ORGANIZATION ORGANISATION ORG",
    "STREET": "CALLE LOCATION_STREET STREET_ADDRESS ADDRESS",
    "CITY": "LOCATION_CITY TOWN",
    "STATE": "LOCATION_STATE",
    "COUNTRY": "PAIS LOCATION_COUNTRY",
    "ZIP": "LOCATION_ZIP ZIP_CODE POSTCODE POSTAL_CODE",
    "LOCATION-OTHER": "TERRITORIO",
    "LOCATION": "GEOGRAPHIC_LOCATION GPE LOC PLACE",
    "ROOM": "LOCATION_ROOM",
    "DEPARTMENT": "LOCATION_DEPARTMENT WARD",
    "AGE": "EDAD_SUJETO_ASISTENCIA",
    "DATE": "FECHAS DATE_TIME DATE_BIRTH DATE_DEATH DATES",
    "PHONE": "NUMERO_TELEFONO CONTACT_PHONE PHONE_NUMBER TELEPHONE US_PHONE_NUMBER",
    "FAX": "NUMERO_FAX CONTACT_FAX FAX_NUMBER",
    "EMAIL": "CORREO_ELECTRONICO CONTACT_EMAIL EMAIL_ADDRESS E-MAIL",
    "URL": "URL_WEB CONTACT_URL DOMAIN_NAME",
    "IPADDR": "DIREC_PROT_INTERNET IPADDRESS IP_ADDRESS IP",
    "SSN": "SOCIAL_SECURITY_NUMBER US_SSN",
    "MEDICALRECORD": "ID_SUJETO_ASISTENCIA MEDICAL_RECORD_NUMBER MRN",
    "HEALTHPLAN": "ID_ASEGURAMIENTO HEALTH_PLAN_BENEFICIARY_NUMBER",
    "ACCOUNT": "ACCOUNT_NUMBER CREDIT_CARD IBAN_CODE IBAN US_BANK_NUMBER",
    "LICENSE": "ID_TITULACION_PERSONAL_SANITARIO CERTIFICATE_LICENSE_NUMBER LICENCE US_DRIVER_LICENSE",
    "VEHICLE": "IDENTIF_VEHICULOS_NRSERIE_PLACAS VEHICLE_IDENTIFIER",
    "DEVICE": "IDENTIF_DISPOSITIVOS_NRSERIE DEVICE_IDENTIFIER",
    "BIOID": "IDENTIF_BIOMETRICOS BIOMETRIC_IDENTIFIER",
    "IDNUM": "ID_CONTACTO_ASISTENCIAL ID_EMPLEO_PERSONAL_SANITARIO OTRO_NUMERO_IDENTIF UNIQUE_IDENTIFIER US_PASSPORT",
    "OTHER": "SEXO_SUJETO_ASISTENCIA FAMILIARES_SUJETO_ASISTENCIA OTROS_SUJETO_ASISTENCIA NAME_TITLE TITLE NRP PHI",
}


def folded(label: str) -> str:
    """The one spelling of a label by which it is looked up.

    >>> folded("location_other")
    'LOCATION-OTHER'
    """
    return label.strip().upper().replace("_", "-").replace(" ", "-")


_BY_NAME = {
    **{folded(alias): name for name, aliases in _OTHER_NAMES.items() for alias in aliases.split()},
    **{folded(name): name for name in KINDS},
}
KNOWN_LABELS = tuple(sorted({*KINDS, *(alias for aliases in _OTHER_NAMES.values() for alias in aliases.split())}))


@lru_cache(maxsize=4096)
def kind_of(label: str) -> Kind:
    """The kind a label means; upper and lower case, blanks, hyphens and underscores make no difference.

    >>> kind_of("NOMBRE_PERSONAL_SANITARIO").name, kind_of("location other").name
    ('DOCTOR', 'LOCATION-OTHER')
    >>> kind_of("Trial arm")
    Kind(name='Trial arm', category='OTHER', hipaa=None)
    """
    name = _BY_NAME.get(folded(label), "OTHER")
    return Kind(label, "OTHER", None) if name == "OTHER" else KINDS[name]


def is_known(label: str) -> bool:
    """Whether a label belongs to a guideline we know; any other is a type of the user's own."""
    return folded(label) in _BY_NAME


@lru_cache(maxsize=4096)
def names_identifier(label: str) -> bool:
    """Return whether what bears the label leads to a person by itself: a name, a contact, a number, a street.

    >>> names_identifier("NOMBRE_SUJETO_ASISTENCIA"), names_identifier("PatientFirstName"), names_identifier("DATE")
    (True, True, False)
    """
    kind = kind_of(label)
    if kind.category in _DIRECT_CATEGORIES or kind.name in _DIRECT_KINDS or folded(label) in _DIRECT_LABELS:
        return True
    return any(word.upper() in _DIRECT_WORDS for word in _WORD.findall(label))
