"""Reading documents with a chain whose tags have several states: runs, how sure they are, and parts of spans.

N tokens with pads between sentences, M without; S tags, K states, T tokens of one document, L labels, n spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chaffinch.features.observe import Observed
from chaffinch.kernels import Active, Batch, Floats, Ints, best_paths, project, viterbi
from chaffinch.models.core.confidence import Calibration, scaled
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import Run, runs_by_document
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.layout import KnownTags
from chaffinch.models.latent.span_probabilities import run_chances, runs_inside


class Decode(Protocol):
    """Finds the tags of a batch's tokens; `known` is what forward-backward says of it, if it was asked before."""

    def __call__(self, batch: Batch, known: KnownTags | None = None, /) -> Ints: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LatentReader:
    """Documents as batches of lattices over states, sentence after sentence."""

    seen: Observed
    batches: Iterable[Batch]  # read once
    labels: Labels  # with sub-tags
    decode: Decode
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)

    @property
    def plain(self) -> Labels:
        """The labels without sub-tags: states are tags."""
        return Labels(self.labels.names, self.labels.scheme)

    def runs(self) -> list[list[Run]]:
        """The labelled runs of tokens of every document."""
        return runs_by_document(self.seen, self.plain, self._placed([self.decode(batch) for batch in self.batches]))

    def runs_with_chances(self) -> tuple[list[list[Run]], list[Floats]]:
        """The runs of every document, and the calibrated probability that each is right (n,)."""
        tags, chances = [], [np.zeros(0)]
        for batch in self.batches:
            tags.append(self.decode(batch))
            starts, ends = runs_inside(self.plain, tags[-1], batch.bounds)
            milder = scaled(batch, self.calibration.scale)
            chances.append(run_chances(milder, self.labels, tags[-1], starts, ends))
        runs = runs_by_document(self.seen, self.plain, self._placed(tags))
        cuts = np.cumsum([len(own) for own in runs])[:-1]
        return runs, np.split(self.calibration(np.concatenate(chances)), cuts)

    def runs_with_posteriors(self, columns: Ints, count: int) -> tuple[list[list[Run]], list[Floats]]:
        """The runs of every document, and (T, count) at every token the probability of each column.

        Of each tag the column is given (S,). Tokens in no sentence are column 0.
        """
        tags, chances, scale = [], [], self.calibration.scale
        for batch in self.batches:
            known = decoding.known_of(batch, self.labels.tag_of)
            tags.append(self.decode(batch, known))
            milder = known if scale == 1.0 else decoding.known_of(scaled(batch, scale), self.labels.tag_of)
            chances.append(milder.chances)
        return runs_by_document(self.seen, self.plain, self._placed(tags)), self._by_column(chances, columns, count)

    def _by_column(self, chances: Sequence[Floats], columns: Ints, count: int) -> list[Floats]:
        """The chances of tags (N, S) of all batches as chances of columns, by document."""
        out = np.zeros((int(self.seen.sizes.sum()), count))
        out[:, 0] = 1.0
        to = np.zeros((len(columns), count))
        to[np.arange(len(columns)), columns] = 1.0
        out[self.seen.sources] = np.concatenate([np.zeros((0, len(columns))), *chances]) @ to
        return np.split(out, np.cumsum(self.seen.sizes)[:-1])

    def alternatives(self, n: int) -> list[list[list[Run]]]:
        """The n best readings of the projected chain; a sentence with fewer repeats its last."""
        paths = []
        for batch in self.batches:
            chain = project(batch, self.labels.tag_of)
            paths += [best_paths(chain[sentence], n) for sentence in range(len(chain))]
        out = []
        for rank in range(min(n, max(map(len, paths), default=1))):
            chosen = [found[min(rank, len(found) - 1)].states for found in paths]
            out.append(runs_by_document(self.seen, self.plain, self._placed(chosen)))
        return out

    def paths(self, tags: Ints) -> Ints:
        """(N,) the best states given the tags (N,), counted among those of each tag; 0 at pads."""
        first = np.searchsorted(self.labels.tag_of, np.arange(len(self.labels.tags)))
        states = [np.flatnonzero(self.labels.tag_of == tag) for tag in range(len(self.labels.tags))]
        own, at, found = tags[self.seen.places], 0, []
        for batch in self.batches:
            here = own[at : at + len(batch.emit)]
            active = Active.of(states, here)
            emit = batch.emit[np.repeat(np.arange(len(here)), active.widths), active.cells]
            best = viterbi(Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, active)).states
            found.append(best - first[here])
            at += len(here)
        return self._placed(found).astype(np.int64)

    def _placed(self, values: Sequence[Ints]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        out = np.zeros(len(self.seen.types), np.int32)
        out[self.seen.places] = np.concatenate([np.zeros(0, np.int64), *values])
        return out
