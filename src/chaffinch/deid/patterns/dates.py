"""Patterns of dates: numbers, month names, parts of dates, ranges, weekdays, decades, holidays."""

from __future__ import annotations

import re
from functools import cache

from chaffinch.deid.patterns.pattern import Pattern, either

_YEAR4 = r"(?:1[89]|20|21)\d\d"
_DAY = r"(?:[12]\d|3[01]|0?[1-9])"
_MONTH_NUMBER = r"(?:1[0-2]|0?[1-9])"
_ORDINAL = r"(?:\s?(?:st|nd|rd|th)\b)"
# Words that are nothing but months in any case; the others need their capital.
_MONTHS = (
    r"(?:(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|"
    r"dec(?:ember)?)|May|MAY)"
)
_MONTH = rf"(?:{_MONTHS}\.?)"
_WEEKDAY_NAME = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_WEEKDAY = rf"(?i:{_WEEKDAY_NAME}s?|mon|tues?|wed|thurs?|thu|fri|sat|sun)\.?"
_OF_WEEK = rf"(?:{_WEEKDAY},?\s(?:the\s)?)?"
_YEAR = rf"(?:{_YEAR4}|['’]\d\d)"
_SEASON = either("spring summer fall autumn winter Spring Summer Fall Autumn Winter")
_TO = r"\s?(?:-|–|to|through|thru|and|&|/)\s?"
_CUES = (
    "on since from until till through thru by before after dated date of seen admitted discharged adm dc d/c started "
    "stopped begun filled refilled refill given done visit note notes labs lab ct mri cxr echo ekg ecg xray x-ray "
    "scheduled appointment appt rtc f/u due next last exp expires signed dictated transcribed study "
    "exam scan collected "
    "received reviewed reported called ordered completed performed surgery dob dos doa lmp edd born "
    "between vs comparison "
    "ending beginning starting effective updated around"
).split()
_CUE = rf"(?i:\b(?:{'|'.join(sorted(map(re.escape, _CUES), key=len, reverse=True))})\b[ :.,]{{1,3}}(?:the\s|of\s)?)"
# What makes a fraction, a score or a quantity of two numbers with a slash.
_QUANTITY = (
    r" ?(?:mg|mcg|g\b|ml|cc|tabs?\b|tablet|pill|caps?\b|puffs?|units?|strength|systolic|diastolic|"
    r"murmur|inch|in\.|cups?\b|"
    r"pain|points?|pts?\b|%|percent|hours?|hrs?\b|hpf|lpf|mmhg|mm\b|cm\b|liters?|l\b|scale|severity|intensity|bilat|"
    r"throughout|power|reflex|motor|pulses|weakness|vision|positive|sets?\b|blood cultures|dose|ratio|"
    r"x\s?\d|nodes|cores|"
    r"of (?:the|a|an|all|his|her|cases|patients)|patients|cases|samples|/\d|\.\d|-\d)"
)
_NOT_SCORE = (
    r"(?:score|pain|rate[sd]?|strength|motor|gcs|mmse|moca|apgar|grade|stage|level|bp|vision|scale|"
    r"reflexes)\b[^.\n]{0,20}"
)
_NOT_MORE = r"[\d./-]|\d"
_OF_TIME = r"[:.]\d\d|\s?(?:[ap]\.?m|h|hrs?)\b"  # what follows an hour, which is no year: 11 Feb 19:15


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return all patterns of dates: in figures, with month names, short, partial, years, weekdays and holidays."""
    return (*_numbers(), *_with_month_names(), *_short(), *_partial(), *_years(), *_short_years(), *_day_names())


def _numbers() -> tuple[Pattern, ...]:
    """Return the patterns of whole dates in figures: 3/14/2019, 2019-03-14, 20190314."""
    after_number = r"[/.-]?\d"
    return (
        Pattern(
            "date-number",
            r"\b(\d{1,2} ?[/.-] ?\d{1,2} ?[/.-] ?(?:\d{4}|\d{2}))\b",
            label="DATE",
            score=0.95,
            before=r"[\d$][/.,-]|§ ?|(?:version|section|chapter|v)\s?\.?|#",
            after=after_number,
            fits=is_date,
        ),
        Pattern(
            "date-iso",
            rf"\b({_YEAR4}(?:-|/|\.){_MONTH_NUMBER}(?:-|/|\.){_DAY})(?:[T ]\d\d:?\d\d[\d:.Z]*)?\b",
            label="DATE",
            score=0.97,
            before=r"[\d$][/.,-]",
            after=r"[/.-]\d",
            fits=_has_one_separator,
        ),
        Pattern(
            "date-compact",
            r"\b((?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?:T?\d{4,6})?\b",
            label="DATE",
            score=0.6,
            before=r"[\d$#][/.,-]?",
            after=after_number,
        ),
    )


def _with_month_names() -> tuple[Pattern, ...]:
    """Return the patterns of dates with a month's name, a season or a quarter: March 14, 2019; spring 2019; Q1 2019."""
    days = rf"{_DAY}{_ORDINAL}?(?:{_TO}{_DAY}{_ORDINAL}?)?"
    month_first = rf"{_OF_WEEK}{_MONTH}\s?(?:the\s)?{days}(?:(?:,\s?|\s|-|/|\sof\s){_YEAR}|-\d\d)?"
    day_first = rf"{_OF_WEEK}(?:the\s)?{days}(?:\s|\sof\s|-|/|\.\s?)?{_MONTH}"
    before_year = r"(?:,\s?|\s|-|/|\sof\s)?"
    month_year = rf"(?:{_MONTH}{_TO})?{_MONTH}(?:,\s?|\s|-|/|\sof\s|\s?)(?:{_YEAR}\b|\d\d\b)"
    two_months = (
        rf"{_MONTH}\s{_DAY}{_ORDINAL}?\s?(?:-|–|to|through|thru)"
        rf"\s?{_MONTH}\s{_DAY}{_ORDINAL}?(?:,?\s{_YEAR4})?"
    )
    not_unit = r"\s?(?:mg|mcg|ml|units?|tabs?|times|percent|%|hours?|weeks|years|months|days)\b|[.:]\d"
    return (
        Pattern("date-months", rf"\b({two_months})", label="DATE", score=0.95, cut=_trim_article),
        Pattern("date-month-day", rf"\b({month_first})", label="DATE", score=0.95, after=not_unit, cut=_trim_article),
        Pattern(
            "date-day-month",
            rf"\b({day_first}(?:{before_year}{_YEAR})?)",
            label="DATE",
            score=0.94,
            before=r"[\d$/.]",
            fits=_is_not_modal,
            cut=_trim_article,
        ),
        Pattern(
            "date-day-month-short-year",
            rf"\b({day_first}{before_year}\d\d)\b",
            label="DATE",
            score=0.94,
            before=r"[\d$/.]",
            after=rf"{_OF_TIME}|{not_unit}",
            fits=_is_not_modal,
            cut=_trim_article,
        ),
        Pattern(
            "date-month-year",
            rf"\b({month_year})",
            label="DATE",
            score=0.93,
            after=rf"\s?(?:mg|%|st|nd|rd|th)|\d|{_OF_TIME}",
            fits=_is_month_and_year,
        ),
        Pattern("date-season", rf"\b((?:{_SEASON})(?:,?\s|\sof\s|\sof\sthe\syear\s){_YEAR})\b", label="DATE"),
        Pattern("date-quarter", rf"\b((?:Q[1-4]|[1-4]Q)[ -]?{_YEAR})\b", label="DATE"),
    )


