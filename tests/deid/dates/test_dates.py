"""Dates worked by hand: what each form means, and what it says some days later."""

from __future__ import annotations

import calendar
import hashlib
import math
import time
from collections import Counter
from datetime import date, timedelta

import pytest

from chaffinch.deid.dates.calendar_words import easter, holiday_date
from chaffinch.deid.dates.parse import LONGEST
from chaffinch.deid.dates.points import Order, Precision
from chaffinch.deid.dates.shift import days_for, order_of, parse, shift, usual_year
from chaffinch.deid.release.rounding import round_date
from chaffinch.errors import ConfigError
from tests.deid.releases import SECRET

# text, days, what it says then. March has 31 days, April 30; 1998 and 2001 are plain years, 1996, 2000 and 2004 leap.
SHIFTED = [
    # numbers, month first
    ("03/04/1998", 10, "03/14/1998"), ("03/04/1998", 28, "04/01/1998"), ("03/04/1998", -4, "02/28/1998"),
    ("3/4/98", 28, "4/1/98"), ("3/4/1998", -63, "12/31/1997"), ("03-04-98", 28, "04-01-98"),
    ("12/31/1999", 1, "01/01/2000"), ("12/31/99", 1, "01/01/00"), ("01/01/00", -1, "12/31/99"),
    ("02/28/2000", 1, "02/29/2000"), ("02/28/1900", 1, "03/01/1900"), ("02/28/2001", 1, "03/01/2001"),
    ("02/29/2000", 366, "03/01/2001"), ("02/29/2000", -366, "02/28/1999"), ("02/29/96", 1461, "02/29/00"),
    ("12/14/98", 20, "01/03/99"), ("12/4/98", 30, "1/3/99"), ("3/04/98", 1, "3/05/98"),
    ("03.04.1998", 28, "04.01.1998"),
    ("03/04//1998", 1, "03/05//1998"), ("03/04 /1998", 1, "03/05 /1998"), ("03 04 1998", 1, "03 05 1998"),
    ("03/04 1998", 1, "03/05 1998"), ("3/4/'98", 1, "3/5/'98"),
    # day first, because no other reading exists
    ("13/04/1998", 20, "03/05/1998"), ("31.12.1999", 1, "01.01.2000"), ("25-12-97", 7, "01-01-98"),
    # year first
    ("2098-04-03", 28, "2098-05-01"), ("2098/04/03", -3, "2098/03/31"), ("1998-3-4", 28, "1998-4-1"),
    ("20980403", 28, "20980501"), ("03041998", 28, "04011998"), ("98/03/14", 18, "98/04/01"),
    ("1998.03.04", 1, "1998.03.05"),
    # month names
    ("March 4, 1998", 28, "April 1, 1998"), ("March 14, 1998", -5, "March 9, 1998"),
    ("4 March 1998", -63, "31 December 1997"),
    ("Mar 4, 1998", 28, "Apr 1, 1998"), ("MARCH 4, 1998", 28, "APRIL 1, 1998"), ("march 4, 1998", 28, "april 1, 1998"),
    ("MAR 4 1998", 28, "APR 1 1998"), ("Mar. 4, 1998", 28, "Apr. 1, 1998"), ("March 04, 1998", 28, "April 01, 1998"),
    ("March 4,1998", 28, "April 1,1998"), ("4-Mar-98", 28, "1-Apr-98"), ("04-Mar-1998", 28, "01-Apr-1998"),
    ("14-Mar-98", 18, "01-Apr-98"), ("04MAR98", 28, "01APR98"), ("04MAR1998", -4, "28FEB1998"),
    ("4mar98", 28, "1apr98"),
    ("4 March '98", 28, "1 April '98"), ("Sept 4, 1998", 30, "Oct 4, 1998"), ("1998 March 4", 28, "1998 April 1"),
    ("1998-Mar-04", 28, "1998-Apr-01"), ("May 4, 1998", 31, "June 4, 1998"),
    ("May. 4, 1998", 31, "Jun. 4, 1998"), ("04-May-98", 31, "04-Jun-98"),
    ("March  4,  1998", 1, "March  5,  1998"), ("Mar-04-98", 1, "Mar-05-98"), ("March 4 1998", 1, "March 5 1998"),
    # ordinals
    ("March 1st, 1998", 1, "March 2nd, 1998"), ("March 2nd, 1998", 1, "March 3rd, 1998"),
    ("March 3rd, 1998", 1, "March 4th, 1998"),
    ("March 10th, 1998", 1, "March 11th, 1998"), ("March 11th, 1998", 1, "March 12th, 1998"),
    ("March 12th, 1998", 1, "March 13th, 1998"), ("March 20th, 1998", 1, "March 21st, 1998"),
    ("March 21st, 1998", 1, "March 22nd, 1998"), ("March 22nd, 1998", 1, "March 23rd, 1998"),
    ("MARCH 30TH, 1998", 1, "MARCH 31ST, 1998"), ("4th of March, 1998", 28, "1st of April, 1998"),
    ("the 4th of March 1998", 28, "the 1st of April 1998"), ("4th March 1998", -1, "3rd March 1998"),
    ("the 4th day of March, 1998", -2, "the 2nd day of March, 1998"),
    # Spanish and German
    ("4 de marzo de 2001", 28, "1 de abril de 2001"), ("4 de Marzo del 2001", 28, "1 de Abril del 2001"),
    ("14-octubre-2001", 18, "01-noviembre-2001"), ("04/mar/2001", 1, "05/mar/2001"),
    ("1º de marzo de 2001", 1, "2º de marzo de 2001"),
    ("4. März 2001", 28, "1. April 2001"), ("4.März 2001", -4, "28.Februar 2001"), ("4. MÄRZ 2001", 61, "4. MAI 2001"),
    ("3. März2001", 1, "4. März2001"), ("4. Ma\u0308rz 2001", 28, "1. April 2001"), ("Mo, 5.3.2001", 1, "Di, 6.3.2001"),
    ("Montag, den 5. März 2001", -1, "Sonntag, den 4. März 2001"),
    ("lunes 5 de marzo de 2001", 2, "miércoles 7 de marzo de 2001"),
    ("4. Mrz. 2001", -31, "1. Feb. 2001"), ("el 4 de marzo de 2001", 1, "el 5 de marzo de 2001"),
    # times stay
    ("3/4/98 14:30", 28, "4/1/98 14:30"), ("3/4/98 at 2:30 pm", 28, "4/1/98 at 2:30 pm"),
    ("3/4/98 1430", 28, "4/1/98 1430"),
    ("3/4/98, 2:30 PM EST", 28, "4/1/98, 2:30 PM EST"), ("1998-03-04T14:30:00Z", 28, "1998-04-01T14:30:00Z"),
    ("1998-03-04T14:30:00.000+01:00", -4, "1998-02-28T14:30:00.000+01:00"),
    ("1998-03-04 14:30:05", 28, "1998-04-01 14:30:05"),
    ("19980304T1430", 28, "19980401T1430"), ("14:30 on 3/4/98", 28, "14:30 on 4/1/98"),
    ("03/04/1998 (Wed)", 1, "03/05/1998 (Thu)"),
    ("am 3.4.2001 um 14.30 Uhr", 1, "am 4.4.2001 um 14.30 Uhr"), ("3/4/98 8:00-9:30", 1, "3/5/98 8:00-9:30"),
    # weekdays beside dates: 4 March 1998 was a Wednesday
    ("Wednesday, March 4, 1998", 28, "Wednesday, April 1, 1998"), ("Wed 3/4/98", -1, "Tue 3/3/98"),
    ("WED 3/4/98", 3, "SAT 3/7/98"),
    # ranges
    ("3/4-3/7/98", 26, "3/30-4/2/98"), ("3/4/98-3/7/98", 1, "3/5/98-3/8/98"), ("12/30-1/2/98", 3, "1/2-1/5/98"),
    ("12/28-12/31/97", 2, "12/30-01/02/98"), ("10/28-12/31/97", 66, "01/02-03/07/98"),
    ("from 3/4/98 to 3/9/98", 1, "from 3/5/98 to 3/10/98"),
    ("March 3-7, 1998", 1, "March 4-8, 1998"), ("March 3-7, 1998", 26, "March 29-April 2, 1998"),
    ("MARCH 3-7, 1998", 26, "MARCH 29-APRIL 2, 1998"), ("December 28-30, 1997", 3, "December 31-January 2, 1998"),
    ("March 30-April 2, 1998", 2, "April 1-April 4, 1998"), ("3-7 March 1998", 26, "29 March-2 April 1998"),
    ("3rd to 7th March 1998", 26, "29th March to 2nd April 1998"),
    ("between March 3, 1998 and March 7, 1998", 1, "between March 4, 1998 and March 8, 1998"),
    ("3.-7.3.2001", 1, "4.-8.3.2001"), ("3.-7.3.2001", 26, "29.3.-2.4.2001"),
    ("vom 3. bis 7. März 2001", 26, "vom 29. März bis 2. April 2001"),
    ("del 3 al 7 de marzo de 2001", 26, "del 29 de marzo al 2 de abril de 2001"), ("3/4-7/98", 26, "3/30-4/2/98"),
    ("Dec 31, 1999 – Jan 2, 2000", -1, "Dec 30, 1999 – Jan 1, 2000"),
    ("3/4/98, 3/5/98 and 3/7/98", 1, "3/5/98, 3/6/98 and 3/8/98"),
    ("12/30/97 through 1/2", 3, "1/2/98 through 1/5"), ("1998-03-04 to 1998-03-07", 1, "1998-03-05 to 1998-03-08"),
    # months of a year go by their middle day: 16 March 1998, 15 April, 14 February
    ("March 1998", 15, "March 1998"), ("March 1998", 16, "April 1998"), ("March 1998", -15, "March 1998"),
    ("March 1998", -16, "February 1998"),
    ("3/98", 31, "4/98"), ("03/1998", 31, "04/1998"), ("12/1997", 31, "01/1998"), ("Mar '98", 31, "Apr '98"),
    ("Mar-98", 31, "Apr-98"),
    ("1998-03", 31, "1998-04"), ("2001/02", -31, "2001/01"), ("February 1998", 14, "February 1998"),
    ("February 1998", 15, "March 1998"),
    ("March of 1998", 31, "April of 1998"), ("6/00", 31, "7/00"), ("3/04", 300, "1/05"),
    ("marzo de 2001", 31, "abril de 2001"),
    ("enero del año 2001", 31, "febrero del año 2001"), ("Junio 08", 31, "Julio 08"),
    ("noviembre-12", 31, "diciembre-12"),
    ("Oktober\n2001", 31, "November\n2001"), ("March/April 1998", 31, "April/May 1998"),
    ("Marzo y Abril de 2001", 31, "Abril y Mayo de 2001"),
    ("12/97-1/98", 31, "1/98-2/98"), ("03-05/1998", 31, "04-06/1998"), ("early March 1998", -10, "early February 1998"),
    ("late March 1998", 10, "late April 1998"), ("mid-March 1998", 31, "mid-April 1998"),
    # years go by 2 July (1 July of a leap year), decades by the end of their fifth year
    ("1998", 182, "1998"), ("1998", 183, "1999"), ("1998", -182, "1998"), ("1998", -183, "1997"), ("'98", 183, "'99"),
    ("'99", 183, "'00"),
    ("1998-2001", 365, "1999-2002"), ("1998-99", 365, "1999-00"), ("año 2001", -365, "año 2000"),
    ("the 90s", 364, "the 90s"),
    ("the 90s", 1830, "the 00s"), ("1990s", -1830, "1980s"), ("early 1998", -100, "early 1997"),
    ("late 1998", 100, "late 1999"),
    # weekdays
    ("Monday", 1, "Tuesday"), ("Sunday", 1, "Monday"), ("MON", -1, "SUN"), ("monday", 15, "tuesday"),
    ("Monday", 70, "Monday"),
    ("last Friday", 1, "last Saturday"), ("Monday morning", 2, "Wednesday morning"), ("Mondays", 3, "Thursdays"),
    ("Mon-Fri", 1, "Tue-Sat"),
    ("Tues", 1, "Wed"), ("lunes", 5, "sábado"), ("Mittwoch", 1, "Donnerstag"),
    # seasons: the middles are 15 January, 15 April, 16 July and 16 October
    ("spring 1998", 46, "spring 1998"), ("spring 1998", 47, "summer 1998"), ("fall of '97", 91, "winter of '98"),
    ("winter 1998", -31, "winter 1998"),
    ("winter 1998", -50, "fall 1997"), ("Summer 1998", -91, "Spring 1998"), ("primavera de 2001", 91, "verano de 2001"),
    ("Frühling 2001", 91, "Sommer 2001"), ("autumn 1998", 92, "winter 1999"),
    ("spring/summer 1998", 91, "summer/fall 1998"),
    # holidays become the month: Christmas is 25 December, Thanksgiving 1997 was 27 November, Easter 1998 was 12 April
    ("Christmas 1997", 7, "January 1998"), ("Christmas 1997", 6, "December 1997"), ("CHRISTMAS", 10, "JANUARY"),
    ("Thanksgiving 1997", 4, "December 1997"),
    ("Easter 1998", -12, "March 1998"), ("Christmas Eve, 1997", 8, "January, 1998"),
    ("Navidad de 2001", 7, "Enero de 2002"),
    ("Weihnachten 2001", 7, "Januar 2002"), ("New Year's Eve 1999", 1, "January 2000"),
    ("New Year’s Day", 0, "January"), ("Labor Day 1998", -7, "August 1998"),
    # relative expressions stay true
    ("yesterday", 41, "yesterday"), ("3 days later", 41, "3 days later"), ("two weeks ago", 41, "two weeks ago"),
    ("POD 3", 41, "POD 3"),
    ("last week", 41, "last week"), ("hace 3 días", 41, "hace 3 días"), ("vor drei Tagen", 41, "vor drei Tagen"),
    ("the next day", 41, "the next day"),
    # what stands around
    (" (3/4/98), ", 28, " (4/1/98), "), ("since March 4, 1998.", 28, "since April 1, 1998."), ("~1998", 365, "~1999"),
]  # fmt: skip

