"""Dates against the calendar of the standard library: every form, every shift, every pair."""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeAlias

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaffinch.deid.dates.points import Order
from chaffinch.deid.dates.shift import Parsed, parse, shift

Form: TypeAlias = tuple[str, Order, Callable[[date], str]]
SPANISH = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()
GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()


def _english(day: int) -> str:
    if day in (11, 12, 13):
        return f"{day}th"
    return f"{day}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th') }"


def _strf(pattern: str) -> Callable[[date], str]:
    return lambda day: day.strftime(pattern)


# Forms whose text tells its own format: the shifted text is the shifted day written in the same form, to the letter.
SURE: list[Form] = [
    *((pattern, "mdy", _strf(pattern)) for pattern in (
        "%m/%d/%Y", "%m/%d/%y", "%m-%d-%y", "%m-%d-%Y", "%m.%d.%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%m%d%Y",
        "%m / %d / %Y",
        "%b-%d-%Y", "%d%b%y", "%d-%b-%Y", "%d-%b-%y", "%Y-%b-%d", "%A, %m/%d/%Y", "%a %m/%d/%y",
        "%m/%d/%Y (%a)",
        "%m/%d/%y 14:30", "%Y-%m-%dT14:30:00Z", "%Y-%m-%d 08:05:09.123+01:00", "%m/%d/%Y at 2:30 pm",
        "14:30 on %m/%d/%Y",
        "since %m/%d/%Y", "(%m/%d/%Y)",
    )),
    *((pattern, "dmy", _strf(pattern)) for pattern in ("%d/%m/%Y", "%d.%m.%Y", "%d.%m.%y", "%d-%m-%y", "%d%m%Y")),
    ("%y-%m-%d", "ymd", _strf("%y-%m-%d")),
    ("March 4, 1998", "mdy", lambda d: f"{d:%B} {d.day}, {d.year}"),
    ("4 March 1998", "mdy", lambda d: f"{d.day} {d:%B} {d.year}"),
    ("4 MARCH '98", "mdy", lambda d: f"{d.day} {d:%B} '{d:%y}".upper()),
    ("march 4th, 1998", "mdy", lambda d: f"{d:%B} {_english(d.day)}, {d.year}".lower()),
    ("the 4th of March, 1998", "mdy", lambda d: f"the {_english(d.day)} of {d:%B}, {d.year}"),
    ("Mar. 4, 1998", "mdy", lambda d: f"{d:%b}. {d.day}, {d.year}"),
    ("Wednesday, March 4, 1998", "mdy", lambda d: f"{d:%A}, {d:%B} {d.day}, {d.year}"),
    ("4 de marzo de 2001", "dmy", lambda d: f"{d.day} de {SPANISH[d.month - 1]} de {d.year}"),
    ("04-marzo-2001", "dmy", lambda d: f"{d:%d}-{SPANISH[d.month - 1]}-{d.year}"),
    ("4. März 2001", "dmy", lambda d: f"{d.day}. {GERMAN[d.month - 1]} {d.year}"),
]  # fmt: skip
# Forms without leading zeros: 12/14 does not tell whether 4 would be written 04.
UNPADDED: list[Form] = [
    ("3/4/1998", "mdy", lambda d: f"{d.month}/{d.day}/{d.year}"),
    ("3/4/98", "mdy", lambda d: f"{d.month}/{d.day}/{d:%y}"),
    ("4.3.2001", "dmy", lambda d: f"{d.day}.{d.month}.{d.year}"),
    ("1998-3-4", "ymd", lambda d: f"{d.year}-{d.month}-{d.day}"),
    ("Wed 3/4/98", "mdy", lambda d: f"{d:%a} {d.month}/{d.day}/{d:%y}"),
]
FORMS = SURE + UNPADDED

# Shifted days stay within the years that two digits can mean.
days_of_life = st.dates(date(1935, 1, 1), date(2026, 12, 31))
shifts = st.integers(-1095, 1095)


def _dates(text: str | None, order: Order) -> tuple[date, ...]:
    parsed = None if text is None else parse(text, order=order)
    assert parsed is not None
    return parsed.dates


def _span(parsed: Parsed) -> tuple[date, date]:
    span = parsed.points[0].span()
    assert span is not None
    return span


@given(days_of_life, shifts, st.sampled_from(SURE))
def test_the_shifted_text_is_the_shifted_day_in_the_same_form(day: date, days: int, form: Form) -> None:
    _, order, write = form
    assert shift(write(day), days, order=order) == write(day + timedelta(days))


@given(days_of_life, shifts, st.sampled_from(UNPADDED))
def test_unpadded_forms_stay_so_where_the_text_tells(day: date, days: int, form: Form) -> None:
    _, order, write = form
    new, expected = shift(write(day), days, order=order), write(day + timedelta(days))
    assert new is not None
    if min(day.day, day.month) < 10:
        assert new == expected
    else:
        assert re.sub(r"\b0", "", new) == re.sub(r"\b0", "", expected)


@given(days_of_life, days_of_life, shifts, st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_the_days_between_two_dates_stay_exact_in_any_pair_of_forms(
    one: date, two: date, days: int, form: Form, other: Form
) -> None:
    ((new_one,),) = (_dates(shift(form[2](one), days, order=form[1]), form[1]),)
    ((new_two,),) = (_dates(shift(other[2](two), days, order=other[1]), other[1]),)
    assert new_two - new_one == two - one


@given(days_of_life, shifts, st.sampled_from(SURE))
def test_shifting_there_and_back_gives_the_text_itself(day: date, days: int, form: Form) -> None:
    _, order, write = form
    there = shift(write(day), days, order=order)
    assert there is not None
    assert shift(there, -days, order=order) == write(day)


@given(days_of_life, shifts)
def test_short_month_names_come_back_unless_they_pass_through_may(day: date, days: int) -> None:
    new = day + timedelta(days)
    text = f"{day:%b} {day.day}, {day.year}"
    assume(5 not in (day.month, new.month))  # May is its own short form: it does not tell which it is
    assert shift(text, days) == f"{new:%b} {new.day}, {new.year}"
    assert shift(str(shift(text, days)), -days) == text


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.integers(-4_000_000, 4_000_000))
def test_any_year_of_the_calendar_or_none(day: date, days: int) -> None:
    try:
        expected = (day + timedelta(days)).isoformat()
    except OverflowError:
        assert shift(day.isoformat(), days) is None
    else:
        assert shift(day.isoformat(), days) == expected


