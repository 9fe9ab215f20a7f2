"""Professions where a cue tells them: "works as a", "retired", "occupation:"."""

from __future__ import annotations

import re
from functools import cache

from chaffinch import languages
from chaffinch.deid.detect import word_lists as lexicons
from chaffinch.deid.patterns.pattern import Pattern, either

_PHRASE = r"[A-Za-z][A-Za-z'’/\-]*(?:[ ][A-Za-z'’/\-]+){0,4}"
_WORDS = languages.words("en", "patterns/professions")
_STOPS, _NOT_JOBS = frozenset(_WORDS["phrase_ends"]), frozenset(_WORDS["never_jobs"])
# A job of two words that is one wherever it stands; jobs of those who write notes are left out.
_KIND_OF_WORK, _WORKER = (
    either(word.replace(" ", r"\s") for word in _WORDS[name]) for name in ("kinds_of_work", "workers")
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
    if not words or not (is_job(words[-1].group()) or words[-1].group().lower().endswith(_WORDS["endings"])):
        return None
    first = len(words) - 1
    while first > 0 and words[first - 1].group().lower() not in _STOPS | _NOT_JOBS and len(words) - first < 3:
        first -= 1
    return words[first].start(), len(text)
