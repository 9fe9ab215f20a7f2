"""Professions where a cue tells them: "works as a", "retired", "occupation:"."""

from __future__ import annotations

import re
from functools import cache

from chaffinch.deid.detect import word_lists as lexicons
from chaffinch.deid.patterns.pattern import Pattern, either

_PHRASE = r"[A-Za-z][A-Za-z'’/\-]*(?:[ ][A-Za-z'’/\-]+){0,4}"
_STOPS = frozenset(
    "and or but who which that at for in with from on since until part-time full-time he she they is "
    "was has lives now currently when where due by to because living here there "
    "but then before after while as, so without there,".split()
)
_NOT_JOBS = frozenset(
    "patient smoker drinker nonsmoker non-smoker former current never man woman male female gentleman "
    "lady boy girl child candidate carrier donor twin widow widower father mother user "
    "member good poor very well known new old young pleasant reliable victim survivor diabetic "
    "alcoholic bachelor resident citizen native vegetarian runner sleeper reader risk concern "
    "factor mild small large number other marker tumor cancer disorder doctor physician nurse surgeon "
    "provider caregiver helper holder reporter historian her his the a an".split()
)
_ENDINGS = (
    "er",
    "or",
    "ist",
    "ian",
    "man",
    "woman",
    "ant",
    "smith",
    "keeper",
    "clerk",
    "chef",
    "cook",
    "guard",
    "pilot",
    "coach",
    "nurse",
    "agent",
    "maid",
    "aide",
    "judge",
    "priest",
)


