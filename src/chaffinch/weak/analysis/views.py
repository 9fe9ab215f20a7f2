"""Three views of the same tokens: the votes of sources, the estimates of an HMM of many sources, and gold.

T tokens, S sources, E labels, L = 1 + 2 E tags, D documents, n spans. A kind is -1 (silent), 0 (O) or 1 + a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.evaluate import Pair, Pairs, score
from chaffinch.kernels import Floats, Ints, forward_backward
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm import weights as multihmm_weights
from chaffinch.models.votes.multihmm.estimates import SourceEstimate
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.models.votes.multihmm.patterns import observe
from chaffinch.models.votes.multihmm.spans import Bools, Spans, candidates, edges, list_proposals, resolve_overlaps
from chaffinch.text import Document
from chaffinch.weak.analysis.results import Checked, Outlook
from chaffinch.weak.votes import SOURCE, collect_votes, with_labels

GOLD, AGGREGATE = "gold", "aggregate"


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes, with their overlaps and conflicts."""

    matrix: VoteMatrix
    kinds: NDArray[np.int16]  # (T, S)
    voters: Ints  # (T,) sources that vote
    disputed: Bools  # (T,) two of them vote for different kinds
    spans: Spans  # (n,) of all sources, one by one
    source: Ints  # (n,) the source of each span
    overlap: Bools  # (n,) another source votes on one of the tokens
    conflict: Bools  # (n,) another source votes on one of the tokens, and not for this span

    @classmethod
    def of(cls, matrix: VoteMatrix) -> Votes:
        """Derive from a vote matrix who votes on each token, the spans of each source, overlaps and conflicts."""
        kinds = np.where(matrix.codes > 0, (matrix.codes + 1) // 2, matrix.codes).astype(np.int16)
        votes = kinds >= 0
        voters = votes.sum(axis=1)
        highest = kinds.max(axis=1, initial=-1)
        lowest = np.where(votes, kinds, np.int16(np.iinfo(np.int16).max)).min(axis=1, initial=np.iinfo(np.int16).max)
        first, end, label, source = list_proposals(matrix)
        _, which, same = np.unique(keys_of(first, end, label), return_inverse=True, return_counts=True)
        spans = Spans(first, end, label, same[which.reshape(-1)].astype(np.int64))
        crowd = _most_within(voters, first, end)
        disputed = (voters > 1) & (lowest != highest)
        return cls(matrix, kinds, voters, disputed, spans, source, crowd > 1, crowd > spans.votes)

    @property
    def in_conflict(self) -> Spans:
        """Return the distinct proposed spans on whose tokens some source votes without proposing the same span."""
        spans = self.spans[self.conflict]
        return Spans.distinct(spans.first, spans.end, spans.label)

    @property
    def share_in_conflict(self) -> float:
        """Return the share of distinct proposed spans that are in conflict with another source; 0 without spans."""
        return share(len(self.in_conflict), len(candidates(self.matrix)))


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Estimates of an HMM of many sources, fitted to the votes of the sources that have any."""

    matrix: VoteMatrix
    sources: tuple[str, ...]
    estimates: dict[str, SourceEstimate]
    tags: Ints  # (T,)
    chances: Floats  # (T, L)
    spans: Spans  # of the aggregate
    sure: Floats  # (n,) their probabilities
    dependence: Floats  # (S, S) of the sources that have votes

    @classmethod
    def of(cls, matrix: VoteMatrix, config: MultiHMM | None) -> Belief:
        """Fit a multi-source HMM to sources that vote; compute expected labels, aggregated spans, sources' rates."""
        speaking = [name for k, name in enumerate(matrix.sources) if (matrix.codes[:, k] >= 0).any()]
        chosen = matrix.choose(speaking)
        model = multihmm.fit(chosen, config)
        result, seen = model.posterior(chosen), observe(chosen)
        chains = model.chains(chosen, seen)
        marginals = forward_backward(chains.batch, pairs=False).states
        begins, lasts = edges(result.tags[:, None], chosen.bounds)
        first, last = np.flatnonzero(begins[:, 0]), np.flatnonzero(lasts[:, 0])
        spans = Spans(first, last + 1, (result.tags[first] - 1) // 2, np.ones(len(first), np.int64))
        mass = marginals.sum(axis=0) + 1
        mass[0] += len(chains.outside)
        between = multihmm_weights.excess(model.tables, seen, mass / mass.sum())
        estimates = {each.source: each for each in multihmm.estimates(model, chosen)} if chosen.names else {}
        sure = chains.span_chances(marginals, spans)
        return cls(matrix, tuple(speaking), estimates, result.tags, result.chances, spans, sure, between)

    @property
    def expected(self) -> tuple[Floats, Floats]:
        """Return (E,) the expected number of spans of each label, and (E,) that of tokens."""
        begun, inside = self.chances[:, 1::2].sum(axis=0), self.chances[:, 2::2].sum(axis=0)
        return begun, begun + inside

    def outlook(self, votes: Votes) -> Outlook:
        """Return precision, recall and F1 of the aggregate as the model expects; source agreement; None if unknown."""
        n, right, there = len(self.spans), float(self.sure.sum()), float(self.expected[0].sum())
        return Outlook(
            n, ratio(right, n), ratio(min(right, there), there), ratio(2 * right, n + there), _agreement(votes)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The gold of some documents, on the tokens of all documents."""

    layer: str
    known: Bools  # (T,) tokens of documents with gold
    kinds: Ints  # (T,) -1 where gold is not known
    keys: Ints  # of its spans
    label: Ints  # of its spans
    documents: Bools  # (D,)

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str | None, votes: Votes) -> Truth:
        """Read gold labels of tokens and spans from `layer`, default "gold"; DataError if a named layer is nowhere."""
        name = GOLD if layer is None else layer
        has = np.array([name in doc.layers for doc in docs], np.bool_)
        if layer is not None and not has.any():
            raise DataError(f"no document has the layer {layer!r}; name another with gold, or leave it out")
        spans = [doc.layers.get(name, ()) for doc in docs]
        more = sorted({span.label for doc_spans in spans for span in doc_spans} - {*votes.matrix.names, "O"})
        bare = [replace(doc, layers={SOURCE + GOLD: gold}, soft={}) for doc, gold in zip(docs, spans, strict=True)]
        found = collect_votes(bare, sources=(GOLD,), labels=(*votes.matrix.names, *more))
        known = np.repeat(has, np.diff(found.documents))
        first, end, label, _ = list_proposals(found)
        codes = found.codes[:, 0].astype(np.int64)
        kinds = np.where(known, np.where(codes > 0, (codes + 1) // 2, 0), -1)
        return cls(name, known, kinds, keys_of(first, end, label), label, has)

    def check(self, docs: Sequence[Document], belief: Belief) -> Checked | None:
        """Return strict precision, recall and F1 of the aggregated spans on documents with gold; None without gold."""
        if not self.documents.any():
            return None
        out = with_labels(docs, belief.matrix, belief.tags, None, layer=AGGREGATE)
        pairs = [
            Pair(doc, doc.layers[self.layer], doc.layers[AGGREGATE])
            for doc, has in zip(out, self.documents.tolist(), strict=True)
            if has
        ]
        scores = score(Pairs(tuple(pairs))).micro
        return Checked(
            len(pairs),
            scores.precision,
            scores.recall,
            scores.f1,
            scores.precision_interval,
            scores.recall_interval,
            scores.f1_interval,
        )


def _agreement(votes: Votes) -> float | None:
    """Return the share of sources' overlapped spans that the span vote of the other sources keeps; None without any."""
    found, spans = votes.matrix, votes.spans
    agreed = spoken = 0
    for k, name in enumerate(found.sources):
        mine = (votes.source == k) & votes.overlap
        if mine.any():
            others = resolve_overlaps(
                candidates(found.choose([other for other in found.sources if other != name])), longest=False
            )
            proposed_spans = spans[mine]
            theirs = keys_of(others.first, others.end, others.label)
            agreed += int(
                np.isin(keys_of(proposed_spans.first, proposed_spans.end, proposed_spans.label), theirs).sum()
            )
            spoken += int(mine.sum())
    return ratio(agreed, spoken)


def by_document(mask: Bools, found: VoteMatrix) -> Ints:
    """Return (D,) how many tokens with a true mask each document has."""
    return np.diff(np.append(0, np.cumsum(mask))[found.documents]).astype(np.int64)


def _most_within(counts: Ints, first: Ints, end: Ints) -> Ints:
    """Return (n,) the largest of counts (T,) within each range [first, end); ranges must not be empty."""
    if not len(first):
        return np.zeros(0, np.int64)
    places = np.stack([first, end], axis=1).reshape(-1)
    return np.asarray(np.maximum.reduceat(np.append(counts, 0), places)[::2])


def keys_of(first: Ints, end: Ints, label: Ints) -> Ints:
    """Return (n,) a number for each span; equal numbers for equal first token, end and label."""
    return np.asarray((first << 32) | ((end - first) << 12) | label)


def ratio(part: float, whole: float) -> float | None:
    """Return part / whole; None if the whole is 0."""
    return float(part) / float(whole) if whole > 0 else None


def share(part: float, whole: float) -> float:
    """Return part / whole; 0 if the whole is 0."""
    return float(part) / float(whole) if whole > 0 else 0.0
