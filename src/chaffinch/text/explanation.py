"""Explanations of spans: which voices spoke for a span or against it, how sure they were, and why.

A tagger explains a span by one voice, its own; a detector of identifiers by all that it asks. Values carry offsets;
the words that they quote are left out of `str`, of `repr` and of `to_dict` unless they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.markup import plain_html
from chaffinch.text.span import Span

# What a voice is: a pattern by its name; a word list; a term that identifies nobody; an identifier from the admission
# file; a phrase of the user's deny list; a type of the user; a tagger; the second stage over all taggers; the
# contextual reader; a word that was found elsewhere in the patient's notes.
VoiceKind: TypeAlias = Literal[
    "pattern", "list", "protected", "known", "deny", "type", "tagger", "stack", "glance", "reader", "repeat"
]  # fmt: skip
OUTSIDE = "O"  # the label of a voice that speaks against any span
ORDER = "order of tags"  # the feature that holds what the order of tags adds to a margin
SHOWN = 20  # features of a voice that are put into words
REACH = 6  # words before and after a span that are blanked, one at a time, to explain it
_SUREST = 1e-6  # no chance counts as surer, so that log-odds are finite
Offsets: TypeAlias = Callable[[int, int], tuple[int, int]]
Floats: TypeAlias = NDArray[np.float64]
Reading: TypeAlias = Callable[[Sequence[Document]], Sequence[Floats]]  # (T, L) chances of labels, by document


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature, the token that it is about, and its weight in favour of the span.

    `name` is free of text of the document; `quote` is what the feature shows of it.
    """

    name: str
    weight: float
    start: int
    end: int
    quote: str = field(default="", repr=False)

    def in_words(self, *, with_text: bool = False) -> str:
        """Return one line: the weight, the place and the name, with `with_text` also what it quotes."""
        quoted = f" {self.quote}" if with_text and self.quote else ""
        return f"{self.weight:+8.3f}  {f'[{self.start}, {self.end})':<14} {self.name}{quoted}"


@dataclass(frozen=True, slots=True)
class PathState:
    """A token on the path of a tagger, and the state that reads it."""

    state: str
    start: int
    end: int
    quote: str = field(default="", repr=False)

    def in_words(self, *, with_text: bool = False) -> str:
        """Return the name of the state, with `with_text` as WORD/STATE."""
        return f"{self.quote}/{self.state}" if with_text else self.state


