"""Places and professions: structure kept, the words that identify replaced, forms of one place agree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.kinds import kind_of
from chaffinch.deid.surrogates.lists import entries
from chaffinch.deid.surrogates.places import INSTITUTIONS, REGIONS, SAINTS, SMALLER, WARDS
from chaffinch.deid.surrogates.surrogate import surrogate
from tests.deid.releases import SECRET

STATES = [line.split(" ", 1) for line in entries("states")]
KEPT_WORDS = INSTITUTIONS | REGIONS | SAINTS | WARDS | SMALLER
KEPT = set("street apt hospital medical center general of the county and department clinic box saint san north".split())


def drawn(text: str, label: str, patient: str = "p1") -> str:
    return surrogate(text, kind_of(label), patient, SECRET)


def words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W_]+", text) if len(word) > 1}


NAME = r"[A-Z][a-z]+(?: [A-Z][a-z]+)?"


@pytest.mark.parametrize(
    ("label", "text", "form"),
    [
        ("STREET", "12 Oak Street Apt 3", rf"[1-9]\d {NAME} Street Apt \d"),
        ("STREET", "12 Oak St., Apt. 3B", rf"[1-9]\d {NAME} St\., Apt\. \d[A-Z]"),
        ("STREET", "P.O. Box 123", r"P\.O\. Box [1-9]\d\d"),
        ("STREET", "1600 Pennsylvania Ave NW", rf"[1-9]\d{{3}} {NAME} Ave NW"),
        ("STREET", "45 W 21st St", r"[1-9]\d W [1-9]\d(st|nd|rd|th) St"),
        ("STREET", "Hauptstraße 12", rf"{NAME}straße [1-9]\d"),
        ("STREET", "Calle Mayor, 3", rf"Calle {NAME}, \d"),
        ("STREET", "12 Elm Street, Springfield, IL 62704", rf"[1-9]\d {NAME} Street, {NAME}, [A-Z]{{2}} \d{{5}}"),
        ("CITY", "Boston", NAME),
        ("CITY", "BOSTON", NAME.upper()),
        ("CITY", "Boston, MA 02139-4307", rf"{NAME}, [A-Z]{{2}} \d{{5}}-\d{{4}}"),
        ("CITY", "Los Angeles County", rf"{NAME} County"),
        ("STATE", "N.Y.", r"[A-Z]\.[A-Z]\."),
        ("COUNTRY", "U.S.A.", NAME),
        ("HOSPITAL", "Boston Medical Center", rf"{NAME} Medical Center"),
        ("HOSPITAL", "St. Mary's Hospital", r"St\. [A-Z]\w+'s Hospital"),
        ("HOSPITAL", "MGH", r"[A-Z]{3}"),
        ("HOSPITAL", "University Hospital of Leeds", rf"University Hospital of {NAME}"),
        ("HOSPITAL", "General Hospital", rf"{NAME} Hospital"),
        ("ORGANIZATION", "Acme Widgets, Inc.", rf"{NAME}, Inc\."),
        ("DEPARTMENT", "Department of Surgery", rf"Department of {NAME}"),
        ("DEPARTMENT", "ICU", r"[A-Z]{2,5}"),
        ("DEPARTMENT", "7 West", r"\d West"),
        ("LOCATION", "12 Oak Street", rf"[1-9]\d {NAME} Street"),
        ("LOCATION-OTHER", "Golden Gate Bridge", NAME),
    ],
)
@pytest.mark.parametrize("patient", ["p1", "p2", "p3"])
def test_structure_is_kept(label: str, text: str, form: str, patient: str) -> None:
    assert re.fullmatch(form, drawn(text, label, patient))


def test_ordinals_get_the_ending_that_fits() -> None:
    for number in range(10, 40):
        found = re.fullmatch(r"(\d+)(st|nd|rd|th) Street", drawn(f"{number}th Street", "STREET", f"p{number}"))
        assert found
        last, teen = found[1][-1], found[1][-2:-1] == "1"
        assert found[2] == ("th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(last, "th"))


@pytest.mark.parametrize(("code", "name"), STATES)
def test_states_agree_in_code_and_name(code: str, name: str) -> None:
    other = drawn(name, "STATE")
    assert [drawn(code, "STATE"), other] in STATES
    assert drawn(f"Boston, {code}", "CITY").endswith(", " + drawn(code, "STATE"))
    assert drawn(name.upper(), "STATE") == other.upper()


@given(st.sampled_from(entries("cities")), st.sampled_from(["p1", "p2"]))
@settings(max_examples=500)
def test_cities_become_other_cities_and_hospitals_follow(name: str, patient: str) -> None:
    out = drawn(name, "CITY", patient)
    if not words(name) & (KEPT | INSTITUTIONS | REGIONS | SAINTS):
        assert out in entries("cities")
        assert drawn(f"{name} Hospital", "HOSPITAL", patient) == f"{out} Hospital"
        assert drawn(name.lower(), "CITY", patient) == out.lower()


@given(st.sampled_from(entries("countries")))
def test_countries_become_countries(name: str) -> None:
    assert drawn(name, "COUNTRY") in entries("countries")


@pytest.mark.parametrize("name", ["countries", "states", "cities", "departments"])
def test_no_two_entries_of_a_list_become_the_same(name: str) -> None:
    label = {"countries": "COUNTRY", "states": "STATE", "cities": "CITY", "departments": "DEPARTMENT"}[name]
    texts = [line.split(" ", 1)[1] if name == "states" else line for line in entries(name)]
    plain = [text for text in texts if not words(text) & KEPT_WORDS]
    out = [drawn(text, label) for text in plain]
    assert len(set(out)) == len(plain) > 30


@given(st.sampled_from(entries("professions")), st.sampled_from(["p1", "p2", "p3"]))
@settings(max_examples=200)
def test_professions_take_the_same_article(name: str, patient: str) -> None:
    out = drawn(name, "PROFESSION", patient)
    assert out in entries("professions")
    assert (out[0] in "aeiou") == (name[0] in "aeiou")
    assert drawn(name.upper(), "PROFESSION", patient) == out.upper()
    assert drawn(name.title(), "PROFESSION", patient) == out.title()


def test_streets_of_a_patient_agree_in_all_forms() -> None:
    found = re.fullmatch(r"(\d+) (.+) Street", drawn("12 Oak Street", "STREET"))
    assert found
    assert drawn("OAK STREET", "STREET") == f"{found[2]} Street".upper()
    assert drawn("12 Oak St", "STREET") == f"{found[1]} {found[2]} St"