# text, reference year, days, what it says then
WITHOUT_YEAR = [
    ("3/4", 1998, 28, "4/1"), ("03/04", 1998, 28, "04/01"), ("2/28", 2000, 1, "2/29"), ("2/28", 2001, 1, "3/1"),
    ("2/29", 2001, 1, "3/1"), ("2/29", None, -1, "2/28"), ("12/31", 1998, 1, "1/1"), ("Mar 4th", 1998, 28, "Apr 1st"),
    ("March 4", 1998, -4, "February 28"), ("March 4", 1996, -4, "February 29"),
    ("the 4th of March", 1998, 28, "the 1st of April"),
    ("Mon 3/4", 1996, 1, "Tue 3/5"), ("March 3-7", 2001, 26, "March 29-April 2"), ("12/30-1/2", 2000, 60, "2/28-3/3"),
    ("5/12-14", 2001, 19, "5/31-6/2"), ("25.12.", 2001, 7, "1.1."), ("3.4.", 2001, 1, "4.4."),
    ("March 13-17", 2001, 1, "March 14-18"),
    ("4 de marzo", 2001, 28, "1 de abril"), ("March", 1998, 16, "April"), ("last December", 1998, 31, "last January"),
    ("mes de abril", 2001, 31, "mes de mayo"), ("Thanksgiving", 1997, 4, "December"),
    ("Thanksgiving", 2001, 9, "December"),
    ("Thanksgiving", 2001, 8, "November"), ("March 4 at 8 am", 1998, 1, "March 5 at 8 am"),
    ("2/29-3/2", 2001, 1, "3/1-3/3"),
    ("summer", 2001, 91, "fall"), ("3/4, 3/5", 1998, 28, "4/1, 4/2"), ("3/4/12", 2085, 28, "4/1/12"),
]  # fmt: skip

