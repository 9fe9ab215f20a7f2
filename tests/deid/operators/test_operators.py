"""Operators, one by one, against cases worked by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.deid import operators
from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.ages import cap_ages
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.operators import OPERATORS
from chaffinch.deid.operators.generalise import Generalise
from chaffinch.deid.operators.keep import Keep
from chaffinch.deid.operators.mask import Mask
from chaffinch.deid.operators.number import Number
from chaffinch.deid.operators.remove import Remove
from chaffinch.deid.operators.shift import Shift
from chaffinch.deid.operators.surrogate import Surrogate
from chaffinch.deid.operators.tag import Tag
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.replace import FoundIdentifier, Memory
from chaffinch.deid.release.rounding import SMALL_AREAS, round_zip
from chaffinch.deid.surrogates.surrogate import surrogate
from chaffinch.errors import ConfigError
from tests.deid.releases import SECRET
from tests.deid.texts import texts


def seen(text: str, label: str, before: str = "", patient: str = "p1") -> FoundIdentifier:
    return FoundIdentifier(text, kind_of(label), label, patient, "n1", before, "")


def test_tags_name_the_kind_the_category_or_the_label() -> None:
    doctor = seen("Penn", "NOMBRE_PERSONAL_SANITARIO")
    made = [Tag(by=by)(doctor, Memory()) for by in ("kind", "category", "label")]
    assert made == ["[DOCTOR]", "[NAME]", "[NOMBRE_PERSONAL_SANITARIO]"]
    assert Tag()(seen("x", "Own type"), Memory()) == "[Own type]"


def test_numbers_follow_the_document() -> None:
    memory, number = Memory(), Number()
    names = ["Penn", "Quill", "PENN", "Penn\n", "Ada  Quill", "ada\r\nquill", "Pénn", "Pe\u0301nn"]
    made = [number(seen(name, "DOCTOR"), memory) for name in names]
    assert made == [f"[DOCTOR-{at}]" for at in (1, 2, 1, 1, 3, 3, 4, 4)]
    assert number(seen("Penn", "PATIENT"), memory) == "[PATIENT-1]"
    assert number(seen("Quill", "DOCTOR"), Memory()) == "[DOCTOR-1]"


@given(texts)
def test_masks_keep_length_and_lines(text: str) -> None:
    made = Mask()(seen(text, "PATIENT"), Memory())
    assert len(made) == len(text)
    assert [at for at, mark in enumerate(made) if mark != "*"] == [at for at, c in enumerate(text) if c in "\r\n"]
    assert Mask(character="X", length=3)(seen(text, "PATIENT"), Memory()) == "XXX"


@given(texts)
def test_remove_and_keep(text: str) -> None:
    assert Remove()(seen(text, "PATIENT"), Memory()) == ""
    assert Keep()(seen(text, "PATIENT"), Memory()) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("57", "57"),
        ("89", "89"),
        ("90", "90+"),
        ("104", "90+"),
        ("92-year-old", "90+-year-old"),
        ("92yo", "90+yo"),
        ("92 y/o", "90+ y/o"),
        ("92 años", "90+ años"),
        ("91-jährige", "90+-jährige"),
        ("92.5", "90+"),
        ("88-91", "88-90+"),
        ("90s", "90+"),
        ("90's", "90+"),
        ("late 80s", "late 80s"),
        ("early nineties", "early 90+"),
        ("ninety-two", "90+"),
        ("Ninety two years", "90+ years"),
        ("ninety-year-old", "90+-year-old"),
        ("eighty-nine", "eighty-nine"),
        ("a hundred and four", "90+"),
        ("one hundred", "90+"),
        ("seventeen", "seventeen"),
        ("six", "six"),
        ("sixty-five-year-old", "sixty-five-year-old"),
        ("nonagenarian", "90+"),
        ("octogenarian", "octogenarian"),
        ("92 (ninety-two)", "90+ (90+)"),
        ("95 months", "95 months"),
        ("100 days", "100 days"),
        ("36 wks", "36 wks"),
        ("18-month-old", "18-month-old"),
        ("10 meses", "10 meses"),
        ("٩٢", "90+"),  # ninety-two in Arabic figures
    ],
)
def test_ages(text: str, expected: str) -> None:
    assert Generalise()(seen(text, "AGE"), Memory()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "131",
        "999",
        "1200 months",
        "quatre-vingt-dix",
        "",
        "elderly",
        "1921",
        "3/4/21",
        "01-02-03",
        "555-0123",
        "noventa y dos",
        "noventa y 2",
        "neunzig",
        "zweiundneunzig",
        "⁹²",
    ],
)
def test_an_age_that_cannot_be_read_becomes_a_tag(text: str) -> None:
    assert Generalise()(seen(text, "AGE"), Memory()) == "[AGE]"


@given(st.integers(0, 999), st.sampled_from(["", " years", "yo", "-year-old", " a.", "\r\n", "/F"]))
def test_no_age_over_the_limit_stays(age: int, after: str) -> None:
    made = Generalise()(seen(f"{age}{after}", "AGE"), Memory())
    assert made == (f"{age}{after}" if age < 90 else f"90+{after}" if age <= 130 else "[AGE]")


def test_every_english_number_word_is_read() -> None:
    ones = "one two three four five six seven eight nine".split()
    teens = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    words = [*ones, *teens, *(ten + one for ten in tens for one in ("", *(f"-{one}" for one in ones)))]
    assert len(words) == 99
    for number, word in enumerate(words, start=1):
        assert cap_ages(word, 89) == (word if number < 90 else "90+"), word
        assert cap_ages(word, number - 1) == f"{number}+", word
        assert cap_ages(word, number) == word, word
        assert cap_ages(f"one hundred and {word}", 99 + number) == (f"{100 + number}+" if number <= 30 else None)


def test_the_limit_of_ages_can_be_set() -> None:
    assert Generalise(over=79)(seen("80 years", "AGE"), Memory()) == "80+ years"
    with pytest.raises(ConfigError):
        Generalise(over=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("02139", "021"),
        ("02139-4307", "021"),
        ("021394307", "021"),
        (" 02139\r\n", "021"),
        ("021", "021"),
        ("03601", "000"),
        ("893", "000"),
        ("89301-0001", "000"),
        ("2139", "[ZIP]"),
        ("SW1A 2AA", "[ZIP]"),
        ("MA 02139", "[ZIP]"),
        ("٠٢١٣٩", "021"),
        ("", "[ZIP]"),
    ],
)
def test_zip_codes(text: str, expected: str) -> None:
    assert Generalise()(seen(text, "ZIP"), Memory()) == expected


def test_small_areas_are_those_of_the_census_of_2000() -> None:
    assert len(SMALL_AREAS) == 17
    assert {at for at in range(1000) if round_zip(f"{at:03d}01") == "000"} == {
        0, 36, 59, 63, 102, 203, 556, 692, 790, 821, 823, 830, 831, 878, 879, 884, 890, 893
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("March 3, 1999", "1999"),
        ("03/04/2071", "2071"),
        ("2071-03-09T19:45", "2071"),
        ("1999", "1999"),
        ("1999-2001", "1999-2001"),
        ("3/1999 to 4/1999", "1999"),
        ("3/4/98", "1998"),
        ("04MAR98", "1998"),
        ("19980304", "1998"),
        ("31/02/1998", "1998"),
        ("12/30-1/2/98", "1997-1998"),
        ("March 3", "[DATE]"),
        ("3/4", "[DATE]"),
        ("Monday", "[DATE]"),
        ("Christmas", "[DATE]"),
    ],
)
def test_dates_become_years(text: str, expected: str) -> None:
    assert Generalise()(seen(text, "DATE"), Memory(None, [text])) == expected


def test_years_of_two_digits_lie_around_the_reference_year() -> None:
    assert Generalise()(seen("3/4/71", "DATE"), Memory(None, ["3/4/71"], 2075)) == "2071"
    assert Generalise()(seen("3/4/71", "DATE"), Memory(None, ["3/4/71"])) == "1971"


def test_what_cannot_be_rounded_becomes_a_tag() -> None:
    assert Generalise()(seen("Penn 1999", "DOCTOR"), Memory()) == "[DOCTOR]"


@given(texts, st.sampled_from(["AGE", "ZIP", "DATE"]))
def test_any_text_can_be_rounded(text: str, label: str) -> None:
    assert isinstance(Generalise()(seen(text, label), Memory(None, [text])), str)


def test_shift_moves_all_dates_of_a_patient_alike() -> None:
    texts = ["25/12/1997", "03/04/1998", "3 March 1998", "Monday", "soon", "yesterday", "31/02/1998"]
    memory = Memory(SECRET, texts)
    days = dates.days_for(SECRET, "p1")
    moved = [Shift()(seen(text, "DATE"), memory) for text in texts]
    for text, new in zip(texts[:2], moved[:2], strict=True):  # the first tells that the day comes first
        assert datetime.strptime(new, "%d/%m/%Y") - datetime.strptime(text, "%d/%m/%Y") == timedelta(days)
    assert datetime.strptime(moved[2], "%d %B %Y") - datetime(1998, 3, 3) == timedelta(days)
    assert moved[4:] == ["[DATE]", "yesterday", "[DATE]"]
    assert Shift()(seen("03/04/1998", "DATE", patient="p2"), memory) != moved[1]


def test_shift_takes_the_usual_year_and_order_of_the_document() -> None:
    leap, plain = Memory(SECRET, ["3/4/2096"]), Memory(SECRET, ["3/4/2095"])
    days = dates.days_for(SECRET, "p1")
    for memory, year in ((leap, 2096), (plain, 2095)):
        expected = date(year, 2, 20) + timedelta(days)
        assert Shift()(seen("2/20", "DATE"), memory) == f"{expected.month}/{expected.day}"
    first = datetime(1998, 4, 3) + timedelta(days)
    assert Shift(order="dmy")(seen("03/04/1998", "DATE"), Memory(SECRET, ["03/04/1998"])) == f"{first:%d/%m/%Y}"
    with pytest.raises(ConfigError, match="order must be one of auto, mdy, dmy, ymd, got 'day'"):
        Policy.parse('[rules]\nDATE = { operator = "shift", order = "day" }')


def test_a_policy_sets_the_least_and_the_most_days_of_a_shift() -> None:
    policy = Policy.parse('[rules]\nDATE = { operator = "shift", least = 60, most = 100 }')
    _, operator = policy.operator("DATE")
    first = date(1998, 3, 4)
    moved = [operator(seen("03/04/1998", "DATE", patient=f"p{i}"), Memory(SECRET, ["03/04/1998"])) for i in range(500)]
    sizes = {abs((datetime.strptime(text, "%m/%d/%Y").date() - first).days) for text in moved}
    assert sizes == set(range(60, 101))
    assert policy.digest() != Policy.parse('[rules]\nDATE = "shift"').digest()


def test_one_document_under_two_rules_of_shifting_moves_each_by_its_own_days() -> None:
    memory = Memory(SECRET, ["03/04/1998"])
    near, far = (Shift(least=least, most=most) for least, most in ((31, 60), (900, 1000)))
    days = [
        abs((datetime.strptime(one(seen("03/04/1998", "DATE"), memory), "%m/%d/%Y") - datetime(1998, 3, 4)).days)
        for one in (near, far)
    ]
    assert 31 <= days[0] <= 60
    assert 900 <= days[1] <= 1000


@pytest.mark.parametrize(
    "options", ["least = 0", "most = 40", "least = 2000", "most = 100000", "weeks = true, most = 90"]
)
def test_a_policy_whose_shifts_could_be_guessed_is_refused_when_it_is_read(options: str) -> None:
    with pytest.raises(ConfigError, match="rule for 'DATE': a date shift"):
        Policy.parse(f'[rules]\nDATE = {{ operator = "shift", {options} }}')


def test_whole_weeks_keep_weekdays() -> None:
    memory = Memory(SECRET, [])
    assert Shift(weeks=True)(seen("Monday", "DATE"), memory) == "Monday"
    assert dates.days_for(SECRET, "p1", weeks=True) % 7 == 0


def test_a_surrogate_is_drawn_and_what_comes_out_unchanged_by_chance_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(SECRET)
    assert Surrogate()(seen("Penn", "DOCTOR"), memory) == surrogate("Penn", kind_of("DOCTOR"), "p1", SECRET)
    monkeypatch.setattr("chaffinch.deid.surrogates.surrogate.surrogate", lambda *_, **__: "Quill")
    assert Surrogate()(seen("QUILL ", "DOCTOR"), memory) == "Quill"  # a tag would tell that this was the original
    with pytest.raises(ConfigError, match="no secret"):
        Surrogate()(seen("Penn", "DOCTOR"), Memory())


def test_operators_say_what_they_need() -> None:
    assert {name for name, kind in OPERATORS.items() if kind.needs_secret} == {"surrogate", "shift"}
    assert {name: kind.only for name, kind in OPERATORS.items() if kind.only} == {
        "generalise": ("AGE", "ZIP", "DATE"), "shift": ("DATE",)
    }  # fmt: skip


def test_every_file_of_the_folder_is_an_operator_by_its_name() -> None:
    files = {path.stem for path in Path(operators.__file__).parent.glob("*.py")} - {"__init__"}
    assert OPERATORS.keys() == files
    assert len(files) > 7
    assert all(kind.__name__.lower() == name for name, kind in OPERATORS.items())
