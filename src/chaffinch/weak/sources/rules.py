"""Sources that are plain data: a regular expression, a list of phrases, word endings, words around a trigger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal

from chaffinch.checks import check_choice, check_flags, check_name, check_text, check_wholes, to_texts
from chaffinch.features import lexicon
from chaffinch.features.lexicon import SHORTEST
from chaffinch.text import Document, Span
from chaffinch.text.regex import compile_pattern
from chaffinch.weak.sources.base import (
    Phrases,
    SourceKind,
    is_capitalised,
    over_tokens,
    phrases_in,
    phrases_of,
    runs_in_sentences,
    sentence_around,
    token_ranges_of_phrases,
)

SPAN = "span"  # the named group that is the span


@dataclass(frozen=True, slots=True)
class Regex(SourceKind):
    """A regular expression, matched in linear time (RE2).

    The span is the group called "span", else the first group, else the whole match. A group that only alternates is
    written (?:…): it leaves the whole match as the span. An unnamed group gets a hint, because it is easily overlooked.

    >>> dose = Regex("dose", r"(\\d+) ?mg", label="Dose")
    >>> [(span.start, span.end) for span in dose(Document.make("20 mg, then 5mg"))]
    [(0, 2), (12, 13)]
    """

    kind: ClassVar[str] = "regex"

    name: str
    pattern: str
    _: KW_ONLY
    label: str
    ignore_case: bool = False
    negative_reliable: bool = False

    def __post_init__(self) -> None:
        """Check the settings and compile the pattern; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_text(self.pattern, "pattern")
        check_flags(self, "ignore_case", "negative_reliable")
        compile_pattern(self.pattern, self.ignore_case)

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of the pattern's matches (or of its group), from left to right, without empty ones."""
        matcher = compile_pattern(self.pattern, self.ignore_case)
        group = matcher.groupindex.get(SPAN, min(matcher.groups, 1))
        places = (match.span(group) for match in matcher.finditer(doc.text))
        return [Span(start, end, self.label) for start, end in places if end > start >= 0]

    def remark(self) -> str:
        """Return a hint if the pattern has a group without a name, which then is the span; "" otherwise."""
        matcher = compile_pattern(self.pattern, self.ignore_case)
        if not matcher.groups or SPAN in matcher.groupindex:
            return ""
        which = "the group in its pattern" if matcher.groups == 1 else f"the first of {matcher.groups} groups"
        return f"{which} is the span, not the whole match; write (?:…) for a group that only alternates, or (?P<span>…)"

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents; "" if it cannot tell."""
        if not self.ignore_case and any(map(replace(self, ignore_case=True), docs)):
            return "it would find spans with ignore_case = true"
        if "\\\\" in self.pattern:
            return "its pattern asks for a backslash; in single quotes, and in r'…' of Python, write one, not two"
        return ""


@dataclass(frozen=True, slots=True)
class Lexicon(SourceKind):
    """A list of phrases, up to hundreds of thousands, given or read from a file with one per line.

    Matches begin and end at a word boundary; of those that overlap the leftmost counts, then the longest. With
    `plurals`, the English plural of a phrase counts as well. Phrases under `min_length` characters are left out.

    >>> drugs = Lexicon("drugs", ["beta blocker", "aspirin"], label="Chemical", plurals=True)
    >>> [(span.start, span.end) for span in drugs(Document.make("Aspirin and beta blockers"))]
    [(0, 7), (12, 25)]
    """

    kind: ClassVar[str] = "lexicon"
    file_fields: ClassVar[tuple[str, ...]] = ("phrases",)

    name: str
    phrases: Phrases = field(repr=False)
    _: KW_ONLY
    label: str
    ignore_case: bool = True
    plurals: bool = False
    min_length: int = SHORTEST
    negative_reliable: bool = False
    _lexicon: lexicon.Lexicon = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings and build the lexicon, with plurals if asked; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_flags(self, "ignore_case", "plurals", "negative_reliable")
        check_wholes(self, "min_length", least=SHORTEST)
        phrases = phrases_of(self.phrases, "phrases")
        object.__setattr__(self, "phrases", phrases)
        kept = [phrase for phrase in phrases if len(" ".join(phrase.split())) >= self.min_length]
        if self.plurals:
            kept += [plural(phrase) for phrase in kept]
        built = lexicon.Lexicon.make({self.label: kept}, fold_case=self.ignore_case)
        object.__setattr__(self, "_lexicon", built)

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of the listed phrases of `min_length` or more in the text."""
        return [Span(start, end, self.label) for start, end in phrases_in(doc.text, self._lexicon)]

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents; "" if it cannot tell."""
        phrases = phrases_of(self.phrases, "phrases")
        short = sum(len(" ".join(phrase.split())) < self.min_length for phrase in phrases)
        if not self.ignore_case and any(map(replace(self, ignore_case=True), docs)):
            return "it would find spans with ignore_case = true"
        return f"{short} of its {len(phrases)} phrases are shorter than min_length" if short else ""


@dataclass(frozen=True, slots=True)
class Suffix(SourceKind):
    """Words with one of the endings, at least `min_length` characters long, except the exceptions; case is ignored.

    >>> itis = Suffix("itis", ["itis"], label="Disease", exceptions=["Tritis"])
    >>> [(span.start, span.end) for span in itis(Document.make("Hepatitis, tritis"))]
    [(0, 9)]
    """

    kind: ClassVar[str] = "suffix"

    name: str
    endings: Sequence[str]
    _: KW_ONLY
    label: str
    min_length: int = 5
    exceptions: Sequence[str] = ()
    negative_reliable: bool = False
    _exceptions: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings; endings become lower case without a hyphen. Raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_flags(self, "negative_reliable")
        check_wholes(self, "min_length", least=1)
        endings = tuple(ending.lower().removeprefix("-") for ending in to_texts(self.endings, "endings", least=1))
        object.__setattr__(self, "endings", to_texts(endings, "endings", least=1))
        object.__setattr__(self, "exceptions", to_texts(self.exceptions, "exceptions"))
        object.__setattr__(self, "_exceptions", frozenset(word.lower() for word in self.exceptions))

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of the tokens that have one of the endings, are long enough and are no exceptions."""
        endings, out = tuple(self.endings), []
        for place, word in enumerate(doc.words()):
            small = word.lower()
            if len(word) >= self.min_length and small.endswith(endings) and small not in self._exceptions:
                out.append(over_tokens(doc, place, place + 1, self.label))
        return out

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents; "" if it cannot tell."""
        shorter = self.min_length > 1 and any(map(replace(self, min_length=1), docs))
        return f"only words shorter than min_length = {self.min_length} have such an ending" if shorter else ""


@dataclass(frozen=True, slots=True)
class Context(SourceKind):
    """Words near a trigger: the first that fits within `reach` tokens of it, and those that fit right after it.

    `side` is where the words are: "after" the trigger or "before" it, in the same sentence. A word fits if it
    begins with a capital letter or, with a `pattern`, if the whole of it matches that regular expression. Words of a
    trigger never count; a run has at most `longest` words. Triggers are a list, or a file with one per line.

    >>> doctor = Context("doctor", ["Dr.", "seen by"], label="NAME")
    >>> [(span.start, span.end) for span in doctor(Document.make("Seen by the nurse, then Dr. Ada Penn."))]
    [(28, 36)]
    """

    kind: ClassVar[str] = "context"
    file_fields: ClassVar[tuple[str, ...]] = ("triggers",)

    name: str
    triggers: Phrases
    _: KW_ONLY
    label: str
    side: Literal["after", "before"] = "after"
    reach: int = 3
    longest: int = 5
    pattern: str = ""
    negative_reliable: bool = False
    _lexicon: lexicon.Lexicon = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings, compile the pattern and build the triggers; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_text(self.pattern, "pattern")
        check_flags(self, "negative_reliable")
        check_choice(self.side, "side", ("after", "before"))
        check_wholes(self, "reach", least=1)
        check_wholes(self, "longest", least=1)
        compile_pattern(self.pattern, False)
        triggers = phrases_of(self.triggers, "triggers")
        object.__setattr__(self, "triggers", triggers)
        object.__setattr__(self, "_lexicon", lexicon.Lexicon.make({"triggers": triggers}))

    def __call__(self, doc: Document) -> list[Span]:
        """Return, sorted, spans of the first run of fitting words in `reach` of each trigger phrase, on its `side`."""
        triggers = token_ranges_of_phrases(doc, self._lexicon)
        if not triggers:
            return []
        words, taken = doc.words(), {place for first, end in triggers for place in range(first, end)}
        sentences = runs_in_sentences(doc)
        found = set[Span]()
        for first, end in triggers:
            begin, stop = sentence_around(sentences, first)
            ahead = range(end, stop) if self.side == "after" else range(first - 1, begin - 1, -1)
            run = list(self._run(words, ahead, taken))
            if run:
                found.add(over_tokens(doc, min(run), max(run) + 1, self.label))
        return sorted(found)

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing: no trigger occurs in the documents, or no word near one fits."""
        if not any(token_ranges_of_phrases(doc, self._lexicon) for doc in docs):
            return "none of its triggers occurs"
        return f"its triggers occur, but no word within {self.reach} tokens {self.side} them fits"

    def _run(self, words: Sequence[str], ahead: range, taken: set[int]) -> Iterator[int]:
        """Yield the tokens of the first free run in `ahead` that fits: within reach, at most `longest` tokens."""
        count = 0
        for distance, place in enumerate(ahead, start=1):
            if place not in taken and self._fits(words[place]):
                yield place
                count += 1
                if count == self.longest:
                    return
            elif count or distance >= self.reach:
                return

    def _fits(self, word: str) -> bool:
        """Tell whether a word matches the pattern or, without one, is capitalised."""
        return (
            compile_pattern(self.pattern, False).fullmatch(word) is not None if self.pattern else is_capitalised(word)
        )


def plural(phrase: str) -> str:
    """Return the phrase with its last word in the usual English plural.

    >>> [plural(word) for word in ("biopsy", "CT", "virus", "X-ray", "crash")]
    ['biopsies', 'CTs', 'viruses', 'X-rays', 'crashes']
    """
    small = phrase.lower()
    if small.endswith("y") and small[-2:-1] not in tuple("aeiou"):
        return phrase[:-1] + "ies"
    return phrase + ("es" if small.endswith(("s", "x", "z", "ch", "sh")) else "s")
