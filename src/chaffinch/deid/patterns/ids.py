"""Patterns of identifying numbers: records, accounts, plans, licences, vehicles, devices, and codes."""

from __future__ import annotations

import re
from functools import cache

from chaffinch.deid.patterns.pattern import Pattern

# A code after a cue: letters and digits, parts joined by signs, at least three digits (see `has_digits`).
_CODE = r"[A-Za-z]{0,6}[-./]?\d[0-9A-Za-z]{0,20}(?:[-./:][0-9A-Za-z]{1,12}){0,4}"
_SPACED = r"[0-9A-Z]{2,6}(?: [0-9A-Z]{2,6}){1,6}"
_NO = r"(?:\s?(?:(?:no|nos|num|nr|number|id)\b\.?|#|№))?"
_SIGN = r"[ ]{0,3}(?:[:#=№-]|is\b|was\b|of\b)?[ ]{0,3}#?[ ]?"
_UNIT = (
    r" ?(?:mg|mcg|ml|units?|iu\b|kcal|cal|g\b|grams?|cc\b|cells|copies|/|patients|steps|ppm|x\b|%|hz|nm|"
    r"kb|bp\b|kda|pg|ng|"
    r"years?|months?|weeks?|days?|hours?|colonies|cfu|people|dollars|individuals|base)|[.,]\d"
)

