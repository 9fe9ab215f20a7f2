"""Regular expressions written by users: matched in linear time (RE2), with remedies for invalid ones."""

from __future__ import annotations

from functools import cache
from typing import Any

from chaffinch.errors import ConfigError

# Start of RE2's error message, and what to do about it.
_REMEDIES = {
    "missing )": r"close this bracket, or write \( for a literal (",
    "unexpected )": r"open this bracket, or write \) for a literal )",
    "missing ]": r"close this list of signs, or write \[ for a literal [",
    "invalid perl operator": "patterns cannot look around, as matching takes linear time; match the words around too, "
    "and put (…) around the part that is the span",
    "invalid escape sequence": "there are no references to earlier groups, as patterns are matched in linear time; "
    r"write a literal backslash as \\",
    "invalid repetition size": "repeat at most 1000 times (nested repetitions multiply), with the smaller number first",
    "bad repetition operator": "use only one of *, + and ? at a time",
    "no argument for repetition operator": r"put something before it, or write \* for a literal *",
    "invalid character class range": r"write the lower character first, and \p{L} or \p{Lu} for letters",
    "invalid named capture group": "write (?P<span>…)",
    "trailing": r"write \\ for a backslash",
    "pattern too large": "make it shorter; use a lexicon for a long list of words",
}


def compile_pattern(pattern: str, ignore_case: bool, complaint: str = "") -> Any:
    """Return a pattern compiled with RE2, cached; ConfigError, begun with `complaint`, says where a fault is.

    Without `complaint`, the message begins with the pattern itself; it ends in a remedy.
    """
    import re2

    try:
        return _compile(pattern, ignore_case)
    except re2.error as error:
        message = error.args[0]
        why = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        kind, _, part = why.partition(": ")
        remedy = next((words for start, words in _REMEDIES.items() if why.startswith(start)), "correct it")
        place = f" at character {_error_position(pattern, kind, part) + 1}"
        complaint = complaint or f"the pattern {pattern!r} cannot be read"
        raise ConfigError(f"{complaint}: {kind}{place}; {remedy}") from None


@cache
def _compile(pattern: str, ignore_case: bool) -> Any:
    """Return a pattern compiled with RE2, cached; raise re2.error, which is not logged, if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


def _error_position(pattern: str, kind: str, part: str) -> int:
    """Return the index of the part of a pattern that RE2 complains about; the last index if it is not found."""
    if kind in ("missing )", "unexpected )"):
        return _bracket_position(pattern)
    if kind.startswith("trailing"):
        return len(pattern) - 1
    found = pattern.find(part) if part else -1
    return found if found >= 0 else max(len(pattern) - 1, 0)


def _bracket_position(pattern: str) -> int:
    """Return the index of the first unmatched ")", else of the innermost "(" left open, else the last index."""
    opened: list[int] = []
    index = class_start = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif class_start:
            class_start = 0 if char == "]" and index > class_start else class_start
        elif char == "[":
            class_start = index + (2 if pattern[index + 1 : index + 2] == "^" else 1)  # a ] in first place is a literal
        elif char == "(":
            opened.append(index)
        elif char == ")":
            if not opened:
                return index
            opened.pop()
        index += 1
    return opened[-1] if opened else max(len(pattern) - 1, 0)
