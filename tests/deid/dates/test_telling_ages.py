"""Ages over a limit: whoever holds all released notes of a patient cannot work out such an age from their dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.deid.dates.telling_ages import AgeLimit, find_dated_texts, patient_timeline, tells_age_over
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
from chaffinch.deid.release.replace import ReplacedText, replace_identifiers
from chaffinch.text import Document, Span
from tests.deid.promises import PLANTED, planted
from tests.deid.releases import SECRET
from tests.deid.texts import texts

KEPT = Policy.parse('name = "kept"\n[rules]\nAGE = "generalise"\nDATE = "keep"')
HIDDEN = Policy.parse('name = "hidden"\n[rules]\nAGE = "tag"\nDATE = { operator = "shift", weeks = true }')
SHIFTED, YEARS = Policy.read("i2b2-surrogate"), Policy.read("safe-harbor")
POLICIES = (SHIFTED, YEARS, KEPT, HIDDEN)
MONTHS = "January February March April May June July August September October November December".split()


def note(marked: str, number: int = 0, patient: str = "p") -> Document:
    """A note whose dates stand in braces, as one with the spans of these dates."""
    parts, spans, at = [], [], 0
    for place, part in enumerate(re.split(r"[{}]", marked)):
        if place % 2:
            spans.append(Span(at, at + len(part), "DATE"))
        parts.append(part)
        at += len(part)
    return Document.make("".join(parts), id=f"{patient}-{number}", group=patient, layers={PLANTED: spans})


def released(marked: Sequence[str], policy: Policy) -> list[str]:
    """The texts of the notes of one patient after their release."""
    docs = [note(text, number) for number, text in enumerate(marked)]
    given = [NumberedDocument(number, doc) for number, doc in enumerate(docs)]
    made = release(given, Release(policy, SECRET, counted_order="mdy"), planted(docs))
    return [one.text for one in made if isinstance(one, Released)]


# The attacker


class Told(NamedTuple):
    """What the attacker reads: the first and last day that it may mean, and whether it is somebody's birth."""

    first: date
    last: date
    short: bool
    birth: bool


_NAMED = "|".join(MONTHS)
_READ = re.compile(
    r"(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y1>\d{4}|\d\d)\b|(?P<y2>\d{4})-(?P<c>\d\d)-(?P<d>\d\d)"
    rf"|(?P<m>{_NAMED})(?: (?P<e>\d{{1,2}}),)? (?P<y3>\d{{4}})|\b(?P<y4>\d{{3}}0)s|\b(?P<y5>\d{{4}})\b|'(?P<y6>\d\d)\b"
)
_BIRTH = re.compile(r"\b(?:born|DOB|birth|b\.)[^.;\n]{0,25}$")