UNREADABLE = [
    "31/02/1998", "02/31/1998", "13/13/2001", "02/29/1999", "30.02.2001", "2001-02-29", "2001-13-01", "2001-00-10",
    "00/04/1998",
    "0/10/2017", "March 32, 1998", "February 30", "2/30", "4/31", "31 de abril de 2001", "00/00/0000", "26708/2017",
    "23/010/1990",
    "98", "4", "4th", "the 4th", "12:30", "14th at noon", "Q1 1998", "", " ", "-", "/", "'", "tomorrowish",
    "Colombia", "Dr. May", "Marx 4, 1998",
    "39 años", "963 862 700", "John 3/4/98", "3/4/98 Smith", "3/4/98-Smith", "March 7-3", "32.1.2001", "3/4/98 25:00",
    "3/4/98 12:75",
    "aprıl 3", "３/４/98", "10000", "1998-99-1", "123456", "12 14 98", "17760412345", "10121492",
]  # fmt: skip


@pytest.mark.parametrize(("text", "days", "expected"), SHIFTED)
def test_a_text_says_what_it_should_after_some_days(text: str, days: int, expected: str) -> None:
    assert shift(text, days) == expected


@pytest.mark.parametrize(("text", "reference", "days", "expected"), WITHOUT_YEAR)
def test_a_day_without_a_year_moves_in_the_reference_year(
    text: str, reference: int | None, days: int, expected: str
) -> None:
    assert shift(text, days, reference_year=reference) == expected


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_date_gives_none(text: str) -> None:
    assert parse(text) is None
    assert shift(text, 41) is None


