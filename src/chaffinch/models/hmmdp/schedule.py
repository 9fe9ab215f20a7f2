"""Variational training of an HMM with sub-tags: a start, passes over batches, and merges and reseeding between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chaffinch.kernels import Floats
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.hmmdp import concentrations
from chaffinch.models.hmmdp import split_merge as subtags
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.variational import Counts, Globals, Priors, Sentences, Shape

CLOSE = 1e-5  # relative change of the bound below which training ends; larger ends it sooner
TIDY = 5  # passes between checks for empty and equal sub-tags; lower checks more often, and a merge costs a pass to try
LEARN = 5  # passes between updates of the concentrations of symbols and tags
DELAY, FORGET = 1.0, 0.6  # tau and kappa of stochastic learning: the step is (t + tau) ** -kappa


@dataclass(slots=True)
class TrainingRun:
    """One variational training run: its batches, and the bound after each pass."""

    config: HMMDP
    parts: Sequence[Sentences]  # lists of tags
    watcher: Watcher
    trace: list[float] = field(default_factory=list)
    steps: int = 0  # of stochastic learning
    _ready: tuple[Shape, list[Sentences]] | None = None
    _memo: list[Counts] = field(default_factory=list)  # the latest counts of each batch
    _last: tuple[Globals, Counts] | None = None  # the latest result; the memo belongs to its counts

    def batches_on(self, shape: Shape) -> list[Sentences]:
        """Return the batches with lists of states of that shape; the latest shape is cached."""
        if self._ready is None or self._ready[0] is not shape:
            self._ready = shape, [part.expand_tags(shape) for part in self.parts]
        return self._ready[1]

    def run(self, shape: Shape, priors: Priors, emissions: Emissions) -> tuple[Globals, Counts]:
        """Train until the bound converges or passes end; return (q, counts), after an interrupt those so far."""
        try:
            q, counts = self.initialise(shape, priors, emissions, np.random.default_rng(self.config.seed))
            for done in range(1, self.config.passes + 1):
                if self.learns_at(done):
                    q = concentrations.learn_concentrations(q, counts)
                q, counts = self.run_passes(q, counts, 1)
                self.trace.append(vb.bound(q, counts))
                if self.watcher.tell is not None:
                    self.watcher.tell(Progress("passes", done, self.config.passes, -self.trace[-1]))
                if done % TIDY == 0 and done + TIDY <= self.config.passes:
                    q, counts, changed = subtags.tidy(q, counts, self.batches_on(q.shape), self.run_passes)
                    if changed:
                        continue
                if self.has_converged(done):
                    break
        except KeyboardInterrupt:
            if self._last is None:
                raise
            self.watcher.interrupted = True
            return self._last
        return q, counts

    def learns_at(self, done: int) -> bool:
        """Tell whether pass number `done` begins with an update of the concentrations of symbols and tags."""
        return self.config.learn_priors and done % LEARN == 0

    def has_converged(self, done: int) -> bool:
        """Tell whether the bound has stopped rising; with `learn_priors`, only after a pass that updated them."""
        if len(self.trace) < 2 or (self.config.learn_priors and not self.learns_at(done)):
            return False
        return abs(self.trace[-1] - self.trace[-2]) < CLOSE * abs(self.trace[-1])

    def initialise(
        self, shape: Shape, priors: Priors, emissions: Emissions, rng: np.random.Generator
    ) -> tuple[Globals, Counts]:
        """Return the first q and counts: by splitting sub-tags, by clustered contexts or by random weights."""
        if self.config.start == "split":
            q = vb.prior_globals(Shape(np.arange(shape.S), shape.follows, shape.occurs), priors, emissions)
            q, counts = self.run_passes(q, self.count_weighted(q, subtags.uniform_weights(self.batches_on(q.shape))), 1)
            return subtags.grow(q, counts, np.bincount(shape.tag_of, minlength=shape.S), self.run_passes, rng)
        q = vb.prior_globals(shape, priors, emissions)
        start = subtags.random_weights if self.config.start == "random" else subtags.context_weights
        return q, self.count_weighted(q, start(self.batches_on(shape), rng))

    def count_weighted(self, q: Globals, weights: Sequence[Floats]) -> Counts:
        """Return counts, transitions included, as if tokens were independent, given cell weights per batch."""
        parts = zip(self.batches_on(q.shape), weights, strict=True)
        return vb.sum_counts([subtags.count_independent(part, cells, q) for part, cells in parts])

    def run_passes(self, q: Globals, counts: Counts, times: int) -> tuple[Globals, Counts]:
        """Run `times` passes from these counts; return q and the counts that its local step found."""
        parts = self.batches_on(q.shape)
        if self._last is None or self._last[1] is not counts:
            self._memo = []
        for _ in range(times):
            if self.config.stochastic:
                q, counts = self.run_stochastic_pass(q, counts)
            elif not self._memo:
                q = self.global_step(q, counts)
                self._memo = [self.local_step(part, q) for part in parts]
                counts = vb.sum_counts(self._memo)
            else:  # memoised: the other batches keep their latest counts
                for number, part in enumerate(parts):
                    q = self.global_step(q, counts)
                    self._memo[number] = self.local_step(part, q)
                    counts = vb.sum_counts(self._memo)
            self._last = q, counts
        return q, counts

    def run_stochastic_pass(self, q: Globals, counts: Counts) -> tuple[Globals, Counts]:
        """Run a pass in which each batch is scaled up to all and counts of older ones fade; return (q, counts)."""
        parts = self.batches_on(q.shape)
        total = sum(map(len, parts))
        for part in parts:
            q = self.global_step(q, counts)
            self.steps += 1
            share = (self.steps + DELAY) ** -FORGET
            counts = vb.mix_counts(counts, self.local_step(part, q), share, total / max(len(part), 1))
        return q, counts

    def local_step(self, part: Sentences, q: Globals) -> Counts:
        """Return the expected counts of a batch under q."""
        if self.config.states == "factored":
            from chaffinch.models.hmmdp.published.mean_field import mean_field_step

            return mean_field_step(part, vb.expected_logs(q), q.emissions)
        return vb.local_step(part, vb.expected_logs(q), q.emissions)

    def global_step(self, q: Globals, counts: Counts) -> Globals:
        """Return q updated from the counts, and with the sticks' concentration relearnt unless it is set."""
        q = vb.global_step(q, counts, self.config.sticks)
        if self.config.alpha_sticks is None and any(len(sticks.a) for sticks in q.sticks):
            q = replace(q, priors=replace(q.priors, alpha=vb.posterior_mean_alpha(q)))
        return q
