"""Scoring schemes by name, and the two calls that use them: `evaluate` one system, `compare` two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from chaffinch.errors import ConfigError, DataError
from chaffinch.evaluate.bootstrap import DRAWS, LEVEL, f1_difference
from chaffinch.evaluate.bootstrap import intervals as drawn_intervals
from chaffinch.evaluate.counts import MatchCounts
from chaffinch.evaluate.pairing import Pair, Pairs, pair
from chaffinch.evaluate.results import Comparison, Report, Table, tabulate
from chaffinch.evaluate.schemes import official, spans, tokens
from chaffinch.text import Document


@dataclass(frozen=True, slots=True)
class Scheme:
    """A definition of right, in code and in words. An official scheme scores only documents with a prediction."""

    count: Callable[[Iterable[Pair]], MatchCounts]
    meaning: str
    official: bool = False
    labels: bool = True  # whether labels count


def _official_scheme(
    count: Callable[[Iterable[Pair]], MatchCounts], meaning: str, *, labels: bool = True
) -> Scheme:  # fmt: skip
    """Return a scheme that scores, as its official scorer does, only documents that have a prediction."""
    return Scheme(count, meaning, official=True, labels=labels)


_HIPAA = "the same over the HIPAA types"
TABLES: Mapping[str, Scheme] = {
    "strict": Scheme(spans.count_strict, "a span is right if its start, end and label are"),
    "relaxed": Scheme(spans.count_relaxed, "a span is right if it overlaps a span of the same label, one to one"),
    "exact": Scheme(spans.count_exact, "a span is right if its start and end are, whatever its label", labels=False),
    "token": Scheme(tokens.count_tokens, "a token is right if its label is"),
    "binary": Scheme(
        tokens.count_binary,
        "a token is right if it is rightly called part of a span, whatever the label",
        labels=False,
    ),
    "i2b2_strict": _official_scheme(official.i2b2_strict, "i2b2 2014: start, end and TYPE are right"),
    "i2b2_relaxed": _official_scheme(official.i2b2_relaxed, "i2b2 2014: the end may be off by two characters"),
    "i2b2_token": _official_scheme(official.i2b2_token, "i2b2 2014: runs of ASCII letters and digits, with TYPE"),
    "i2b2_hipaa_strict": _official_scheme(partial(official.i2b2_strict, hipaa=True), f"i2b2_strict: {_HIPAA}"),
    "i2b2_hipaa_relaxed": _official_scheme(partial(official.i2b2_relaxed, hipaa=True), f"i2b2_relaxed: {_HIPAA}"),
    "i2b2_hipaa_token": _official_scheme(partial(official.i2b2_token, hipaa=True), f"i2b2_token: {_HIPAA}"),
    "meddocan_ner": _official_scheme(official.meddocan_ner, "MEDDOCAN subtrack 1: start, end and label are right"),
    "meddocan_spans": _official_scheme(
        official.meddocan_spans, "MEDDOCAN subtrack 2, strict: start and end are right", labels=False
    ),
    "meddocan_merged": _official_scheme(
        official.meddocan_merged, "MEDDOCAN subtrack 2, merged: neighbours count as one", labels=False
    ),
}
GROUPS: Mapping[str, tuple[str, ...]] = {
    "i2b2": tuple(name for name in TABLES if name.startswith("i2b2")),
    "meddocan": tuple(name for name in TABLES if name.startswith("meddocan")),
}
SCHEMES = ("strict", "relaxed", "exact", "token", "binary", "i2b2", "meddocan")


def evaluate(
    gold: Iterable[Document],
    predicted: Iterable[Document],
    *,
    scheme: str | Iterable[str] = "strict",
    layer: str | None = None,
    predicted_layer: str | None = None,
    labels: Mapping[str, str] | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> Report:
    """Return precision, recall, F1 by label, micro, macro, of paired documents, with intervals; DataError, ConfigError.

    `scheme` is one of SCHEMES, one table of an official scheme ("i2b2_hipaa_strict"), or several. See `pair` for how
    documents and layers are chosen.

    >>> from chaffinch.text import Span
    >>> note = Document.make("Ann Lee came", id="1", layers={"gold": [Span(0, 7, "NAME")]})
    >>> tagged = note.with_layer("cascade", [Span(0, 7, "NAME"), Span(8, 12, "NAME")])
    >>> print(evaluate([note], [tagged]))
    strict  precision     recall         F1    gold  predicted
    NAME        0.500      1.000      0.667       1          2
    ----------------------------------------------------------
    micro       0.500      1.000      0.667       1          2
    macro       0.500      1.000      0.667       1          2
    <BLANKLINE>
    documents: 1, missing documents: 0, extra documents: 0
    intervals: none, because one document cannot be resampled
    """
    pairs = pair(gold, predicted, layer=layer, predicted_layer=predicted_layer, labels=labels)
    return score(pairs, scheme=scheme, intervals=intervals, seed=seed)


def score(pairs: Pairs, *, scheme: str | Iterable[str] = "strict", intervals: bool = True, seed: int = 0) -> Report:
    """Return precision, recall, F1 by label, micro, macro, of paired documents; ConfigError for an unknown scheme."""
    names = table_names(scheme)
    tables = tuple(_table(name, pairs, intervals=intervals, seed=seed) for name in names)
    drawn = DRAWS if any(table.micro.f1_interval for table in tables) else 0
    leaks = tokens.leakage(pairs) if "binary" in names else None
    disjoint = pairs.disjoint and any(TABLES[name].labels for name in names)
    return Report(
        tables, len(pairs), pairs.missing, pairs.extra, drawn, LEVEL, seed, leaks, intervals and len(pairs) < 2,
        disjoint, pairs.layer, pairs.predicted_layer,
    )  # fmt: skip


def compare(
    gold: Iterable[Document],
    first: Iterable[Document],
    second: Iterable[Document],
    *,
    scheme: str = "strict",
    layer: str | None = None,
    predicted_layers: tuple[str | None, str | None] = (None, None),
    seed: int = 0,
) -> Comparison:
    """Return the difference of two systems in micro F1 on the same gold, its interval and p; DataError, ConfigError.

    Interval and p are of a paired bootstrap.

    Of a scheme with several tables the first is compared.

    >>> from chaffinch.text import Span
    >>> notes = [Document.make("Ann", id=str(i), layers={"gold": [Span(0, 3, "NAME")]}) for i in range(9)]
    >>> worse = [note.with_layer("gold", []) for note in notes]
    >>> compare(notes, notes, worse).difference.value
    1.0
    """
    golds = list(gold)
    first_pairs = pair(golds, first, layer=layer, predicted_layer=predicted_layers[0])
    second_pairs = pair(golds, second, layer=layer, predicted_layer=predicted_layers[1])
    return compare_pairs(first_pairs, second_pairs, scheme=scheme, seed=seed)


def compare_pairs(first_pairs: Pairs, second_pairs: Pairs, *, scheme: str = "strict", seed: int = 0) -> Comparison:
    """Return two paired systems' difference in micro F1, its interval and p; ConfigError, or DataError if unpaired."""
    name = table_names(scheme)[0]
    if TABLES[name].official:
        first_pairs, second_pairs = _keep_predicted_by_both(first_pairs, second_pairs)
    counts = [TABLES[name].count(pairs) for pairs in (first_pairs, second_pairs)]
    tables = [tabulate(name, each, drawn_intervals(each, seed=seed)) for each in counts]
    right = [
        {(d, s) for d, p in enumerate(pairs) for s in set(p.gold) & set(p.predicted)}
        for pairs in (first_pairs, second_pairs)
    ]
    return Comparison(
        scheme=name,
        first=tables[0],
        second=tables[1],
        difference=f1_difference(counts[0], counts[1], seed=seed),
        documents=len(first_pairs),
        only_first=len(right[0] - right[1]),
        only_second=len(right[1] - right[0]),
        both=len(right[0] & right[1]),
        neither=sum(len(p.gold) for p in first_pairs) - len(right[0] | right[1]),
    )