def read(text: str) -> Iterator[Told]:
    """The dates of a released text."""
    end = 0
    for match in _READ.finditer(text):
        birth = _BIRTH.search(text[end : match.start()]) is not None
        end = match.end()
        digits = next(value for name, value in match.groupdict().items() if name[0] == "y" and value)
        year = int(digits) + (2000 if len(digits) == 2 else 0)
        if match["a"]:
            first = last = date(year, int(match["a"]), int(match["b"]))
        elif match["c"]:
            first = last = date(year, int(match["c"]), int(match["d"]))
        elif match["m"]:
            month = MONTHS.index(match["m"]) + 1
            first = date(year, month, int(match["e"] or 1))
            last = first if match["e"] else date(year + month // 12, month % 12 + 1, 1) - timedelta(1)
        else:
            first, last = date(year, 1, 1), date(year + (9 if match["y4"] else 0), 12, 31)
        yield Told(first, last, len(digits) == 2, birth)


def age(born: date, then: date) -> int:
    """Whole years from one day to another."""
    return then.year - born.year - ((then.month, then.day) < (born.month, born.day))


def greatest_age(texts: Sequence[str]) -> int:
    """The greatest age that somebody must have had who was there on every date of these texts."""
    found = [told for text in texts for told in read(text)]
    then = max((told.first for told in found if not told.birth and not told.short), default=None)
    if then is None:
        return 0
    ages = [0]
    for told in found:
        last = told.last
        if told.short and last > then:  # nobody is born after the note: it is the century before
            last = last.replace(year=last.year - 100, day=28)
        ages.append(age(last, then))
    return max(ages)


# The patients


def written(day: date, form: int) -> str:
    """The day, or a part of it, in one of eight forms."""
    return (
        f"{day:%m/%d/%Y}", f"{day:%Y-%m-%d}", f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
        f"{MONTHS[day.month - 1]} {day.year}", f"{day.year}", f"{day.year // 10 * 10}s", f"'{day:%y}",
        f"{day.month}/{day.day}/{day:%y}",
    )[form]  # fmt: skip


CUES = ("DOB: {%s}", "She was born in {%s}", "b. {%s}", "birth year: {%s}", "Date of birth {%s} (F)", "born {%s}")


def patient(rng: np.random.Generator) -> tuple[date, date, list[str], int]:
    """A birth day, the day of the last note, the notes, and the form of the birth date."""
    last = date(2010, 1, 1) + timedelta(int(rng.integers(0, 5000)))
    born = last - timedelta(int(rng.integers(80 * 365, 106 * 365)))
    form = int(rng.integers(0, 8))
    birth = CUES[rng.integers(len(CUES))] % written(born, form)
    youth = f"Graduated {{{born.year + int(rng.integers(5, 20))}}}. " if rng.random() < 0.3 else ""
    days = [last - timedelta(int(rng.integers(1, 3000))) for _ in range(int(rng.integers(0, 3)))]
    visits = [f"Seen {{{written(day, int(rng.integers(0, 3)))}}}." for day in sorted([*days, last])]
    where = int(rng.integers(len(visits) + 1))
    if where == len(visits):
        return born, last, [*visits, f"{youth}{birth}."], form  # a note without a date of its own
    visits[where] = f"{youth}{birth}. {visits[where]}"
    return born, last, visits, form


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_no_age_over_89_can_be_worked_out_from_released_notes(policy: Policy) -> None:
    rng = np.random.default_rng(4)
    attacked = shown = young = 0
    for _ in range(300):
        born, last, notes, form = patient(rng)
        texts = released(notes, policy)
        assert greatest_age(texts) <= 89, (form, age(born, last))
        attacked += greatest_age([re.sub("[{}]", "", text) for text in notes]) > 89
        if age(born, last) < 88 and form < 5:
            young += 1
            shown += sum(text.count("[DATE]") for text in texts) == 0
    assert attacked > 100  # of the originals, many ages can be worked out
    assert shown == young > 20  # and dates that tell no such age are not hidden for it


# Cases by hand


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "birth",
    [
        "DOB {03/04/1925}", "born in {1925}", "b. {1925}", "(b {1925})", "birth year: {'25}", "born {March 1925}",
        "born {3/1925}", "born in the {1920s}", "born in the {'20s}", "{03/04/1925} (DOB)", "YOB: {1925}",
        "Geburtsdatum: {4.3.1925}", "Fecha de nacimiento: {4/3/1925}", "nacida en {1925}", "Graduated in {1928}",
        "Date of birth (MM/DD/YYYY):            {03/04/1925}", "lived there {1925-1930}", "D.O.B. {3/4/25}",
        "born {in the year 1925 or so}",
        "born {3/4/25}", "moved here in {'27}", "born {90 years ago}", "came here {95 years ago}",
    ],
)  # fmt: skip
def test_what_tells_of_an_age_over_89_becomes_a_tag(birth: str, policy: Policy) -> None:
    for notes in ([f"{birth}. Seen {{06/07/2018}}."], [f"{birth}.", "Seen {06/07/2018}."]):
        doc = note(notes[0])
        told = doc.text[doc.layers[PLANTED][0].start : doc.layers[PLANTED][0].end]
        text = " ".join(released(notes, policy))
        assert text.count("[DATE]") == 1
        assert text.startswith(doc.text.split(told)[0] + "[DATE]")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "birth",
    [
        "DOB {03/04/1931}", "born in {1930}", "born {March 1932}", "born in the {1930s}", "DOB {3/4/45}",
        "Graduated in {1948}", "DOB {3/4/2018}", "came here {40 years ago}", "for {100 days}", "DOB {03/04/1975}",
        "her brother was born in {1990}, she in {1950}",
    ],
)  # fmt: skip
def test_what_tells_of_no_such_age_is_treated_as_the_policy_says(birth: str, policy: Policy) -> None:
    text = " ".join(released([f"{birth}. Seen {{06/07/2018}}."], policy))
    partial = policy is YEARS and re.search("1930s|ago|days", birth)
    assert text.count("[DATE]") == bool(partial)


