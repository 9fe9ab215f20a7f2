"""Words and named features that states show more often than their class.

V types, F features of types, Y states, D documents, M tokens, P patients. Every listed word and feature occurs in the
text of `need` patients or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from chaffinch.features import observe as window
from chaffinch.features import word_types as types
from chaffinch.features._compiled._words import PATTERNS
from chaffinch.features.describe import PATTERN_NAMES, _mix
from chaffinch.features.observe import Observed
from chaffinch.features.signatures import MARK, Pack
from chaffinch.features.symbols import MOSTLY
from chaffinch.features.vocabulary import LEXICAL, Vocabulary
from chaffinch.features.word_types import IDENTITY, WordSet
from chaffinch.kernels import Floats, Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.classhmm.describe.report import Trait

WORDS, FEATURES = 12, 8  # most words and features listed for each state
# Tokens added to the observed and to the expected count of a word, and of a feature. More favours frequent ones.
ADDED, ADDED_TO_FEATURES = 1.0, 20.0
ECHO = 0.5  # a feature is listed only if no single word has a larger share of its tokens: else it repeats that word
ABOVE = 1.1  # words and features with a smaller lift are not listed; lower lists less distinctive ones

_LISTS = {"first": "first name", "last": "last name", "city": "town", "state": "state", "hospital": "hospital",
          "job": "occupation"}  # fmt: skip
_PLAIN = {
    "Cap": "capitalised", "ALL": "all capitals", "lower": "all small", "Mixed": "mixed case", "init": "an initial",
    "init.": "an initial with a period", "common=1": "a common word", "hyphen=1": "a hyphen",
    "XX": "all capitals", "Xx": "capitalised", "xx": "all small", "AllCaps": "all capitals",
    "InitialCap": "capitalised", "CapPeriod": "an initial with a period", "CapPeriods": "initials with periods",
    "CapOtherPeriod": "capitalised, with a period at its end",
}  # fmt: skip
_PATTERN_OF = {_mix(bit, window.PATTERN << 56): name for bit, name in zip(range(PATTERNS), PATTERN_NAMES, strict=True)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateFeatures:
    """The types of training documents, with what may be listed of them as descriptions of states.

    With `private`, words that occur mostly in spans are never listed, and features made of a word's letters only if
    enough patients show them outside of spans.
    """

    seen: Observed  # with the features of the model
    features: WordSet
    pack: Pack
    words: list[str]  # (V,)
    owners: csr_array  # (F, V) which types show a feature
    kinds: Ints  # (F,)
    sample: Ints  # (F,) the first position of each feature among the features of all types
    known: Bools  # (F,) the model has weights for it
    tokens: Ints  # (M,) the type of each token
    patients: Ints  # (M,)
    inside: Bools  # (M,) whether it is in a span
    need: int  # patients who must have used a word or shown a feature
    private: bool

    @classmethod
    def of(
        cls, seen: Observed, vocabulary: Vocabulary, word_set: tuple[WordSet, Pack], patients: Ints, inside: Bools,
        need: int, *, private: bool,
    ) -> StateFeatures:  # fmt: skip
        """Index words and features of all tokens, with their patients; `publishable` says later what may be listed."""
        F, columns = window.number(seen.keys)
        V = len(seen.lists) - 1
        matrix = csr_array((np.ones(len(columns)), columns.copy(), seen.lists.copy()), shape=(V, F))
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        sample = np.zeros(F, np.int64)
        sample[columns[::-1]] = np.arange(len(columns))[::-1]
        known = vocabulary.find(seen.keys[sample]) >= 0
        return cls(
            seen, *word_set, types.words_of(seen), csr_array(matrix.T), seen.kinds[sample].astype(np.int64), sample,
            known, seen.types[seen.places].astype(np.int64), patients[seen.owners[seen.places]], inside, need, private,
        )  # fmt: skip

    def users(self, tokens: Bools) -> csr_array:
        """Return (V, P) sparse ones where a patient used a word type at one of these tokens."""
        pairs = np.unique(np.stack([self.tokens[tokens], self.patients[tokens]]), axis=1)
        size = len(self.words), int(self.patients.max(initial=0)) + 1
        return csr_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=size)

    def publishable(self, tokens: Bools) -> tuple[Bools, Bools]:
        """Return (V,) words and (F,) features at these tokens that enough patients used, and privacy allows."""
        users = self.users(tokens)
        words = np.diff(users.indptr) >= self.need
        features = np.diff(csr_array(self.owners @ users).indptr) >= self.need
        if self.private:
            inside = np.bincount(self.tokens, self.inside, len(words))
            words &= inside <= MOSTLY * np.bincount(self.tokens, minlength=len(words))
            openly = np.diff(csr_array(self.owners @ self.users(~self.inside)).indptr) >= self.need
            features &= openly | ~np.isin(self.kinds, list(LEXICAL))
        return words, features & self.known & ~np.isin(self.kinds, (*IDENTITY, window.UNKNOWN))

    def describe_states(
        self, states: Ints, class_states: Ints
    ) -> Iterator[tuple[tuple[Trait, ...], tuple[Trait, ...]]]:
        """Yield each state's (words, features) by lift over its class; only those that enough patients use."""
        here = np.isin(states, class_states)
        words, features = self.publishable(here)
        number = np.searchsorted(class_states, states[here])
        counts = np.zeros((len(self.words), len(class_states)))
        np.add.at(counts, (self.tokens[here], number), 1.0)
        by_feature = np.asarray(self.owners @ counts)
        sizes, used = counts.sum(axis=0), counts.sum(axis=1) > 0
        for column in range(len(class_states)):
            listed = _highest(counts, sizes, column, words, ADDED)[:WORDS]
            features_by_name: dict[str, Trait] = {}
            listed_types = set[bytes]()  # of features with the same words only the first is listed
            for f, lift in _highest(by_feature, sizes, column, features, ADDED_TO_FEATURES):
                types_here = self.types_with(f, used)
                tokens = int(by_feature[f, column])
                if types_here.tobytes() not in listed_types and counts[types_here, column].max() <= ECHO * tokens:
                    listed_types.add(types_here.tobytes())
                    features_by_name.setdefault(self.name(f), Trait(self.name(f), lift, tokens))
                if len(features_by_name) == FEATURES:
                    break
            yield (
                tuple(Trait(self.words[v], lift, int(counts[v, column])) for v, lift in listed),
                tuple(features_by_name.values()),
            )

    def types_with(self, feature: int, used: Bools) -> Ints:
        """Return the numbers of the used word types that have a feature, sorted."""
        found = self.owners.indices[self.owners.indptr[feature] : self.owners.indptr[feature + 1]]
        return np.sort(found[used[found]])

    def name(self, feature: int) -> str:
        """Return a feature in words, as it is true of the first word type that has it."""
        q = int(self.sample[feature])
        v = int(np.searchsorted(self.seen.lists, q, side="right")) - 1
        begin = int(self.seen.lists[v])
        kinds, kind = self.seen.kinds[begin : q + 1], int(self.kinds[feature])
        word, rank = self.words[v], int(np.count_nonzero(kinds == kind))
        match kind:
            case window.CLASS:
                return f"shape {_shape(word)}"
            case window.BRIEF:
                shape = _shape(word)
                return "brief shape " + "".join(a for a, b in pairwise(shape + " ") if a != b)
            case window.LENGTH:
                return f"{len(word)} characters" if len(word) < 20 else "20 characters or more"
            case window.PREFIX:
                return f"begins with {word[:rank]}"
            case window.SUFFIX:
                return f"ends with {word[-rank:]}"
            case window.PATTERN:
                return _PATTERN_OF[int(self.seen.keys[q])]
        return in_words(types._feature_names(word, self.features, self.pack)[rank - 1])