def table_names(scheme: str | Iterable[str]) -> list[str]:
    """Return the names of the tables of one scheme or several, each once; ConfigError for an unknown one or none.

    >>> table_names(["strict", "meddocan"])
    ['strict', 'meddocan_ner', 'meddocan_spans', 'meddocan_merged']
    """
    wanted = [scheme] if isinstance(scheme, str) else list(scheme)
    unknown = [name for name in wanted if name not in TABLES and name not in GROUPS]
    if unknown or not wanted:
        raise ConfigError(f"unknown scheme {', '.join(map(repr, unknown))}; choose one of {', '.join(SCHEMES)}")
    return list(dict.fromkeys(table for name in wanted for table in GROUPS.get(name, (name,))))


def _table(name: str, pairs: Pairs, *, intervals: bool, seed: int) -> Table:
    """Return the table of scores by the named scheme, with bootstrap intervals if asked."""
    scheme = TABLES[name]
    counts = scheme.count([p for p in pairs if not p.missing] if scheme.official else pairs)
    return tabulate(name, counts, drawn_intervals(counts, seed=seed) if intervals else None)


def _keep_predicted_by_both(first: Pairs, second: Pairs) -> tuple[Pairs, Pairs]:
    """Return both pairings, only of gold documents that both systems predicted, no other facts; DataError if none."""
    keep = [not (a.missing or b.missing) for a, b in zip(first, second, strict=True)]
    if not any(keep):
        raise DataError("no gold document is predicted by both systems; an official scheme has nothing to compare")
    return (
        Pairs(tuple(p for p, wanted in zip(first, keep, strict=True) if wanted)),
        Pairs(tuple(p for p, wanted in zip(second, keep, strict=True) if wanted)),
    )
