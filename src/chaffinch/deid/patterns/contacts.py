"""Patterns of telephone, fax and pager numbers, e-mail, web and IP addresses, and user names."""

from __future__ import annotations

import re
from functools import cache
from ipaddress import ip_address

from chaffinch.deid.patterns.pattern import Pattern, either

_GAP = r"[ .\-–/]{0,2}"
_EXTENSION = r"(?:,?\s?(?i:x|ext\.?|extension)\s?[:#]?\s?\d{1,6})?"
_AREA = r"(?:\(\s?\d{3}\s?\)|\d{3})"
_NORTH_AMERICA = rf"(?:(?:\+|00)?1[ .-]?)?{_AREA}[ .\-–/]{{0,2}}\d{{3}}[ .\-–]\d{{4}}"
_ANY_NUMBER = rf"(?:\+?\d{{1,3}}[ .-]?)?(?:\(\d{{1,5}}\){_GAP})?\d{{2,5}}(?:{_GAP}\d{{2,5}}){{0,4}}"
_UNIT = (
    r" ?(?:mg|mcg|ml|units?|iu|kcal|cal|calories|g\b|grams?|cc|cells|/|hours?|hrs?|mm|cm|copies|"
    r"patients|steps|ft|ppm|x\b|%|"
    r"meters|cgy|msec|ms\b|hz|nm|kb|bp|kda|pg|ng|minutes)|[.,]\d|-\d"
)
_HOSTS = either(
    "com org net edu gov mil int info biz health care clinic name pro io co.uk org.uk ac.uk nhs.uk de "
    "fr nl ch eu es pl jp br "
    "ru cn au com.au nz co.nz us ly tv co.za gov.uk ie se dk fi"
)
_PHONE_WORDS = (
    r"(?:tele?phone|phone|tel|cell(?:ular|phone)?|mobile|mob|ph|call(?:ed)?(?:\sback)?|callback|answering|messages?|desk|"
    r"reach(?:ed)?(?:\sat)?|contact(?:\s(?:no|"
    r"number|phone))?|number|no\.|home|work|office|hotline|voicemail|dial|text(?:ed)?|whatsapp|landline|"
    r"switchboard|line)"
)


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return all patterns of contacts: phones, pagers, e-mail and web addresses, network addresses, user names."""
    return (*_phones(), *_phones_after_cues(), *_faxes_and_pagers(), *_addresses(), *_network_addresses(), *_users())


_NO_MONEY = r"[\d$€£][,.]?|[A-Za-z]-?"


def _phones() -> tuple[Pattern, ...]:
    """Return the patterns of telephone numbers that their shape alone gives away."""
    return (
        Pattern(
            "phone",
            rf"(?P<span>{_NORTH_AMERICA}{_EXTENSION})\b",
            label="PHONE",
            score=0.93,
            exact=True,
            before=_NO_MONEY,
            after=_UNIT,
            fits=_is_phone,
        ),
        Pattern(
            "phone-bracket",
            rf"(?P<span>(?:\+?1[ .-]?)?\(\s?\d{{3}}\s?\){_GAP}\d{{3}}[ .\-–]?\d{{4}}{_EXTENSION})\b",
            label="PHONE",
            score=0.95,
            exact=True,
            before=r"\d",
        ),
        Pattern(
            "phone-local",
            rf"\b(\d{{3}}[-–.]\d{{4}}{_EXTENSION})\b",
            label="PHONE",
            score=0.7,
            before=_NO_MONEY + r"|[-./]|[<>~] ?",
            after=_UNIT,
        ),
        Pattern(
            "phone-abroad",
            r"(?P<span>(?:\+|\b00)[1-9]\d{0,2}[ .-]?(?:\(0\) ?)?\(?\d{1,5}\)?(?:[ .\-/]?\d{2,5}){1,5})\b",
            label="PHONE",
            score=0.9,
            before=r"[\d+]|score\s?",
            fits=_has_foreign_length,
        ),
        Pattern(
            "phone-trunk",
            r"\b(0\d{1,4}(?:[ -]\d{2,4}){2,4}|0\d{1,4}[ -]\d{6,8}|0\d{2,4}[ -]\d{3,4}[ -]?\d{3,4})\b",
            label="PHONE",
            score=0.85,
            before=r"[\d.,-]",
            after=_UNIT,
            fits=_is_not_times,
        ),
    )


def _phones_after_cues() -> tuple[Pattern, ...]:
    """Return the patterns of telephone numbers beside an area code in brackets or a word such as phone or office."""
    return (
        Pattern(
            "phone-area",
            r"(?P<span>\(\d{2,5}\) ?\d{3,5}[ -]\d{3,5})\b",
            label="PHONE",
            score=0.85,
            exact=True,
            before=r"\w",
            after=_UNIT,
        ),
        Pattern(
            "phone-after",
            rf"(?P<span>{_ANY_NUMBER}{_EXTENSION})[ -](?i:office|home|mobile|cell|work|desk)\b",
            label="PHONE",
            score=0.8,
            before=r"[\w.]",
            fits=_is_phone,
        ),
        Pattern(
            "phone-cued",
            rf"(?i:\b{_PHONE_WORDS}(?:\s(?:number|no|is|at|to|on))?[ \n:.#=\-(]{{1,4}}(?:is\s|at\s|\()?)"
            rf"(?P<span>{_ANY_NUMBER}{_EXTENSION})\b",
            label="PHONE",
            score=0.96,
            after=_UNIT,
            fits=_is_phone,
        ),
    )


def _faxes_and_pagers() -> tuple[Pattern, ...]:
    """Return the patterns of fax numbers, pagers and extensions."""
    return (
        Pattern(
            "fax",
            r"(?i:\b(?:tele)?fax(?:\s(?:number|no|is|to|at))?[ :.#=\-]{1,4})"
            rf"(?P<span>{_ANY_NUMBER}{_EXTENSION})\b",
            label="FAX",
            score=0.97,
            exact=True,
            fits=_is_phone,
        ),
        Pattern(
            "fax-letter",
            rf"\b[Ff][:.]\s?(?P<span>{_NORTH_AMERICA})\b",
            label="FAX",
            score=0.96,
            exact=True,
            fits=_is_phone,
        ),
        Pattern(
            "pager",
            rf"(?i:\b(?:pager|beeper|bleep|pgr|pag(?:ed?|ing)|bpr|p)\s?(?:no\.?|number|id|at|#)?[ :#.]{{1,3}})"
            rf"(?P<span>{_AREA}{_GAP}\d{{3}}{_GAP}\d{{4}}|\d{{3}}-\d{{4}}|\d{{4,7}})\b",
            label="PHONE",
            score=0.95,
            exact=True,
            after=_UNIT,
            before=r"[\d/.]",
            fits=_is_not_year,
        ),
        Pattern(
            "pager-at",
            r"(?i:\b(?:page|call|reach)d?\s(?:[\w.]+\s){1,3}at\s)(?P<span>\d{4,5})\b",
            label="PHONE",
            score=0.8,
            after=_UNIT,
        ),
        Pattern(
            "extension",
            r"(?i:\b(?:ext|extension|extn)\.?\s?[:#]?\s?)(?P<span>\d{2,6})\b",
            label="PHONE",
            score=0.9,
            exact=True,
        ),
        Pattern("extension-x", r"(?:^|[\s(,;])(?P<span>[xX]-?\d{4,6})\b", label="PHONE", score=0.85),
    )


_HOST = r"[\p{L}\p{N}][\p{L}\p{N}-]*"


def _addresses() -> tuple[Pattern, ...]:
    """Return the patterns of e-mail and web addresses."""
    return (
        Pattern(
            "email",
            rf"(?P<span>[\p{{L}}\p{{N}}_][\p{{L}}\p{{N}}._%+'’-]*@{_HOST}(?:\.{_HOST})+)",
            label="EMAIL",
            score=0.99,
            exact=True,
        ),
        Pattern(
            "email-spelt",
            r"\b(?P<span>[\w.-]{2,64}\s?(?:\(at\)|\[at\]|\sAT\s|\s@\s)\s?[\w-]{2,63}\s?(?:\.|\(dot\)|\[dot\]|"
            r"\sDOT\s)\s?(?:com|org|net|edu|gov|uk|de))\b",
            label="EMAIL",
            score=0.95,
            exact=True,
        ),
        Pattern(
            "url",
            r"(?i:\b(?P<span>(?:https?|ftp)://[^\s<>\"]+|www\d?\.[^\s<>\"]+))",
            label="URL",
            score=0.99,
            exact=True,
            cut=_trim_punctuation,
        ),
        Pattern(
            "url-host",
            rf"\b(?P<span>(?:[A-Za-z0-9-]{{1,63}}\.){{1,6}}(?i:{_HOSTS})(?:/[^\s<>\"]*)?)",
            label="URL",
            score=0.9,
            exact=True,
            before=r"[@/\w.-]",
            after=r"[@\w]|\.\w",
            fits=_is_host,
            cut=_trim_punctuation,
        ),
    )


def _network_addresses() -> tuple[Pattern, ...]:
    """Return the patterns of IP and MAC addresses."""
    return (
        Pattern(
            "ip4",
            r"\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\b",
            label="IPADDR",
            score=0.9,
            exact=True,
            before=r"[\d.]|(?:version|section|release|v|ec|chapter)\s?\.?\s?",
            after=r"\.?\d",
            fits=_is_ipv4,
        ),
        Pattern(
            "ip6",
            r"(?P<span>[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})",
            label="IPADDR",
            score=0.9,
            exact=True,
            before=r"[\w:]",
            after=r"[\w:]",
            fits=_is_ipv6,
        ),
        Pattern(
            "mac",
            r"\b((?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2})\b",
            label="DEVICE",
            score=0.95,
            exact=True,
            before=r"[:-]",
            after=r"[:-]",
        ),
    )


def _users() -> tuple[Pattern, ...]:
    """Return the patterns of user names: after a word such as login, before a slash, in brackets, after an at sign."""
    return (
        Pattern(
            "user-cued",
            r"(?i:\b(?:user\s?(?:name|id)?|login|log-?in|screen\sname|handle|skype|twitter|instagram)\s?[:=]\s?)"
            r"(?P<span>@?[\w.\-]{2,40}\w)",
            label="USERNAME",
            score=0.9,
        ),
        Pattern("user-code", r"\b(?P<span>[a-z]{2,8}\d{2,3})\s?/\s?\d{1,4}[-/]\d", label="USERNAME", score=0.85),
        Pattern("user-bracket", r"\[(?P<span>[a-z]{2,8}\d{2,5})\]", label="USERNAME", score=0.7),
        Pattern("user-at", r"(?:^|[\s(])(?P<span>@[A-Za-z]\w{2,30})\b", label="USERNAME", score=0.7),
    )


def _is_phone(text: str) -> bool:
    """Tell whether a text has 7 to 15 digits before its extension, and is neither a date nor a range of years."""
    digits = re.sub(r"\D", "", re.split(r"(?i)x|e", text)[0])
    years = re.fullmatch(r"(?:19|20)\d\d\s?[-–]\s?(?:19|20)\d\d", text)
    return 7 <= len(digits) <= 15 and years is None and not _is_date_like(text)


def _is_not_times(text: str) -> bool:
    """Tell whether a text is anything but a row of times of day, such as 0600 1200 1800."""
    return not all(re.fullmatch(r"(?:[01]\d|2[0-3])[0-5]\d", part) for part in re.split("[ -]", text))


def _is_date_like(text: str) -> bool:
    """Tell whether a text has the shape of a numeric date, or of a social security or record number."""
    return (
        re.fullmatch(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{3}-\d{2}-\d{2,4}", text)
        is not None
    )


def _is_not_year(text: str) -> bool:
    """Tell whether a text is anything but a year 1900–2099."""
    return not re.fullmatch(r"(?:19|20)\d\d", text)


def _has_foreign_length(text: str) -> bool:
    """Tell whether a text has 8 to 15 digits, as phone numbers abroad have."""
    return 8 <= sum(map(str.isdigit, text)) <= 15


def _trim_punctuation(text: str) -> tuple[int, int]:
    """Return (0, end) of an address without the punctuation of the sentence at its end."""
    end = len(text.rstrip(".,;:!?'\"’”>]}"))
    if text[:end].endswith(")") and "(" not in text[:end]:
        end = len(text[:end].rstrip(").,;"))
    return 0, end


def _is_host(text: str) -> bool:
    """Tell whether a text can be a host name, not two words with a missing blank."""
    names = text.split("/", maxsplit=1)[0].split(".")
    return (
        len(names[0]) >= 2
        and any(len(name) >= 3 for name in names[:-1])
        and not names[0].isdigit()
        and (names[-1].islower() or names[-1].isupper())
    )


def _is_ipv4(text: str) -> bool:
    """Tell whether a text is an IPv4 address with two parts or more of several digits, unlike most version numbers."""
    parts = text.split(".")
    return (
        all(int(part) < 256 and part == str(int(part)) for part in parts) and sum(len(part) > 1 for part in parts) >= 2
    )


def _is_ipv6(text: str) -> bool:
    """Tell whether a text is an IPv6 address that has a letter, or eight groups."""
    try:
        return (ip_address(text).version == 6 and any(map(str.isalpha, text))) or text.count(":") == 7
    except ValueError:
        return False
