"""Tag schemes: token tags (IOB1, IOB2, IOBES) to spans and back.

T tokens. A tag is "O" or a letter, a dash and a label: "B-protein".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.errors import DataError
from chaffinch.text.document import Offsets
from chaffinch.text.span import Span, find_overlap
from chaffinch.text.tokens import ranges_of_spans

Scheme: TypeAlias = Literal["IOB1", "IOB2", "IOBES"]
SCHEMES: tuple[Scheme, ...] = ("IOB1", "IOB2", "IOBES")

Run: TypeAlias = tuple[int, int, str]  # first token, one past the last, label


def split_tag(tag: str) -> tuple[str, str]:
    """Return (letter, label) of a tag, ("B", "NAME") of "B-NAME", with L, U as E, S; DataError for other forms.

    >>> split_tag("B-cell_type"), split_tag("O")
    (('B', 'cell_type'), ('O', ''))
    """
    if tag == "O":
        return "O", ""
    letter, dash, label = tag.partition("-")
    letter = {"L": "E", "U": "S"}.get(letter, letter)
    if not dash or not label or letter not in {"B", "I", "E", "S"}:
        raise DataError("a tag is not O, nor one of B-, I-, E-, S- and a label; correct the tags")
    return letter, label


def runs(tags: Sequence[str]) -> list[Run]:
    """Return (first token, end, label) of entities in tags of any scheme, lenient as the CoNLL scorer; or DataError.

    A run begins at B or S, or at I or E after O, after a finished run or after another label; so valid IOB1,
    IOB2 and IOBES are each read correctly, and invalid sequences are repaired.

    >>> runs(["I-X", "I-X", "B-X", "O", "S-Y"])
    [(0, 2, 'X'), (2, 3, 'X'), (4, 5, 'Y')]
    """
    found: list[Run] = []
    begin, open_label = -1, ""
    for t, tag in enumerate(tags):
        letter, label = split_tag(tag)
        if open_label and (letter in "OBS" or label != open_label):
            found.append((begin, t, open_label))
            open_label = ""
        if letter != "O" and not open_label:
            begin, open_label = t, label
        if open_label and letter in "ES":
            found.append((begin, t + 1, open_label))
            open_label = ""
    if open_label:
        found.append((begin, len(tags), open_label))
    return found


def valid_runs(tags: Sequence[str], scheme: Scheme) -> list[Run]:
    """Return (first token, end, label) of entities written exactly as the scheme demands; DataError for a bad tag.

    >>> valid_runs(["I-X", "O", "B-X", "I-X"], "IOB2")
    [(2, 4, 'X')]
    """
    split = [split_tag(tag) for tag in tags]
    return [run for run in _candidates(split, scheme) if _is_valid_run(split, run, scheme)]


def _candidates(split: Sequence[tuple[str, str]], scheme: Scheme) -> Iterator[Run]:
    """Yield (begin, end, label) of runs of one label; B and S begin a run, in IOBES also what follows E or S."""
    begin = 0
    for t in range(1, len(split) + 1):
        (before, label_before) = split[t - 1]
        (letter, label) = split[t] if t < len(split) else ("O", "")
        cuts = letter in "OBS" or label != label_before or (scheme == "IOBES" and before in "ES")
        if cuts:
            if before != "O":
                yield begin, t, label_before
            begin = t


def _is_valid_run(split: Sequence[tuple[str, str]], run: Run, scheme: Scheme) -> bool:
    """Tell whether the letters of a run are exactly those that the scheme demands."""
    begin, end, label = run
    letters = "".join(letter for letter, _ in split[begin:end])
    if scheme == "IOBES":
        return letters == _letters(end - begin, "IOBES")
    if scheme == "IOB2":
        return letters == _letters(end - begin, "IOB2")
    touches = begin > 0 and split[begin - 1][1] == label
    return letters == ("B" if touches else "I") + "I" * (end - begin - 1)


def _letters(length: int, scheme: Scheme) -> str:
    """Return the tag letters of an entity of this length, in IOBES, or in IOB2 for other schemes."""
    if scheme == "IOBES":
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    return "B" + "I" * (length - 1)


def tags_of_runs(found: Sequence[Run], length: int, scheme: Scheme = "IOB2") -> list[str]:
    """Return one tag per token, "O" outside, for sorted (first, end, label) runs that do not overlap.

    >>> tags_of_runs([(0, 2, "X"), (2, 3, "X")], 4, "IOBES")
    ['B-X', 'E-X', 'S-X', 'O']
    """
    tags = ["O"] * length
    last_end, last_label = 0, ""
    for begin, end, label in found:
        letters = _letters(end - begin, scheme)
        if scheme == "IOB1" and not (begin == last_end and last_label == label):
            letters = "I" * (end - begin)
        tags[begin:end] = [f"{letter}-{label}" for letter in letters]
        last_end, last_label = end, label
    return tags


def encode(spans: Sequence[Span], tokens: Offsets, scheme: Scheme = "IOB2") -> list[str]:
    """Return one tag per token; DataError unless spans are sorted, on token edges and free of overlaps.

    >>> encode([Span(0, 7, "NAME")], np.array([[0, 3], [4, 7], [8, 9]], np.int32))
    ['B-NAME', 'I-NAME', 'O']
    """
    clash = find_overlap(spans)
    if clash is not None:
        a, b = clash
        raise DataError(
            f"spans [{a.start}, {a.end}) {a.label} and [{b.start}, {b.end}) {b.label} overlap, which tags cannot "
            "express; resolve overlaps first (longest, shortest, score, first)"
        )
    found = []
    starts, ends = np.array([(span.start, span.end) for span in spans], np.int32).reshape(-1, 2).T
    ranges = ranges_of_spans(tokens, starts, ends, "exact")
    for span, (first, end) in zip(spans, ranges.tolist(), strict=True):
        if first == end:
            raise DataError(f"span [{span.start}, {span.end}) {span.label} cuts a token; move it to a token edge")
        found.append((first, end, span.label))
    return tags_of_runs(found, len(tokens), scheme)


def decode(tags: Sequence[str], tokens: Offsets, *, source: str = "") -> tuple[Span, ...]:
    """Return the spans, in character offsets, of tags of any scheme; DataError unless there is one tag per token.

    >>> decode(["B-NAME", "I-NAME", "O"], np.array([[0, 3], [4, 7], [8, 9]], np.int32))
    (Span(start=0, end=7, label='NAME', score=1.0, source='', concept=''),)
    """
    if len(tags) != len(tokens):
        raise DataError(f"{len(tags)} tags for {len(tokens)} tokens; there must be one tag per token")
    starts, ends = tokens[:, 0].tolist(), tokens[:, 1].tolist()
    return tuple(Span(starts[b], ends[e - 1], label, source=source) for b, e, label in runs(tags))