# Label, the name of the pattern, and the words before the number.
_CUES = (
    (
        "MEDICALRECORD",
        "mrn",
        r"mrn|m\.r\.n\.?|mr\s?#|mr\s(?:no|number)|med(?:ical)?\.?\s?rec(?:ord)?s?\.?|unit\s(?:no|number|num|"
        r"#)|record|"
        r"chart|hospital\s(?:no|number|#|id)|hosp\s(?:no|id|#)|patient\s?(?:id|no|number|#|identifier)|"
        r"pt\.?\s?(?:id|no|#)|epic\sid|emr|ehr|"
        r"file|nhs|chi|urn|uhid|hospital\sunit",
    ),
    ("ACCOUNT", "account", r"acct|account|acc\s?(?:#|no)|billing|bill|fin|bank\saccount|routing|har|financial"),
    (
        "HEALTHPLAN",
        "plan",
        r"(?:health\s)?plan|policy|member(?:ship)?|subscriber|beneficiary|insurance|insured|group\s(?:no|"
        r"number|id|#)|"
        r"medicare|medicaid|mbi|hicn|bcbs|aetna|cigna|humana|payer|payor|coverage|"
        r"certificate\sof\sinsurance|enrollee|hpbn|kaiser|hbn|ins",
    ),
    (
        "LICENSE",
        "license",
        r"dea|npi|upin|licen[cs]e|lic|certificate|cert|driver['’]?s?\slicen[cs]e|dl|state\slic(?:ense)?|gmc|"
        r"nmc|"
        r"registration|board\scert(?:ification)?",
    ),
    (
        "VEHICLE",
        "vehicle",
        r"(?:license\s)?plates?|tags?|vin|vehicle(?:\sid(?:entification)?)?|registration\splate|reg",
    ),
    (
        "DEVICE",
        "device",
        r"serial|s/n|sn|device(?:\sid(?:entifier)?)?|implant|pacemaker|generator|lot|udi|imei|model|lead|"
        r"pump|icd\sserial|"
        r"ins(?:trument)?\sserial|catalog(?:ue)?|ref\scat",
    ),
    (
        "IDNUM",
        "number",
        r"accession|specimen|case|order|encounter|visit|claim|reference|ref|study|job|dictation|invoice|csn|"
        r"doc(?:ument)?|"
        r"protocol|confirmation|authorization|auth|referral|requisition|req|rx|prescription|script|sample|"
        r"ticket|employee|badge|student|"
        r"passport|id|identifier|identification|national\sid|tracking|report|slide|block|path(?:ology)?|"
        r"surgical|episode|admission|contact|"
        r"fingerprint\sid|voiceprint|trial\sid|subject|participant|enrollment|registry|donor|transcription|"
        r"message|image|film|exam|test|request",
    ),
)


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return all patterns of identifying numbers: social security, after cue words, by shape, digits, codes."""
    cued = (pattern for cue in _CUES for pattern in _after_cue(*cue))
    return (*_national_numbers(), *cued, *_shapes(), *_records(), *_digits(), *_codes())


def _after_cue(label: str, name: str, words: str) -> tuple[Pattern, ...]:
    """Return three patterns of codes after cue words (a regex alternation): plain, with a number sign, spaced."""
    strong = name in ("mrn", "account", "plan", "license")
    need = has_digits if strong else _is_plate if name == "vehicle" else _is_long_code
    cue = (
        rf"(?i:\b(?:{words})(?:\s(?:account|record|plan|id|identification|license|serial|file|case|member|"
        rf"beneficiary))?{_NO}{_SIGN})"
    )
    marked = (
        rf"(?i:\b(?:{words})(?:\s(?:id|member|case|plan|license|serial|file|record))?\s?(?:no|nos|num|nr|"
        r"number|id|#|:|№)[.:# ]{0,4})"
    )
    return (
        Pattern(
            f"id-{name}",
            rf"{cue}(?P<span>{_CODE})\b",
            label=label,
            score=0.97,
            exact=name != "number",  # without a sign, its words are of events too: "admission 12-0410", "film 09-71"
            after=_UNIT,
            fits=need,
        ),
        Pattern(
            f"id-{name}-marked",
            rf"{marked}(?P<span>{_CODE})\b",
            label=label,
            score=0.975,
            exact=True,
            after=_UNIT,
            fits=has_digits,
        ),
        Pattern(
            f"id-{name}-spaced",
            rf"{marked}(?P<span>{_SPACED})\b",
            label=label,
            score=0.96,
            exact=True,
            after=_UNIT,
            fits=_has_six_digits,
        ),
    )


def _national_numbers() -> tuple[Pattern, ...]:
    """Return the patterns of social security numbers, whole or their last digits, and of other national numbers."""
    words = r"(?:ssn|ss\s?#|social\s?security(?:\s?(?:no|number|num|#))?|soc\.?\s?sec\.?)"
    return (
        Pattern(
            "ssn",
            r"\b(\d{3}[-–]\d{2}[-–]\d{4})\b",
            label="SSN",
            score=0.95,
            exact=True,
            before=r"[\d.,$-]",
            after=r"[-.]?\d",
        ),
        Pattern(
            "ssn-spaced",
            r"\b(\d{3} \d{2} \d{4})\b",
            label="SSN",
            score=0.8,
            before=r"[\d.,$-] ?",
            after=r" ?[-.]?\d|\s?(?:mg|ml)",
        ),
        Pattern(
            "ssn-cued",
            rf"(?i:\b{words}[ :#.=()-]{{0,4}}(?:is\s|of\s|ending\s(?:in\s)?|last\s(?:4|four)[: ]{{0,2}})?)"
            r"(?P<span>"
            r"(?:\d{3}|[xX*]{3})[- ]?(?:\d{2}|[xX*]{2})[- ]?\d{4}|\d{4})\b",
            label="SSN",
            score=0.99,
            exact=True,
        ),
        Pattern(
            "national-britain", r"\b([A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D])\b", label="IDNUM", score=0.85
        ),
        Pattern(
            "national-cued",
            r"(?i:\b(?:nhs|sin|nino|ni|national\s(?:id|insurance|identity)|aadhaar|curp|dni|nie|cpf|nif|tax\sid|"
            r"tin|ein|itin)"
            r"(?:\s(?:no|number|num|#|card))?[ :#.]{1,4})(?P<span>[A-Z]{0,2} ?\d[0-9A-Z]{1,4}(?:[ "
            r".-]?[0-9A-Z]{1,5}){1,5})\b",
            label="IDNUM",
            score=0.95,
            exact=True,
            after=_UNIT,
            fits=_has_six_digits,
        ),
    )


def _shapes() -> tuple[Pattern, ...]:
    """Return patterns of numbers known by their shape or one word: serial, DEA, VIN, IBAN and card numbers."""
    return (
        Pattern(  # what is called a serial number is one, even if it looks like a date
            "id-serial",
            rf"(?i:\b(?:serial\s?(?:no|nos|num|nr|number|#|№)|s/n)[.:# ]{{1,4}})(?P<span>{_CODE})\b",
            label="DEVICE",
            score=0.98,
            exact=True,
            fits=_has_three_digits,
        ),
        Pattern("dea", r"\b([ABFGMPR][A-Z9]\d{7})\b", label="LICENSE", score=0.9),
        Pattern("vin", r"\b([A-HJ-NPR-Z0-9]{17})\b", label="VEHICLE", score=0.85, exact=True, fits=_is_mixed),
        Pattern(
            "iban",
            r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?)\b",
            label="ACCOUNT",
            score=0.98,
            exact=True,
            fits=is_iban,
        ),
        Pattern(
            "card",
            r"\b(\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|\d{4}[ -]?\d{6}[ -]?\d{4,5})\b",
            label="ACCOUNT",
            score=0.95,
            exact=True,
            before=r"[\d.,-]",
            after=r"[.-]?\d",
            fits=is_card,
        ),
        Pattern(
            "card-cued",
            r"(?i:\b(?:credit|debit|visa|mastercard|amex|card)(?:\scard)?(?:\s(?:no|number|ending|is|#))?[ "
            r":#.]{1,4}(?:in\s)?)"
            r"(?P<span>\d[\d -]{10,22}\d)\b",
            label="ACCOUNT",
            score=0.96,
            exact=True,
        ),
    )


def _records() -> tuple[Pattern, ...]:
    """Return patterns of record numbers without a cue, by their groups of digits, and of devices' UDI."""
    return (
        Pattern(
            "record-parts",
            r"\b(\d{3}-\d{2}-\d{2}|\d{3}-\d{4}-\d|\d{2}-\d{2}-\d{2}-\d|\d{2}-\d{2}-\d{3})\b",
            label="MEDICALRECORD",
            score=0.7,
            before=r"[\d.,$-]",
            after=r"[-./]?\d|\s?(?:mg|ml)",
        ),
        Pattern(
            "record-pairs",
            r"\b(\d{2}-\d{2}-\d{2})\b",
            label="MEDICALRECORD",
            score=0.6,
            before=r"[\d.,$-]",
            after=r"[-./]?\d",
        ),
        Pattern(
            "udi",
            r"(\(01\)\d{14}(?:\(1[017]\)[0-9A-Za-z]{1,20})*(?:\(21\)[0-9A-Za-z]{1,20})?)",
            label="DEVICE",
            score=0.95,
            exact=True,
        ),
    )


