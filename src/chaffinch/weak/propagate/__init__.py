"""Label propagation: more labels from the text and the labels so far, each only where nothing is labelled yet.

In this order: abbreviations (a labelled long form labels its short form in the whole document), compounds (a labelled
word with a suffix, "x-induced"), history (a string labelled once in a document is labelled everywhere in it), head
nouns, the first three again, and a lexicon of strings that are mostly labelled in other documents. The same settings
are used for all corpora. Two rules were tried and left out because they did not help: long forms of labelled short
forms, and short forms after a labelled phrase whose letters they do not have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chaffinch.text import Document, Span
from chaffinch.weak.propagate.abbreviations import brackets, pairs
from chaffinch.weak.propagate.heads import FLOOR, Heads, learn_heads
from chaffinch.weak.propagate.labelled_text import Key, LabelledText

ABBREVIATION, COMPOUND, HISTORY, HEAD, LEXICON = "abbreviation", "compound", "history", "head", "lexicon"
# Raised, each of the two shares makes its source more precise and adds fewer labels.
LEAST_SUFFIX = 0.3  # share of labelled compounds from which a suffix counts; the mean of all suffixes adds 2 compounds
LEAST_LISTED = 0.5  # share of labelled occurrences from which a string enters the lexicon
MOST_PARTS = 8  # words of a string in the lexicon; longer strings do not enter it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextSources:
    """Rules of label propagation learnt from many documents; they add labels to those documents and to others."""

    heads: Heads = Heads()  # noqa: RUF009  (frozen)
    suffixes: Mapping[str, bool] = field(default_factory=dict)  # whether compounds with the suffix are labelled
    other_suffixes: bool = False
    lexicon: Mapping[Key, str] = field(default_factory=dict)

    def __call__(self, doc: Document, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Return, sorted, a document's spans and those that the rules add; `Span.source` of these names the rule."""
        spans = tuple(spans)
        page = LabelledText.of(doc, spans)
        self._within(page)
        self.heads.add(page, HEAD)
        self._within(page)
        page.add_known(self.lexicon, LEXICON)
        return tuple(sorted((*spans, *page.added)))

    def _within(self, page: LabelledText) -> None:
        """Label more runs of a page, in place: abbreviations, compounds, and repeats of labelled strings."""
        page.add_known(short_forms(page), ABBREVIATION)
        for t, label, suffix in compounds(page):
            if self.suffixes.get(suffix, self.other_suffixes):
                page.add(t, t + 1, label, COMPOUND)
        page.add_known(history(page), HISTORY)

    def strings(self) -> dict[str, tuple[str, ...]]:
        """Return all rules as {name: tuple of strings}, for a model file; `of` reads them."""
        return {
            "heads": tuple(self.heads.labels), "heads.labels": tuple(self.heads.labels.values()),
            "heads.alone": tuple(sorted(self.heads.alone)), "heads.refused": tuple(sorted(self.heads.refused)),
            "suffixes": tuple(f"{'+' if good else '-'}{suffix}" for suffix, good in sorted(self.suffixes.items())),
            "suffixes.others": ("+" if self.other_suffixes else "-",),
            "lexicon": tuple(" ".join(key) for key in self.lexicon), "lexicon.labels": tuple(self.lexicon.values()),
        }  # fmt: skip

    @classmethod
    def of(cls, strings: Mapping[str, tuple[str, ...]]) -> TextSources:
        """Rebuild the rules (heads, suffixes, lexicon) from the strings of a model file."""
        heads = Heads(
            dict(zip(strings["heads"], strings["heads.labels"], strict=True)),
            frozenset(strings["heads.alone"]), frozenset(strings["heads.refused"]),
        )  # fmt: skip
        suffixes = {entry[1:]: entry[0] == "+" for entry in strings["suffixes"]}
        lexicon = {
            tuple(key.split(" ")): label
            for key, label in zip(strings["lexicon"], strings["lexicon.labels"], strict=True)
        }
        return cls(heads, suffixes, strings["suffixes.others"] == ("+",), lexicon)


def enrich(docs: Sequence[Document], layer: str, *, into: str = "own") -> list[Document]:
    """Learn rules of propagation from a layer; return the documents with layer `into`: its spans and added ones."""
    return apply(learn(docs, layer), docs, layer, into=into)


def apply(sources: TextSources, docs: Iterable[Document], layer: str, *, into: str = "own") -> list[Document]:
    """Return the documents with a layer `into`: the spans of `layer` and those that the rules add to them."""
    return [doc.with_layer(into, sources(doc, doc.layer(layer))) for doc in docs]


