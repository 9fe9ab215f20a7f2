"""Recognisers that come with a request: patterns, deny lists and context words, used for this request alone.

Patterns are matched in linear time (RE2), so a client cannot stop the server with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaffinch.web.presidio.bodies import field_of, refuse, strings_of

DEFAULT_FLAGS = int(re.DOTALL | re.MULTILINE | re.IGNORECASE)
_MOST_RECOGNIZERS = 100  # in a request, each with at most as many patterns; more cost time before anything is found
_MOST_PATTERN = 10_000  # characters of a pattern
# Presidio's settings of its context enhancer: what a context word adds to a score, the least score then, and how many
# words before a match are looked at.
_CONTEXT_ADDS, _CONTEXT_LEAST, _CONTEXT_WORDS = 0.35, 0.4, 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Match:
    """What an ad hoc recogniser found, and by what."""

    start: int
    end: int
    entity_type: str
    score: float
    recognizer: str
    pattern_name: str
    pattern: str = field(repr=False)
    original_score: float
    context_word: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AdHocRecognizer:
    """A recogniser of a request: its type, compiled patterns with name, source and score, and its context words."""

    name: str
    entity_type: str
    patterns: tuple[tuple[str, str, float, Any], ...] = field(repr=False)
    context: tuple[str, ...] = field(repr=False)

    def find(self, text: str, context: Sequence[str]) -> Iterator[Match]:
        """Yield the patterns' matches in a text; a context word before a match raises its score."""
        wanted = [word.lower() for word in (*self.context, *context)]
        for name, source, score, compiled in self.patterns:
            for found in compiled.finditer(text):
                start, end = found.span()
                if start < end:
                    word = _context_word(text, start, wanted)
                    raised = min(1.0, max(score + _CONTEXT_ADDS, _CONTEXT_LEAST)) if word else score
                    yield Match(start, end, self.entity_type, raised, self.name, name, source, score, word)


def _context_word(text: str, start: int, wanted: Sequence[str]) -> str:
    """Return the first wanted word that is part of a word shortly before `start`; "" if there is none."""
    if not wanted:
        return ""
    before = [word.lower() for word in _WORD.findall(text[max(0, start - 200) : start])[-_CONTEXT_WORDS:]]
    return next((word for word in wanted if any(word in other for other in before)), "")


def read_recognizers(body: dict[str, Any], language: str) -> list[AdHocRecognizer]:
    """Return a request's ad hoc recognisers that are for `language`; raise Problem if any of them cannot be read."""
    given: list[Any] = field_of(body, "ad_hoc_recognizers", list, [])
    if len(given) > _MOST_RECOGNIZERS:
        raise refuse(f"a request has at most {_MOST_RECOGNIZERS} ad hoc recognizers", 400)
    flags = field_of(body, "regex_flags", int, DEFAULT_FLAGS)
    made = [_read_recognizer(each, flags) for each in given]
    return [each for each, raw in zip(made, given, strict=True) if raw.get("supported_language", "en") == language]


def _read_recognizer(given: Any, flags: int) -> AdHocRecognizer:
    """Parse an ad-hoc recogniser, its patterns and deny list compiled; raise Problem 400 if it is malformed."""
    if not isinstance(given, dict):
        raise refuse("Failed to parse request. an ad hoc recognizer must be an object", 400)
    entity_type = field_of(given, "supported_entity", str, "")
    patterns, denied = field_of(given, "patterns", list, []), strings_of(given, "deny_list")
    if not entity_type:
        raise refuse("Failed to parse request. an ad hoc recognizer must have a supported_entity", 400)
    if not patterns and not denied:
        raise refuse("Pattern recognizer should be initialized with patterns or with deny list", 400)
    if len(patterns) > _MOST_RECOGNIZERS:
        raise refuse(f"a recognizer has at most {_MOST_RECOGNIZERS} patterns", 400)
    compiled = [_read_pattern(each, flags) for each in patterns]
    if denied:
        source = rf"\b(?:{'|'.join(map(re.escape, denied))})\b"
        compiled.append(("deny_list", source, 1.0, compile_pattern(source, flags)))
    name = field_of(given, "name", str, "") or "PatternRecognizer"
    return AdHocRecognizer(name, entity_type, tuple(compiled), tuple(strings_of(given, "context")))


def _read_pattern(given: Any, flags: int) -> tuple[str, str, float, Any]:
    """Return (name, source, score, compiled form) of a pattern; raise Problem 400 if it is malformed."""
    if not isinstance(given, dict):
        raise refuse("Failed to parse request. a pattern must be an object", 400)
    source = field_of(given, "regex", str, "")
    score = float(field_of(given, "score", float, 0.0))
    if not source or not 0 <= score <= 1:
        raise refuse("Failed to parse request. a pattern must have a regex, and a score from 0 to 1", 400)
    return field_of(given, "name", str, ""), source, score, compile_pattern(source, flags)


def compile_pattern(source: str, flags: int) -> Any:
    """Compile a pattern of a request with RE2; raise Problem if it is invalid. Nothing of it is kept afterwards."""
    import re2

    letters = "".join(
        letter for letter, flag in (("i", re.IGNORECASE), ("m", re.MULTILINE), ("s", re.DOTALL)) if flags & flag
    )
    options = re2.Options()
    options.log_errors = False
    try:
        if len(source) > _MOST_PATTERN:
            raise refuse(f"a pattern has at most {_MOST_PATTERN:,} characters", 400)
        return re2.compile(f"(?{letters}){source}" if letters else source, options)
    except re2.error:
        message = "a regex is invalid, or looks around or back, which patterns matched in linear time cannot"
        raise refuse(message, 400) from None