@pytest.mark.parametrize("policy", [SHIFTED, KEPT, HIDDEN], ids=lambda policy: policy.name)
def test_days_are_exact_where_days_are_known(policy: Policy) -> None:
    assert "[DATE]" not in released(["DOB {06/01/1930}. Seen {05/30/2020}."], policy)[0]
    assert "[DATE]" not in released(["DOB {06/01/1930}. Seen {05/31/2020}."], policy)[0]
    assert "[DATE]" in released(["DOB {06/01/1930}. Seen {06/01/2020}."], policy)[0]
    assert "[DATE]" in released(["DOB {06/01/1930}. Seen in {2020}."], policy)[0]
    assert "[DATE]" in released(["born {1930}. Seen {05/30/2020}."], policy)[0]
    assert "[DATE]" in released(["DOB {01/06/1930}. Seen {03/03/2020}."], policy)[0]  # 6 January or 1 June


def test_released_years_are_compared_as_years() -> None:
    assert "[DATE]" in released(["DOB {06/01/1930}. Seen {05/30/2020}."], YEARS)[0]
    assert released(["DOB {06/01/1931}. Seen {05/30/2020}."], YEARS) == ["DOB 1931. Seen 2020."]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_notes_of_other_patients_and_failing_notes_tell_nothing(policy: Policy) -> None:
    docs = [note("DOB {03/04/1950}. Seen {06/07/2010}.", 0, "p"), note("Seen {06/07/2045}.", 0, "q")]
    given = [NumberedDocument(number, doc) for number, doc in enumerate(docs)]
    made = release(given, Release(policy, SECRET, counted_order="mdy"), planted(docs))
    assert isinstance(made[0], Released)
    assert "[DATE]" not in made[0].text


def acted(marked: str, policy: Policy) -> ReplacedText:
    return replace_identifiers(note(marked), PLANTED, policy, SECRET)


def test_the_replacement_is_recorded_as_generalised() -> None:
    one, two = acted("DOB {03/04/1925}, seen {06/07/2018}", SHIFTED).replacements
    assert (one.operator, two.operator) == ("generalise", "shift")
    assert acted("DOB {03/04/1925}, seen {06/07/2018}", KEPT).text == "DOB [DATE], seen 06/07/2018"


def test_operators_that_hide_dates_anyway_are_left_alone() -> None:
    for operator, expected in (("mask", "**********"), ("remove", ""), ("number", "[DATE-1]"), ("tag", "[DATE]")):
        policy = Policy.parse(f'[rules]\nAGE = "generalise"\nDATE = "{operator}"')
        made = acted("DOB {03/04/1925}, seen {06/07/2018}", policy)
        assert made.text.startswith(f"DOB {expected}, seen ")
        assert {one.operator for one in made.replacements} == {operator}


@pytest.mark.parametrize(
    ("rules", "limit"),
    [
        ('AGE = "keep"\nDATE = "keep"', None),
        ('AGE = "keep"\nDATE = "shift"', None),
        ('AGE = "keep"\nDATE = "generalise"', 89),  # years are rounded so that no such age is told
        ('AGE = "tag"\nDATE = "keep"', 89),
        ('AGE = "mask"\nDATE = "shift"', 89),
        ('AGE = { operator = "generalise", over = 60 }\nDATE = "shift"', 60),
        ('AGE = { operator = "generalise", over = 60 }\nDATE = { operator = "generalise", over = 70 }', 60),
        ('AGE = { operator = "generalise", over = 95 }\nDATE = { operator = "generalise", over = 70 }', 70),
        ('EDAD_SUJETO_ASISTENCIA = "generalise"\nAGE = "keep"\nDATE = "keep"', 89),
    ],
)
def test_the_limit_is_that_of_the_policy(rules: str, limit: int | None) -> None:
    declared = "types = ['EDAD_SUJETO_ASISTENCIA']\n" if "EDAD" in rules else ""
    policy = Policy.parse(f"{declared}[rules]\n{rules}")
    for years in (55, 60, 61, 70, 71, 89, 90, 95, 96):
        text = acted(f"born in {{{2020 - years}}}, seen in {{2020}}", policy).text
        assert text.startswith("born in [DATE]") == (limit is not None and years > limit)


