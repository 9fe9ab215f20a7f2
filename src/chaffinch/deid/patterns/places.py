"""Patterns of places: streets, cities with their states, postcodes."""

from __future__ import annotations

import re

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.patterns.pattern import Pattern, either
from chaffinch.deid.patterns.place_checks import ALSO_WORDS, CAP, WORDS, PlaceChecks

_SUFFIX = (
    r"(?:Street|St|Avenue|Ave|Av|Road|Rd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Boulevard|Blvd|Terrace|Ter|"
    r"Way|Circle|Cir|Parkway|Pkwy|Square|Sq|Trail|Trl|"
    r"Alley|Plaza|Crescent|Highway|Hwy|Close|Row|Loop|Path|Pike|Turnpike|Run|Ridge|Walk|Mews|Gardens|"
    r"Grove|Hill|Causeway|Expressway|Landing|Pass|"
    r"STREET|ST|AVENUE|AVE|ROAD|RD|LANE|LN|DRIVE|DR|COURT|CT|PLACE|BLVD|TERRACE|WAY|CIRCLE)"
)
_UNIT = (
    r"(?:,?\s(?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|Rm|Room|Bldg|Building|#|APT)"
    r"\.?\s?#?\s?[0-9A-Za-z]{1,5}\b|\s#\s?[0-9A-Za-z]{1,5}\b)?"
)
_SIDE = r"(?:(?:[NSEW]{1,2}\.?|North|South|East|West)\s)?"
_CODES, _STATES = either(WORDS["state_codes"]), "|".join(WORDS["states"])
_UNCERTAIN_STATES = frozenset(WORDS["states_and_names"])
_ABBREVIATIONS = r"(?:Mass|Calif|Conn|Fla|Penn|Tex|Wash|Ariz|Colo|Ill|Mich|Minn|Wis|Tenn)\."
_STATE = rf"(?:{_CODES}|{_STATES}|N\.Y\.|N\.J\.|D\.C\.|{_ABBREVIATIONS})"
_CODES_OF_PLACES = ALSO_WORDS.difference(WORDS["codes_after_people"])  # codes that never follow the name of a person
_NO_STREET = re.compile(
    r"\b(?:MM|CM|MG|ML|HOURS?|HRS?|DAYS?|WEEKS?|MONTHS?|YEARS?|YO|BY|WITH|PER|UNDER|FOR|AND|FROM|WAS|IS|HAS|LEADS?|OSH)\b"
)
# A line that ends with a number, and the next one begins with a greeting or a role: "2024 / Dear Dr Penn". In notes of
# train and dev writers all three such places were doctors, and none a drive.
_DOCTOR_BELOW = re.compile(r"\d\s*\n.*\b(?i:dr)\.?\Z")
_HOUSES = "(?:Hospital|Clinic|Center|Centre|Infirmary|Institute|Hospice)"
_CITY = rf"{CAP}(?:[ ]{CAP}){{0,3}}"
# People are in a town, but at a house or on a road: of 38 places after these words that deid-en called towns, one was.
_NO_TOWN = re.compile(r"\b(?:at|on)\s+(?:the\s+)?\Z", re.IGNORECASE)
# Patients are returned and transferred from house to house: of 38 places after these words in notes of train and dev
# writers three are towns, and without a word such as "home" nothing in the sentence tells a care home from a town.
_MOVED = re.compile(
    r"\b(?:return|transfer|discharge|sen[dt]|(?:re)?admit|place|bring|brought|convey)(?:s|d|ed|red|ted|ring|ing)?"
    r"(?:\s+(?:back|home|over))?\s+(?:to|from)\s+(?:the\s+)?\Z",
    re.IGNORECASE,
)
_BEFORE_STATE = re.compile(rf",?\s{_STATE}\b")  # a town has a state after it, also where patients are moved
_NO_TOWN_BEFORE = 40  # characters before a place that are searched; "transferred over from the " needs 26


def patterns(lists: WordLists) -> tuple[Pattern, ...]:
    """Return all patterns of places: streets, cities and states, cities after cues, postcodes."""
    checks = PlaceChecks(lists)
    return (*_streets(), *_with_states(checks), *_states(checks), *_cities(checks), *_postcodes())