MEANINGS: list[tuple[str, Order, tuple[date, ...]]] = [
    ("03/04/1998", "mdy", (date(1998, 3, 4),)),
    ("03/04/1998", "dmy", (date(1998, 4, 3),)),
    ("03/04/1998", "ymd", (date(1998, 3, 4),)),
    ("03/04/05", "ymd", (date(2003, 4, 5),)),
    ("03/04/05", "dmy", (date(2005, 4, 3),)),
    ("03.04.05", "mdy", (date(2005, 3, 4),)),
    ("13/04/98", "mdy", (date(1998, 4, 13),)),
    ("04/13/98", "dmy", (date(1998, 4, 13),)),
    ("2098-04-03", "dmy", (date(2098, 4, 3),)),
    ("03042001", "dmy", (date(2001, 4, 3),)),
    ("13/3-5/4/98", "mdy", (date(1998, 3, 13), date(1998, 4, 5))),  # one order for the whole text
    ("Mo, 3.4.2001", "mdy", (date(2001, 4, 3),)),  # German words: day first
    ("3/4/30", "mdy", (date(2030, 3, 4),)),
    ("3/4/31", "mdy", (date(1931, 3, 4),)),
    ("3/4/99", "mdy", (date(1999, 3, 4),)),
    ("3/4/00", "mdy", (date(2000, 3, 4),)),
    ("12/30-1/2/98", "mdy", (date(1997, 12, 30), date(1998, 1, 2))),
    ("12/30/97 through 1/2", "mdy", (date(1997, 12, 30), date(1998, 1, 2))),
    ("March 3-7, 1998", "mdy", (date(1998, 3, 3), date(1998, 3, 7))),
    ("3/4", "mdy", ()),
    ("March 1998", "mdy", ()),
]