def test_a_limited_data_set_keeps_what_it_says_it_keeps() -> None:
    assert released(["DOB {03/04/1925}. Seen {06/07/2018}."], Policy.read("limited-dataset")) == [
        "DOB 03/04/1925. Seen 06/07/2018."
    ]


# Safe harbor's years


@pytest.mark.parametrize(
    ("year", "before", "elsewhere", "expected"),
    [
        (1925, "born ", ["2015"], "[DATE]"),  # 90 years
        (1925, "", ["2015"], "[DATE]"),  # an operation in 1925 tells of the age too
        (1926, "DOB: ", ["2015"], "1926"),  # 89 at most
        (1926, "DOB: ", [], "[DATE]"),  # nothing to compare it with
        (1926, "fecha de nacimiento: ", [], "[DATE]"),
        (1926, "Geburtsdatum, geb. ", [], "[DATE]"),
        (2010, "seen on ", [], "2010"),
    ],
)
def test_years_that_tell_of_an_age_over_89_go(year: int, before: str, elsewhere: list[str], expected: str) -> None:
    text = f"March 3, {year}"
    made = acted(" ".join([f"{before}{{{text}}}.", *(f"Seen {{{other}}}." for other in elsewhere)]), YEARS)
    assert made.text.startswith(f"{before}{expected}.")


@pytest.mark.parametrize(
    ("text", "before", "elsewhere", "expected"),
    [
        ("3/4/25", "DOB ", ["2015"], "[DATE]"),  # 1925 or 2025
        ("3/4/25", "", ["2015"], "[DATE]"),
        ("3/4/05", "DOB ", ["2015"], "[DATE]"),  # 10 years old, or 110
        ("3/4/98", "DOB ", ["2015"], "1998"),  # 17 years old, not 117
        ("3/4/98", "DOB ", [], "[DATE]"),
        ("3/4/98", "seen ", ["2015"], "1998"),
        ("5/6/1905", "", ["3/4/98"], "[DATE]"),  # the last year of the document may have two digits
    ],
)
def test_years_of_two_digits(text: str, before: str, elsewhere: list[str], expected: str) -> None:
    made = acted(" ".join([f"{before}{{{text}}}.", *(f"Seen {{{other}}}." for other in elsewhere)]), YEARS)
    assert made.text.startswith(f"{before}{expected}.")


@pytest.mark.parametrize(
    "text",
    [
        "DOB {03/04/1950}. Seen {5/6/15}, {6/6/15}, again {1/7/16}.",  # four digits for the birth only
        "PENN, ADA {03/04/1950} F. Seen {5/6/15}.",  # 1915 would be before the birth
        "Seen {12/20/2015}, returns {1/15/16}.",
        "JOSE B. {04/08/2015}. Given b.i.d. {04/09/2015}. Hepatitis B {04/10/2015}.",
        "Birthplace: Ohio. Birth weight 3 kg. {04/08/2015}.",
        "Seen {04/08/2015} at {3601}.",  # no year
        "Seen {3/4/71}, {03/05/2071}.",
    ],
)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_ordinary_dates_are_not_taken_for_old_ones(text: str, policy: Policy) -> None:
    assert "[DATE]" not in acted(text, policy).text


@given(texts, st.lists(st.integers(0, 60), max_size=6))
def test_any_text_can_be_judged(text: str, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    spans = [Span(start, end, "DATE") for start, end in pairwise(places)]
    found = find_dated_texts(text, spans)
    told = patient_timeline(found)
    assert not told.events or max(told.events).year <= 2199
    assert all(isinstance(tells_age_over(one, AgeLimit(89), told), bool) for one in found)
    assert not any(piece in repr((found, told)) for piece in text.split() if len(piece) > 6)
