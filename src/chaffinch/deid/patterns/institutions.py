"""Patterns of hospitals, wards, rooms, organisations and countries."""

from __future__ import annotations

import re

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.patterns.pattern import Pattern, either
from chaffinch.deid.patterns.place_checks import CAP, PlaceChecks, countries

_CARE = (
    r"(?:Hospitals?|Medical\s(?:Center|Centre|Group|Associates|Clinic|Practice|Campus)|Clinics?|"
    r"Health\s(?:Center|Centre|System|Network|Clinic|Services)|"
    r"Healthcare(?:\s(?:Center|System))?|HealthCare|Infirmary|Cancer\s(?:Center|Institute)|"
    r"Heart\s(?:Center|Institute)|Institute|Surgery\sCenter|"
    r"Surgical\sCenter|Rehabilitation(?:\s(?:Center|Hospital))?|Rehab(?:\sCenter)?|Nursing\s(?:Home|"
    r"Center|Facility)|Hospice|Manor|Family\sPractice|"
    r"Family\sMedicine|Urgent\sCare(?:\sCenter)?|VAMC|VA|Sanatorium|Memorial|General|"
    r"Dialysis(?:\sCenter)?|Imaging(?:\sCenter)?|"
    r"Women['’]s\sCenter|Assisted\sLiving|Care\sCenter|Birth\sCenter|Orthopedics|Pediatrics|Physicians|"
    r"Med(?:ical)?\sCtr|Behavioral\sHealth|Home\s(?:Health|Infusion|Care)|"
    r"HOSPITAL|MEDICAL (?:CENTER|GROUP)|CLINIC|HEALTH (?:CENTER|SYSTEM)|HEALTHCARE|GENERAL HOSPITAL|MEMORIAL HOSPITAL|"
    r"(?:CANCER|HEART) (?:CENTER|INSTITUTE)|BEHAVIORAL HEALTH|HOME HEALTH|FAMILY (?:MEDICINE|PRACTICE)|INFIRMARY|"
    r"HOSPICE|NURSING HOME|REHABILITATION (?:CENTER|HOSPITAL)|SURGERY CENTER|URGENT CARE)"
)
_FIRM = (
    r"(?:Inc|LLC|Ltd|Corp(?:oration)?|Company|Co\.|University|College|High\sSchool|"
    r"Elementary(?:\sSchool)?|Middle\sSchool|Academy|Bank|Church|Temple|"
    r"Synagogue|Mosque|Foundation|Industries|Enterprises|Airlines|Insurance|Group|Partners|LLP|PLC|GmbH|"
    r"Prison|Jail|Shelter|Motors|Construction|Library)"
)
_LINKS = r"(?:(?:of|&|the|for|de|del|la)[ ])"


def patterns(lists: WordLists) -> tuple[Pattern, ...]:
    """Return all patterns of rooms, departments, hospitals, companies and countries."""
    checks = PlaceChecks(lists)
    return (*_inside(), *_hospitals(checks), *_firms(checks), *_nations())


def _inside() -> tuple[Pattern, ...]:
    """Return the patterns of rooms, wards and departments."""
    return (
        Pattern(
            "room",
            r"\b(?:room|rm|bed|bay|suite|cubicle|locker)\b\.?\s?(?:no\.?|number|#|"
            r":)?\s?(?P<span>[A-Z]{0,2}-?\d{1,4}[A-Z]?(?:-[0-9A-Z]{1,2})?)\b",
            label="ROOM",
            score=0.85,
            ignore_case=True,
            before=r"(?:operating|waiting|recovery)\s",
            fits=lambda text: re.fullmatch(r"O2|0\d{3}", text) is None,  # oxygen, a time of day
            after=r"\s?(?:days?|times|hours|degrees|mg|rest|/|x\b|%|beds)|\.\d",
        ),
        Pattern(
            "ward",
            r"(?i:\b(?:ward|wing|tower)\s(?:no\.?|#)?\s?)(?P<span>[A-Z]{0,2}\d{1,3}[A-Z]?)\b",
            label="ROOM",
            score=0.8,
        ),
        Pattern(
            "department-field",
            r"(?im:\b(?:dept|department|service|ward|unit|location|loc|clinic)\s?:[ \t]*)"
            r"(?P<span>[\p{Lu}\d][\p{L}\d/&-]*(?:[ ][\p{L}\d/&-]+){0,4})[ \t]*(?m:$)",
            label="DEPARTMENT",
            score=0.8,
            fits=_is_department,
        ),
        Pattern(
            "department-floor",
            r"\b(?:to|on|from|in|at)\s(?P<span>\d{1,2}\s?(?:North|South|East|West|Tower|Main)|(?:North|South|"
            r"East|West)\s\d{1,2})\b",
            label="DEPARTMENT",
            score=0.7,
        ),
        Pattern(
            "department-of",
            r"\b(?P<span>(?:Department|Division|Dept\.?)\sof\s\p{Lu}\p{L}+(?:\s(?:and|&)\s\p{Lu}\p{L}+|"
            r"\s\p{Lu}\p{L}+)?)",
            label="DEPARTMENT",
            score=0.7,
        ),
    )