@pytest.mark.parametrize(("text", "order", "dates"), MEANINGS)
def test_the_full_dates_of_a_text(text: str, order: Order, dates: tuple[date, ...]) -> None:
    parsed = parse(text, order=order)
    assert parsed is not None
    assert parsed.dates == dates


@pytest.mark.parametrize(
    ("two", "reference", "expected"),
    [
        (85, 2085, 2085), (96, 2085, 1996), (95, 2085, 2095), (12, 2012, 2012), (35, 2012, 1935), (22, 2012, 2022),
        (23, 2012, 1923),
    ],
)  # fmt: skip
def test_two_digit_years_lie_around_the_reference_year(two: int, reference: int, expected: int) -> None:
    assert round_date(f"3/4/{two}", reference) == str(expected)


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("3/4/98", "day"), ("3/4", "month-day"), ("3/98", "month"), ("March", "month-only"), ("1998", "year"),
        ("90s", "decade"),
        ("spring", "season"), ("Easter", "holiday"), ("Sunday", "weekday"), ("today", "relative"),
    ],
)  # fmt: skip
def test_every_precision_is_told(text: str, precision: Precision) -> None:
    parsed = parse(text)
    assert parsed is not None
    assert parsed.precision == precision


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3/4/98", "1998"), ("March 1998", "1998"), ("'98", "1998"), ("12/30-1/2/98", "1997-1998"),
        ("the 90s", None),
        ("spring 1998", "1998"), ("Christmas 1997", "1997"), ("1998-2001", "1998-2001"), ("3/4", None), ("March", None),
        ("Monday", None), ("yesterday", None), ("Thanksgiving", None), ("Monday, 3/4/98", "1998"), ("5/3/32", "1932"),
    ],
)  # fmt: skip
def test_the_year_alone(text: str, expected: str | None) -> None:
    assert round_date(text) == expected


