"""Patterns of names in running text, letters and lists, found by verbs, kinship words and lists of names."""

from __future__ import annotations

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.patterns.name_checks import NameChecks
from chaffinch.deid.patterns.names_by_title import KIN, LISTED, PERSON, WORD
from chaffinch.deid.patterns.pattern import Pattern

_SEEN_BY = (
    r"(?:seen|referred|evaluated|followed|examined|treated|managed|performed|consulted|recommended|"
    r"assessed|called|interviewed|done|placed|"
    r"inserted|removed|requested|started|prescribed|reviewed|discussed|operated|cared\sfor)"
    r"\s(?:on\s)?by|discussed\s(?:with|w/)|d/w|spoke\s"
    r"(?:with|to)|talked\s(?:with|to)|according\sto|per|appointment\swith|visit\swith|follow(?:-|"
    r"\s)?up\swith|f/u\s(?:with|w/)|"
    r"appt\s(?:with|w/)|paged|message\s(?:for|from|to)|referral\sto|notified|informed|thanks\sto|"
    r"(?:letter|copy|copies|report|faxed|sent|forwarded|routed|call|calls|(?:signed|sign)\sout|handoff|hand-off)\sto|"
    r"meeting\swith|s/w|appreciate|will\sask|asked|covering\sfor"
)

_SAYS = (
    r"denies|reports|states|understands|presents|complains|endorses|returns|is\shere|is\sdoing|was\slast\sseen|"
    r"is\sa\spleasant|lives\swith|paged|aware|notified|updated|informed|called|in\sto\svisit|at\s(?:the\s)?bedside|"
    r"came\sby|prefers|agrees|asks|wants|concerned|declines|tolerated|remains"
)
_SERVICES = (
    r"cards?|cardiology|renal|nephro|onc|oncology|heme|surg|surgery|neuro|neurology|gi|ortho|pulm|id|psych|ent|uro|"
    r"derm|endo|rheum|vascular|trauma|anesthesia|ob|gyn|peds|pcp|pmd|sw|pt|ot|icu"
)
_APPOSED = rf"{WORD}(?:[ ]\p{{Lu}}\.)?(?:[ ]{WORD})?"


def patterns(lists: WordLists) -> tuple[Pattern, ...]:
    """Return all patterns of names in prose: among people, in sentences, with initials, by role, letters, lists."""
    checks = NameChecks(lists)
    return (
        *_among_people(checks),
        *_in_text(checks),
        *_with_initials(checks),
        *_by_role(checks),
        *_letters(checks),
        *_in_lists(checks),
    )


