"""Relative expressions (yesterday, 3 days later, POD 2): they name no date and stay true after a shift."""

from __future__ import annotations

import re

_COUNT = (
    r"(?:[0-9]{1,3}(?:[-–][0-9]{1,3}|\.5)?|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|few|"
    r"a\sfew|a\scouple\sof|couple\sof|many|some|un|una|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|unos|unas|"
    r"ein|eine|einem|einer|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|einigen?|wenigen?)"
)
_SHORT_UNIT = (
    r"(?:minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|wks?|months?|minutos?|horas?|días?|dias?|semanas?|meses|mes|"
    r"minuten?|stunden?|tag(?:en?)?|wochen?|monat(?:en?)?)"
)
_UNIT = rf"(?:{_SHORT_UNIT}|years?|yrs?|años?|jahr(?:en?)?)"
_DIRECTION = (
    r"(?:ago|later|earlier|before|after|afterwards?|prior|previously|hence|antes|después|atrás|más\starde|"
    r"später|zuvor|danach|vorher)"
)
_PATTERNS = (
    r"(?:the\s)?day\s(?:before\syesterday|after\stomorrow)|yesterday|today|tomorrow|tonight|now|currently",
    r"(?:yesterday|tomorrow|this|last|the\snext|the\sfollowing)\s(?:morning|afternoon|evening|night)",
    rf"(?:the\s)?(?:last|next|this|past|this\spast|same|following|previous|coming|prior)\s(?:{_COUNT}\s)?{_UNIT}",
    r"(?:the\s)?(?:day|week|month|year)\s(?:before|after|prior|earlier|later)",
    rf"(?:about\s|approximately\s|approx\.?\s|around\s|some\s|~)?{_COUNT}[\s-]{{0,2}}{_UNIT}\s{_DIRECTION}",
    r"(?:in|within|after|for|over|x|×|hace|dentro\sde|en|tras|durante|vor|nach|seit|in\sden\sletzten|binnen)\s"
    rf"{_COUNT}[\s-]{{0,2}}{_UNIT}",
    rf"{_COUNT}[\s-]{{0,2}}{_SHORT_UNIT}",
    r"(?:pod|hd|dol|post-?\s?op(?:erative)?\sday|hospital\sday|day\sof\slife|day|week|tag|día)\s?[#:]?\s?[0-9]{1,3}",
    r"ayer|anteayer|hoy|mañana|anoche|la\ssemana\s(?:pasada|próxima)|el\s(?:mes|año)\s(?:pasado|próximo)",
    r"gestern|vorgestern|heute|morgen|übermorgen|(?:letzte|nächste|vergangene)[nrs]?\s(?:woche|monat|jahr|tag|nacht)",
)
_RELATIVE = re.compile(r"[\s(]{0,2}(?:" + "|".join(_PATTERNS) + r")[\s).,;:]{0,2}", re.IGNORECASE)


def is_relative(text: str) -> bool:
    """Tell whether the whole text is a relative time, such as "three days later" (English, Spanish, German).

    >>> is_relative("three days later"), is_relative("last March")
    (True, False)
    """
    return _RELATIVE.fullmatch(text) is not None