def _short() -> tuple[Pattern, ...]:
    """Return the patterns of dates without a day or a year in figures: 3/2019, on 3/14, 3/14 - 3/20."""
    slash = rf"(?P<span>{_MONTH_NUMBER}/{_DAY}|{_DAY}/{_MONTH_NUMBER})\b"
    return (
        Pattern(
            "date-month-year-number",
            rf"\b({_MONTH_NUMBER}[/-](?:19|20)\d\d)\b",
            label="DATE",
            before=r"[\d/.-]|:\s?\d*",
            after=r"[/-]\d|\s?(?:mg|ml)",
        ),
        Pattern("date-cued", rf"{_CUE}{slash}", label="DATE", score=0.8, before=_NOT_SCORE, after=_QUANTITY),
        Pattern(
            "date-range-number",
            rf"\b({_MONTH_NUMBER}/{_DAY}(?:/\d\d)?\s?(?:-|–|to|through)\s?{_MONTH_NUMBER}/{_DAY}"
            r"(?:/\d\d(?:\d\d)?)?)\b",
            label="DATE",
            score=0.8,
            before=r"[\d/.]",
            after=_QUANTITY,
        ),
        Pattern(
            "date-of-week",
            rf"\b(?P<span>{_WEEKDAY},?\s{_MONTH_NUMBER}[/-]{_DAY}(?:[/-](?:{_YEAR4}|\d\d))?)\b",
            label="DATE",
            before=r"o2\s?",
            after=r"[/-]?\d",
        ),
        Pattern(
            "date-line-start",
            rf"(?m:^)\s*(?:-\s*|\*\s*)?(?P<span>{_MONTH_NUMBER}/{_DAY})\s*(?::|-\s|–\s)",
            label="DATE",
            score=0.7,
        ),
    )