@dataclass(frozen=True, slots=True)
class Voice:
    """What one voice says of a span.

    `spans` are what it found there, perhaps with other edges or another label; the label O speaks against any span.
    `chance` is its probability of the span, or of any identifier where the voice is one of several. `margin` is how far
    the reading with the span is ahead of the best one without it; `features` add up to it for linear taggers.
    """

    kind: VoiceKind
    name: str
    spans: tuple[Span, ...] = ()
    chance: float | None = None
    margin: float | None = None
    features: tuple[Feature, ...] = ()
    path: tuple[PathState, ...] = ()
    remarks: tuple[str, ...] = field(default=(), repr=False)  # on the states of a path; they quote training text

    def in_words(self, *, with_text: bool = False) -> str:
        """Return a line on the voice, its path and its first `SHOWN` features; remarks and quotes only `with_text`."""
        facts = [f"chance {_three(self.chance)}"] if self.chance is not None else []
        facts += [f"margin {self.margin:+.3f}"] if self.margin is not None else []
        said = _list_spans(self.spans) or ("finds no span there" if self.kind in ("tagger", "reader") else "")
        lines = [": ".join(filter(None, [f"{self.kind} {self.name}".strip(), ", ".join(filter(None, [said, *facts]))]))]
        if self.path:
            lines.append("  " + " → ".join(state.in_words(with_text=with_text) for state in self.path))
        lines += ["  " + feature.in_words(with_text=with_text) for feature in self.features[:SHOWN]]
        lines += [f"  {remark}" for remark in self.remarks if with_text]
        return "\n".join(lines)

    def to_dict(self, *, with_text: bool = False) -> dict[str, Any]:
        """Return all fields as plain data; quotes and remarks are null unless `with_text`."""
        return {
            "kind": self.kind,
            "name": self.name,
            "spans": [_span_dict(span) for span in self.spans],
            "chance": self.chance,
            "margin": self.margin,
            "features": [
                {
                    "name": each.name, "weight": each.weight, "start": each.start, "end": each.end,
                    "quote": each.quote if with_text else None,
                }
                for each in self.features
            ],
            "path": [
                {
                    "state": each.state, "start": each.start, "end": each.end,
                    "quote": each.quote if with_text else None,
                }
                for each in self.path
            ],
            "remarks": list(self.remarks) if with_text else None,
        }  # fmt: skip

    def move(self, offsets: Offsets) -> Voice:
        """Return the voice with all offsets mapped by the function `offsets`, such as `View.back`."""
        return replace(
            self,
            spans=tuple(_move_offsets(span, offsets) for span in self.spans),
            features=tuple(_move_offsets(each, offsets) for each in self.features),
            path=tuple(_move_offsets(each, offsets) for each in self.path),
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a span is one: the voices that spoke, and what would be there instead.

    `chance` is the probability of the span, for a detector of identifiers the joint chance of its tokens, and
    `threshold` the least chance at which its type is flagged (None where no threshold decides). `runner_up` are the
    spans of the best other reading of a tagger, empty if it has none there; for a detector, the span with the second
    likeliest type, or with O. `str` has offsets alone; `in_words(with_text=True)` quotes the document.

    >>> voice = Voice("pattern", "phone", (Span(5, 17, "PHONE", 0.9),))
    >>> print(Explanation(Span(5, 17, "PHONE"), (voice,), chance=0.9, threshold=0.5))
    [5, 17) PHONE: chance .900, threshold .500
    pattern phone: [5, 17) PHONE .900
    """

    span: Span
    voices: tuple[Voice, ...]
    runner_up: tuple[Span, ...] = ()
    chance: float | None = None
    threshold: float | None = None

    @property
    def margin(self) -> float | None:
        """Return the margin of the only voice that has one, else None."""
        margins = [voice.margin for voice in self.voices if voice.margin is not None]
        return margins[0] if len(margins) == 1 else None

    @property
    def features(self) -> tuple[Feature, ...]:
        """Return the features of all voices, one voice after another."""
        return tuple(feature for voice in self.voices for feature in voice.features)

    def __str__(self) -> str:
        """Return the explanation in words, in offsets alone, without text of the document."""
        return self.in_words()

    def in_words(self, *, with_text: bool = False) -> str:
        """Return the headline and lines on each voice; with `with_text` these quote the document."""
        return "\n".join([self.headline(), *(voice.in_words(with_text=with_text) for voice in self.voices)])

    def _repr_html_(self) -> str:
        """Return the explanation for a notebook, in offsets alone; text is in `in_words(with_text=True)`."""
        return plain_html(str(self))

    def headline(self) -> str:
        """Return one line: the span, then its chance, threshold, margin and runner-up as far as they are known."""
        facts = [f"chance {_three(self.chance)}"] if self.chance is not None else []
        facts += [f"threshold {_three(self.threshold)}"] if self.threshold is not None else []
        if self.margin is not None:
            facts.append(f"margin {self.margin:+.3f} over {_list_spans(self.runner_up) or 'no span'}")
        elif self.runner_up:
            facts.append(f"runner-up {_list_spans(self.runner_up)}")
        return f"[{self.span.start}, {self.span.end}) {self.span.label}: " + (", ".join(facts) or "no chance is known")

    def to_dict(self, *, with_text: bool = False) -> dict[str, Any]:
        """Return all fields as plain data for JSON; text is null unless `with_text`."""
        return {
            "span": _span_dict(self.span),
            "chance": self.chance,
            "threshold": self.threshold,
            "runner_up": [_span_dict(span) for span in self.runner_up],
            "voices": [voice.to_dict(with_text=with_text) for voice in self.voices],
        }

    def move(self, offsets: Offsets) -> Explanation:
        """Return the explanation with all offsets mapped by the function `offsets`, such as `View.back`."""
        return replace(
            self,
            span=_move_offsets(self.span, offsets),
            voices=tuple(voice.move(offsets) for voice in self.voices),
            runner_up=tuple(_move_offsets(span, offsets) for span in self.runner_up),
        )


def explain_by_occlusion(
    doc: Document, span: Span, read: Reading, labels: Sequence[str], *, kind: VoiceKind = "tagger", name: str = ""
) -> Explanation:
    """Explain a span by what blanking each word in reach takes from its log-odds; DataError if it cuts a token.

    `read` returns for each document (T, L) the chances of the labels, the first of which is O. The chance of the span
    is the mean chance of its label over its tokens; `kind` "reader" is asked for the chance of any label but O.
    DataError if the span is not a run of whole tokens.
    """
    first, end = _token_run(doc, span)
    (rows,) = read([doc])
    columns = [labels.index(span.label)] if kind == "tagger" else list(range(1, len(labels)))
    whole = _chance(rows, columns, range(first, end))
    places = range(max(first - REACH, 0), min(end + REACH, len(doc.tokens)))
    asked = [place for place in places if end - first > 1 or place != first]  # a blank word has no chance of its own
    blanked = read([_without_token(doc, place) for place in asked])
    features = []
    for place, after in zip(asked, blanked, strict=True):
        rest = [token for token in range(first, end) if token != place]
        weight = _log_odds(_chance(rows, columns, rest)) - _log_odds(_chance(after, columns, rest))
        where = "" if first <= place < end else f" at {place - (first if place < first else end - 1):+d}"
        start, stop = doc.tokens[place].tolist()
        features.append(Feature(f"word{where}", weight, start, stop, doc.text[start:stop]))
    features.sort(key=lambda each: (-abs(each.weight), each.start))
    voice = Voice(kind, name, likeliest_spans(doc, rows, labels, span), whole, None, tuple(features))
    return Explanation(span, (voice,), runner_up_of(span, rows[first:end].mean(axis=0), labels), whole)


def runner_up_of(span: Span, chances: Floats, labels: Sequence[str]) -> tuple[Span, ...]:
    """Return the span with its likeliest other label, O included, scored by its chance; empty without another.

    >>> runner_up_of(Span(0, 4, "DOCTOR"), np.array([0.1, 0.7, 0.2]), ("O", "DOCTOR", "PATIENT"))[0].label
    'PATIENT'
    """
    others = [column for column, label in enumerate(labels) if label != span.label]
    if not others:
        return ()
    best = max(others, key=lambda column: (chances[column], -column))
    return (Span(span.start, span.end, labels[best], float(chances[best])),)


def likeliest_spans(doc: Document, rows: Floats, labels: Sequence[str], span: Span) -> tuple[Span, ...]:
    """Return runs of tokens with one likeliest label, not O, that share a token with a span; scores: mean chances."""
    ((first, end),) = doc.token_ranges([span]).tolist()
    best, out, at = rows.argmax(axis=1).tolist(), [], first
    while at > 0 and best[at] and best[at - 1] == best[at]:
        at -= 1
    while at < end:
        stop = at + 1
        while stop < len(best) and best[stop] == best[at] and best[at]:
            stop += 1
        if best[at]:
            start, last = int(doc.tokens[at, 0]), int(doc.tokens[stop - 1, 1])
            out.append(Span(start, last, labels[best[at]], float(rows[at:stop, best[at]].mean())))
        at = stop
    return tuple(out)


def _token_run(doc: Document, span: Span) -> tuple[int, int]:
    """Return the first token of a span and one past its last; DataError if it cuts one."""
    ((first, end),) = doc.token_ranges([span]).tolist()
    if first >= end or doc.tokens[first, 0] != span.start or doc.tokens[end - 1, 1] != span.end:
        raise DataError(f"span [{span.start}, {span.end}) {span.label} is not a run of whole tokens")
    return first, end


def _without_token(doc: Document, place: int) -> Document:
    """Return the document with blanks in the place of a token; all offsets stay."""
    start, end = doc.tokens[place].tolist()
    return replace(doc, text=doc.text[:start] + " " * (end - start) + doc.text[end:])


def _chance(rows: Floats, columns: Sequence[int], tokens: Sequence[int]) -> float:
    """Return the mean over the given tokens (rows) of the summed chances of the given columns."""
    return float(rows[np.ix_(tokens, columns)].sum(axis=1).mean())


def _log_odds(chance: float) -> float:
    """Return the log-odds of a chance, clipped to stay finite."""
    held = min(max(chance, _SUREST), 1.0 - _SUREST)
    return math.log(held) - math.log1p(-held)


def _move_offsets(value: Any, offsets: Offsets) -> Any:
    """Return a copy of a span, feature or state with its start and end mapped by `offsets`."""
    start, end = offsets(value.start, value.end)
    return replace(value, start=start, end=end)


def _span_dict(span: Span) -> dict[str, Any]:
    """Return a span as a dict for JSON: start, end, label, score, source."""
    return {"start": span.start, "end": span.end, "label": span.label, "score": span.score, "source": span.source}


def _list_spans(spans: Sequence[Span]) -> str:
    """Return spans in words, with commas between them; "" without spans."""
    return ", ".join(_span_words(spans))


def _span_words(spans: Sequence[Span]) -> Iterator[str]:
    """Yield each span as "[start, end) LABEL score"; a score of exactly 1, that of voices without any, is left out."""
    for span in spans:
        score = f" {_three(span.score)}" if span.score != 1.0 else ""
        yield f"[{span.start}, {span.end}) {span.label}{score}"


def _three(chance: float) -> str:
    """Return a probability with three decimals; "<.001" and ">.999" at the ends.

    >>> _three(0.25), _three(1e-9), _three(1.0)
    ('.250', '<.001', '1.000')
    """
    if 0 < chance < 0.0005:
        return "<.001"
    return ">.999" if 0.9995 <= chance < 1 else f"{chance:.3f}".removeprefix("0")