@pytest.mark.parametrize(
    ("text", "language", "days", "expected"),
    [
        ("mar-98", None, 31, "apr-98"),
        ("mar-98", "es", 31, "abr-98"),
        ("4 Okt 2001", None, 31, "4 Nov 2001"),
        ("Mai 2001", None, 31, "Juni 2001"),
        ("August 12", None, 31, "September 12"),  # an English day
        ("August 12", "de", 31, "September 12"),  # a German year: the number does not move with the month
        ("August 12", "de", 150, "Januar 13"),
        ("August 12", None, 150, "January 9"),
    ],
)
def test_the_language_settles_shared_words(text: str, language: str | None, days: int, expected: str) -> None:
    assert shift(text, days, language=language) == expected


def test_a_shift_out_of_the_calendar_gives_none() -> None:
    assert shift("9999-12-31", 1) is None
    assert shift("0001-01-01", -1) is None
    assert shift("9999-12-30", 1) == "9999-12-31"
    assert shift("3/4/98", 10**12) is None
    assert shift("9999", 400) is None
    assert shift("fall 9999", 60) is None


def test_the_order_is_asked_of_all_dates() -> None:
    assert order_of(["03/04/1998", "25/12/1997", "March 4"]) == "dmy"
    assert order_of(["03/04/1998", "12/25/1997"]) == "mdy"
    assert order_of(["12/25/1997", "25/12/1997"]) is None
    assert order_of(["12/25/1997", "25/12/1997", "13/1", "x" * 1000]) == "dmy"
    assert order_of([]) is None


def test_the_usual_year_is_that_of_most_full_dates() -> None:
    assert usual_year(["3/4/98", "1998-05-06", "1/1/2001", "March 2004"]) == 1998
    assert usual_year(["3/4/98", "3/4/99"]) == 1999
    assert usual_year(["3/4", "Monday"]) is None


def test_easter_and_moving_holidays_fall_where_almanacs_say() -> None:
    sundays = [(1943, 4, 25), (1961, 4, 2), (1998, 4, 12), (2000, 4, 23), (2008, 3, 23), (2011, 4, 24), (2024, 3, 31)]
    assert [easter(y) for y, _, _ in sundays] == [date(*day) for day in sundays]
    assert holiday_date((5, 0, -1), 2001) == date(2001, 5, 28)  # Memorial Day
    assert holiday_date((9, 0, 1), 2001) == date(2001, 9, 3)  # Labor Day
    assert holiday_date((1, 0, 3), 2001) == date(2001, 1, 15)  # Martin Luther King Day


@pytest.mark.parametrize("text", ["3/4/98", "from Mar 4 to Mar 7, 1998", "Christmas 1997", "March 3-7, 1998"])
def test_no_repr_shows_the_date(text: str) -> None:
    parsed = parse(text)
    assert parsed is not None
    shown = repr(parsed) + repr([place for point in parsed.points for place in point.fields])
    assert not any(word in shown for word in ("98", "97", "Mar", "Christmas", "1998"))


@pytest.mark.parametrize(
    "piece", ["3/", "1-", "March ", "3, ", " ", "1", "de ", "the ", "Mon ", "a", "3/4-", "'", ". ", "12:30 "]
)
@pytest.mark.parametrize("size", [LONGEST, 10_000])
def test_garbage_is_refused_quickly(piece: str, size: int) -> None:
    text = (piece * size)[:size]
    start = time.process_time()
    assert parse(text + "x") is None
    parse(text)
    assert time.process_time() - start < 0.5


class Keyed:
    """A stand-in for a secret: numbers from a hash of the key and the parts."""

    def __init__(self, key: str) -> None:
        self.key = key

    def number(self, bound: int, *parts: str) -> int:
        return int.from_bytes(hashlib.sha256("\0".join((self.key, *parts)).encode()).digest(), "big") % bound


