"""Surrogates of telephone numbers, mail and web addresses and hosts, all of ranges that belong to nobody.

Telephone numbers of the United States get a line of 555-01xx, hosts the reserved name .example (RFC 2606), internet
addresses the ranges for documentation (RFC 5737 and 3849).
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache

from chaffinch.deid.surrogates.ids import digits_of, with_digits
from chaffinch.deid.surrogates.letters import Keyed, bases, bears, fold, is_word, joined, pieces, reshaped, words
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


def contact(text: str, keyed: Keyed) -> str:
    """The surrogate of a contact of untold kind."""
    if "@" in text:
        return email(text, keyed)
    if "://" in text or text.strip().lower().startswith("www."):
        return url(text, keyed)
    return ip_address(text, keyed) if _V4.search(text) else phone(text, keyed)


def phone(text: str, keyed: Keyed) -> str:
    """A number of the same length and punctuation; the extension, if any, is drawn by itself."""
    extension = _EXTENSION.search(text)
    if extension and digits_of(text[: extension.start()]):
        drawn = reshaped(extension[1], keyed, "extension")
        rest = text[extension.end() :]
        return (
            phone(text[: extension.start()], keyed)
            + text[extension.start() : extension.start(1)]
            + drawn
            + (phone(rest, keyed) if any(map(bears, rest)) else rest)
        )
    normal = digits_of(text)
    national = normal[1:] if len(normal) == 11 and normal[0] == "1" else normal
    if len(national) == 7 or (len(national) == 10 and national[0] > "1"):
        drawn = _line(national[-7:], keyed)
        area = _area(national[:-7], keyed) if len(national) == 10 else ""
        return _words_too(text, normal[: -len(national)] + area + drawn, keyed)
    abroad = _ABROAD.fullmatch(text)
    prefix, local = abroad.groups() if abroad else ("", text)
    zeros = len(digits_of(local)) - len(digits_of(local).lstrip("0"))
    rest = digits_of(local)[zeros:]
    drawn = reshaped(rest, keyed, "phone", leading=False)
    if not rest:
        return prefix + reshaped(local, keyed, "phone")
    return prefix + _words_too(local, "0" * zeros + drawn, keyed)


def _line(line: str, keyed: Keyed) -> str:
    return f"55501{keyed.number(100, 'line', line):02d}"


@cache
def _areas() -> tuple[str, ...]:
    """Return the area codes that may be drawn: not 911 and the like, and not x9x, which is kept for growth."""
    return tuple(str(area) for area in range(200, 1000) if area % 100 != 11 and area // 10 % 10 != 9)


def _area(area: str, keyed: Keyed) -> str:
    return keyed.pick(_areas(), "area", text=area)


def _words_too(text: str, digits: str, keyed: Keyed) -> str:
    parts = pieces(with_digits(text, digits))
    unknown = {at for at, part in enumerate(parts) if is_word(part) and fold(part) not in CALL_WORDS}
    return joined(parts, {at: reshaped(parts[at], keyed, "phone") for at in unknown})


def email(text: str, keyed: Keyed) -> str:
    """An address at a host of .example; known names in it become what stands for them in notes."""
    user, at, rest = text.rpartition("@")
    if not at or not words(rest):
        return username(text, keyed)
    return username(user, keyed) + at + host(rest, keyed)


def host(text: str, keyed: Keyed) -> str:
    """A name under .example, the same wherever the host turns up; white space and brackets around it are kept."""
    core = text.strip(" \t\r\n<>()[].,;")
    if not core:
        return text
    return text.replace(core, f"{keyed.pick(_host_names(), 'host', text=bases(core))}.example", 1)


@cache
def _host_names() -> tuple[str, ...]:
    return tuple(name.lower() for name in entries("cities") if " " not in name)


def url(text: str, keyed: Keyed) -> str:
    """An address of the same scheme at a host of .example, with its path drawn anew."""
    found = _URL.fullmatch(text)
    if found is None:
        return username(text, keyed)
    scheme, name, path = found.groups()
    place = email(name, keyed) if "@" in name else host(name, keyed)
    if "." not in name and not scheme.strip():
        place = username(name, keyed)
    return scheme + place + username(path, keyed)


def ip_address(text: str, keyed: Keyed) -> str:
    """An address of a range for documentation; what cannot be read as an address is reshaped as a code is."""
    out, end = "", 0
    pattern = _V4 if _V4.search(text) else _V6
    for found in pattern.finditer(text):
        out += reshaped(text[end : found.start()], keyed, "port") + _address(found[0], keyed)
        end = found.end()
    rest = text[end:]
    return out + (reshaped(rest, keyed, "port") if any(map(bears, rest)) else rest)


def _address(text: str, keyed: Keyed) -> str:
    if "." in text:
        normal = ".".join(str(int(part)) for part in text.split("."))
        block, number = divmod(keyed.number(3 * 254, "address", normal), 254)
        return f"{DOCUMENTATION[block]}{number + 1}"
    try:
        normal = ipaddress.IPv6Address(text).exploded
    except ValueError:
        return reshaped(text, keyed, "address")
    drawn = str(ipaddress.IPv6Address((0x20010DB8 << 96) | keyed.number(1 << 96, "address", normal)))
    return drawn.upper() if text.isupper() else drawn
