"""Reading documents with a chain whose tags have several states: runs, confidence, posteriors, states in spans.

N tokens with pads between sentences, M without; S tags, K states, T tokens of one document, L labels, n spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chaffinch.features.observe import Observed
from chaffinch.kernels import Active, Batch, Floats, Ints, best_paths, project, viterbi
from chaffinch.models.core.confidence import Calibration, scale_batch
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import Run, runs_by_document
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.layout import TagPosterior
from chaffinch.models.latent.span_probabilities import run_chances, runs_inside


class Decode(Protocol):
    """A function that finds the tags of a batch's tokens; `known` is the batch's tag posterior, if already computed."""

    def __call__(self, batch: Batch, known: TagPosterior | None = None, /) -> Ints:
        """Return the tags (N,) of a batch's tokens; `known` saves computing the posterior."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LatentReader:
    """Documents as batches of lattices over states, sentence after sentence, with operations that read them."""

    seen: Observed
    batches: Iterable[Batch]  # may be an iterator: one operation consumes it
    labels: Labels  # with sub-tags
    decode: Decode
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)

    @property
    def plain(self) -> Labels:
        """Return the labels without sub-tags, so that states are tags."""
        return Labels(self.labels.names, self.labels.scheme)

    def runs(self) -> list[list[Run]]:
        """Decode the batches, which may then be used up; return each document's labelled runs of tokens."""
        return runs_by_document(self.seen, self.plain, self._spread([self.decode(batch) for batch in self.batches]))

    def runs_with_chances(self) -> tuple[list[list[Run]], list[Floats]]:
        """Return the runs of every document, and (n,) the calibrated probabilities that they are right."""
        tags, chances = [], [np.zeros(0)]
        for batch in self.batches:
            tags.append(self.decode(batch))
            starts, ends = runs_inside(self.plain, tags[-1], batch.bounds)
            milder = scale_batch(batch, self.calibration.scale)
            chances.append(run_chances(milder, self.labels, tags[-1], starts, ends))
        runs = runs_by_document(self.seen, self.plain, self._spread(tags))
        cuts = np.cumsum([len(document_runs) for document_runs in runs])[:-1]
        return runs, np.split(self.calibration(np.concatenate(chances)), cuts)

    def runs_with_posteriors(self, columns: Ints, count: int) -> tuple[list[list[Run]], list[Floats]]:
        """Return the runs of every document, and (T, count) each token's probability of each column.

        `columns` (S,) is the column of each tag. Tokens in no sentence have probability 1 in column 0.
        """
        tags, rows, scale = [], [], self.calibration.scale
        column_of = np.zeros((len(columns), count))
        column_of[np.arange(len(columns)), columns] = 1.0
        for batch in self.batches:
            known = decoding.tag_posterior(batch, self.labels.tag_of)
            tags.append(self.decode(batch, known))
            milder = known if scale == 1.0 else decoding.tag_posterior(scale_batch(batch, scale), self.labels.tag_of)
            rows.append(milder.chances @ column_of)
        return runs_by_document(self.seen, self.plain, self._spread(tags)), self._by_document(rows, count)

    def _by_document(self, parts: Sequence[Floats], count: int) -> list[Floats]:
        """Return (T, count) rows of every document, from those of all batches; outside sentences column 0 is 1."""
        out, first = np.zeros((int(self.seen.sizes.sum()), count)), 0
        out[:, 0] = 1.0
        for rows in parts:
            out[self.seen.sources[first : first + len(rows)]] = rows
            first += len(rows)
        return np.split(out, np.cumsum(self.seen.sizes)[:-1])

    def alternatives(self, n: int) -> list[list[list[Run]]]:
        """Return up to n readings, best first, as runs by document; a sentence with fewer repeats its last."""
        paths = []
        for batch in self.batches:
            chain = project(batch, self.labels.tag_of)
            paths += [best_paths(chain[sentence], n) for sentence in range(len(chain))]
        out = []
        for rank in range(min(n, max(map(len, paths), default=1))):
            chosen = [found[min(rank, len(found) - 1)].states for found in paths]
            out.append(runs_by_document(self.seen, self.plain, self._spread(chosen)))
        return out

    def paths(self, tags: Ints) -> Ints:
        """Return (N,) the best states given the tags (N,), numbered from 0 within each tag; 0 at pads."""
        first = np.searchsorted(self.labels.tag_of, np.arange(len(self.labels.tags)))
        states = [np.flatnonzero(self.labels.tag_of == tag) for tag in range(len(self.labels.tags))]
        packed, begin, paths = tags[self.seen.places], 0, []
        for batch in self.batches:
            here = packed[begin : begin + len(batch.emit)]
            active = Active.of(states, here)
            emit = batch.emit[np.repeat(np.arange(len(here)), active.widths), active.cells]
            best = viterbi(Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, active)).states
            paths.append(best - first[here])
            begin += len(here)
        return self._spread(paths).astype(np.int64)

    def _spread(self, values: Sequence[Ints]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Return (N,) the values of all batches' tokens, in order, at their positions; 0 at pads."""
        out = np.zeros(len(self.seen.types), np.int32)
        out[self.seen.places] = np.concatenate([np.zeros(0, np.int64), *values])
        return out