@given(days_of_life, shifts)
def test_a_day_without_a_year_moves_as_the_full_date_does(day: date, days: int) -> None:
    new = day + timedelta(days)
    numbers = str(shift(f"{day:%m/%d}", days, reference_year=day.year))
    assert tuple(map(int, numbers.split("/"))) == (new.month, new.day)
    assert numbers == f"{new:%m/%d}" or min(day.month, day.day) >= 10
    assert shift(f"{day:%B} {day.day}", days, reference_year=day.year) == f"{new:%B} {new.day}"
    assert shift(f"{day:%A}", days) == f"{new:%A}"


@given(days_of_life, shifts.map(lambda days: 7 * (days // 7)))
def test_whole_weeks_keep_weekdays(day: date, days: int) -> None:
    assert shift(f"{day:%A}", days) == f"{day:%A}"
    assert str(shift(f"{day:%a} {day:%m/%d/%Y}", days)).startswith(f"{day:%a} ")


@given(days_of_life, st.integers(0, 40), shifts)
def test_ranges_with_one_year_or_one_month_keep_both_ends(first: date, length: int, days: int) -> None:
    last = first + timedelta(length)
    moved = first + timedelta(days), last + timedelta(days)
    assume(length > 0)
    text = f"{first.month}/{first.day}-{last.month}/{last.day}/{last.year}"
    assert _dates(shift(text, days), "mdy") == moved
    if first.month == last.month:
        assert _dates(shift(f"{first:%B} {first.day}-{last.day}, {last.year}", days), "mdy") == moved
        assert _dates(shift(f"{first.day} to {last.day} {first:%B} {last.year}", days), "mdy") == moved
        german = f"{first.day}.-{last.day}.{first.month}.{last.year}"
        assert _dates(shift(german, days, order="dmy"), "dmy") == moved
        numbers = f"{first.month}/{first.day}-{last.day}/{last.year}"
        assert _dates(shift(numbers, days), "mdy") == moved


@pytest.mark.parametrize("year", [1999, 2000])
@pytest.mark.parametrize("month", range(1, 13))
def test_no_other_month_holds_more_of_the_shifted_days(year: int, month: int) -> None:
    every = [date(year, month, day) for day in range(1, calendar.monthrange(year, month)[1] + 1)]
    for days in range(-200, 201):
        held = Counter(f"{day + timedelta(days):%m/%Y}" for day in every)
        new = shift(f"{month:02d}/{year}", days)
        assert new is not None
        assert held[new] == max(held.values())


@given(st.integers(1936, 2025), shifts)
def test_years_seasons_and_decades_hold_a_shifted_day_of_theirs(year: int, days: int) -> None:
    for text in (f"{year}", f"spring {year}", f"winter {year}", f"fall of {year}", f"{year // 10}0s"):
        old, new = parse(text), parse(str(shift(text, days)))
        assert old is not None
        assert new is not None
        (first, last), (new_first, new_last) = _span(old), _span(new)
        assert first + timedelta(days) <= new_last
        assert last + timedelta(days) >= new_first


HOLIDAYS = ["Christmas", "Thanksgiving", "Easter", "Labor Day", "New Year's Eve", "Navidad", "Ostern", "MLK day"]


@given(st.sampled_from(HOLIDAYS), st.integers(1936, 2025), shifts)
def test_a_holiday_never_passes_and_its_month_is_right(name: str, year: int, days: int) -> None:
    old, text = parse(f"{name} {year}"), str(shift(f"{name} {year}", days))
    new = parse(text)
    assert name not in text
    assert old is not None
    assert new is not None
    (day, _), (first, last) = _span(old), _span(new)
    assert first <= day + timedelta(days) <= last


PIECES = (
    "3 04 1998 98 '98 / - . , : to and de März March may Mon spring Christmas th st T14:30 Z the mid- 90s ſ ı".split()
)
garbage = st.one_of(
    st.text(max_size=130),
    st.text(alphabet="0123456789/-. ,'", max_size=30),
    st.lists(st.sampled_from([*PIECES, " ", " "]), max_size=14).map("".join),
)


@given(garbage, shifts)
def test_any_text_is_refused_or_read_at_places_that_do_not_overlap(text: str, days: int) -> None:
    parsed = parse(text)
    assert (parsed is None) == (shift(text, 0) is None)
    assert parsed is not None or shift(text, days) is None
    places = sorted((f.start, f.end) for point in (parsed.points if parsed else ()) for f in point.fields)
    edges = [edge for place in places for edge in place]
    assert edges == sorted(edges)
    assert not edges or edges[-1] <= len(text)


@given(days_of_life, shifts, st.sampled_from(FORMS), st.integers(0, 40), st.sampled_from(["", " ", "-", ", "]))
def test_a_text_with_any_other_word_in_it_is_never_passed(
    day: date, days: int, form: Form, at: int, around: str
) -> None:
    text = form[2](day)
    for stranger in ("Xanthippe", "4711471"):
        assert shift(f"{text[:at]}{around}{stranger}{around}{text[at:]}", days, order=form[1]) is None