def _streets() -> tuple[Pattern, ...]:
    """Return the patterns of streets with or without number, boxes, routes, flats, and address fields."""
    name = rf"(?:(?:{CAP}|\d{{1,3}}(?:st|nd|rd|th|ST|ND|RD|TH))[ ]){{1,4}}"
    return (
        Pattern(
            "street",
            rf"\b(\d{{1,6}}(?:-\d{{1,4}}|[A-Za-z]\b|\s1/2)?\s{_SIDE}{name}{_SUFFIX}\b(?:\s(?:[NSEW]{{1,2}}|North|"
            rf"South|East|West)\b)?\.?{_UNIT})",
            label="STREET",
            score=0.95,
            before=r"[\d.,$/+]",
            fits=_is_street,
            cut=_trim_full_stop,
        ),
        Pattern(
            "street-numbered",
            rf"\b(\d{{1,6}}\s{_SIDE}\d{{1,3}}(?:st|nd|rd|th)\s(?:St|Ave|Street|Avenue)\b\.?{_UNIT})",
            label="STREET",
            score=0.9,
            cut=_trim_full_stop,
        ),
        Pattern(
            "street-named",
            rf"\b(?i:on|at|to|near|of|off|along|from)\s(?P<span>(?:{CAP}[ ]){{1,3}}(?:Street|Avenue|Road|"
            r"Boulevard|Lane|Parkway|Blvd|Ave))\b",
            label="STREET",
            score=0.7,
        ),
        Pattern(
            "street-box",
            r"\b(?P<span>(?i:p\.?\s?o\.?\s?box|post\soffice\sbox|box)\s#?\d{1,6})\b",
            label="STREET",
            score=0.9,
        ),
        Pattern(
            "street-route",
            r"\b(?P<span>(?:RR|R\.R\.)\s#?\d{1,3},?\sBox\s\d{1,5}|Rural Route\s#?\d{1,3}(?:,?\sBox\s\d{1,5})?|"
            r"(?:Route|Rte\.?|Highway|Hwy\.?|Interstate|US|State Route)[ -]\d{1,3})\b",
            label="STREET",
            score=0.7,
        ),
        Pattern(
            "street-flat",
            r"\b(?P<span>(?:Apt|Apartment|APT)\.?\s(?:#\s?)?[0-9]{1,5}[A-Za-z]?)\b",
            label="STREET",
            score=0.7,
        ),
        Pattern(
            "street-field",
            r"(?im:\b(?:street|home|mailing|residential|billing|current)?\s?address\s?[:=]\s?)(?P<span>\d[^\n,;|"
            r"]{3,60})",
            label="STREET",
            score=0.7,
        ),
    )


def _with_states(checks: PlaceChecks) -> tuple[Pattern, ...]:
    """Return the patterns of cities before a state, and of states whose code is also a word (Salem, OR)."""
    return (
        Pattern(
            "city-state",
            rf"\b(?P<span>{_CITY}),\s?{_STATE}\b",
            label="CITY",
            score=0.9,
            fits=None,
            cut=checks.city_before_state,
        ),
        Pattern(
            "city-state-sure",
            rf"\b(?P<span>{_CITY}),?\s{_STATE}\s\d{{5}}\b",
            label="CITY",
            score=0.95,
            cut=checks.any_city,
        ),
        Pattern(
            "city-unsure",
            rf"\b(?P<span>{_CITY},\s?{either(ALSO_WORDS)})\b",
            label="CITY",
            score=0.9,
            cut=checks.city_before_code,
        ),
        Pattern(
            "state-unsure",
            rf"\b(?P<span>{_CITY},\s?{either(ALSO_WORDS)})\b",
            label="STATE",
            score=0.9,
            cut=checks.state_after_city,
        ),
    )


def _states(checks: PlaceChecks) -> tuple[Pattern, ...]:
    """Return the patterns of states by name, after a city, house or cue, before a postcode; of cities after a house."""
    return (
        Pattern("state-city", rf"\b{_CITY},\s?(?P<span>{_STATE})\b", label="STATE", score=0.9, fits=_is_sure_state),
        Pattern(
            "state-behind-house",
            rf"\b{_HOUSES},[ ]{_CITY},[ ](?P<span>{either(_CODES_OF_PLACES)})\b",
            label="STATE",
            score=0.85,
        ),
        Pattern(
            "city-behind-house",
            rf"\b{_HOUSES},[ ](?P<span>{_CITY}),[ ]{either(_CODES_OF_PLACES)}\b",
            label="CITY",
            score=0.85,
            cut=checks.any_city,
        ),
        Pattern(
            "state-postcode",
            rf"\b(?P<span>{_STATE}),?\s+\d{{5}}(?:-\d{{4}})?\b",
            label="STATE",
            score=0.95,
            before=r"(?:patient|site|member|user|case|subject|study|employee|order|record|pt) ",
        ),
        Pattern(
            "state-name",
            rf"\b(?P<span>{_STATES})\b",
            label="STATE",
            score=0.8,
            exact=True,
            fits=lambda text: text not in _UNCERTAIN_STATES,
            after=r"\s(?:heart|hospital|university|avenue|street|cardiac|criteria|medical|presbyterian|general|"
            r"blot|city|state univ)|['’]s\ssyndrome",
        ),
        Pattern(
            "state-cued",
            r"\b(?i:in|from|to|of)\s(?P<span>Virginia|Washington|Georgia|Delaware|Carolina)\b",
            label="STATE",
            score=0.75,
            after=r"\s[A-Z]|\sHospital",
        ),
    )


