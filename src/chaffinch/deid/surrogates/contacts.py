"""Surrogates of telephone numbers, mail and web addresses and hosts, all from ranges reserved for examples.

Telephone numbers of the United States get a line of 555-01xx, hosts the reserved name .example (RFC 2606), internet
addresses the ranges for documentation (RFC 5737 and 3849).
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache

from chaffinch.deid.surrogates.ids import digits_of, with_digits
from chaffinch.deid.surrogates.letters import (
    SurrogateSource,
    bases,
    fold,
    is_significant,
    is_word,
    join_pieces,
    pieces,
    reshape,
    words,
)
from chaffinch.deid.surrogates.lists import entries
from chaffinch.deid.surrogates.names import username

CALL_WORDS = frozenset(
    "tel telephone phone ph fax pager beeper page cell cellular mobile home work office ext extension x voicemail"
    " telefono telf tfno movil telefon handy".split()
)
DOCUMENTATION = ("192.0.2.", "198.51.100.", "203.0.113.")  # RFC 5737
_EXTENSION = re.compile(r"\s*(?<![a-z])(?:x|ext|extn|extension)[.:]?\s*([0-9]{1,8})(?![0-9])", re.IGNORECASE)
_ABROAD = re.compile(r"(\s*\(?(?:\+|00)[1-9][0-9]{0,2}(?=[^0-9])\)?)(.*)", re.DOTALL)
_URL = re.compile(r"(\s*(?:[a-z][a-z0-9+.-]*://)?(?:www\.)?)([^/?#:\s]+)(.*)", re.IGNORECASE | re.DOTALL)
_V4 = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_V6 = re.compile(r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}", re.IGNORECASE)


def contact(text: str, source: SurrogateSource) -> str:
    """Replace a contact whose kind is unknown: as a mail address, web address, IP address or telephone number."""
    if "@" in text:
        return email(text, source)
    if "://" in text or text.strip().lower().startswith("www."):
        return url(text, source)
    return ip_address(text, source) if _V4.search(text) else phone(text, source)


def phone(text: str, source: SurrogateSource) -> str:
    """Replace a phone number in its form, US ones by a fictitious 555-01xx; an extension is drawn separately."""
    extension = _EXTENSION.search(text)
    if extension and digits_of(text[: extension.start()]):
        drawn = reshape(extension[1], source, "extension")
        rest = text[extension.end() :]
        return (
            phone(text[: extension.start()], source)
            + text[extension.start() : extension.start(1)]
            + drawn
            + (phone(rest, source) if any(map(is_significant, rest)) else rest)
        )
    normal = digits_of(text)
    national = normal[1:] if len(normal) == 11 and normal[0] == "1" else normal
    if len(national) == 7 or (len(national) == 10 and national[0] > "1"):
        drawn = _draw_line(national[-7:], source)
        area = _draw_area(national[:-7], source) if len(national) == 10 else ""
        return _replace_digits_and_words(text, normal[: -len(national)] + area + drawn, source)
    abroad = _ABROAD.fullmatch(text)
    prefix, local = abroad.groups() if abroad else ("", text)
    zeros = len(digits_of(local)) - len(digits_of(local).lstrip("0"))
    rest = digits_of(local)[zeros:]
    drawn = reshape(rest, source, "phone", leading=False)
    if not rest:
        return prefix + reshape(local, source, "phone")
    return prefix + _replace_digits_and_words(local, "0" * zeros + drawn, source)


def _draw_line(line: str, source: SurrogateSource) -> str:
    """Draw a fictitious line number 55501xx in place of the last seven digits."""
    return f"55501{source.number(100, 'line', line):02d}"


@cache
def _area_codes() -> tuple[str, ...]:
    """Return the area codes that may be drawn: 200 to 999 without x11 and x9x, cached."""
    return tuple(str(area) for area in range(200, 1000) if area % 100 != 11 and area // 10 % 10 != 9)


def _draw_area(area: str, source: SurrogateSource) -> str:
    """Draw the surrogate of a phone number's area code from those that may be drawn."""
    return source.pick(_area_codes(), "area", text=area)


def _replace_digits_and_words(text: str, digits: str, source: SurrogateSource) -> str:
    """Return the text with its digits replaced by the given ones, and words other than call words redrawn."""
    parts = pieces(with_digits(text, digits))
    unknown = {i for i, part in enumerate(parts) if is_word(part) and fold(part) not in CALL_WORDS}
    return join_pieces(parts, {i: reshape(parts[i], source, "phone") for i in unknown})


def email(text: str, source: SurrogateSource) -> str:
    """Replace an e-mail address by one under .example, names in it as in the notes; a text without @ as a user name."""
    user, sign, rest = text.rpartition("@")
    if not sign or not words(rest):
        return username(text, source)
    return username(user, source) + sign + host(rest, source)


def host(text: str, source: SurrogateSource) -> str:
    """Replace a host by a name under .example, the same for every mention; blanks and brackets around it are kept."""
    core = text.strip(" \t\r\n<>()[].,;")
    if not core:
        return text
    return text.replace(core, f"{source.pick(_host_names(), 'host', text=bases(core))}.example", 1)


@cache
def _host_names() -> tuple[str, ...]:
    """Return the listed cities of one word in lower case, used as names of hosts."""
    return tuple(name.lower() for name in entries("cities") if " " not in name)


def url(text: str, source: SurrogateSource) -> str:
    """Replace a web address by one with the same scheme at a host of .example, with other words in its path."""
    match = _URL.fullmatch(text)
    if match is None:
        return username(text, source)
    scheme, name, path = match.groups()
    replaced = email(name, source) if "@" in name else host(name, source)
    if "." not in name and not scheme.strip():
        replaced = username(name, source)
    return scheme + replaced + username(path, source)


def ip_address(text: str, source: SurrogateSource) -> str:
    """Replace IP addresses by addresses of the ranges for documentation; unreadable ones are reshaped like codes."""
    out, end = "", 0
    pattern = _V4 if _V4.search(text) else _V6
    for match in pattern.finditer(text):
        out += reshape(text[end : match.start()], source, "port") + _replace_address(match[0], source)
        end = match.end()
    rest = text[end:]
    return out + (reshape(rest, source, "port") if any(map(is_significant, rest)) else rest)


def _replace_address(text: str, source: SurrogateSource) -> str:
    """Replace an IP address, by its value, with one of the ranges for documentation; reshape what is none."""
    if "." in text:
        normal = ".".join(str(int(part)) for part in text.split("."))
        block, number = divmod(source.number(3 * 254, "address", normal), 254)
        return f"{DOCUMENTATION[block]}{number + 1}"
    try:
        normal = ipaddress.IPv6Address(text).exploded
    except ValueError:
        return reshape(text, source, "address")
    drawn = str(ipaddress.IPv6Address((0x20010DB8 << 96) | source.number(1 << 96, "address", normal)))
    return drawn.upper() if text.isupper() else drawn