# A job of two words that is one wherever it stands; jobs of those who write notes are left out.
_KIND_OF_WORK = either(
    "bus truck taxi cab uber delivery ambulance tram train crane forklift tractor school elementary "
    "high\\sschool middle\\sschool preschool kindergarten music art math science english history piano dance "
    "yoga ski swim sports insurance real\\sestate estate travel tour ticket claims sales car auto automobile "
    "bank loan mortgage credit tax financial investment stock security prison corrections correctional police "
    "fire parole probation customs construction factory steel mill mine coal oil gas railroad railway road "
    "sanitation postal mail warehouse dock shipyard sheet\\smetal cabinet furniture shoe dress model candle "
    "tool clock instrument glass film theater theatre wedding event graphic fashion interior web software "
    "computer systems data network it civil mechanical electrical chemical structural aerospace flight airline "
    "air\\straffic farm ranch fruit vineyard dairy cattle pig poultry horse dog zoo restaurant hotel kitchen "
    "pastry line short-order bar night shop store retail grocery flower gift book hair nail beauty tattoo city "
    "county state town public court district law legal patent trial newspaper magazine radio tv television "
    "news makeup house window carpet pool pest tree lawn garden landscape office executive administrative "
    "payroll human\\sresources hr call\\scenter customer\\sservice parking toll graduate college phd "
    "philosophy economics physics chemistry biology opera jazz rock church parish army navy marine air\\sforce "
    "coast\\sguard merchant day\\scare daycare library museum funeral"
)
_WORKER = either(
    "driver operator conductor engineer mechanic teacher instructor professor lecturer tutor principal "
    "superintendent agent broker adjuster guide guard officer fighter inspector worker foreman supervisor "
    "manager clerk carrier handler maker builder repairman installer welder fitter cutter finisher designer "
    "planner programmer developer analyst administrator architect attendant controller farmer owner keeper "
    "trainer walker breeder cook chef waiter hostess dresser stylist artist critic editor writer reporter "
    "anchor announcer producer director actor cleaner washer gardener secretary assistant representative rep "
    "salesman saleswoman salesperson buyer dealer student defender attorney lawyer judge stenographer "
    "photographer musician singer dancer player pastor minister sergeant captain lieutenant veteran recruit "
    "commander advisor adviser auditor accountant teller librarian curator aide specialist technician porter "
    "janitor custodian collector dispatcher"
)


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns of professions."""
    return (
        Pattern(
            "job-title",
            rf"\b(?P<span>(?:{_KIND_OF_WORK})[ -](?:{_KIND_OF_WORK}[ -])?{_WORKER}s?)\b",
            label="PROFESSION",
            score=0.75,
            ignore_case=True,
            fits=lambda text: text.lower().rstrip("s") != "house officer",
        ),
        Pattern(
            "job-works-in",
            r"\b(?:works?|worked|working|employed|career|job|business)\s(?:\w+\s)?in\s(?P<span>(?:the\s)?"
            r"(?:[a-z-]+\s)?(?:industry|business|retail|construction|real\sestate|sales|finance|banking|insurance|"
            r"marketing|advertising|manufacturing|education|farming|agriculture|publishing|hospitality|computers|"
            r"post\soffice|shipping|trucking|mining|landscaping|software|accounting|government|transportation|"
            r"army|navy|military|air\sforce|marines|police|factory|restaurant|warehouse|school\ssystem))\b",
            label="PROFESSION",
            score=0.75,
            ignore_case=True,
        ),
        Pattern(
            "job-works-as",
            r"(?i:\b(?:work(?:s|ed|ing)?|employed|serve[sd]|job|career|trained|volunteers?|position)"
            rf"\s(?:\w+\s){{0,2}}as\s(?:an?\s|the\s)?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.85,
            cut=_until_stop,
        ),
        Pattern(
            "job-field",
            r"(?i:\b(?:occupation|profession|job(?:\stitle)?|employment|works\sas)\s?[:=]\s?(?:an?\s|retired\s|"
            rf"former\s)?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.85,
            cut=_field,
        ),
        Pattern(
            "job-by-trade",
            rf"\b(?P<span>{_PHRASE})\sby\s(?:trade|profession|training|occupation)\b",
            label="PROFESSION",
            score=0.85,
            cut=_last_job,
        ),
        Pattern(
            "job-retired",
            r"(?i:\b(?:retired|former|ex-|semi-retired|self-employed|unemployed|disabled|part-time|full-time|"
            rf"freelance)[ -]?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.75,
            cut=_job,
        ),
        Pattern(
            "job-is-a",
            r"(?i:\b(?:is|was|am|are|being|becoming|become|became|been)\san?\s(?:retired\s|former\s|part-time\s|"
            rf"full-time\s)?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=_job,
        ),
        Pattern(
            "job-apposed",
            r"(?i:\b(?:patient|pt|he|she|husband|wife|mother|father|son|daughter|sister|brother|aunt|uncle)"
            rf"(?:,\san?\s|\sis\sthe\s|\swas\sthe\s))(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=_job,
        ),
        Pattern(
            "job-alone",
            r"(?i:\b(?:single|married|divorced|widowed|separated|retired)[.,;]\s)"
            r"(?P<span>[A-Za-z][a-z-]+(?:[ ][a-z-]+){0,2})[.,;]",
            label="PROFESSION",
            score=0.7,
            cut=_whole_job,
        ),
        Pattern(
            "job-year-old",
            r"(?i:(?:year[ -]old|\by\.?/?o\b\.?)\s(?:[a-z]+[ -]handed\s|retired\s|former\s|male\s|female\s)?)"
            rf"(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=_job,
        ),
    )


def _words(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\S+", text))


def is_job(word: str) -> bool:
    """Whether a word is a job of the list, the usual suspects of notes apart.

    >>> is_job("carpenter"), is_job("smoker")
    (True, False)
    """
    small = word.lower().rstrip(".,")
    return small not in _NOT_JOBS and lexicons.rate(small, "job") == "hi" and not lexicons.is_term(small)


def _until_stop(text: str) -> tuple[int, int] | None:
    """What stands before the first word that ends a phrase."""
    end = 0
    for word in _words(text):
        if word.group().lower() in _STOPS:
            break
        end = word.end()
        if word.group().endswith((",", ".")):
            break
    return _not_listed(text, 0, end)


def _field(text: str) -> tuple[int, int] | None:
    plain = text.lower()
    if plain.startswith(("none", "unknown", "unemployed", "retired", "n/a", "disabled", "not ", "denies", "student")):
        return None
    return _until_stop(text)


def _not_listed(text: str, start: int, end: int) -> tuple[int, int] | None:
    words = text[start:end].split()
    if (
        not words
        or words[-1].lower() in _NOT_JOBS
        or words[0].lower() in ("needed", "above", "directed", "follows", "well", "tolerated")
    ):
        return None
    return start, end


def _job(text: str) -> tuple[int, int] | None:
    """The words up to the last job among them, with what qualifies it."""
    end, start = 0, -1
    for place, word in enumerate(_words(text)):
        if word.group().lower() in _STOPS or place > 3:
            break
        start = word.start() if start < 0 else start
        if is_job(word.group()):
            end = word.end()
    if not end or any(word.lower() in _NOT_JOBS for word in text[start:end].split()):
        return None
    return start, end


def _whole_job(text: str) -> tuple[int, int] | None:
    found = _job(text)
    return found if found and found[1] == len(text) else None


def _last_job(text: str) -> tuple[int, int] | None:
    words = _words(text)
    if not words or not (is_job(words[-1].group()) or words[-1].group().lower().endswith(_ENDINGS)):
        return None
    first = len(words) - 1
    while first > 0 and words[first - 1].group().lower() not in _STOPS | _NOT_JOBS and len(words) - first < 3:
        first -= 1
    return words[first].start(), len(text)
