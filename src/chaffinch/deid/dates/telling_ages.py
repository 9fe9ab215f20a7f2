"""Dates that reveal an age over a limit: a policy that hides such ages hides these dates as well.

A date reveals an age by its distance to the last date in any of the patient's notes. It is hidden

- if more whole years than the limit may lie between the two. Days are compared where days are known, else the first
  day that the one may mean and the last day that the other may mean; where only years are released, years are compared;
- if it is a birth date and no other date is later, because then the patient's age is unknown;
- if it is a birth date that cannot be read;
- if its year has two digits, may be of the previous century, and would then reveal such an age: a recent year of birth,
  or a year later than all four-digit years with no other date within a year of it;
- if it counts more years than the limit (95 years ago).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache

from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.ages import cap_ages
from chaffinch.deid.dates.parse import LONGEST
from chaffinch.deid.dates.points import AHEAD, LATEST, Order
from chaffinch.deid.dates.shift import ORDERS, Parsed
from chaffinch.text import Span
from chaffinch.text.view import plain_text

HIPAA_MAX_AGE = 89  # the greatest age that may be released, 45 CFR 164.514(b)(2)(i)(C)
FULL_YEAR = re.compile(r"(?<![0-9])(?:1[89]|2[01])[0-9]{2}(?![0-9])")
_BIRTH = re.compile(
    r"\b(?:born|birth(?!\s?(?:place|weight|control|mark|defect))\w*|[dy]\.?o\.?b\b|geb\b|geboren\w*|geburt(?!sort)\w*|"
    r"nacid[oa]s?|naci[oó]|nac\.|nacimiento)|(?<![\w.])(?-i:b)\.\s?(?:(?:in|on|circa|ca\.?)\s)?\Z|[(,]\s?(?-i:b)[\s:]{0,2}\Z",
    re.IGNORECASE,
)
_BIRTH_AFTER = re.compile(r"\s?[(\[]\s?(?:born|(?:date\sof\s)?birth|d\.?o\.?b)\b", re.IGNORECASE)
_COUNT = re.compile(r"year|yr|año|jahr", re.IGNORECASE)
# Characters read before a date; the last of them, after blanks are collapsed, in which a word for birth counts.
_BIRTH_WINDOW, _BIRTH_CHARS = 60, 30
_MAX_PLAUSIBLE_AGE = 115  # years; hardly anybody lives longer, so a two-digit year that makes somebody older is recent
_LATEST_YEAR = 2199  # a greater number is taken not to be a year
_NEVER = date.min


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """The greatest age in years that dates may reveal; with `by_year`, only the year of a date is released."""

    years: int
    by_year: bool = False


@dataclass(frozen=True, slots=True)
class DatedText:
    """The text of a date in a note, and whether words beside it say that somebody was born then.

    `order` is the order of day, month and year that the note's dates imply, or None.
    """

    text: str = field(repr=False)
    birth: bool = False
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The days of the dates in a patient's notes, each the last day that its date may mean.

    `events` are those of dates other than births, `last` is the last day of all. `last_year` is the last year of events
    that is written with four digits, or None.
    """

    last: date = field(default=_NEVER, repr=False)
    events: frozenset[date] = field(default=frozenset(), repr=False)
    last_year: int | None = field(default=None, repr=False)

    @property
    def reference_year(self) -> int | None:
        """Return the last four-digit year if two-digit years near it may be later than 2030; else None."""
        return self.last_year if self.last_year is not None and self.last_year + AHEAD > LATEST else None

    def without(self, day: date) -> Timeline | None:
        """Return the timeline without `day` if that is late and over a year from all others, maybe misread; else None.

        If the year of such a day has two digits, it may be of the previous century. Return None for any other day.
        """
        if self.last_year is None or day.year <= self.last_year:
            return None
        others = self.events - {day}
        if any(abs(other.year - day.year) <= 1 for other in others):
            return None
        return replace(self, last=max(others, default=_NEVER))


@dataclass(frozen=True, slots=True)
class _DayRange:
    """The first and the last day that a date may mean; `short` if all its years have two digits."""

    first: date
    last: date
    short: bool


def find_dated_texts(text: str, spans: Iterable[Span]) -> list[DatedText]:
    """Return the text of each date span, the note's day–month order, and whether words beside it say "born".

    >>> note = "DOB 3/4/1925, seen 5/6/2015"
    >>> [dated.birth for dated in find_dated_texts(note, [Span(4, 12, "DATE"), Span(19, 27, "DATE")])]
    [True, False]
    """
    offsets = [(span.start, span.end) for span in spans]
    order = dates.order_of(plain_text(text[start:end]) for start, end in offsets)
    dated_texts: list[DatedText] = []
    done = 0
    for start, end in offsets:
        context = plain_text(text[max(done, start - _BIRTH_WINDOW) : start])
        before = " ".join(("." + context + ".").split())[1:-1][-_BIRTH_CHARS:]
        after = _BIRTH_AFTER.match(text, end)
        birth = after is not None or _BIRTH.search(before) is not None
        dated_texts.append(DatedText(plain_text(text[start:end]), birth, order))
        done = after.end() if after else end
    return dated_texts


