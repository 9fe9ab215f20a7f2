"""The same words elsewhere in a text: whole words only, exactly as written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chaffinch.web.review.domain.marks import Mark


def find_identical(text: str, words: str) -> list[tuple[int, int]]:
    """Return (start, end) of each place where words occur in a text at word boundaries, without overlaps.

    >>> find_identical("Ann met Anna, and Ann left.", "Ann")
    [(0, 3), (18, 21)]
    """
    if not words.strip():
        return []
    before = r"(?<!\w)" if words[0].isalnum() or words[0] == "_" else ""
    after = r"(?!\w)" if words[-1].isalnum() or words[-1] == "_" else ""
    return [match.span() for match in re.finditer(before + re.escape(words) + after, text)]


def free_places(places: Iterable[tuple[int, int]], marks: Sequence[Mark]) -> list[tuple[int, int]]:
    """Return the (start, end) places that no mark overlaps: a reader's decision is never overruled."""
    return [
        (start, end) for start, end in places if not any(mark.start < end and start < mark.end for mark in marks)
    ]  # fmt: skip
