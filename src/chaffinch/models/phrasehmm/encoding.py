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
LONGEST = 8  # words; longer segments share the symbol of this length; higher distinguishes longer ones


class Sentence(NamedTuple):
    """A sentence: T segments with their types and normalised words, and optional labels, entities and tags.

    A label is a bit mask of domains, domain a being `1 << a`: 0 is none, 3 is the first and the second; without labels
    there are none. `entities` are the domains of the entities in each segment, likewise; None means unknown.
    `arguments` tells for each word whether an argument covers it, `tags` are parts of speech; both are optional.
    """

    types: Sequence[str]
    words: Sequence[Sequence[str]]
    labels: Sequence[int] = ()
    entities: Sequence[int] | None = None
    arguments: Sequence[Sequence[bool]] | None = None
    tags: Sequence[Sequence[str]] | None = None

    @property
    def positive(self) -> bool:
        """Tell whether any segment has a label, so that the sentence states the relation."""
        return any(self.labels)

    def __repr__(self) -> str:
        """Return the numbers of segments and words, never text."""
        return f"Sentence({len(self.types)} segments, {sum(map(len, self.words))} words)"


def check(sentences: Sequence[Sentence], domains: int) -> None:
    """Raise DataError if a sentence's fields do not fit one another or the number of domains."""
    for number, sentence in enumerate(sentences):
        T = len(sentence.types)
        if len(sentence.words) != T or any(not part for part in sentence.words):
            raise DataError(
                f"sentence {number} has {T} types and {len(sentence.words)} segments; each needs a word or more"
            )
        for name, values in (("labels", sentence.labels), ("entities", sentence.entities)):
            if values and (len(values) != T or min(values) < 0 or max(values) >= 1 << domains):
                raise DataError(f"sentence {number}: {name} must be {T} masks of {domains} domains, got {len(values)}")
        for name, inside in (("arguments", sentence.arguments), ("tags", sentence.tags)):
            if inside is not None and [len(part) for part in inside] != [len(part) for part in sentence.words]:
                raise DataError(f"sentence {number}: {name} must have one value per word")