def allowed_sizes(least: int, most: int, *, weeks: bool = False) -> list[int]:
    """The sizes of shifts that are allowed, listed by hand: not by the rule but by days counted in a calendar."""
    day, held = date(1999, 3, 1), set[int]()
    for start in range(4):  # a year of every place in the cycle of leap years
        one = day.replace(year=day.year + start)
        held |= {(one.replace(year=one.year + k) - one).days for k in range(1, 12)}
    near = {held_days + off for held_days in held for off in range(-7, 8)}
    return [days for days in range(least, most + 1) if days not in near and (not weeks or days % 7 == 0)]


@pytest.mark.parametrize("weeks", [False, True])
def test_days_depend_on_secret_patient_and_options_and_come_near_no_year(weeks: bool) -> None:
    drawn = [days_for(Keyed("k"), f"p{i}", weeks=weeks) for i in range(4000)]
    assert drawn == [days_for(Keyed("k"), f"p{i}", weeks=weeks) for i in range(4000)]
    assert drawn != [days_for(Keyed("other"), f"p{i}", weeks=weeks) for i in range(4000)]
    assert {abs(days) for days in drawn} <= set(allowed_sizes(31, 1095, weeks=weeks))
    assert 1800 < sum(days > 0 for days in drawn) < 2200


@pytest.mark.parametrize(
    ("least", "most", "weeks"), [(31, 1095, False), (31, 1095, True), (60, 400, False), (300, 1500, True)]
)
def test_every_allowed_number_of_days_is_equally_likely(least: int, most: int, weeks: bool) -> None:
    class Fixed:
        bound = 0

        def __init__(self, drawn: int) -> None:
            self.drawn = drawn

        def number(self, bound: int, *parts: str) -> int:
            Fixed.bound = bound
            return self.drawn

    sizes = allowed_sizes(least, most, weeks=weeks)
    seen = Counter(days_for(Fixed(i), "p", weeks=weeks, least=least, most=most) for i in range(2 * len(sizes)))
    assert Fixed.bound == 2 * len(sizes)
    assert seen == Counter([*sizes, *(-size for size in sizes)])


@pytest.mark.parametrize("weeks", [False, True])
def test_drawn_sizes_turn_up_about_equally_often(weeks: bool) -> None:
    secret, patients = SECRET, 40_000
    sizes = allowed_sizes(31, 1095, weeks=weeks)
    counts = Counter(days_for(secret, f"p{i}", weeks=weeks) for i in range(patients))
    expected = patients / (2 * len(sizes))
    square = sum((counts[sign * size] - expected) ** 2 / expected for size in sizes for sign in (-1, 1))
    freedom = 2 * len(sizes) - 1
    assert abs(square - freedom) < 4 * math.sqrt(2 * freedom)  # mean and deviation of chi-square


def test_no_moved_date_comes_near_an_anniversary() -> None:
    secret = SECRET
    for number in range(20_000):
        before = date(1920, 1, 1) + timedelta(number * 2)
        moved = before + timedelta(days_for(secret, f"p{number}", weeks=number % 2 == 0))
        for each in range(moved.year - 1, moved.year + 2):
            # 29 February has no anniversary in most years: the days on both sides of it count as one.
            last = (before.month, before.day) == (2, 29) and not calendar.isleap(each)
            days = [date(each, 2, 28), date(each, 3, 1)] if last else [before.replace(year=each)]
            assert all(abs((moved - day).days) > 7 for day in days), (before, moved)


@pytest.mark.parametrize(("least", "most", "weeks"), [(0, 100, False), (5, 4, False), (8, 13, True), (-3, 300, False)])
def test_a_range_without_days_is_refused(least: int, most: int, weeks: bool) -> None:
    with pytest.raises(ConfigError, match="date shift"):
        days_for(Keyed("k"), "p", weeks=weeks, least=least, most=most)


@pytest.mark.parametrize(
    ("least", "most", "weeks", "left"), [(40, 58, False, 19), (350, 380, False, 15), (31, 160, True, 18)]
)
def test_a_range_with_too_few_sizes_is_refused_with_the_number_left(
    least: int, most: int, weeks: bool, left: int
) -> None:
    assert len(allowed_sizes(least, most, weeks=weeks)) == left
    with pytest.raises(ConfigError, match=rf"leaves {left} sizes .* at least 20 .* easy to guess"):
        days_for(Keyed("k"), "p", weeks=weeks, least=least, most=most)