def _partial() -> tuple[Pattern, ...]:
    """Return the patterns of months (after a cue, or alone if the name is clear) and of ordinal days after a cue."""
    ordinal_noun = (
        r"\s?(?:floor|grade|percentile|ribs?|toe|finger|digit|metatarsal|metacarpal|nerve|cranial|day|week|hospital|"
        r"post|ventricle|edition|degree|intercostal|dose|time|visit|line|trimester|or|cousin|decade|century|ICS)\b"
    )
    return (
        Pattern(
            "date-month-cued",
            r"\b(?i:in|since|last|this|next|until|till|by|early|late|mid|during|from|through|of|"
            rf"before|after|around|until|every)[ -](?P<span>{_MONTHS})\b",
            label="DATE",
            score=0.8,
            fits=_begins_with_capital,
            after=r"\s?(?:sign|be|have|not|also|need|kinase)\b|-\w",
        ),
        Pattern(
            "date-month-name",
            r"\b(January|February|April|July|September|October|November|December|JANUARY|FEBRUARY|"
            r"APRIL|JULY|SEPTEMBER|OCTOBER|NOVEMBER|DECEMBER)\b",
            label="DATE",
            score=0.7,
            exact=True,
        ),
        Pattern(
            "date-ordinal",
            rf"{_CUE}(?P<span>{_DAY}(?:st|nd|rd|th))\b",
            label="DATE",
            score=0.7,
            exact=True,
            after=ordinal_noun + r"|[ -][a-z]*(?:metat|metac|intercost)",
        ),
    )


_YEAR_CUES = (
    "in|since|from|until|till|of|by|circa|year|during|late|early|mid|before|after|around|about|to|through|"
    "between|and|dated|approximately|ca|until|born|back in|as of|class of"
)
_YEAR_UNITS = (
    r" ?(?:mg|mcg|ml|units?|calories|kcal|cal\b|cells|g\b|grams?|hours|hrs|h\b|steps|patients|cases|"
    r"people|cc|iu|ft|"
    r"feet|controls|individuals|subjects|families|bp|kb|nucleotides|samples|children|women|men|%|per\b|"
    r"/|x\b|-?fold)"
    r"|[.,:]\d|-[a-z]"
)


def _years() -> tuple[Pattern, ...]:
    """Return the patterns of years with four digits: after a cue, in a range, in brackets, or at an end."""
    return (
        Pattern(
            "date-year",
            rf"\b(?i:{_YEAR_CUES})\s(?:the\syear\s)?(?P<span>(?:19|20)\d\d)\b",
            label="DATE",
            score=0.7,
            exact=True,
            after=_YEAR_UNITS,
        ),
        Pattern(
            "date-year-range",
            r"\b((?:19|20)\d\d\s?[-–/]\s?(?:(?:19|20)\d\d|\d\d))\b",
            label="DATE",
            score=0.7,
            exact=True,
            before=r"[\d.,$]",
            after=_YEAR_UNITS,
            fits=_years_rise,
        ),
        Pattern(
            "date-year-alone",
            r"(?:\(|\n\s*)(?P<span>(?:19|20)\d\d)(?:\)|:|\s?[-–]\s)",
            label="DATE",
            score=0.6,
            before=r"al\.?,? ?\(",
            after=_YEAR_UNITS,
        ),
        Pattern(
            "date-year-end",
            r"[A-Za-z)](?::|,|\s-)\s(?P<span>(?:19|20)\d\d)(?:[.;,]\s|[.;]?\s*\n|[.;]?$)",
            label="DATE",
            score=0.6,
            before=r"al\.?, ",
        ),
    )


def _short_years() -> tuple[Pattern, ...]:
    """Return the patterns of years with two digits and of decades: in '98, the 1980s."""
    return (
        Pattern(
            "date-short-year",
            r"\b(?i:in|since|of|until|from|by|before|after|around|circa|back in|late|early)\s"
            r"(?P<span>['’`]\d\d)\b",
            label="DATE",
            score=0.8,
        ),
        Pattern("date-decade", r"\b((?:1[89]|20)\d0['’]?s)\b", label="DATE", score=0.8),
        Pattern(
            "date-short-decade",
            r"(?i:\b(?:the|early|mid|late|in)[ -])(?P<span>['’]\d0['’]?s)\b",
            label="DATE",
            score=0.7,
            exact=True,
        ),
    )


