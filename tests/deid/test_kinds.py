"""Kinds: every label of every guideline leads to the right identifier."""

from __future__ import annotations

import pytest

from chaffinch.deid.kinds import CATEGORIES, HANDLING, HIPAA, KINDS, KNOWN_LABELS, Kind, handling_of, is_known, kind_of
from chaffinch.deid.operators import OPERATORS
from chaffinch.deid.synth import notes as synth
from chaffinch.evaluate.schemes.official import I2B2_HIPAA, I2B2_TAGS
from chaffinch.text.formats import i2b2

EXPECTED = {
    # MEDDOCAN
    "NOMBRE_SUJETO_ASISTENCIA": "PATIENT",
    "NOMBRE_PERSONAL_SANITARIO": "DOCTOR",
    "TERRITORIO": "LOCATION-OTHER",
    "CALLE": "STREET",
    "PAIS": "COUNTRY",
    "INSTITUCION": "ORGANIZATION",
    "CENTRO_SALUD": "HOSPITAL",
    "EDAD_SUJETO_ASISTENCIA": "AGE",
    "FECHAS": "DATE",
    "CORREO_ELECTRONICO": "EMAIL",
    "NUMERO_TELEFONO": "PHONE",
    "NUMERO_FAX": "FAX",
    "URL_WEB": "URL",
    "DIREC_PROT_INTERNET": "IPADDR",
    "ID_SUJETO_ASISTENCIA": "MEDICALRECORD",
    "ID_TITULACION_PERSONAL_SANITARIO": "LICENSE",
    "ID_ASEGURAMIENTO": "HEALTHPLAN",
    "ID_CONTACTO_ASISTENCIAL": "IDNUM",
    "IDENTIF_VEHICULOS_NRSERIE_PLACAS": "VEHICLE",
    "IDENTIF_DISPOSITIVOS_NRSERIE": "DEVICE",
    "IDENTIF_BIOMETRICOS": "BIOID",
    "PROFESION": "PROFESSION",
    # GraSCCo
    "NAME_PATIENT": "PATIENT",
    "NAME_DOCTOR": "DOCTOR",
    "NAME_RELATIVE": "FAMILY",
    "NAME_USERNAME": "USERNAME",
    "NAME_EXT": "NAME",
    "LOCATION_CITY": "CITY",
    "LOCATION_ZIP": "ZIP",
    "LOCATION_HOSPITAL": "HOSPITAL",
    "LOCATION_ORGANIZATION": "ORGANIZATION",
    "CONTACT_PHONE": "PHONE",
    "CONTACT_EMAIL": "EMAIL",
    # general PII
    "PERSON": "NAME",
    "US_SSN": "SSN",
    "GEOGRAPHIC_LOCATION": "LOCATION",
    "MEDICAL_RECORD_NUMBER": "MEDICALRECORD",
}


@pytest.mark.parametrize(("label", "name"), EXPECTED.items())
def test_labels_of_other_guidelines(label: str, name: str) -> None:
    assert kind_of(label) is KINDS[name]
    assert kind_of(label.lower().replace("_", " ")) is KINDS[name]


def test_i2b2_sub_types_stand_in_their_categories() -> None:
    for name, category in I2B2_TAGS.items():
        assert (kind_of(name).name, kind_of(name).category) == (name, category)


def test_every_label_that_our_readers_and_notes_know_is_known() -> None:
    spanish = " ".join(i2b2._MEDDOCAN.values()).split()
    assert all(map(is_known, [*spanish, *synth.LABELS, *CATEGORIES]))
    assert {kind_of(label).category for label in synth.LABELS} == set(CATEGORIES) - {"OTHER"}


def test_hipaa_covers_what_the_i2b2_scorer_counts_and_no_clinician() -> None:
    assert all(kind_of(name).hipaa for name in I2B2_HIPAA)
    assert {name for name, kind in KINDS.items() if kind.hipaa is None} == {
        *("DOCTOR", "PROFESSION", "HOSPITAL", "STATE", "COUNTRY", "ROOM", "DEPARTMENT", "OTHER")
    }
    assert {kind.hipaa for kind in KINDS.values()} - {None} == set(HIPAA) - {"Q"}  # a note has no photographs


def test_categories_are_kinds_of_their_own() -> None:
    for category in CATEGORIES:
        assert kind_of(category).category == kind_of(category).name == category


def test_a_label_of_the_users_own_keeps_its_name() -> None:
    assert kind_of("Trial arm") == Kind("Trial arm", "OTHER", None)
    assert not is_known("Trial arm")
    assert kind_of("SEXO_SUJETO_ASISTENCIA") == Kind("SEXO_SUJETO_ASISTENCIA", "OTHER", None)
    assert is_known("SEXO_SUJETO_ASISTENCIA")


def test_no_other_name_has_two_meanings() -> None:
    assert len(KNOWN_LABELS) == len({label.upper().replace("_", "-") for label in KNOWN_LABELS})


def test_every_kind_and_category_has_a_row_for_de_identification() -> None:
    assert set(CATEGORIES) <= HANDLING.keys() <= KINDS.keys()
    assert all(handling_of(kind) in HANDLING.values() for kind in KINDS.values())


@pytest.mark.parametrize("name", KINDS)
def test_a_row_draws_surrogates_or_names_an_operator_and_leads_to_kinds(name: str) -> None:
    row = handling_of(KINDS[name])
    assert (row.surrogate is None) == (row.instead in OPERATORS)
    assert row.learnt_as is None or HANDLING[row.learnt_as].learnt_as is None
    assert not (row.person and KINDS[name].category != "NAME")
    assert not (row.town and KINDS[name].category != "LOCATION")


def test_no_two_kinds_share_a_column_or_an_alias() -> None:
    columns = [column for row in HANDLING.values() for column in row.columns]
    aliases = [alias for kind in KINDS.values() for alias in kind.aliases]
    assert len(columns) == len(set(columns)) > 40
    assert len(aliases) == len(set(aliases)) > 90


def test_a_kind_without_a_row_is_treated_as_its_category() -> None:
    assert handling_of(Kind("INSURER-ID", "ID", "R")) is HANDLING["ID"]
    assert handling_of(kind_of("Trial arm")) is HANDLING["OTHER"]
    assert handling_of(KINDS["ZIP"]) is HANDLING["ZIP"]
