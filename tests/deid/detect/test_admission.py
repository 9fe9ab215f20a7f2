"""Known identifiers are found however they are written, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.detect.admission import Identifier, KnownIdentifiers, fold_text, label_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from tests.deid.texts import texts

ROWS: list[dict[str, object]] = [
    {
        "patient": "p1", "first": "José", "middle": "Maria", "last": "O'Dowd-Penn", "mrn": "12-34-567",
        "address": "12 Elm Street, Apt 4", "phone": "(617) 555-0100", "dob": "1950-02-03",
    },
    {"patient": "p2", "name": "Will May", "mrn": 7654321},
]  # fmt: skip
WRITTEN = [
    "José O'Dowd-Penn",
    "JOSE O'DOWD-PENN",
    "jose m. o'dowd-penn",
    "José Maria O'Dowd-Penn",
    "O'Dowd-Penn, José",
    "O'DOWD-PENN,JOSE",
    "J. O'Dowd-Penn",
    "J.M. O'Dowd-Penn",
    "Jose\u0301",
    "1234567",
    "12-34-567",
    "12 34 567",
    "12 elm st, apt 4",
    "12 Elm Street Apt. 4",
    "617-555-0100",
    "6175550100",
    "1950-02-03",
    "19500203",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_every_way_of_writing_is_found_whole(written: str) -> None:
    text = f"Yesterday {written} was there."
    found = KnownIdentifiers.of(ROWS)(Document.make(text, group="p1"))
    covered = {place for span in found for place in range(span.start, span.end)}
    wanted = {10 + place for place, sign in enumerate(written) if sign.isalnum()}
    assert wanted <= covered
    assert covered <= set(range(10, 10 + len(written)))


def test_only_the_patients_own_are_looked_for() -> None:
    known = KnownIdentifiers.of(ROWS)
    assert known(Document.make("José 1234567", group="p2")) == []
    assert known(Document.make("José 1234567", group="p3")) == []
    assert (
        len(KnownIdentifiers({"": (Identifier("SSN", "123-45-6789"),)})(Document.make("SSN 123456789", group="p3")))
        == 1
    )


def test_parts_that_are_common_words_need_a_capital() -> None:
    known = KnownIdentifiers.of(ROWS)
    doc = Document.make("He will be better and may go. Will came; May 5. WILL MAY", group="p2")
    assert [doc.text[span.start : span.end] for span in known(doc)] == ["Will", "May", "WILL MAY"]


def test_parts_of_words_and_numbers_are_not_found() -> None:
    known = KnownIdentifiers.of([{"patient": "p", "name": "Ann Lee", "mrn": "4455"}])
    assert known(Document.make("Annular sleeve 44556 144550 Leeward", group="p")) == []


def test_overlapping_identifiers_give_the_longest() -> None:
    known = KnownIdentifiers({"p": (Identifier("MEDICALRECORD", "123456"), Identifier("ACCOUNT", "99-123456"))})
    doc = Document.make("99-123456 and 123456", group="p")
    assert [(span.label, span.end - span.start) for span in known(doc)] == [("ACCOUNT", 9), ("MEDICALRECORD", 6)]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a.jsonl", "by_patient.json"])
def test_files_of_every_sort_say_the_same(tmp_path: Path, name: str) -> None:
    contents = {
        "a.csv": 'patient,name,MRN\np1,"Penn, Ada",55443\n',
        "a.tsv": "patient\tname\tMRN\np1\tPenn, Ada\t55443\n",
        "a.json": '[{"patient": "p1", "name": "Penn, Ada", "mrn": 55443}]',
        "a.jsonl": '{"patient": "p1", "name": "Penn, Ada"}\n{"patient": "p1", "mrn": "55443"}\n',
        "by_patient.json": '{"p1": {"name": ["Penn, Ada"], "mrn": "55443"}}',
    }
    path = tmp_path / name
    path.write_text(contents[name], encoding="utf-8")
    doc = Document.make("Ada Penn (55443)", group="p1")
    assert [doc.text[span.start : span.end] for span in KnownIdentifiers.read(path)(doc)] == ["Ada Penn", "55443"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("patient,shoe size\np1,CANARY\n", ConfigError),
        ('[{"patient": "p1", "name": {"CANARY": 1}}]', DataError),
        ('[{"patient": "p1", "name": "CANARY"', DataError),
        ("patient,name\np1,Penn,CANARY\n", DataError),
        ('["CANARY"]', DataError),
        (f"patient,name\np1,{'CANARY' * 40}\n", DataError),
        ('patient,last\np1,"CANARY\np2,Lowe\np3,Penn\n', DataError),  # p2 and p3 would be in the first cell
        ('patient,last\np1,"Ca"NARY\n', DataError),
        ('patient,last\np1,"' + "CANARY\n" * 30_000, DataError),  # more than a cell may hold
    ],
)
def test_bad_files_are_refused_without_showing_them(tmp_path: Path, content: str, error: type[Exception]) -> None:
    path = tmp_path / "known.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error) as raised:
        KnownIdentifiers.read(path)
    assert "CANARY" not in str(raised.value)
    with pytest.raises(DataError):
        KnownIdentifiers.read(tmp_path / "none.csv")


def test_a_near_miss_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'last_name'"):
        label_of("lastname")
    assert (label_of("Date of birth"), label_of("ssn"), label_of("pcp")) == ("DATE", "SSN", "DOCTOR")


def test_nothing_is_shown() -> None:
    known = KnownIdentifiers.of([{"patient": "CANARY", "name": "CANARY"}])
    assert "CANARY" not in repr(known)
    assert "CANARY" not in repr(known.patients["CANARY"][0])


@settings(max_examples=200, deadline=None)
@given(texts)
def test_folded_places_lead_back(text: str) -> None:
    plain, places = fold_text(text)
    assert len(places) == len(plain) + 1
    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in places)


@settings(max_examples=200, deadline=None)
@given(texts, st.text(min_size=1, max_size=12), st.sampled_from(["PATIENT", "MEDICALRECORD", "STREET"]))
def test_any_text_and_identifier_give_spans_inside(text: str, value: str, label: str) -> None:
    for span in KnownIdentifiers({"": (Identifier(label, value),)})(
        Document.make(f"{text} {value}".encode(errors="ignore").decode())
    ):
        assert 0 <= span.start < span.end <= len(text) + 1 + len(value)


@pytest.mark.parametrize("name", ["known.csv", "known.tsv", "known.jsonl"])
def test_a_file_without_a_header_shows_no_surname(name: str, tmp_path: Path) -> None:
    content = {
        "known.csv": "p1,Quillfeather,123\np2,Lowe,456\n", "known.tsv": "p1\tQuillfeather\n p2\tLowe\n",
        "known.jsonl": '{"patient": "p1", "Quillfeather": "x1"}\n',
    }  # fmt: skip
    (tmp_path / name).write_text(content[name])
    with pytest.raises((ConfigError, DataError)) as caught:
        KnownIdentifiers.read(tmp_path / name)
    assert "uillf" not in str(caught.value).lower()
    assert "row 1" in str(caught.value)
    assert "header" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "patient,phone,last,phone\np1,555-0101,Penn,555-0102\n"),
        ("a.json", '[{"patient": "p1", "phone": "555-0101", "last": "Penn", "phone": ["555-0102"]}]'),
    ],
)
def test_columns_of_one_name_are_all_searched_for(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    doc = Document.make("Penn: 555-0101 or 555-0102", group="p1")
    found = KnownIdentifiers.read(tmp_path / name)(doc)
    assert [doc.text[span.start : span.end] for span in found] == ["Penn", "555-0101", "555-0102"]


def test_a_line_break_inside_a_field_keeps_the_row_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('patient,address,last\np1,"12 Elm\nStreet",Penn\n')
    doc = Document.make("Penn", group="p1")
    assert len(KnownIdentifiers.read(tmp_path / "a.csv")(doc)) == 1


@pytest.mark.parametrize(
    "content",
    [
        "patient,patient,last\np1,p2,Penn\n", "patient,subject_id,last\np1,p2,Penn\n",
        '[{"patient": "p1", "Subject ID": "p2", "last": "Penn"}]', '[{"patient": ["p1", "p2"], "last": "Penn"}]',
    ],
)  # fmt: skip
def test_several_columns_of_the_patient_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match="several columns of the patient"):
        KnownIdentifiers.read(tmp_path / "a.csv")
