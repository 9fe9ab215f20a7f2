"""Patterns of names with a cue: titles, degrees, fields of headers, and signatures."""

from __future__ import annotations

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.patterns.name_checks import NameChecks, without_genitive
from chaffinch.deid.patterns.pattern import Pattern, either

WORD = r"\p{Lu}(?:[\p{L}\p{M}]|['’\-](?:\p{L}))+"
_INITIAL = r"\p{Lu}\b\.?"
_PARTICLE = (
    r"(?:(?:van|von|der|den|de|la|del|della|di|da|dos|du|bin|ibn|al|el|ter|le|y|Van|Von|De|La|Del|Di|Da|St\.) ){1,3}"
)
_PART = rf"(?:{_PARTICLE}{WORD}|{WORD}|{_INITIAL})"
PERSON = rf"{_PART}(?:[ ](?:\p{{Lu}}\.){{1,3}})?(?:[ ]{_PART}){{0,4}}(?:,?[ ](?:Jr|Sr|II|III|IV)\b\.?)?"
LISTED = rf"{_PART}(?:[ ]{_PART}){{0,2}},[ ]?{_PART}(?:[ ]{_PART}){{0,2}}"  # Smith, John A
_EITHER = rf"(?:{LISTED}|{PERSON})"
DEGREE = (
    r"(?:M\.?D\.?|D\.?O\.|DO|R\.?N\.?|N\.?P\.?|FNP(?:-\w+)?|ARNP|APRN|CRNP|PA-?C|P\.A\.|Ph\.?D\.?|DPM|"
    r"DDS|DMD|Pharm\.?D\.?|LCSW|LICSW|LPN|"
    r"CNM|CRNA|FACS|FACP|FACC|MBBS|MSW|DPT|BSN|MSN|DNP|RPh|CNS|LVN|CMA|PsyD|OD|DVM|MPH)"
)
_DOCTOR_WORDS = (
    r"attending(?:\s(?:physician|provider|md|surgeon))?|provider|pcp|primary\scare(?:\s(?:physician|"
    r"provider))?|physician|surgeon|"
    r"referring(?:\s(?:physician|provider|md|doctor))?|ordering(?:\s(?:physician|provider|md))?|"
    r"consult(?:ant|ing\sphysician)|resident|fellow|"
    r"nurse(?:\spractitioner)?|author|anesthesiologist|radiologist|pathologist|cardiologist|oncologist|"
    r"neurologist|assistant|therapist|"
    r"dietitian|social\sworker|pharmacist|case\smanager|requesting(?:\sphysician)?|"
    r"admitting(?:\sphysician)?|interpreter|technologist|"
    r"endocrinologist|psychiatrist|psychologist|dermatologist|urologist|nephrologist|gastroenterologist|"
    r"rheumatologist|pulmonologist|midwife|"
    r"dentist|hospitalist|ob-?gyn|operator|scribe|cc|att|clinician|doctor"
)
_STAFF = (  # words that only a name can follow, or nothing
    r"attending(?:\s(?:physician|provider|md|surgeon))?|provider|pcp|physician|phys|surgeon|staff|"
    r"(?:ref|referring|ordering|requesting|admitting|primary|att|consulting)\s(?:md|dr|doctor|physician|provider|phys)|"
    r"\w+ologist|\w+iatrist|hospitalist|dictator|clinician|seen\sby|md"
)
# What separates a label from its value: plain, in columns, in tables, in mark-up.
SIGN = r"(?:[*_]{0,2}[ \t]{0,24}[:=|>][*_]{0,2}|\s[-–]\s)[ \t]*"
_DONE_BY = (
    r"(?:dictat|sign|review|order|perform|transcrib|interpret|verif|authenticat|report|read|approv|"
    r"enter|record|prepar|collect|draw|document|"
    r"administer|prescrib|author|note|supervis|cosign|co-sign|complet|electronically\ssign|edit|attest|"
    r"accept|obtain|scann|examin)"
    r"(?:i?ed|n|ten)?(?:\selectronically)?\sby"
)
KIN = either(
    "wife husband son daughter mother father brother sister spouse partner friend mom dad niece nephew "
    "aunt uncle cousin "
    "grandson granddaughter grandmother grandfather fiancé fiancée fiance fiancee guardian proxy "
    "caregiver neighbor neighbour "
    "girlfriend boyfriend son-in-law daughter-in-law stepson stepdaughter stepfather stepmother "
    "roommate twin mother-in-law "
    "father-in-law sister-in-law brother-in-law grandchild child children hcp relative"
)