def patient_timeline(dated_texts: Collection[DatedText]) -> Timeline:
    """Collect a patient's dates up to 2199 into a timeline: last day, event days, last four-digit year."""
    plain = [(dated, _possible_days(dated, None)) for dated in dated_texts]
    years = [days.last.year for dated, days in plain if days and not days.short and not dated.birth]
    first = Timeline(last_year=max((year for year in years if year <= _LATEST_YEAR), default=None))
    events, births = {_NEVER}, {_NEVER}
    for dated in dated_texts:
        days = _possible_days(dated, first.reference_year)
        if days is not None and days.last.year <= _LATEST_YEAR:
            if not dated.birth:
                events.add(days.last)
            elif not days.short:
                births.add(days.last)
    return replace(first, last=max(events | births), events=frozenset(events - {_NEVER}))


def find_old_dates(
    text: str, spans: Sequence[Span], limit_of: Callable[[str], AgeLimit | None], timeline: Timeline | None = None
) -> tuple[set[int], Timeline]:
    """Return the start offsets of dates that reveal an age over their label's limit, and the timeline used.

    `spans` are those of the note's dates, sorted; without a timeline, only the dates of this note count.
    """
    dated_texts = find_dated_texts(text, spans)
    times = patient_timeline(dated_texts) if timeline is None else timeline
    limits = {label: limit_of(label) for label in {span.label for span in spans}}
    pairs = ((span, dated, limits[span.label]) for span, dated in zip(spans, dated_texts, strict=True))
    return {span.start for span, dated, limit in pairs if limit and tells_age_over(dated, limit, times)}, times


def tells_age_over(dated: DatedText, limit: AgeLimit, timeline: Timeline) -> bool:
    """Tell whether a date may reveal an age over the limit; a birth date does if unreadable or after all events."""
    if _COUNT.search(dated.text) and cap_ages(dated.text, limit.years) not in (None, dated.text):
        return True
    days = _possible_days(dated, timeline.reference_year)
    if days is None:
        return dated.birth and not _is_readable(dated)
    if dated.birth:
        last_event = max(timeline.events, default=_NEVER)
        if last_event < days.first and (not days.short or limit.by_year or last_event == _NEVER):
            return True
    age = _greatest_age(days, limit, timeline)
    if age > limit.years or not days.short:
        return age > limit.years
    before = timeline if dated.birth else timeline.without(days.last)
    return before is not None and limit.years < _greatest_age(days, limit, before) + 100 <= _MAX_PLAUSIBLE_AGE


def _greatest_age(days: _DayRange, limit: AgeLimit, timeline: Timeline) -> int:
    """Return the age on the timeline's last day of one born on the first of `days`, by year if the limit says so."""
    first, last = days.first, timeline.last
    return last.year - first.year - (not limit.by_year and (last.month, last.day) < (first.month, first.day))


def _is_readable(dated: DatedText) -> bool:
    """Tell whether the text of a date can be parsed."""
    return dates.parse(dated.text, order=dated.order or "mdy") is not None


def _possible_days(dated: DatedText, reference_year: int | None) -> _DayRange | None:
    """Return first and last day that a date may mean, in its order, else in both; None if it states no year."""
    find = _find_days if len(dated.text) <= LONGEST else _find_days.__wrapped__  # a longer text is not kept
    return find(dated.text, dated.order, reference_year)


@lru_cache(maxsize=4096)  # a date is asked for in its note, and for its patient with and without a reference year
def _find_days(text: str, order: Order | None, reference_year: int | None) -> _DayRange | None:
    """Return first and last day that the text of a date may mean, as `_possible_days`."""
    orders = (order,) if order else ORDERS[:2]
    readings = [dates.parse(text, order=order, reference_year=reference_year) for order in orders]
    known = [parsed for parsed in readings if parsed is not None]
    if not known:
        years = [int(year) for year in FULL_YEAR.findall(text)]
        return _DayRange(date(min(years), 1, 1), date(max(years), 12, 31), short=False) if years else None
    spans = [span for parsed in known for span in _spans_with_year(parsed)]
    if not spans:
        return None
    short = all(
        part.pad < 4
        for parsed in known for point in parsed.points for part in point.fields if part.role in ("year", "decade")
    )  # fmt: skip
    return _DayRange(min(first for first, _ in spans), max(last for _, last in spans), short)


def _spans_with_year(parsed: Parsed) -> Sequence[tuple[date, date]]:
    """Return the first and last day of each date with a known year; of a decade, those of its first year."""
    spans = []
    for point in parsed.points:
        span = point.span() if point.year_known else None
        if span is not None:
            last = date(span[0].year, 12, 31) if point.precision == "decade" else span[1]
            spans.append((span[0], last))
    return spans