def _hospitals(checks: PlaceChecks) -> tuple[Pattern, ...]:
    """Return the patterns of hospitals and clinics by name, of capitals after "treated at", of some labs and shops."""
    saint = r"(?:St|Saint|Mt|Mount|SAINT|ST)\b\.?[ ]"
    at = (
        r"(?i:\b(?:treated|seen|admitted|evaluated|operated|hospitali[sz]ed|transferred|discharged|referred|"
        r"followed|surgery|procedure|performed|done|visit(?:ed)?|"
        r"check-?up|appointment|care|presented|diagnosed|examined|received|underwent|managed|consulted|"
        r"records|imaging|scan|mri|ct|labs?|tests?|therapy|"
        r"treatment|hospitalization|admission|er|ed|clinic|monitored|delivered|stay|stayed|session|"
        r"consultation)\s(?:\w+\s){0,2}(?:at|to|from)\s(?:the\s)?)"
    )
    return (
        Pattern(
            "hospital",
            rf"\b(?P<span>(?:{saint})?{CAP}(?:(?:[ ]|-)(?:{_LINKS}{{0,2}}{CAP}|&)){{0,5}}[ ]{_CARE})\b",
            label="HOSPITAL",
            score=0.85,
            cut=checks.institution,
        ),
        Pattern(
            "hospital-of",
            r"\b(?P<span>(?:University[ ])?(?:Hospital|Medical[ ]Center|Clinic|Children['’]s[ ]Hospital)s?[ "
            rf"](?:of|at|for)[ ](?:the[ ])?{CAP}"
            rf"(?:[ ](?:{_LINKS}{{0,2}}{CAP})){{0,4}})",
            label="HOSPITAL",
            score=0.85,
            cut=checks.institution,
        ),
        Pattern(
            "hospital-saint",
            rf"\b(?i:at|to|from|in|by|of|@)\s(?P<span>{saint}{CAP}(?:['’]s)?)\b",
            label="HOSPITAL",
            score=0.8,
        ),
        Pattern(
            "hospital-at",
            rf"{at}(?P<span>(?:{saint})?{CAP}(?:[ ](?:{_LINKS}{{0,2}}{CAP})){{0,4}})",
            label="HOSPITAL",
            score=0.7,
            cut=checks.institution_after_verb,
        ),
        Pattern(
            "hospital-short",
            r"\b(?P<span>MGH|BWH|BIDMC|UCLA|UCSF|UPMC|NYU|VAMC|Mayo Clinic|Cleveland Clinic|Kaiser(?: "
            r"Permanente)?|Johns Hopkins|Cedars-Sinai|"
            r"Mount Sinai|Mt\.? Sinai|Mass General|Sloan[ -]Kettering|MD Anderson|Quest Diagnostics|LabCorp|"
            r"Walgreens|Rite Aid)\b",
            label="HOSPITAL",
            score=0.7,
        ),
    )


def _firms(checks: PlaceChecks) -> tuple[Pattern, ...]:
    """Return the patterns of companies, employers and universities."""
    return (
        Pattern(
            "firm",
            rf"\b(?P<span>{CAP}(?:[ ](?:{_LINKS}{{0,1}}{CAP}|&)){{0,4}}?,?[ ]{_FIRM})\b",
            label="ORGANIZATION",
            score=0.75,
            cut=checks.company,
        ),
        Pattern(
            "firm-works",
            r"(?i:\b(?:works?|worked|working|employed|employee|job|volunteers?)\s(?:\w+\s){0,3}(?:at|for|by|"
            rf"of|with)\s(?:the\s)?)(?P<span>{CAP}(?:[ ](?:{_LINKS}?{CAP}|&)){{0,3}})",
            label="ORGANIZATION",
            score=0.7,
            cut=checks.institution_after_verb,
        ),
        Pattern(
            "firm-university", rf"\b(?P<span>University[ ]of[ ]{CAP}(?:[ ]{CAP})?)", label="ORGANIZATION", score=0.8
        ),
    )


def _nations() -> tuple[Pattern, ...]:
    """Return the patterns of countries."""
    names = either(name.replace(".", r"\.") for name in countries())
    return (
        Pattern(
            "country",
            rf"\b(?P<span>{names})(?:[^\p{{L}}]|$)",
            label="COUNTRY",
            score=0.75,
            after=r"\s(?:ink|virus|hospital|street|road|red|nuts?|almonds)",
        ),
        Pattern(
            "country-cued",
            r"\b(?i:in|from|to|of|visiting|via)\s(?P<span>Chad|Jordan|Turkey|Guinea|Mali|Niger|Oman|Cuba|Peru|"
            r"Israel|Kenya|the US|US|the U\.S\.)(?:[^\p{L}]|$)",
            label="COUNTRY",
            score=0.7,
            after=r"-|\salmonds",
            cut=lambda text: (4 if text.startswith("the ") else 0, len(text)),
        ),
    )


def _is_department(text: str) -> bool:
    """Tell whether a field's value may be a department: under 40 characters, and no number."""
    return len(text) < 40 and not text.isdigit()