def patterns(lists: WordLists) -> tuple[Pattern, ...]:
    """Return all patterns of names with a cue: titles, degrees, fields of patients and staff, signatures, initials."""
    checks = NameChecks(lists)
    return (*_titles(checks), *_degrees(checks), *_patient_fields(checks), *_staff_fields(checks), *_signatures(checks))


def _titles(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names after a title: Dr. Penn, Mrs. Penn."""
    return (
        Pattern(
            "name-doctor",
            rf"\b(?:[Dd]rs?|DRS?|[Dd]octor|[Pp]rof(?:essor)?|Nurse)\b\.?[ ]{{0,2}}(?P<span>{PERSON})",
            label="DOCTOR",
            score=0.96,
            before=r"\d \w+ ",
            cut=checks.name_after_title,
        ),
        Pattern(
            "name-doctors",
            rf"\b[Dd]rs\.?[ ]{PERSON}(?:,|\sand|\s&|/)[ ]?(?:and\s)?(?P<span>{PERSON})",
            label="DOCTOR",
            cut=checks.name_after_title,
        ),
        Pattern(
            "name-mister",
            rf"\b(?:Mr|Mrs|Ms|Miss|Mx|Mister|Madam|MR|MRS|MS|Mme|Sra?|Señora?)\b\.?[ ]{{0,2}}(?P<span>{PERSON})",
            label="PATIENT",
            score=0.95,
            cut=checks.name_after_title,
        ),
        Pattern(
            "name-small",
            r"\b(?:mr|mrs|ms|dr)\b\.?[ ](?P<span>\p{L}[\p{L}'’-]+)",
            label="PATIENT",
            score=0.7,
            ignore_case=True,
            fits=checks.is_lower_case_name,
            cut=without_genitive,
        ),
        Pattern(
            "name-other-title",
            r"\b(?:Rev|Reverend|Father|Pastor|Rabbi|Officer|Captain|Capt|Sgt|Lt|Col|Judge|Imam|Deacon|Chaplain|"
            r"Detective|"
            rf"Attorney|Sister|Brother)\b\.?[ ](?P<span>{PERSON})",
            label="PATIENT",
            score=0.7,
            cut=checks.probable_name,
        ),
    )


def _degrees(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names before a degree: Mary Penn, MD."""
    return (
        Pattern(
            "name-degree",
            rf"\b(?P<span>{_EITHER})(?:,[ ]?|[ ]){DEGREE}(?:[^\p{{L}}]|$)",
            label="DOCTOR",
            score=0.95,
            cut=checks.name_before_degree,
        ),
        Pattern(
            "name-degree-small",
            rf"(?m:^)\s*(?P<span>[a-z][a-z'’-]+ [a-z][a-z'’-]+),? (?i:{DEGREE})\s*(?m:$)",
            label="DOCTOR",
            score=0.8,
        ),
        Pattern(
            "name-degree-comma",
            rf"\b(?P<span>{PERSON}),[ ](?:PA|PT|OT|RD|SLP|ND|DC|MA|RT|EMT)\b",
            label="DOCTOR",
            score=0.7,
            cut=checks.name_before_degree,
        ),
    )


def _patient_fields(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names in fields of patients and in subject lines: Patient: Mary Penn, RE: Mary Penn."""
    patient = (
        r"(?:(?:patient|pt|client|member|subject|resident|full|legal|last|first|preferred|maiden|given|"
        r"family|sur)?['’]?s?\s?name|patient|pt|member|client|"
        r"subject|alias|aka|insured|subscriber|guarantor|infant|baby|child|donor|recipient)"
    )
    return (
        Pattern(
            "name-patient-field",
            rf"(?i:\b{patient}{SIGN})(?P<span>{_EITHER})",
            label="PATIENT",
            score=0.95,
            cut=checks.name_after_title,
        ),
        Pattern(
            "name-re",
            rf"(?m:^)\s*(?:RE|Re|Regarding|REGARDING|Subject|SUBJECT)\s?[:-]\s?(?P<span>{_EITHER})",
            label="PATIENT",
            score=0.95,
            cut=checks.name_after_title,
        ),
        Pattern(
            "name-patient-small",
            rf"(?i:\b(?:patient|pt|name){SIGN})(?P<span>[a-z][a-z'’-]+,? [a-z][a-z'’-]+)\b",
            label="PATIENT",
            score=0.7,
            cut=checks.lower_case_names,
        ),
        Pattern(
            "name-patient-bare",
            rf"(?m:^)\s*(?:NAME|PATIENT|PATIENT NAME|PT|Pt|Name|Patient Name|RE)[ \t]+(?P<span>{_EITHER})",
            label="PATIENT",
            score=0.85,
            cut=checks.probable_name,
        ),
    )


def _staff_fields(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names in fields of staff and heads of letters: Attending: Penn, To: Dr. Penn."""
    return (
        Pattern(
            "name-staff-field",
            rf"(?i:\b(?:{_STAFF}){SIGN}(?:dr\.?\s)?)(?P<span>{_EITHER})[ \t]*(?:[|;<*\n]|\s\s|$)",
            label="DOCTOR",
            score=0.9,
            cut=checks.name_in_field,
        ),
        Pattern(
            "name-doctor-field",
            rf"(?i:\b(?:{_DOCTOR_WORDS}){SIGN}(?:dr\.?\s)?)(?P<span>{_EITHER})",
            label="DOCTOR",
            score=0.94,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-letter-field",
            rf"(?m:^)\s*(?:To|From|TO|FROM|Attn|ATTN|By|BY)\s?:\s?(?:Dr\.?\s)?(?P<span>{_EITHER})",
            label="DOCTOR",
            score=0.9,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-doctor-bare",
            rf"(?m:^)\s*(?i:attending|att|pcp|provider|surgeon|cc)[ \t]+(?P<span>{_EITHER})",
            label="DOCTOR",
            score=0.8,
            cut=checks.probable_name,
        ),
    )


def _signatures(checks: NameChecks) -> tuple[Pattern, ...]:
    """Return the patterns of names in signatures, copies and fields of contacts, and of initials: dictated by Penn."""
    return (
        Pattern(
            "name-done-by",
            rf"(?i:\b{_DONE_BY}\s?:?\s?(?:and\s)?(?:dr\.?\s)?)(?P<span>{_EITHER})",
            label="DOCTOR",
            score=0.94,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-signed",
            rf"(?i:\b(?:electronically\s)?signed\s?:\s?)(?P<span>{_EITHER})",
            label="DOCTOR",
            score=0.94,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-cc",
            rf"(?i:\bcc\s?:?\s)(?:Dr\.?\s)?{PERSON}(?:,[ ]{DEGREE})?,[ ](?P<span>{PERSON})",
            label="DOCTOR",
            score=0.8,
            cut=checks.probable_name,
        ),
        Pattern(
            "name-contact-field",
            r"(?i:\b(?:emergency\scontact|next\sof\skin|nok|(?:health\scare\s)?proxy|hcp|contact(?:\sperson)?|"
            r"guardian|poa|"
            rf"power\sof\sattorney|{KIN})(?:'s\sname|\sname)?{SIGN})(?P<span>{_EITHER})",
            label="FAMILY",
            score=0.93,
            cut=checks.probable_name,
        ),
        Pattern(
            "initials",
            r"(?i:\b(?:transcribed|dictated|typed|collected|drawn|signed|initials)(?:\sby)?\s?:?\s)"
            r"(?P<span>\p{Lu}\.?\p{Lu}\.?(?:\p{Lu}\b\.?)?)"
            r"(?:[\s,;/]|$)",
            label="DOCTOR",
            score=0.6,
            fits=checks.is_initials,
        ),
        Pattern(
            "initials-pair",
            r"(?m:^)\s*(?P<span>[A-Za-z]{2,3}/[a-z]{2,3})\s*(?m:$)",
            label="DOCTOR",
            score=0.6,
            fits=checks.is_pair_of_initials,
        ),
    )