def _digits() -> tuple[Pattern, ...]:
    """Return the patterns of codes that are mostly digits, without a label before them."""
    known = r"(?:NCT|PMID|PMC|DOI|OMIM|MIM|RS|ICD|ISBN|ISSN|CPT|NDC|LOINC|SNOMED|GENBANK|ATC|EC|CAS|PUBMED)[ :#-]*"
    return (
        Pattern(
            "code-digits",
            r"\b(\d{7,14})\b",
            label="IDNUM",
            score=0.6,
            before=rf"[\d.,$€£/+_-]|[<>~=] ?|{known}",
            after=_UNIT + r"|[-/]\d",
        ),
        Pattern(
            "code-hash",
            r"(?:^|[\s(,;|])#\s?(?P<span>\d{4,14}|[A-Z]{1,3}-?\d{4,12})\b",
            label="MEDICALRECORD",
            score=0.75,
            after=_UNIT,
        ),
        Pattern(
            "code-bracket",
            r"\((?P<span>[A-Z]{0,3}-?\d{6,12}|\d{3}-\d{2}-\d{2})\)",
            label="MEDICALRECORD",
            score=0.8,
            before=known,
        ),
        Pattern(
            "code-letters",
            r"\b([A-Z]{1,4}-?\d{6,12}[A-Z0-9]?|\d{6}[A-Z])\b",
            label="IDNUM",
            score=0.7,
            before=rf"{known}|[\d._-]",
            after=r"[_.]\w",
            fits=_is_not_public_code,
        ),
    )