def _cities(checks: PlaceChecks) -> tuple[Pattern, ...]:
    """Return the patterns of cities after cues, streets and hospitals, and of fields of cities and states."""
    lives = (
        r"(?:lives?|lived|living|resides?|resided|residing|resident|born|raised|grew\sup|moved|relocated|"
        r"native|hometown|visiting|visited|travel(?:l?ed|ing|s)?|trip|"
        r"flew|returned|drove|vacation(?:ed|ing)?|retired|located|comes|came|hails|originally|home|staying|"
        r"transferred|emigrated|immigrated)"
        r"(?:\s(?:here|back|up|over|originally|recently|outside|alone|upstairs|independently))?\s(?:in|of|"
        r"to|from|near|at|is)"
    )
    return (
        Pattern("city-lives", rf"(?i:\b{lives}\s)(?P<span>{_CITY})", label="CITY", score=0.8, cut=checks.any_city),
        Pattern(
            "city-works",
            r"(?i:\b(?:works?|worked|working|employed|teaches|practices|job)\s(?:[a-z-]+\s){1,6}in\s)"
            rf"(?P<span>{_CITY})",
            label="CITY",
            score=0.75,
            cut=checks.any_city,
        ),
        Pattern(
            "city-in",
            rf"\b(?i:in|near|outside|around)\s(?P<span>{_CITY})",
            label="CITY",
            score=0.7,
            cut=checks.city_in_lists,
        ),
        Pattern(
            "city-listed",
            rf"\b(?i:from|to|of|at)\s(?P<span>{_CITY})",
            label="CITY",
            score=0.65,
            cut=checks.unmistakable_city,
        ),
        Pattern(
            "city-street",
            rf"\b{_SUFFIX}\b\.?{_UNIT},?\s(?P<span>{_CITY})(?:[\n.,;]|$)",
            label="CITY",
            score=0.8,
            cut=checks.any_city,
        ),
        Pattern(
            "city-house",
            rf"\b(?:Hospital|Clinic|Center|Infirmary|Institute)(?:,|\sin)\s(?P<span>{_CITY})(?:[\n.,;]|$)",
            label="CITY",
            score=0.75,
            cut=checks.any_city,
        ),
        Pattern(
            "city-field",
            r"(?i:\b(?:city|town|hometown|birthplace|place\sof\sbirth)(?:/state)?\s?[:=]\s?)"
            r"(?P<span>\p{Lu}[\p{L}. '’-]{1,40}\p{L})",
            label="CITY",
            score=0.9,
        ),
        Pattern("state-field", rf"(?i:\bstate\s?[:=]\s?)(?P<span>{_STATE})\b", label="STATE", score=0.95),
    )


def _postcodes() -> tuple[Pattern, ...]:
    """Return the patterns of postcodes of the United States, Canada and Britain, beside cues or by their shape."""
    return (
        Pattern(
            "zip-state",
            rf"\b{_STATE},?\s+(?P<span>\d{{5}}(?:-\d{{4}})?)\b",
            label="ZIP",
            score=0.97,
            after=r"-?\d|\s?(?:mg|ml|units)",
        ),
        Pattern(
            "zip-long", r"\b(\d{5}-\d{4})\b", label="ZIP", score=0.9, before=r"[\d.,-]", after=r"-?\d|\s?(?:mg|ml)"
        ),
        Pattern(
            "zip-cued",
            r"(?i:\b(?:zip|postal|post)\s?-?(?:code)?\s?[:#]?\s?(?:is\s|of\s)?)(?P<span>\d{5}(?:-\d{4})?|"
            r"[A-Z]\d[A-Z] ?\d[A-Z]\d)\b",
            label="ZIP",
            score=0.97,
        ),
        Pattern("zip-britain", r"\b([A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2})\b", label="ZIP", score=0.85),
        Pattern("zip-canada", r"\b([ABCEGHJ-NPRSTVXY]\d[A-Z][ -]\d[A-Z]\d)\b", label="ZIP", score=0.85),
    )


def _trim_full_stop(text: str) -> tuple[int, int]:
    """Return (0, end) of a street without the sentence's full stop; that of a "St." inside stays."""
    return 0, len(text.rstrip(". ,"))


def _is_street(text: str) -> bool:
    """Tell whether a text is a street, and none that only ends like one: "2 MM ST", "96 HOURS BY DR", a doctor below.

    >>> _is_street("14\\nMarsh Lane"), _is_street("2024\\nDear Dr")
    (True, False)
    """
    return not (text.isupper() and _NO_STREET.search(text)) and _DOCTOR_BELOW.search(text) is None


def _is_sure_state(text: str) -> bool:
    """Tell whether a state's code is not also a word, such as "IN" or "OR"."""
    return text not in ALSO_WORDS


def is_no_town(text: str, start: int, end: int) -> bool:
    """Tell whether the words around a place show that it may be no town, state or country.

    >>> is_no_town("stays at Pine Ridge", 9, 19), is_no_town("stays in Pine Ridge", 9, 19)
    (True, False)
    >>> is_no_town("returned to Brookside", 12, 21), is_no_town("returned to Salem, OR", 12, 17)
    (True, False)
    """
    before = text[max(0, start - _NO_TOWN_BEFORE) : start]
    if _NO_TOWN.search(before):
        return True
    return _MOVED.search(before) is not None and not _BEFORE_STATE.match(text, end)