def _among_people(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names beside words for people: seen by, daughter Mary."""
    return (
        Pattern(
            "name-seen-by",
            rf"(?i:\b(?:{_SEEN_BY})\s(?:dr\.?\s|nurse\s|her\s|his\s|the\s)?)(?P<span>{PERSON})",
            label="DOCTOR",
            score=0.8,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-kin",
            rf"(?i:\b{KIN}(?:(?:,|\sis|\snamed|\scalled)\s|\s\(?|,|:\s?))(?P<span>{PERSON})",
            label="FAMILY",
            score=0.85,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-of-kin",
            rf"\b(?P<span>{PERSON})(?:,\s|\s\(|\sis\s)(?i:(?:his|her|their|the|a|patient['’]s|pt['’]s)"
            r"\s)?(?i:(?:older|younger|adult|eldest|"
            rf"oldest|youngest|late)\s)?(?i:{KIN})\b",
            label="FAMILY",
            score=0.75,
            cut=checks.name_before_degree,
        ),
        Pattern(
            "name-married",
            r"(?i:\b(?:married\sto|named|name\sis|known\sas|goes\sby|called|nicknamed|lives\swith|"
            r"accompanied\sby|widow\sof|mother\sof|"
            rf"father\sof|son\sof|daughter\sof)\s(?:his\s|her\s)?)(?P<span>{PERSON})",
            label="FAMILY",
            score=0.75,
            cut=checks.probable_name,
        ),
    )


def _in_text(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names by their sentence, and of listed full names: Mary Penn is a 64-year-old."""
    return (
        Pattern(
            "name-patient-is",
            rf"\b(?P<span>{PERSON})\sis\s(?:a|an)\s(?:\w+\s)?\d{{1,3}}[ -]?(?i:y)",
            label="PATIENT",
            score=0.9,
            cut=checks.name_before_degree,
        ),
        Pattern(
            "name-of-age",
            rf"\b(?P<span>{PERSON}),\s(?:(?:is\s)?an?\s(?:[a-z]+\s)?|aged?\s)\d{{1,3}}(?:[ -]?(?i:y)|,|"
            r"\s(?i:man|woman|m|f)\b)",
            label="PATIENT",
            score=0.85,
            cut=checks.name_before_degree,
        ),
        Pattern(
            "name-says",
            rf"(?:[.!?:•*]\s{{1,3}}|(?m:^)[-•*]?\s*)(?P<span>{WORD}(?:[ ]{WORD})?)\s(?:{_SAYS})\b",
            label="PATIENT",
            score=0.7,
            cut=checks.name_of_speaker,
        ),
        Pattern(
            "name-the-patient",
            rf"(?i:\b(?:patient|pt|patients\slike|like|such\sas|for|client)\s)(?P<span>{PERSON})",
            label="PATIENT",
            score=0.6,
            cut=checks.name_in_lists,
        ),
        Pattern(
            "name-full",
            rf"\b(?P<span>\p{{Lu}}\p{{L}}+(?:[ ]\p{{Lu}}\b\.?)?[ ]{WORD})",
            label="PATIENT",
            score=0.6,
            cut=checks.first_and_last_name,
        ),
    )


def _with_initials(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names with an initial or in apposition: Mary P., M. Penn, 64-year-old man, Oriel Dahl."""
    return (
        Pattern(
            "name-initial",
            r"\b(?P<span>\p{Lu}\p{Ll}+[ ]\p{Lu}\.)(?:[^\p{L}]|$)",
            label="PATIENT",
            score=0.6,
            fits=checks.is_first_name_and_initial,
        ),
        Pattern(
            "name-initial-first",
            rf"\b(?P<span>\p{{Lu}}\.(?:[ ]?\p{{Lu}}\.)?[ ]{WORD})",
            label="DOCTOR",
            score=0.6,
            after=r",? (?:et al|and \w\.)|, [A-Z]\.",
            fits=checks.is_initial_and_surname,
        ),
        Pattern(
            "name-initial-told",
            r"[\p{Ll},;)] (?P<span>\p{Lu}\p{Ll}{2,}[ ]\p{Lu}\.)(?:,|\s(?:who|seen|is|was|has|had|with|at|on|after|"
            r"admitted|visited|presented|reports|from)\b)",
            label="PATIENT",
            score=0.7,
            fits=checks.is_unknown_word_and_initial,
        ),
        Pattern(
            "name-initial-phone",
            rf"\b(?P<span>\p{{Lu}}\.(?:[ ]?\p{{Lu}}\.)?[ ]{WORD})[ ]\(\(?\d{{3}}\)?[- .]\d{{3}}[-. ]?\d",
            label="DOCTOR",
            score=0.8,
        ),
        Pattern(
            "name-apposed",
            r"\b\d{1,3}(?:[- ]?(?i:years?|yrs?)[- ](?i:old|of age)|[- ]?(?i:y/?o|y\.o\.))\b\.?"
            rf"(?:[ ][\p{{L}}\d/-]+){{0,7}},[ ](?P<span>{_APPOSED})(?:[,;.(]|\s(?:who|seen|is|was|has|with|at|on|in|"
            r"after|admitted|treated|presented|diagnosed)\b)",
            label="PATIENT",
            score=0.8,
            cut=checks.name_in_apposition,
        ),
    )


def _by_role(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names beside a service or a role: Cardiology: Penn, Penn family present, Baby Penn."""
    return (
        Pattern(
            "name-service",
            rf"(?:[.;:•*\n]|^)[ \t-]*(?i:{_SERVICES})[ ]?(?:[:/]|[-–][ ])[ ]?(?P<span>{PERSON})[ \t]*(?:[.;,\n]|$)",
            label="DOCTOR",
            score=0.7,
            cut=checks.name_alone,
        ),
        Pattern(
            "name-family",
            rf"(?:[\p{{Ll}},;] |[.•*\n-][ ]+)(?P<span>{WORD}(?:-{WORD})?) [Ff]amily (?:present|at|is|was|on|in|"
            r"members?|meeting|aware|updated|notified|will|and|who)\b",
            label="FAMILY",
            score=0.7,
            cut=checks.name_alone,
        ),
        Pattern(
            "name-baby",
            rf"\b(?:Baby|BABY)(?: (?:boy|girl|Boy|Girl|BOY|GIRL|of))? (?P<span>{WORD})\b",
            label="PATIENT",
            score=0.8,
            cut=checks.name_alone,
        ),
        Pattern(
            "name-kin-is",
            rf"(?i:\b(?:next\sof\skin|nok|emergency\scontact|proxy|hcp|guardian|contact\sperson)\s(?:is|was)\s)"
            rf"(?P<span>{LISTED}|{PERSON})",
            label="FAMILY",
            score=0.85,
            cut=checks.name_after_title,
        ),
    )


def _letters(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names in letters: after Dear or "I am", under a closing or a line, after a dash."""
    closing = (
        r"(?:sincerely(?:\syours)?|regards|best(?:\sregards|\swishes)?|respectfully|yours(?:\s\w+)?|"
        r"thank\syou|thanks|cheers|warmly)"
    )
    return (
        Pattern(
            "name-dear",
            rf"\bDear[ ](?:(?:Dr|Mr|Mrs|Ms|Miss|Prof)\.?[ ])?(?P<span>{PERSON})",
            label="PATIENT",
            score=0.85,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-closing",
            rf"(?im:^\s*{closing}\s*,?\s*$)\s{{0,4}}(?P<span>{PERSON})",
            label="DOCTOR",
            score=0.85,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-dash",
            rf"(?m:^)[-–—]{{1,2}}[ ]?(?P<span>{PERSON})[ \t]*(?m:$)",
            label="DOCTOR",
            score=0.6,
            cut=checks.whole_name,
        ),
        Pattern(
            "name-line", rf"(?:_{{4,}}\s*\n\s*)(?P<span>{PERSON})", label="DOCTOR", score=0.85, cut=checks.probable_name
        ),
        Pattern(
            "name-i-am",
            rf"\b(?:I,|I am|I'm|This is|My name is|my name is)[ ](?P<span>{PERSON})",
            label="PATIENT",
            score=0.7,
            cut=checks.name_in_lists,
        ),
    )


def _in_lists(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names in lists and alone on a line: Penn, Mary."""
    return (
        Pattern(
            "name-listed",
            r"\b(?P<span>\p{Lu}[\p{L}'’-]+,[ ]?\p{Lu}\p{L}+(?:[ ]\p{Lu}\b\.?)?)",
            label="PATIENT",
            score=0.65,
            fits=checks.is_surname_and_first_name,
        ),
        Pattern(
            "name-listed-line",
            rf"(?m:^)[ \t]*(?P<span>{LISTED})[ \t]*(?m:$)",
            label="PATIENT",
            score=0.7,
            cut=checks.whole_name,
        ),
        Pattern(
            "name-lone-line",
            rf"(?m:^)[ \t]*(?P<span>{PERSON})[ \t]*(?m:$)",
            label="PATIENT",
            score=0.6,
            cut=checks.name_as_line,
        ),
    )