def _codes() -> tuple[Pattern, ...]:
    """Return the patterns of codes that mix letters, digits and signs, without a label before them."""
    return (
        Pattern(
            "code-parts",
            r"\b([A-Z]{1,4}\d{2}-\d{3,7}|[A-Z]{2,4}-\d{4}-\d{3,6}|\d{2}:[A-Z]{1,3}\d{3,6}[A-Z]?|"
            r"[A-Z]{1,2}\d{4}-\d{3,7}|"
            r"\d{2}-[A-Z]{1,3}-?\d{4,8})\b",
            label="IDNUM",
            score=0.8,
            before=r"[\d._-]",
            fits=_is_not_public_code,
        ),
        Pattern(
            "code-mixed",
            r"\b([A-Z]\d[A-Z]\d{4,8}|[A-Z]{1,3}\d{3,4}[A-Z]{1,3}\d{2,4})\b",
            label="IDNUM",
            score=0.65,
            before=r"[\d._-]",
            fits=_is_not_marker,
        ),
        Pattern(
            "code-account",
            r"\b(\d{4}-\d{4}-\d{2,4})\b",
            label="ACCOUNT",
            score=0.7,
            before=r"[\d.,$-]",
            after=r"[-.]?\d",
        ),
    )


def has_digits(text: str) -> bool:
    """Tell whether a text has three digits or more and is no date, time or plain number."""
    return _has_three_digits(text) and not _is_plain_number(text)


def _has_three_digits(text: str) -> bool:
    """Tell whether a text has three digits or more."""
    return sum(map(str.isdigit, text)) >= 3


def _is_long_code(text: str) -> bool:
    """Tell whether a text has five digits or more and is no plain number."""
    digits = sum(map(str.isdigit, text))
    return digits >= 5 and not _is_plain_number(text)


def _is_plate(text: str) -> bool:
    """Tell whether a text may be a licence plate: digits with letters, or a long code."""
    return has_digits(text) and (_is_long_code(text) or any(map(str.isalpha, text)))


def _has_six_digits(text: str) -> bool:
    """Tell whether a text has six digits or more, and no four capitals in a row."""
    return sum(map(str.isdigit, text)) >= 6 and re.search(r"[A-Z]{4}", text) is None


def _is_plain_number(text: str) -> bool:
    """Tell whether a text is a date, a year, a time of day, a decimal number or a range, and so no code."""
    return (
        re.fullmatch(
            r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{1,2}-\d{1,2}-\d{4}|(?:19|20)\d\d[-/.]\d{1,2}[-/.]\d{1,2}|(?:19|"
            r"20)\d\d|\d{1,2}:\d\d(?::\d\d)?|"
            r"\d+\.\d+|\d{1,3}/\d{1,3}|\d{1,3}[-/]\d{1,3}|"
            r"\d{1,2}([-/])(?i:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)\1(?:\d\d)?\d\d",
            text,
        )
        is not None
    )


def _is_mixed(text: str) -> bool:
    """Tell whether a text has a digit and three letters or more."""
    return any(map(str.isdigit, text)) and sum(map(str.isalpha, text)) >= 3


def _is_not_public_code(text: str) -> bool:
    """Tell whether a text does not begin like a public code, such as NCT or PMC."""
    return not text.startswith(("NCT", "PMC", "COVID", "SARS", "ICD", "NM", "OMIM"))


def _is_not_marker(text: str) -> bool:
    """Tell whether a text is no chromosome marker, such as D1S1595, and no count of pregnancies, such as G3P1011."""
    return re.fullmatch(r"D[0-9XY]{1,2}S\d+|G\d{1,2}P\d{1,4}", text) is None


def is_card(text: str) -> bool:
    """Tell whether a text has 12 to 19 digits, not all the same, that pass the Luhn check of payment cards.

    >>> is_card("4111 1111 1111 1111"), is_card("4111 1111 1111 1112")
    (True, False)
    """
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return 12 <= len(digits) <= 19 and sum(doubled) % 10 == 0 and len(set(digits)) > 1


def is_iban(text: str) -> bool:
    """Tell whether an account number passes the check of ISO 13616.

    >>> is_iban("GB82 WEST 1234 5698 7654 32")
    True
    """
    compact = text.replace(" ", "")
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1
