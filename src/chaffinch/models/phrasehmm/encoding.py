"""Sentences of segments as arrays: symbols of words, types, labels, and the states that each word may be in.

N words, B sentences, S segments, C symbols of a block, K states.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Active, Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.states import ANY, INNER, LABELLED, NONE, NULL, OTHER, POSITIVE, States, possible

log = logging.getLogger("chaffinch.models")

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
LONGEST = 8  # words; a longer segment counts as one of these


class Sentence(NamedTuple):
    """A sentence: T segments with their types and normalised words, and what is known of them.

    A label is a bit mask of domains, domain a being `1 << a`: 0 is none, 3 is the first and the second; without labels
    there are none. `entities` are the domains of the entities in each segment, likewise; None says nothing about them.
    `arguments` says of each word whether an argument covers it, `tags` are parts of speech; both may be missing.
    """

    types: Sequence[str]
    words: Sequence[Sequence[str]]
    labels: Sequence[int] = ()
    entities: Sequence[int] | None = None
    arguments: Sequence[Sequence[bool]] | None = None
    tags: Sequence[Sequence[str]] | None = None

    @property
    def positive(self) -> bool:
        """Whether any segment has a label."""
        return any(self.labels)

    def __repr__(self) -> str:
        return f"Sentence({len(self.types)} segments, {sum(map(len, self.words))} words)"


def check(sentences: Sequence[Sentence], domains: int) -> None:
    """DataError if a sentence's fields do not fit one another or the number of domains."""
    for number, own in enumerate(sentences):
        T = len(own.types)
        if len(own.words) != T or any(not part for part in own.words):
            raise DataError(f"sentence {number} has {T} types and {len(own.words)} segments; each needs a word or more")
        for name, values in (("labels", own.labels), ("entities", own.entities)):
            if values and (len(values) != T or min(values) < 0 or max(values) >= 1 << domains):
                raise DataError(f"sentence {number}: {name} must be {T} masks of {domains} domains, got {len(values)}")
        for name, inside in (("arguments", own.arguments), ("tags", own.tags)):
            if inside is not None and [len(part) for part in inside] != [len(part) for part in own.words]:
                raise DataError(f"sentence {number}: {name} must have one value per word")