def learn(docs: Sequence[Document], layer: str) -> TextSources:
    """Learn the rules of propagation from documents with labels, which may be noisy."""
    pages = [LabelledText.of(doc, doc.layer(layer)) for doc in docs]
    for page in pages:
        page.add_known(short_forms(page), ABBREVIATION)
    suffixes, others = _learn_suffixes(pages)
    sources = TextSources(Heads(), suffixes, others)
    for page in pages:
        sources._within(page)
    heads = learn_heads(pages)
    for page in pages:
        heads.add(page, HEAD)
        sources._within(page)
    return TextSources(heads, suffixes, others, _learn_lexicon(pages))


def short_forms(page: LabelledText) -> dict[Key, str]:
    """Return {short form: label} for a page's abbreviations whose long forms are labelled.

    The label must cover the long form and end with it. A single letter counts if it begins the one word before it.
    """
    doc, words, out = page.doc, page.words, {}
    starts = {start: t for t, start in enumerate(doc.tokens[:, 0].tolist())}
    ends = {end: t + 1 for t, end in enumerate(doc.tokens[:, 1].tolist())}
    for long, short in pairs(doc):
        run = page.run_at(ends[long.end] - 1)
        if run is not None and run[1] == ends[long.end] and run[0] <= starts[long.start]:
            out[page.key(starts[short.start], ends[short.end])] = run[2]
    for first, opened, closed in brackets(doc, words):
        run = page.run_at(opened - 1) if opened > first else None
        letter = words[opened + 1]
        if (
            closed == opened + 2 and len(letter) == 1 and letter.isupper()
            and run is not None and run[1] == opened == run[0] + 1 and words[run[0]][0].upper() == letter
        ):  # fmt: skip
            out[page.keys[opened + 1]] = run[2]
    return {key: label for key, label in out.items() if key}


def compounds(page: LabelledText, *, labelled: bool = False) -> list[tuple[int, str, str]]:
    """Return (token, label of stem, suffix) of free (or `labelled`) tokens "STEM-suffix" with a labelled stem."""
    known = {page.words[first].lower(): label for first, end, label in page.runs if end - first == 1}
    out = []
    for t, word in enumerate(page.words):
        stem, dash, suffix = word.lower().rpartition("-")
        run = page.run_at(t)
        wanted = run is None if not labelled else run is not None and run[1] - run[0] == 1
        if dash and suffix and stem in known and wanted:
            out.append((t, known[stem], suffix))
    return out


def history(page: LabelledText) -> dict[Key, str]:
    """Return {plain spelling: most frequent label} of the page's labelled strings of two characters or more."""
    found: dict[Key, Counter[str]] = defaultdict(Counter)
    for first, end, label in page.runs:
        found[page.key(first, end)][label] += 1
    return {key: _most_common(counts) for key, counts in found.items() if len("".join(key)) > 1}


def _learn_suffixes(pages: Sequence[LabelledText]) -> tuple[dict[str, bool], bool]:
    """Return ({suffix: whether its compounds are mostly labelled}, whether to assume that of other suffixes)."""
    labelled: Counter[str] = Counter()
    total: Counter[str] = Counter()
    patients: dict[str, set[str]] = defaultdict(set)
    for page in pages:
        for kind in (False, True):
            for _, _, suffix in compounds(page, labelled=kind):
                total[suffix] += 1
                labelled[suffix] += kind
                patients[suffix].add(page.doc.patient)
    share = sum(labelled.values()) / max(1, sum(total.values()))
    good = {
        suffix: (labelled[suffix] + 2 * share) / (count + 2) >= LEAST_SUFFIX
        for suffix, count in total.items()
        if len(patients[suffix]) >= FLOOR
    }
    return good, share >= LEAST_SUFFIX


def _learn_lexicon(pages: Sequence[LabelledText]) -> dict[Key, str]:
    """Return {plain spelling: label} of strings, neither short nor long, mostly labelled, of enough patients."""
    found: dict[Key, Counter[str]] = defaultdict(Counter)
    patients: dict[Key, set[str]] = defaultdict(set)
    for page in pages:
        for first, end, label in page.runs:
            key = page.key(first, end)
            if len("".join(key)) > 1 and len(key) <= MOST_PARTS:
                found[key][label] += 1
                patients[key].add(page.doc.patient)
    firsts, free = {key[0] for key in found}, Counter[Key]()
    for page in pages:
        for t, key in enumerate(page.keys):
            if key and key[0] in firsts and page.owner[t] < 0:
                free.update(string for _, string in page.free_runs(t, MOST_PARTS) if string in found)
    return {
        key: _most_common(counts)
        for key, counts in sorted(found.items())
        if len(patients[key]) >= FLOOR and counts.total() >= LEAST_LISTED * (counts.total() + free[key])
    }


def _most_common(counts: Counter[str]) -> str:
    """Return the most frequent label; of ties the last in the alphabet."""
    return max(counts.items(), key=lambda item: (item[1], item[0]))[0]
