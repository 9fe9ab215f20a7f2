"""Symbols of tokens: the word if enough patients used it, its signature, its shape and its affixes.

N tokens with pads between sentences, M of them not pads; V types, F kinds of symbols. Symbol 0 is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages
from chaffinch.features import observe, signatures
from chaffinch.features.observe import CLASS, PREFIX, Keys, Observed
from chaffinch.features.signatures import ORDER, Pack, WordClasses
from chaffinch.text.document import Document

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

KINDS = ("word", "signature", "shape", "suffix of 2", "suffix of 3", "prefix of 3")
WORD, SIGNATURE = 0, 1
TIMES = 3  # a signature seen less often is replaced by a shorter one; raised, there are fewer signatures
MEMO = 200_000  # words whose signature is cached; bounds memory
MOSTLY = 0.5  # a word is an identifier's if more than this share of its tokens are in spans


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Symbols:
    """The symbols of training documents: those of a kind are 1 + the index of their key."""

    pack: Pack
    words: tuple[str, ...]
    signatures: tuple[str, ...]
    keys: tuple[Keys, ...]  # sorted, of each kind; the entry of signatures is empty
    order: tuple[str, ...] = ORDER  # in which signatures are shortened
    pack_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # if the model file includes the pack
    classes: WordClasses = "seven"  # of words without a symbol
    numbers: Mapping[str, int] = field(init=False)  # of signatures
    memo: dict[tuple[int, int], int] = field(init=False, default_factory=dict)  # symbol by word key and flags; a cache

    def __post_init__(self) -> None:
        """Number the signatures from 1."""
        object.__setattr__(
            self, "numbers", {signature: symbol for symbol, signature in enumerate(self.signatures, start=1)}
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of symbols of each kind, the 0 included."""
        return tuple(
            1 + (len(self.signatures) if kind == SIGNATURE else len(keys)) for kind, keys in enumerate(self.keys)
        )

    def __call__(self, seen: Observed) -> Ints:
        """Return (M, F) symbol numbers of all tokens, one column per kind, sentence after sentence; 0 if unknown."""
        by_type = _type_keys(seen)
        types = seen.types[seen.places]
        out = np.zeros((len(types), len(KINDS)), np.int64)
        for kind, known in enumerate(self.keys):
            if kind != SIGNATURE:
                out[:, kind] = _find(known, by_type[:, kind])[types]
        combined, which = np.unique(types.astype(np.int64) * 4 + flags(seen, self.pack), return_inverse=True)
        keys = zip(by_type[combined // 4, WORD].tolist(), (combined % 4).tolist(), strict=True)
        symbols = np.array([self.memo.get(key, -1) for key in keys], np.int64)
        new = np.flatnonzero(symbols < 0)
        for entry, word in zip(new.tolist(), _words(seen, combined[new] // 4), strict=True):
            symbols[entry] = self.number(word, int(combined[entry] % 4))
            if len(self.memo) < MEMO:
                self.memo[int(by_type[combined[entry] // 4, WORD]), int(combined[entry] % 4)] = int(symbols[entry])
        out[:, SIGNATURE] = symbols[which] if len(symbols) else 0
        return out

    def number(self, word: str, flag: int) -> int:
        """Return the number of a word's signature, shortened until it is known; 0 if none is."""
        whole = signatures.add_flags(signatures.signature(word, self.pack, self.classes), flag)
        return next((self.numbers[name] for name in signatures.back_off(whole, self.order) if name in self.numbers), 0)

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
        """Return the arrays and the strings that a model file must hold of the symbols."""
        arrays: dict[str, NDArray[Any]] = {f"symbols{kind}": keys for kind, keys in enumerate(self.keys)}
        strings = {"symbols.words": self.words, "symbols.signatures": self.signatures, "symbols.order": self.order}
        return arrays, strings | dict(self.pack_files)

    @classmethod
    def of(
        cls,
        pack: str,
        arrays: Mapping[str, NDArray[Any]],
        strings: Mapping[str, tuple[str, ...]],
        classes: WordClasses = "seven",
    ) -> Symbols:
        """Return the symbols that a model file's `arrays` and `strings` hold; `pack` names the language."""
        keys = tuple(arrays[f"symbols{kind}"] for kind in range(len(KINDS)))
        words, names, order = (strings[f"symbols.{name}"] for name in ("words", "signatures", "order"))
        pack_files = {name: texts for name, texts in strings.items() if name.startswith("pack.")}
        return cls(languages.from_bundle(pack, strings), words, names, keys, order, pack_files, classes)


def learn(
    seen: Observed,
    language: str,
    *,
    patients: Ints,
    min_count: int,
    min_groups: int,
    hidden: Flags | None = None,
    names_hidden: frozenset[str] = frozenset(),
    classes: WordClasses = "seven",
) -> Symbols:
    """Return the symbols frequent enough in tokens and patients; words mostly in `hidden` tokens are left out.

    They are seen `min_count` times, by `min_groups` different patients; `patients` (D,) numbers those of documents.

    `hidden` (N,) marks the tokens inside identifiers: words that are mostly hidden, and parts of them, do not become
    symbols. The words of `names_hidden` are removed from the lists of names. `classes` are those of rare words.
    """
    pack, by_type, types = signatures.pack(language, names_hidden), _type_keys(seen), seen.types[seen.places]
    owners, V = patients[seen.owners[seen.places]], len(seen.lists) - 1
    open_type = np.ones(V, np.bool_)
    if hidden is not None:
        inside = np.bincount(types, hidden[seen.places], V)
        open_type = inside <= MOSTLY * np.bincount(types, minlength=V)
    keys = []
    for kind in range(len(KINDS)):
        if kind == SIGNATURE:
            keys.append(np.zeros(0, np.uint64))
            continue
        token_keys = np.where(open_type, by_type[:, kind], np.uint64(0))[types]
        keys.append(_frequent(token_keys, owners, min_count, min_groups))
    first = _types_of(by_type[:, WORD], keys[WORD])
    words = tuple(_words(seen, first))
    pack_files = languages.files_to_bundle(language)
    return Symbols(pack, words, _signatures(seen, pack, classes), tuple(keys), pack_files=pack_files, classes=classes)


def _signatures(seen: Observed, pack: Pack, classes: WordClasses) -> tuple[str, ...]:
    """Return, sorted, signatures seen `TIMES` times, rarer ones counted as shorter ones, and all bare categories."""
    types = seen.types[seen.places].astype(np.int64)
    combined, counts = np.unique(types * 4 + flags(seen, pack), return_counts=True)
    waiting: dict[str, int] = {}
    for word, flag, count in zip(_words(seen, combined // 4), combined % 4, counts.tolist(), strict=True):
        whole = signatures.add_flags(signatures.signature(word, pack, classes), int(flag))
        waiting[whole] = waiting.get(whole, 0) + count
    kept: set[str] = set()
    while waiting:  # every round shortens all signatures that are too rare
        shorter: dict[str, int] = {}
        for signature, count in waiting.items():
            steps = list(signatures.back_off(signature))
            if count >= TIMES or len(steps) == 1 or signature in kept:
                kept.add(signature)
            else:
                shorter[steps[1]] = shorter.get(steps[1], 0) + count
        waiting = shorter
    return tuple(sorted(kept | {f"{signatures.MARK}{name}" for name in signatures.CATEGORIES_OF[classes]}))


def flags(seen: Observed, pack: Pack) -> Ints:
    """Return the context flags of each token (M,): 1 at the beginning of a line, 2 before a word for years of age."""
    tokens = seen.tokens[seen.places]
    lines = np.concatenate([[0], np.cumsum(seen.codes == ord("\n"))])
    ends = np.concatenate([[0], tokens[:-1, 1]])
    first = lines[tokens[:, 0]] > lines[ends]
    first[:1] = True
    years = np.isin(seen.folded, _fold_keys(pack.ages))
    before = years[seen.types[np.minimum(seen.places + 1, len(seen.types) - 1)]]
    return np.asarray(first * 1 + before * 2, np.int64)


@cache
def _fold_keys(words: frozenset[str]) -> Keys:
    """Return the keys of all tokens of the words ("year-old" has three), in lower case, digits as 0, in no order."""
    return observe.observe([Document.make("\n".join(sorted(words)))]).folded[1:]


def _type_keys(seen: Observed) -> Keys:
    """Return the keys of each type (V, F), of every kind except signatures; 0 where a type has none."""
    V = len(seen.lists) - 1
    out = np.zeros((V, len(KINDS)), np.uint64)
    if V > 1:
        out[1:, WORD] = seen.keys[seen.lists[1:-1]]
        out[1:, 2] = seen.keys[seen.lists[1:-1] + CLASS - 1]
        affixes = np.flatnonzero(seen.kinds == PREFIX)
        owner = np.searchsorted(seen.lists, affixes, side="right") - 1
        begin = np.full(V, -1, np.int64)
        begin[owner[::-1]] = affixes[::-1]
        size = np.bincount(owner, minlength=V)
        for kind, length, shift in ((3, 2, 3), (4, 3, 5), (5, 3, 4)):  # affixes come in pairs: prefix, suffix
            long = size >= length
            out[long, kind] = seen.keys[begin[long] + shift]
    return out


def _frequent(keys: Keys, owners: Ints, min_count: int, min_groups: int) -> Keys:
    """Return the keys other than 0, sorted, that occur `min_count` times and with `min_groups` patients."""
    known, which = np.unique(keys, return_inverse=True)
    P = int(owners.max()) + 1 if len(owners) else 1
    users = np.bincount(np.unique(which * P + owners) // P, minlength=len(known))
    enough = (np.bincount(which, minlength=len(known)) >= min_count) & (users >= min_groups) & (known != 0)
    return np.asarray(known[enough])


def _find(known: Keys, keys: Keys) -> Ints:
    """Return 1 + the index of each key among the known ones, which are sorted; 0 for an unknown key."""
    index = np.searchsorted(known, keys)
    found = np.append(known, np.uint64(0))[index] == keys
    return np.where(found & (keys != 0), index + 1, 0)


def _types_of(by_type: Keys, known: Keys) -> Ints:
    """Return the number of the type of each known key, which must be among the keys `by_type`."""
    order = np.argsort(by_type, kind="stable")
    return np.asarray(order[np.searchsorted(by_type[order], known)])


def _words(seen: Observed, types: Ints) -> Iterator[str]:
    """Yield the text of each of these types, in order."""
    V = len(seen.lists) - 1
    first = np.zeros(V, np.int64)
    first[seen.types[::-1]] = np.arange(len(seen.types))[::-1]
    for begin, end in seen.tokens[first[types]].tolist():
        yield seen.codes[begin:end].tobytes().decode("utf-32-le")
