"""Ages: the number alone is the identifier, "45" of "45-year-old"; a policy decides which ages matter."""

from __future__ import annotations

from functools import cache

from chaffinch.deid.patterns.pattern import Pattern

_UNITS = "one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_DECADES = "twenties thirties forties fifties sixties seventies eighties nineties"
_NUMBER_WORD = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNITS)}))?|{'|'.join(_TEENS)}|{'|'.join(_UNITS)}|"
    r"(?:one|a)[ -]hundred(?:[ -](?:and[ -])?(?:one|two|three|four|five|six|seven|eight|nine|ten))?)"
)
_N = r"\d{1,3}"
_YEAR = r"(?:years?|yrs?\.?|y)"
_OLD = (
    rf"(?:[ -]?{_YEAR}[ -]?(?:olds?\b|o\b\.?|/o\b)|[ -]?y\.\s?o\b\.?|[ -]?yo[mf]?\b|[ -]?y/o[mf]?\b|[ "
    rf"-]{_YEAR} of age\b)"
)


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return all patterns of ages: with a unit or the word age, beside people or a sex, in sentences."""
    return (*_with_unit(), *_beside_relatives(), *_beside_sex(), *_in_sentences())


_DOSE = r"\s?(?:mg|%|/\d|-\d{3}|\.\d)"


def _with_unit() -> tuple[Pattern, ...]:
    """Return the patterns of an age with its unit or after the word age: 64-year-old, sixty years old, age: 64."""
    return (
        Pattern(
            "age-old",
            rf"\b(?P<span>{_N}){_OLD}",
            label="AGE",
            score=0.95,
            ignore_case=True,
            before=r"[\d./,]",
            fits=is_age,
        ),
        Pattern(
            "age-range",
            rf"\b(?P<span>{_N})(?:\s?(?:-|to|or|and)\s?){_N}{_OLD}",
            label="AGE",
            ignore_case=True,
            before=r"[\d./,-]",
            fits=is_age,
        ),
        Pattern(
            "age-words",
            rf"\b(?P<span>{_NUMBER_WORD})[ \n-]{_YEAR}[ \n-](?:olds?\b|of age\b)",
            label="AGE",
            ignore_case=True,
        ),
        Pattern(
            "age-young",
            rf"\b(?P<span>{_N})[ -](?:months?|mos?\.?|weeks?|wks?|days?)[ -](?:olds?\b|of age\b)",
            label="AGE",
            score=0.8,
            ignore_case=True,
            before=r"[\d./,-]",
        ),
        Pattern(
            "age-cue",
            rf"\b(?:age|aged|ages)(?:\s?/\s?(?:sex|gender))?(?:\s\((?:years|yrs|y)\))?"
            rf"(?:\s?[:=|>]\*{{0,2}}\s{{0,8}}|\s?\.{{3,40}}\s?|\sof\s|\swas\s|\sis\s|\s)"
            rf"(?:about\s|approximately\s)?(?P<span>{_N})\b",
            label="AGE",
            ignore_case=True,
            after=_DOSE,
            fits=is_age,
        ),
    )


def _beside_relatives() -> tuple[Pattern, ...]:
    """Return the patterns of an age beside a relative or a birth date, or in words: mother died 82, aged forty."""
    return (
        Pattern(
            "age-aged-words",
            rf"\b(?:age|aged)\s(?:of\s)?(?P<span>{_NUMBER_WORD})\b",
            label="AGE",
            score=0.8,
            ignore_case=True,
        ),
        Pattern(
            "age-of-kin",
            rf"\b(?:mother|father|brother|sister|son|daughter|wife|husband|aunt|uncle|parents?)\s(?:also\s|is\s|was\s)?"
            rf"(?:d\.|dec\.|died|died\sat|deceased|deceased\sat|passed\saway\sat|alive|alive\sat|living,?)\s(?P<span>{_N})\b",
            label="AGE",
            score=0.8,
            ignore_case=True,
            after=r"\s?(?:years?\sago|yrs?\sago|days?|weeks?|months?|mg|/\d)",
            fits=is_age,
        ),
        Pattern(
            "age-kin-has",
            rf"\b(?:mother|father|brother|sister|son|daughter|wife|husband|aunt|uncle|mom|dad|cousin),?\s(?:is\s)?"
            rf"(?P<span>{_N})(?:\s(?:w/|with|well|healthy|has|had|and\s(?:well|healthy)|alive|a&w|in\sgood)|[,;.]\s)",
            label="AGE",
            score=0.75,
            ignore_case=True,
            fits=is_age,
        ),
        Pattern(
            "age-born",
            rf"\b(?:dob|born|birth\s?date|date\sof\sbirth|bd|bday)[:=|>* \t]{{1,24}}[\d/.\-]{{6,10}},?\s\(?(?:age:?\s)?"
            rf"(?P<span>{_N})(?:\)|\s?(?:y|yrs?|years)\b)",
            label="AGE",
            score=0.85,
            ignore_case=True,
            fits=is_age,
        ),
        Pattern(
            "age-and",
            rf"\bage[ds]\s{_N}(?:,\s{_N})?,?\sand\s(?P<span>{_N})\b",
            label="AGE",
            ignore_case=True,
            fits=is_age,
        ),
    )


def _beside_sex() -> tuple[Pattern, ...]:
    """Return the patterns of an age beside a sex or a word for a person, and of decades: 64M with, F, 71, his 60s."""
    return (
        Pattern(
            "age-sex",
            rf"\b(?P<span>{_N})[ -]?(?:[MF]|male|female)\b\s?(?:with|who|w/|c/o|s/p|presents|presenting|here|"
            r"admitted|h/o|pmh|has|hx|seen|complaining|in\b|for\b|,)",
            label="AGE",
            score=0.8,
            before=r"[\d./,°-]",
            fits=is_age,
        ),
        Pattern(
            "age-sex-field",
            rf"(?i:\b(?:sex|gender)[:\s]{{1,3}})[MF]\w*[ ,/|]{{1,3}}(?P<span>{_N})\b",
            label="AGE",
            fits=is_age,
        ),
        Pattern(
            "age-article",
            rf"\b(?i:an?|this|pt is|patient is|is an?)\s(?P<span>{_N})\s?(?:M|F|man|woman|male|female|"
            r"gentleman|lady|boy|girl)\b",
            label="AGE",
            score=0.85,
            fits=is_age,
        ),
        Pattern(
            "age-person",
            rf"\b(?P<span>{_N})[ -](?:man|woman|male|female|gentleman|lady|boy|girl)\b",
            label="AGE",
            score=0.7,
            before=r"[\d./,+-]|\b(?:of|the|all|and) ",
            after=r"s\b| (?:patients|rats|mice|subjects|controls|volunteers|infants|and|to)",
            fits=is_age,
        ),
        Pattern(
            "age-decade",
            r"\b(?:his|her|their|my|the|late|early|mid)[ -](?:early[ -]|mid[ -]|late[ -])?(?P<span>[2-9]0['’]?s|"
            rf"{_DECADES.replace(' ', '|')})\b",
            label="AGE",
            score=0.8,
            ignore_case=True,
            before=r"(?:bp|hr|map|sats?|spo2|rates?|pulse|temp|glucose|sugars?|pressures?|readings|pulses|values)\s(?:was\s|"
            r"were\s|is\s|are\s|now\s)?(?:in|to)\s(?:the\s)?",
        ),
    )


def _in_sentences() -> tuple[Pattern, ...]:
    """Return the patterns of an age in a sentence: died at 70, will turn 65 in May, at 64 he, Mary is 64."""
    return (
        Pattern(
            "age-death",
            rf"\b(?:died|deceased|passed(?:\saway)?|alive|living|death|expired|lived|onset|diagnosed|until)"
            rf"\s(?:at\s(?:the\s)?age(?:\sof)?|at|age|to)\s(?P<span>{_N})\b",
            label="AGE",
            score=0.75,
            ignore_case=True,
            after=r"\s?(?:am|pm|hours?|:|/|mg|%|weeks?|months?|\w+ hospital)|[.,]\d",
            fits=_is_adult_age,
        ),
        Pattern(
            "age-coming",
            rf"\b(?:will be|will turn)\s(?P<span>{_N})\s(?:in\s\w|on\s\w|next|this|years)",
            label="AGE",
            score=0.8,
            ignore_case=True,
            after=r"\s(?:in|on) (?:the hospital|clinic|hospital|bed)",
            fits=_is_adult_age,
        ),
        Pattern(
            "age-at",
            rf"(?:[.;:•*\n]|^)[ \t\d.-]*at (?:age )?(?P<span>{_N}|{_NUMBER_WORD}),? (?:he|she|they|the patient|pt)\b",
            label="AGE",
            score=0.8,
            ignore_case=True,
        ),
        Pattern(
            "age-person-is",
            r"(?:[.•*\n]|^)[ \t-]*(?:\p{Lu}[\p{L}'’-]+|He|She|Patient|Pt)(?: \p{Lu}[\p{L}'’-]+)? is "
            rf"(?P<span>{_N})"
            r"(?:\.[ \n]|\.$|, | and (?:lives|has|was|works|is)\b)",
            label="AGE",
            score=0.7,
            fits=_is_adult_age,
        ),
        Pattern(
            "age-turns",
            rf"\b(?:turns|turned|turning)\s(?P<span>{_N})\b",
            label="AGE",
            score=0.7,
            ignore_case=True,
            after=r"\s?(?:degrees|%|times|mg)",
        ),
    )


def is_age(text: str) -> bool:
    """Tell whether a text of digits can be an age in years: at most 125, and not beginning with 00.

    >>> is_age("93"), is_age("180"), is_age("007")
    (True, False, False)
    """
    return int(text) <= 125 and not text.startswith("00")


def _is_adult_age(text: str) -> bool:
    """Tell whether a number in digits is over 10 and at most 125."""
    return 10 < int(text) <= 125
