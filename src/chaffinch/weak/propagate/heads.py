"""Head nouns: the last words of labelled phrases, which label free phrases with the same head ("… deficiency")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaffinch.weak.propagate.labelled_text import POSSESSIVE, LabelledText

# Thresholds of a head. Raised, each of the first four makes heads fewer and more precise.
LEAST_BEFORE = 4  # different words before it in labelled spans
LEAST_SHARE = 0.3  # share of its occurrences that are labelled
CLEAR = 0.8  # share of its most frequent label
BARE = 0.5  # share of its occurrences that are spans of this one word, for it to be labelled without modifiers
MOST_LEFT = 4  # words before a head that its phrase may include
RARE = 3  # occurrences outside of spans that a word without other evidence may have
FLOOR = 2  # patients who must have used a word that a model file holds

# English function words, which end a phrase; in other languages only the counts outside of spans do.
CLOSED = frozenset(
    "a all also an and any are as at be been both by can each for from had has have her his in is its may no not of on "
    "or other our same such than that the their then these this those to was were which with without".split()
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Heads:
    """Head nouns with their labels, heads that may be labelled alone, and words that do not belong to a phrase."""

    labels: Mapping[str, str] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def add(self, page: LabelledText, source: str) -> None:
        """Label, in place, free head nouns with the words before that belong to them; lone heads only if in `alone`."""
        starts = {int(first) for first, _ in page.doc.sentence_tokens()}
        for t, key in enumerate(page.keys):
            if not key or page.owner[t] >= 0 or key[-1] not in self.labels:
                continue
            first = t
            while t - first < MOST_LEFT and first not in starts and self._belongs(page, first - 1):
                first -= 1
            if first < t or len(key) > 1 or key[0] in self.alone:
                page.add(first, t + 1, self.labels[key[-1]], source)

    def _belongs(self, page: LabelledText, t: int) -> bool:
        """Tell whether token `t` may extend a phrase leftwards: free, not refused; a dash does if its word does."""
        if page.owner[t] >= 0:
            return False
        word = page.words[t].replace("-", "")
        if page.keys[t]:
            wordlike = word.isalpha() or (word.isalnum() and word[0].isupper())
            return wordlike and word.lower() not in CLOSED and page.keys[t][-1] not in self.refused
        tied = page.words[t - 1][0].isupper() if page.words[t] in POSSESSIVE else page.together(t)
        return t > 0 and page.keys[t - 1] != () and tied and self._belongs(page, t - 1)


@dataclass(slots=True)
class _Tally:
    """Counts of every word, inside and outside of labelled spans."""

    total: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # as the last word of spans
    alone: Counter[str] = field(default_factory=Counter)  # as a span of one word
    before: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # words before it in spans
    modifying: Counter[str] = field(default_factory=Counter)  # in a span, not its last word
    adjacent: Counter[str] = field(default_factory=Counter)  # outside, right before a span
    patients: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def count(self, page: LabelledText) -> None:
        """Add one text's counts of words: in all, by patient, as heads by label, alone, inside and before spans."""
        for key in page.keys:
            if key:
                self.total[key[-1]] += 1
                self.patients[key[-1]].add(page.doc.patient)
        for first, end, label in page.runs:
            last = page.keys[end - 1]
            if last:
                self.labels[last[-1]][label] += 1
                self.alone[last[-1]] += end - first == 1 and len(last) == 1
                if end - first > 1:
                    self.before[last[-1]].add(page.words[end - 2].lower())
            self.modifying.update(key[-1] for key in page.keys[first : end - 1] if key)
            if first > 0 and page.owner[first - 1] < 0 and page.keys[first - 1]:
                self.adjacent[page.keys[first - 1][-1]] += 1


def learn_heads(pages: Sequence[LabelledText]) -> Heads:
    """Return the nouns that end labelled phrases, by label; those that may be alone; the words that join no phrase.

    A head is the last word of labelled spans with at least 4 different words before it, is labelled in at least 30 % of
    its occurrences, and mostly with one label. A word belongs to a phrase if it occurs inside of spans at least as
    often as right before them; without such evidence, if it is rare outside of spans, not counting occurrences before a
    free head.
    """
    tally = _Tally()
    for page in pages:
        tally.count(page)
    labels = {}
    for word, counts in tally.labels.items():
        label, count = max(counts.items(), key=lambda item: (item[1], item[0]))
        seen = sum(counts.values())
        if (
            word.isalpha() and len(tally.before[word]) >= LEAST_BEFORE and len(tally.patients[word]) >= FLOOR
            and seen >= LEAST_SHARE * tally.total[word] and count >= CLEAR * seen
        ):  # fmt: skip
            labels[word] = label
    alone = frozenset(word for word in labels if tally.alone[word] >= BARE * tally.total[word])
    refused = frozenset(
        word
        for word, count in _outside(pages, labels).items()
        if len(tally.patients[word]) >= FLOOR
        and (
            tally.modifying[word] < tally.adjacent[word]
            if tally.modifying[word] + tally.adjacent[word]
            else count > RARE
        )
    )
    return Heads(dict(sorted(labels.items())), alone, refused)


def _outside(pages: Sequence[LabelledText], heads: Mapping[str, str]) -> Counter[str]:
    """Return {word: how often it occurs outside of spans}, not counting occurrences right before a free head."""
    out: Counter[str] = Counter()
    for page in pages:
        free_head = [run < 0 and bool(key) and key[-1] in heads for run, key in zip(page.owner, page.keys, strict=True)]
        for key, run, next_is_head in zip(page.keys, page.owner, [*free_head[1:], False], strict=False):
            if run < 0 and key:
                out[key[-1]] += not next_is_head
    return out
