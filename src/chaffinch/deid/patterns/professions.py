"""Patterns of professions after a cue: "works as a", "retired", "occupation:"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaffinch import languages
from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.patterns.pattern import Pattern, either

_PHRASE = r"[A-Za-z][A-Za-z'’/\-]*(?:[ ][A-Za-z'’/\-]+){0,4}"
_WORDS = languages.words("en", "patterns/professions")
_STOPS, _NOT_JOBS = frozenset(_WORDS["phrase_ends"]), frozenset(_WORDS["never_jobs"])
# Jobs of two words that need no cue; the jobs of those who write notes are left out.
_KIND_OF_WORK, _WORKER = (
    either(word.replace(" ", r"\s") for word in _WORDS[name]) for name in ("kinds_of_work", "workers")
)


def patterns(lists: WordLists) -> tuple[Pattern, ...]:
    """Return all patterns of professions: beside words for work, and beside people."""
    checks = JobChecks(lists)
    return (*_jobs_beside_work(checks), *_jobs_beside_people(checks))


def _jobs_beside_work(checks: JobChecks) -> tuple[Pattern, ...]:
    """Return the English patterns of job titles, and of jobs beside words for work: works as, occupation:, by trade."""
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
            cut=_job_phrase,
        ),
        Pattern(
            "job-field",
            r"(?i:\b(?:occupation|profession|job(?:\stitle)?|employment|works\sas)\s?[:=]\s?(?:an?\s|retired\s|"
            rf"former\s)?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.85,
            cut=_job_in_field,
        ),
        Pattern(
            "job-by-trade",
            rf"\b(?P<span>{_PHRASE})\sby\s(?:trade|profession|training|occupation)\b",
            label="PROFESSION",
            score=0.85,
            cut=checks.last_job,
        ),
    )


def _jobs_beside_people(checks: JobChecks) -> tuple[Pattern, ...]:
    """Return the English patterns of a job beside words about a person: retired, is a, his wife, a; 60-year-old."""
    return (
        Pattern(
            "job-retired",
            r"(?i:\b(?:retired|former|ex-|semi-retired|self-employed|unemployed|disabled|part-time|full-time|"
            rf"freelance)[ -]?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.75,
            cut=checks.job,
        ),
        Pattern(
            "job-is-a",
            r"(?i:\b(?:is|was|am|are|being|becoming|become|became|been)\san?\s(?:retired\s|former\s|part-time\s|"
            rf"full-time\s)?)(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=checks.job,
        ),
        Pattern(
            "job-apposed",
            r"(?i:\b(?:patient|pt|he|she|husband|wife|mother|father|son|daughter|sister|brother|aunt|uncle)"
            rf"(?:,\san?\s|\sis\sthe\s|\swas\sthe\s))(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=checks.job,
        ),
        Pattern(
            "job-alone",
            r"(?i:\b(?:single|married|divorced|widowed|separated|retired)[.,;]\s)"
            r"(?P<span>[A-Za-z][a-z-]+(?:[ ][a-z-]+){0,2})[.,;]",
            label="PROFESSION",
            score=0.7,
            cut=checks.whole_job,
        ),
        Pattern(
            "job-year-old",
            r"(?i:(?:year[ -]old|\by\.?/?o\b\.?)\s(?:[a-z]+[ -]handed\s|retired\s|former\s|male\s|female\s)?)"
            rf"(?P<span>{_PHRASE})",
            label="PROFESSION",
            score=0.7,
            cut=checks.job,
        ),
    )


@dataclass(frozen=True, slots=True)
class JobChecks:
    """Checks of professions by word lists. Those that return offsets cut a match; None rejects it."""

    lists: WordLists

    def is_job(self, word: str) -> bool:
        """Tell whether a word is a listed job, and not a word that notes often use for people (smoker).

        >>> from chaffinch.deid.detect.word_lists import word_lists
        >>> checks = JobChecks(word_lists())
        >>> checks.is_job("carpenter"), checks.is_job("smoker")
        (True, False)
        """
        small = word.lower().rstrip(".,")
        return small not in _NOT_JOBS and self.lists.rate(small, "job") == "hi" and not self.lists.is_term(small)

    def job(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) up to the last job among the first four words before a stop; None if there is none."""
        end, start = 0, -1
        for number, word in enumerate(_words(text)):
            if word.group().lower() in _STOPS or number > 3:
                break
            start = word.start() if start < 0 else start
            if self.is_job(word.group()):
                end = word.end()
        if not end or any(word.lower() in _NOT_JOBS for word in text[start:end].split()):
            return None
        return start, end

    def whole_job(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the job if it ends at the end of the text; else None."""
        found = self.job(text)
        return found if found and found[1] == len(text) else None

    def last_job(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of a job at a text's end with up to two words before it; None if it ends otherwise."""
        words = _words(text)
        if not words or not (self.is_job(words[-1].group()) or words[-1].group().lower().endswith(_WORDS["endings"])):
            return None
        first = len(words) - 1
        while first > 0 and words[first - 1].group().lower() not in _STOPS | _NOT_JOBS and len(words) - first < 3:
            first -= 1
        return words[first].start(), len(text)


def _words(text: str) -> list[re.Match[str]]:
    """Return a match for each word of a text: what is between white space."""
    return list(re.finditer(r"\S+", text))


def _job_phrase(text: str) -> tuple[int, int] | None:
    """Return (0, end) of the words before the first that ends a phrase; None if they can be no job."""
    end = 0
    for word in _words(text):
        if word.group().lower() in _STOPS:
            break
        end = word.end()
        if word.group().endswith((",", ".")):
            break
    return _refuse_other_words(text, 0, end)


def _job_in_field(text: str) -> tuple[int, int] | None:
    """Return (start, end) of the job in a field's text; None if the field says there is none, or none is found."""
    plain = text.lower()
    if plain.startswith(("none", "unknown", "unemployed", "retired", "n/a", "disabled", "not ", "denies", "student")):
        return None
    return _job_phrase(text)


def _refuse_other_words(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return (start, end); None if its words are no job, as in "as needed", "as directed"."""
    words = text[start:end].split()
    if (
        not words
        or words[-1].lower() in _NOT_JOBS
        or words[0].lower() in ("needed", "above", "directed", "follows", "well", "tolerated")
    ):
        return None
    return start, end