class Symbols(NamedTuple):
    """What words are read as: one symbol of each block. Symbol 0 of a block is whatever the block does not know."""

    kinds: tuple[str, ...]  # "word", "before", "after", "tag", "length"
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], config: PhraseHMM) -> Symbols:
        """The symbols of training sentences: words seen `min_count` times, all tags."""
        counts = Counter(word for own in sentences for part in own.words for word in part)
        words = (UNKNOWN, *sorted(word for word, count in counts.items() if count >= config.min_count))
        blocks = {"word": words}
        if config.context:
            edged = (*words, BEGIN, END)
            blocks |= {"before": edged, "after": edged}
            if all(own.tags is not None for own in sentences):
                seen = {tag for own in sentences for part in own.tags or () for tag in part}
                blocks["tag"] = (UNKNOWN, *sorted(seen))
        if config.lengths:
            blocks["length"] = (UNKNOWN, *map(str, range(1, LONGEST + 1)))
        return cls(tuple(blocks), tuple(blocks.values()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """C of each block."""
        return tuple(map(len, self.names))

    def read(self, sentences: Sequence[Sentence]) -> tuple[Ints, ...]:
        """(N,) for each block the symbols of all words; C, which is none, where a block says nothing of a word."""
        read = {"word": _same, "before": _shifted_right, "after": _shifted_left, "tag": _tags, "length": _lengths}
        out = []
        for kind, names in zip(self.kinds, self.names, strict=True):
            find = {name: number for number, name in enumerate(names)} | {"": len(names)}
            own: Callable[[Sentence], Iterable[str]] = read[kind]
            out.append(np.array([find.get(name, 0) for one in sentences for name in own(one)], np.int64))
        return tuple(out)


def _same(sentence: Sentence) -> Iterable[str]:
    return chain.from_iterable(sentence.words)


def _shifted_right(sentence: Sentence) -> Iterable[str]:
    return [BEGIN, *_same(sentence)][:-1]


def _shifted_left(sentence: Sentence) -> Iterable[str]:
    return [*_same(sentence), END][1:]


def _tags(sentence: Sentence) -> Iterable[str]:
    tags = sentence.tags if sentence.tags is not None else [[""] * len(part) for part in sentence.words]
    return chain.from_iterable(tags)


def _lengths(sentence: Sentence) -> Iterable[str]:
    """Of each segment, at its first word; nothing at the others."""
    return chain.from_iterable((str(min(len(part), LONGEST)), *[""] * (len(part) - 1)) for part in sentence.words)


class Text(NamedTuple):
    """Sentences as arrays over their words."""

    symbols: tuple[Ints, ...]  # each (N,)
    first: Bools  # (N,) whether a word is the first of its segment
    type: Ints  # (N,) of the segment, -1 if it is unknown
    labels: Ints  # (N,) of the segment
    entities: Ints  # (N,) of the segment: labels it may have
    inner: Ints  # (N,) the inner state of a labelled segment's word, -1 if it is not known
    bounds: Ints  # (B+1,) sentence b is words bounds[b] to bounds[b+1]

    @property
    def positive(self) -> Bools:
        """(B,) whether a sentence has a label."""
        return np.asarray(np.diff(np.concatenate([[0], np.cumsum(self.labels > 0)])[self.bounds]) > 0)

    def choose(self, sentences: Ints) -> Text:
        """Some of the sentences, in that order."""
        lengths = np.diff(self.bounds)[sentences]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.repeat(self.bounds[sentences] - bounds[:-1], lengths) + np.arange(bounds[-1])
        symbols = tuple(own[words] for own in self.symbols)
        masks = self.type[words], self.labels[words], self.entities[words], self.inner[words]
        return Text(symbols, self.first[words], *masks, bounds)

    def with_labels(self, labels: Ints) -> Text:
        """The same sentences with other labels (N,) of their words' segments."""
        return self._replace(labels=labels)


def text_of(
    sentences: Sequence[Sentence], states: States, symbols: Symbols, *, masked: bool, learning: bool = False
) -> Text:
    """The sentences as arrays; `masked` heeds their entities. In learning, a label that is given is never forbidden,
    and the places of arguments are heeded; else neither labels nor arguments change what may be read.
    """
    number = {kind: n for n, kind in enumerate(states.types)}
    sizes = np.array([len(part) for own in sentences for part in own.words], np.int64)
    types = np.array([number.get(kind, -1) for own in sentences for kind in own.types], np.int64)
    labels = np.array([n for own in sentences for n in (own.labels or [0] * len(own.types))], np.int64)
    free = states.all_domains
    entities = np.array(
        [n for own in sentences for n in (own.entities if masked and own.entities is not None else _all(own, free))],
        np.int64,
    )
    first = np.zeros(int(sizes.sum()), np.bool_)
    first[(np.cumsum(sizes) - sizes).astype(np.int64)] = True
    words = np.cumsum([0, *(sum(map(len, own.words)) for own in sentences)]).astype(np.int64)
    known = [n for own in sentences for n in _inner(own)] if learning else np.full(len(first), -1)
    inner = np.asarray(known, np.int64)
    unknown = int(np.count_nonzero(types < 0))
    if unknown:
        log.info(
            "%d of %d segments have a type unknown to the model; all unlabelled states read them", unknown, len(types)
        )
    entities = entities | labels if learning else entities
    types, labels, entities = (np.repeat(own, sizes) for own in (types, labels, entities))
    return Text(symbols.read(sentences), first, types, labels, entities, inner, words)


def _all(sentence: Sentence, mask: int) -> list[int]:
    return [mask] * len(sentence.types)


def _inner(sentence: Sentence) -> Iterable[int]:
    """Before, inside, between and after the arguments, for the words of labelled segments; else -1."""
    if sentence.arguments is None or not sentence.positive:
        return [-1] * sum(map(len, sentence.words))
    out: list[int] = []
    for label, covered in zip(sentence.labels, sentence.arguments, strict=True):
        where = [n for n, inside in enumerate(covered) if inside]
        if not label or not where:
            out += [-1] * len(covered)
            continue
        ends = where[0], where[-1]
        out += [1 if x else 0 if n < ends[0] else 3 if n > ends[1] else 2 for n, x in enumerate(covered)]
    return out


class Allowed(NamedTuple):
    """The expanded states each word may be in, and which sentences have a path at all."""

    active: Active
    possible: Bools  # (B,)


def free(states: States, text: Text, sub: int = ANY) -> Allowed:
    """The states that may emit each word, whatever the labels; of one sub-model or of both."""
    return _allowed(states, text, text.entities, lambda kind, mask, own: states.readers(own, kind, mask), sub)


def clamped(states: States, text: Text, sub: int = ANY, *, lenient: bool = False) -> Allowed:
    """The states that agree with the labels of the text."""
    return _allowed(
        states, text, text.labels, lambda kind, label, own: states.emitters(own, kind, label, lenient=lenient), sub
    )


def counted(states: States, text: Text) -> Allowed:
    """The states that maximum likelihood counts: positive sentences in the positive model, all others in the null."""
    subs = np.where(text.positive, POSITIVE, NULL)
    return _allowed(states, text, text.labels, lambda kind, label, own: states.emitters(own, kind, label), subs)


def _allowed(
    states: States, text: Text, demand: Ints, emitters: Callable[[int, int, int], Bools], sub: Ints | int
) -> Allowed:
    """One list for all words alike in type, demand (a mask of domains), sub-model, place and inner state."""
    B = len(text.bounds) - 1
    subs = np.repeat(np.broadcast_to(np.asarray(sub), (B,)), np.diff(text.bounds))
    inner = text.inner if states.unlabelled_inner and demand is text.labels else np.full(len(demand), -1)
    sizes = (states.all_domains + 1, ANY + 1, 2, INNER + 1)
    code = text.type + 1
    for values, size in zip((demand, subs, text.first, inner + 1), sizes, strict=True):
        code = code * size + values
    codes, which = np.unique(code, return_inverse=True)
    lists, zones = [], []
    for one in codes.tolist():
        kind, mask, own, first, at = (int(digit) for digit in np.unravel_index(one, (len(states.types) + 1, *sizes)))
        found = emitters(kind - 1, mask, own)
        lists.append(states.cells(found, first=bool(first), inner=at - 1))
        zones.append(states.reachable(found))
    return Allowed(Active.of(lists, which), _possible(text, np.array(zones, np.int64), which))


def _possible(text: Text, zones: Ints, which: Ints) -> Bools:
    """(B,) whether a path leads through each sentence, by the zones of each list: all states of a zone are alike."""
    out = np.ones(len(text.bounds) - 1, np.bool_)
    for free_of_order in ((1 << OTHER) | (1 << LABELLED), 1 << NONE):
        if ((zones & free_of_order) > 0).all():
            return out
    own = zones[which]
    for b, (begin, end) in enumerate(pairwise(text.bounds.tolist())):
        out[b] = possible(own[begin:end][text.first[begin:end]].tolist())
    return out