def _highest(counts: Floats, sizes: Floats, column: int, allowed: Bools, added: float) -> list[tuple[int, float]]:
    """Return (row, lift in a column) of allowed rows that are over-represented, highest lift first."""
    expected = counts.sum(axis=1) * sizes[column] / max(sizes.sum(), 1.0)
    lift = (counts[:, column] + added) / (expected + added)
    least = ABOVE if (sizes > 0).sum() > 1 else 0.0  # a single state equals its class: the most frequent come first
    rows = np.flatnonzero(allowed & (lift >= least) & (counts[:, column] > 0))
    order = rows[np.lexsort((rows, -counts[rows, column], -lift[rows]))]
    return list(zip(order.tolist(), lift[order].round(3).tolist(), strict=True))


def _shape(word: str) -> str:
    """Return a word's shape: A for capitals, a for small letters, 0 for digits, x for other letters, - for the rest."""
    return "".join(
        "A" if sign.isupper() else "a" if sign.islower() else "0" if sign.isdigit() else "x" if sign.isalpha() else "-"
        for sign in word
    )


def in_words(name: str) -> str:
    """Return a named feature in words, such as "suffix ing"; a name that is not known loses only its "=".

    >>> in_words("last=hi"), in_words("first=lo"), in_words("len=5-8"), in_words("‹ALPHA")
    ('often a last name', 'sometimes a first name', '5-8 letters', 'letters')
    """
    if name.startswith(MARK):
        return {"ALPHA": "letters", "NUM": "a number", "PUNCT": "a sign"}.get(name[1:], name[1:].lower())
    field, _, value = name.partition("=")
    if field in _LISTS and value in ("hi", "lo"):
        what = _LISTS[field]
        return f"{'often' if value == 'hi' else 'sometimes'} {'an' if what[0] in 'aeiou' else 'a'} {what}"
    if field == "len" and value:
        return f"{value} letters"
    if field == "suf" and value:
        return f"suffix {value}"
    return _PLAIN.get(name, name.replace("=", " "))