def _day_names() -> tuple[Pattern, ...]:
    """Return the patterns of weekdays, alone or with a day, of short ones after a cue, and of holidays."""
    holidays = (
        "Christmas(?:\\s(?:Eve|Day))?|Thanksgiving(?:\\sDay)?|Easter(?:\\sSunday)?|"
        "New\\sYear['’]?s?(?:\\s(?:Eve|Day))?|"
        "Labor\\sDay|Memorial\\sDay(?:\\sweekend)?|Independence\\sDay|Halloween|Valentine['’]?s?\\sDay|"
        "Hanukkah|Passover|"
        "Fourth\\sof\\sJuly|Veterans['’]?\\sDay|Columbus\\sDay|Mother['’]?s\\sDay|Father['’]?s\\sDay|Good\\sFriday|"
        "Ramadan|Yom\\sKippur|Rosh\\sHashanah|Juneteenth|St\\.\\sPatrick['’]s\\sDay|Boxing\\sDay|Kwanzaa|Diwali"
    )
    return (
        Pattern(
            "date-weekday-the",
            rf"\b({_WEEKDAY_NAME},?\sthe\s{_DAY}(?:st|nd|rd|th))\b",
            label="DATE",
            score=0.8,
        ),
        Pattern(
            "date-weekday",
            rf"\b({_WEEKDAY_NAME}s?|(?:MON|TUES|WEDNES|THURS|FRI|SATUR|SUN)DAY|"
            r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
            label="DATE",
            score=0.7,
            exact=True,
        ),
        Pattern(
            "date-weekday-short",
            r"\b(?i:on|next|last|this|until|since|every|from)\s(?P<span>Mon|Tues?|Wed|Thurs?|"
            r"Thu|Fri|Sat|Sun)\b",
            label="DATE",
            score=0.7,
            exact=True,
        ),
        Pattern(
            "date-holiday", rf"\b({holidays})", label="DATE", score=0.8, after=r"\s(?:disease|factor|seal|hospital)"
        ),
    )


def is_date(text: str) -> bool:
    """Tell whether three numbers with equal separators can be a date, with day and month in either order.

    >>> is_date("31/02/1998"), is_date("13/14/98"), is_date("1.2.10"), is_date("1-2/98")
    (True, False, False, False)
    """
    compact = text.replace(" ", "")
    signs = {character for character in compact if not character.isdigit()}
    numbers = re.split(r"\D", compact)
    if len(signs) != 1 or ("." in signs and len(numbers[2]) == 2 and min(map(len, numbers[:2])) < 2):
        return False
    if "-" in signs and len(numbers[2]) == 2 and " " in text:
        return False
    one, other = int(numbers[0]), int(numbers[1])
    year = int(numbers[2])
    possible = 1 <= min(one, other) <= 12 and max(one, other) <= 31
    return possible and (len(numbers[2]) == 2 or 1800 <= year <= 2199)


def _has_one_separator(text: str) -> bool:
    """Tell whether all signs between the digits are the same."""
    return len({sign for sign in text if not sign.isdigit()}) == 1


def _years_rise(text: str) -> bool:
    """Tell whether the second year of a range (1998-99) is not before the first."""
    first, last = re.findall(r"\d+", text)
    return int(last if len(last) == 4 else first[:2] + last) >= int(first)


def _begins_with_capital(text: str) -> bool:
    """Tell whether a text begins with a capital letter."""
    return text[:1].isupper()


def _is_not_modal(text: str) -> bool:
    """Tell whether a date has no "mar", "march" or "may" in lower case, as in "1 or 2 may be"."""
    return re.search(r"\b(?:mar|march|may)\b", text) is None


def _is_month_and_year(text: str) -> bool:
    """Tell whether a month and its digits are a date: four digits, an apostrophe or sign, or a month cut short."""
    if re.search(r"\d{4}$|['’-]\d\d$|/\d\d$", text):
        return True
    return re.search(r"(?i)^(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?\s?\d\d$", text) is not None


def _trim_article(text: str) -> tuple[int, int]:
    """Return (start, end) of a date without "the" before it, and full stops, commas and blanks after it."""
    start = 4 if text[:4].lower() == "the " else 0
    return start, len(text.rstrip(". ,"))
