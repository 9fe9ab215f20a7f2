"""Regular expressions that users write: matched in linear time, and explained where they cannot be read."""

from __future__ import annotations

from functools import cache
from typing import Any

from chaffinch.errors import ConfigError

# What RE2 says, and what to do about it.
_REMEDIES = {
    "missing )": r"close this bracket, or write \( for the sign itself",
    "unexpected )": r"open this bracket, or write \) for the sign itself",
    "missing ]": r"close this list of signs, or write \[ for the sign itself",
    "invalid perl operator": "nothing can look around in linear time; match the words around too, and put (…) around "
    "the part that is the span",
    "invalid escape sequence": "there are no references to earlier groups, for time stays linear; write a backslash "
    r"as \\",
    "invalid repetition size": "repeat at most 1000 times, nested repetitions together, the smaller number first",
    "bad repetition operator": "one of *, + and ? in a place is enough",
    "no argument for repetition operator": r"something must stand before it; write \* for the sign itself",
    "invalid character class range": r"write the lower sign first, and \p{L} or \p{Lu} for letters",
    "invalid named capture group": "write (?P<span>…)",
    "trailing": r"write \\ for a backslash",
    "pattern too large": "make it shorter; a long list of words is a lexicon",
}


def compiled(pattern: str, ignore_case: bool, complaint: str = "") -> Any:
    """Return the expression, ready to match.

    ConfigError with the place of the fault and a remedy if it cannot be read; `complaint` says what is wrong in the
    words of the caller, such as the name of an option.
    """
    import re2

    try:
        return _compiled(pattern, ignore_case)
    except re2.error as error:
        said = error.args[0]
        why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        kind, _, part = why.partition(": ")
        remedy = next((words for start, words in _REMEDIES.items() if why.startswith(start)), "correct it")
        place = f" at character {_place(pattern, kind, part) + 1}"
        complaint = complaint or f"the pattern {pattern!r} cannot be read"
        raise ConfigError(f"{complaint}: {kind}{place}; {remedy}") from None


@cache
def _compiled(pattern: str, ignore_case: bool) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


def _place(pattern: str, kind: str, part: str) -> int:
    """Where in a pattern the part stands that RE2 complains about; its end, if it does not stand there."""
    if kind in ("missing )", "unexpected )"):
        return _unmatched(pattern)
    if kind.startswith("trailing"):
        return len(pattern) - 1
    found = pattern.find(part) if part else -1
    return found if found >= 0 else max(len(pattern) - 1, 0)


def _unmatched(pattern: str) -> int:
    """The place of the first bracket too many, else of the last one left open."""
    opened: list[int] = []
    at = listing = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif listing:
            listing = 0 if sign == "]" and at > listing else listing
        elif sign == "[":
            listing = at + (2 if pattern[at + 1 : at + 2] == "^" else 1)  # a ] in first place is a sign of the list
        elif sign == "(":
            opened.append(at)
        elif sign == ")":
            if not opened:
                return at
            opened.pop()
        at += 1
    return opened[-1] if opened else max(len(pattern) - 1, 0)