class Symbols(NamedTuple):
    """The vocabulary: a word has one symbol of each block; symbol 0 of a block is anything unknown."""

    kinds: tuple[str, ...]  # "word", "before", "after", "tag", "length"
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], config: PhraseHMM) -> Symbols:
        """Return the symbols of each block: words seen `min_count` times, neighbours, tags, lengths as configured."""
        counts = Counter(word for sentence in sentences for part in sentence.words for word in part)
        words = (UNKNOWN, *sorted(word for word, count in counts.items() if count >= config.min_count))
        blocks = {"word": words}
        if config.context:
            edged = (*words, BEGIN, END)
            blocks |= {"before": edged, "after": edged}
            if all(sentence.tags is not None for sentence in sentences):
                seen = {tag for sentence in sentences for part in sentence.tags or () for tag in part}
                blocks["tag"] = (UNKNOWN, *sorted(seen))
        if config.lengths:
            blocks["length"] = (UNKNOWN, *map(str, range(1, LONGEST + 1)))
        return cls(tuple(blocks), tuple(blocks.values()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of symbols C of each block."""
        return tuple(map(len, self.names))

    def read(self, sentences: Sequence[Sentence]) -> tuple[Ints, ...]:
        """Return, by block, all words' symbols (N,), 0 if unknown; C, no symbol, where the block does not apply."""
        readers = {"word": _words, "before": _previous_words, "after": _next_words, "tag": _tags, "length": _lengths}
        out = []
        for kind, names in zip(self.kinds, self.names, strict=True):
            find = {name: number for number, name in enumerate(names)} | {"": len(names)}
            reader: Callable[[Sentence], Iterable[str]] = readers[kind]
            out.append(np.array([find.get(name, 0) for sentence in sentences for name in reader(sentence)], np.int64))
        return tuple(out)


def _words(sentence: Sentence) -> Iterable[str]:
    """Return the words of all segments of a sentence, one after another."""
    return chain.from_iterable(sentence.words)


def _previous_words(sentence: Sentence) -> Iterable[str]:
    """Return for each word of a sentence the word before it; a begin mark for the first."""
    return [BEGIN, *_words(sentence)][:-1]


def _next_words(sentence: Sentence) -> Iterable[str]:
    """Return for each word of a sentence the word after it; an end mark for the last."""
    return [*_words(sentence), END][1:]


def _tags(sentence: Sentence) -> Iterable[str]:
    """Return the part-of-speech tags of all words of a sentence; "" for each if it has none."""
    tags = sentence.tags if sentence.tags is not None else [[""] * len(part) for part in sentence.words]
    return chain.from_iterable(tags)


def _lengths(sentence: Sentence) -> Iterable[str]:
    """Return, per word of a sentence, its segment's length as text at the first word, "" at others."""
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
        """Return whether each sentence has a label (B,)."""
        return np.asarray(np.diff(np.concatenate([[0], np.cumsum(self.labels > 0)])[self.bounds]) > 0)

    def choose(self, sentences: Ints) -> Text:
        """Return the text of some of the sentences, by number, in that order."""
        lengths = np.diff(self.bounds)[sentences]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.repeat(self.bounds[sentences] - bounds[:-1], lengths) + np.arange(bounds[-1])
        symbols = tuple(block[words] for block in self.symbols)
        masks = self.type[words], self.labels[words], self.entities[words], self.inner[words]
        return Text(symbols, self.first[words], *masks, bounds)

    def with_labels(self, labels: Ints) -> Text:
        """Return the sentences with other labels (N,) of their words' segments."""
        return self._replace(labels=labels)


def text_of(
    sentences: Sequence[Sentence], states: States, symbols: Symbols, *, masked: bool, learning: bool = False
) -> Text:
    """Return sentences as word arrays, numbered by `states` and `symbols`; log how many types are unknown (-1).

    With `masked`, entities restrict the labels that a segment may have. With `learning`, a gold label is always allowed
    and the positions of arguments are used; else neither labels nor arguments restrict the states.
    """
    number = {kind: n for n, kind in enumerate(states.types)}
    sizes = np.array([len(part) for sentence in sentences for part in sentence.words], np.int64)
    types = np.array([number.get(kind, -1) for sentence in sentences for kind in sentence.types], np.int64)
    labels = np.array([n for sentence in sentences for n in (sentence.labels or [0] * len(sentence.types))], np.int64)
    free = states.all_domains
    entities = np.array(
        [
            n
            for sentence in sentences
            for n in (sentence.entities if masked and sentence.entities is not None else _repeat_mask(sentence, free))
        ],
        np.int64,
    )
    first = np.zeros(int(sizes.sum()), np.bool_)
    first[(np.cumsum(sizes) - sizes).astype(np.int64)] = True
    words = np.cumsum([0, *(sum(map(len, sentence.words)) for sentence in sentences)]).astype(np.int64)
    known = [n for sentence in sentences for n in _inner(sentence)] if learning else np.full(len(first), -1)
    inner = np.asarray(known, np.int64)
    unknown = int(np.count_nonzero(types < 0))
    if unknown:
        log.info(
            "%d of %d segments have a type unknown to the model; all unlabelled states read them", unknown, len(types)
        )
    entities = entities | labels if learning else entities
    types, labels, entities = (np.repeat(values, sizes) for values in (types, labels, entities))
    return Text(symbols.read(sentences), first, types, labels, entities, inner, words)


def _repeat_mask(sentence: Sentence, mask: int) -> list[int]:
    """Return the mask once per segment of a sentence."""
    return [mask] * len(sentence.types)


def _inner(sentence: Sentence) -> Iterable[int]:
    """Return per word 0 before, 1 in, 2 between, 3 after a labelled segment's arguments; -1 where it is not known."""
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
    """The expanded states that each word may be in, and which sentences have a path at all."""

    active: Active
    possible: Bools  # (B,)


def free(states: States, text: Text, sub: int = ANY) -> Allowed:
    """Return each word's possible states in one sub-model or ANY, labels ignored; and which sentences have a path."""
    return _list_states(states, text, text.entities, lambda kind, mask, model: states.readers(model, kind, mask), sub)


def states_with_labels(states: States, text: Text, sub: int = ANY, *, lenient: bool = False) -> Allowed:
    """Return each word's states that agree with the text's labels, and possible sentences; `lenient`: near ones too."""
    return _list_states(
        states, text, text.labels, lambda kind, label, model: states.emitters(model, kind, label, lenient=lenient), sub
    )


def states_to_count(states: States, text: Text) -> Allowed:
    """Return the states that counting uses: those of the positive model for labelled sentences, else the null's."""
    subs = np.where(text.positive, POSITIVE, NULL)
    return _list_states(states, text, text.labels, lambda kind, label, model: states.emitters(model, kind, label), subs)


def _list_states(
    states: States, text: Text, demand: Ints, emitters: Callable[[int, int, int], Bools], sub: Ints | int
) -> Allowed:
    """Return the states each word may be in, by segment type and `demand`, and which sentences have a path."""
    B = len(text.bounds) - 1
    subs = np.repeat(np.broadcast_to(np.asarray(sub), (B,)), np.diff(text.bounds))
    inner = text.inner if states.unlabelled_inner and demand is text.labels else np.full(len(demand), -1)
    sizes = (states.all_domains + 1, ANY + 1, 2, INNER + 1)
    code = text.type + 1
    for values, size in zip((demand, subs, text.first, inner + 1), sizes, strict=True):
        code = code * size + values
    codes, which = np.unique(code, return_inverse=True)
    lists, zones = [], []
    for number in codes.tolist():
        kind, mask, model, first, state = (
            int(digit) for digit in np.unravel_index(number, (len(states.types) + 1, *sizes))
        )
        emitting = emitters(kind - 1, mask, model)
        lists.append(states.cells(emitting, first=bool(first), inner=state - 1))
        zones.append(states.zone_mask(emitting))
    return Allowed(Active.of(lists, which), _possible(text, np.array(zones, np.int64), which))


def _possible(text: Text, zones: Ints, which: Ints) -> Bools:
    """Return (B,) whether each sentence has a path through its words' zones; `zones` are bit masks of lists."""
    out = np.ones(len(text.bounds) - 1, np.bool_)
    for free_of_order in ((1 << OTHER) | (1 << LABELLED), 1 << NONE):
        if ((zones & free_of_order) > 0).all():
            return out
    word_zones = zones[which]
    for b, (begin, end) in enumerate(pairwise(text.bounds.tolist())):
        out[b] = possible(word_zones[begin:end][text.first[begin:end]].tolist())
    return out
