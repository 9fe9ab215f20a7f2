"""Sources that read a whole document and the votes of others: abbreviations, and strings labelled elsewhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from chaffinch.checks import check_flags, check_name, check_wholes, to_texts
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.weak.propagate.abbreviations import Pair, pairs, singular
from chaffinch.weak.propagate.labelled_text import Key, plain
from chaffinch.weak.sources.base import (
    SourceKind,
    over_tokens,
    runs_in_sentences,
    spans_on,
)


@dataclass(frozen=True, slots=True)
class Abbreviations(SourceKind):
    """All occurrences of an abbreviation that brackets explain: "long form (LF)", or "LF (long form)".

    With `on`, names of sources or layers: where a span of theirs ends with the long form, the abbreviation has its
    label; the longest such span decides, then the order of the names. With a `label`: long forms, and with them their
    abbreviations, have that label; if there are `heads`, only those that end with one of these words.

    >>> source = Abbreviations("short", label="Disease", heads=["dystrophy"])
    >>> doc = Document.make("Duchenne muscular dystrophy (DMD), a CT scan (CTS). Boys with DMD.")
    >>> [doc.text[span.start : span.end] for span in source(doc)]
    ['Duchenne muscular dystrophy', 'DMD', 'DMD']
    """

    kind: ClassVar[str] = "abbreviations"

    name: str
    on: Sequence[str] = ()
    _: KW_ONLY
    label: str = ""
    heads: Sequence[str] = ()
    negative_reliable: bool = False

    def __post_init__(self) -> None:
        """Check the settings; ConfigError unless one of `on` and `label` is given, and `heads` with `label` only."""
        check_name(self.name, "name")
        check_flags(self, "negative_reliable")
        object.__setattr__(self, "on", to_texts(self.on, "on"))
        object.__setattr__(self, "heads", to_texts(self.heads, "heads"))
        if bool(self.on) == bool(self.label):
            raise ConfigError("abbreviations build on other sources or have a label; give one of `on` and `label`")
        if self.label:
            check_name(self.label, "label")
        if self.heads and not self.label:
            raise ConfigError("heads go with a label; add one, or leave heads out")

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of all occurrences of abbreviations that brackets introduce; with `label`, long forms too."""
        labelled = list(self._label_pairs(doc, pairs(doc)))
        if not labelled:
            return []
        keys = [(singular(word),) for word in doc.words()]
        ranges = doc.token_ranges([short for _, short, _ in labelled]).tolist()
        shorts = [(_concat_keys(keys[a:b]), label) for (a, b), (_, _, label) in zip(ranges, labelled, strict=True)]
        found = _occurrences(doc, keys, dict(reversed(shorts)))  # the first explanation counts
        return sorted({*found, *(Span(long.start, long.end, label) for long, _, label in labelled if self.label)})

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents; "" if it cannot tell."""
        return hint_of_basis(docs, self.on)

    def _label_pairs(self, doc: Document, candidates: Iterable[Pair]) -> Iterator[tuple[Span, Span, str]]:
        """Yield (long, short form, label) of pairs: with `label`, if set, where a head fits; else of a span's end."""
        if self.label:
            heads = {plain(head) for head in self.heads}
            candidates = list(candidates)
            ranges = doc.token_ranges([long for long, _ in candidates]).tolist()
            for (long, short), (first, end) in zip(candidates, ranges, strict=True):
                head = over_tokens(doc, max(first, end - 1), end, "")
                if not heads or plain(doc.text[head.start : head.end]) in heads:
                    yield long, short, self.label
            return
        ending: dict[int, Span] = {}
        for span in spans_on(doc, self.on):
            if span.label != "O" and len(span) > len(ending.get(span.end, ())):
                ending[span.end] = span
        for long, short in candidates:
            if long.end in ending:
                yield long, short, ending[long.end].label


@dataclass(frozen=True, slots=True)
class History(SourceKind):
    """Other occurrences of strings that sources or layers label in the same document, with the most frequent label.

    Strings are compared without case, plural, hyphens and possessives; abbreviations keep their case. A string of one
    word needs `min_length` characters. Only occurrences without a vote of those sources count, unless `everywhere`.

    >>> doc = Document.make("Atrial tumour. Tumours grow.", layers={"source:list": [Span(7, 13, "Disease")]})
    >>> [(span.start, span.end) for span in History("again", ["list"])(doc)]
    [(15, 22)]
    """

    kind: ClassVar[str] = "history"

    name: str
    on: Sequence[str]
    _: KW_ONLY
    min_length: int = 3
    everywhere: bool = False
    negative_reliable: bool = False

    def __post_init__(self) -> None:
        """Check the settings; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_flags(self, "everywhere", "negative_reliable")
        check_wholes(self, "min_length", least=1)
        object.__setattr__(self, "on", to_texts(self.on, "on", least=1))

    def __call__(self, doc: Document) -> list[Span]:
        """Return other occurrences of strings that sources of `on` label: at tokens without votes, or `everywhere`."""
        keys = [plain(word) for word in doc.words()]
        labels, taken = self._strings(doc, keys)
        if not labels:
            return []
        found = _occurrences(doc, keys, labels)
        ranges = zip(found, doc.token_ranges(found).tolist(), strict=True)
        return [span for span, (first, end) in ranges if self.everywhere or not any(taken[first:end])]

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents; "" if it cannot tell."""
        return hint_of_basis(docs, self.on)

    def _strings(self, doc: Document, keys: Sequence[Key]) -> tuple[dict[Key, str], list[bool]]:
        """Return {spelling: most voted label} of voted strings of `min_length`, (T,) whether tokens have votes."""
        votes: defaultdict[Key, Counter[str]] = defaultdict(Counter)
        taken = [False] * len(keys)
        spans = spans_on(doc, self.on)
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            taken[first:end] = [True] * (end - first)
            key = _concat_keys(keys[first:end])
            if span.label != "O" and (len(key) > 1 or (key and len(key[0]) >= self.min_length)):
                votes[key][span.label] += 1
        # The most votes win, then the first in the alphabet, so that the order of sources does not matter.
        return {key: min(counts, key=lambda label: (-counts[label], label)) for key, counts in votes.items()}, taken


def hint_of_basis(docs: Sequence[Document], names: Sequence[str]) -> str:
    """Return a hint if the sources or layers that a source builds on found nothing either; "" otherwise."""
    silent = bool(names) and not any(spans_on(doc, names) for doc in docs)
    return "the sources it builds on found nothing either" if silent else ""


def _concat_keys(keys: Sequence[Key]) -> Key:
    """Return the spelling of a run of tokens: the parts of all of them in one tuple."""
    return tuple(part for key in keys for part in key)


def _occurrences(doc: Document, keys: Sequence[Key], known: Mapping[Key, str]) -> list[Span]:
    """Return known strings' occurrences as spans within sentences: leftmost, then longest, never overlapping."""
    longest, begins, found = max(map(len, known)), {key[:1] for key in known}, []
    for first, end in runs_in_sentences(doc):
        token = first
        while token < end:
            best = _longest(keys[token : min(end, token + 2 * longest)], known) if keys[token][:1] in begins else 0
            if best:
                label = known[_concat_keys(keys[token : token + best])]
                found.append(over_tokens(doc, token, token + best, label))
            token += max(best, 1)
    return found


def _longest(keys: Sequence[Key], known: Mapping[Key, str]) -> int:
    """Return the number of tokens of the longest known string that begins at the first token; 0 if none does."""
    best, key = 0, Key()
    for size, part in enumerate(keys, start=1):
        key += part
        if part and key in known:
            best = size
    return best
