"""Learning an HMM with sub-tags from sentences: a start, passes over batches, and what is kept alive between them."""

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

CLOSE = 1e-5  # relative change of the bound at which learning ends
TIDY = 5  # passes between two looks at empty and equal sub-tags
LEARN = 5  # passes between two looks at the concentrations of symbols and tags
DELAY, FORGET = 1.0, 0.6  # tau and kappa of stochastic learning


@dataclass(slots=True)
class Course:
    """One run of learning: its batches, and the bound after each pass."""

    config: HMMDP
    parts: Sequence[Sentences]  # lists of tags
    watcher: Watcher
    trace: list[float] = field(default_factory=list)
    steps: int = 0  # of stochastic learning
    _ready: tuple[Shape, list[Sentences]] | None = None
    _memo: list[Counts] = field(default_factory=list)  # of each batch, as it was counted last
    _last: tuple[Globals, Counts] | None = None  # what the last passes gave; the memo belongs to it

    def on(self, shape: Shape) -> list[Sentences]:
        """The batches with the states of that shape."""
        if self._ready is None or self._ready[0] is not shape:
            self._ready = shape, [part.on(shape) for part in self.parts]
        return self._ready[1]

    def run(self, shape: Shape, priors: Priors, emissions: Emissions) -> tuple[Globals, Counts]:
        """From the start to where the bound no longer rises, or the last pass; an interrupt ends it early."""
        try:
            q, counts = self.begin(shape, priors, emissions, np.random.default_rng(self.config.seed))
            for done in range(1, self.config.passes + 1):
                if self.learns_at(done):
                    q = concentrations.learnt(q, counts)
                q, counts = self.passes(q, counts, 1)
                self.trace.append(vb.bound(q, counts))
                if self.watcher.tell is not None:
                    self.watcher.tell(Progress("passes", done, self.config.passes, -self.trace[-1]))
                if done % TIDY == 0 and done + TIDY <= self.config.passes:
                    q, counts, changed = subtags.tidy(q, counts, self.on(q.shape), self.passes)
                    if changed:
                        continue
                if self.settled(done):
                    break
        except KeyboardInterrupt:
            if self._last is None:
                raise
            self.watcher.interrupted = True
            return self._last
        return q, counts

    def learns_at(self, done: int) -> bool:
        """Whether that pass begins with the concentrations of symbols and tags."""
        return self.config.learn_priors and done % LEARN == 0

    def settled(self, done: int) -> bool:
        """Whether the bound has stopped to rise; where concentrations are learnt, after a pass that began with them."""
        if len(self.trace) < 2 or (self.config.learn_priors and not self.learns_at(done)):
            return False
        return abs(self.trace[-1] - self.trace[-2]) < CLOSE * abs(self.trace[-1])

    def begin(
        self, shape: Shape, priors: Priors, emissions: Emissions, rng: np.random.Generator
    ) -> tuple[Globals, Counts]:
        """Where learning starts."""
        if self.config.start == "split":
            q = vb.initial(Shape(np.arange(shape.S), shape.follows, shape.occurs), priors, emissions)
            q, counts = self.passes(q, self.weighed(q, subtags.evenly(self.on(q.shape))), 1)
            return subtags.grow(q, counts, np.bincount(shape.tag_of, minlength=shape.S), self.passes, rng)
        q = vb.initial(shape, priors, emissions)
        start = subtags.by_chance if self.config.start == "random" else subtags.by_context
        return q, self.weighed(q, start(self.on(shape), rng))

    def weighed(self, q: Globals, weights: Sequence[Floats]) -> Counts:
        """The counts of tokens with those weights of their cells."""
        parts = zip(self.on(q.shape), weights, strict=True)
        return vb.summed([subtags.counted(part, own, q) for part, own in parts])

    def passes(self, q: Globals, counts: Counts, times: int) -> tuple[Globals, Counts]:
        """So many more passes from these counts; the counts that come back are those of the q that does."""
        parts = self.on(q.shape)
        if self._last is None or self._last[1] is not counts:
            self._memo = []
        for _ in range(times):
            if self.config.stochastic:
                q, counts = self.stream(q, counts)
            elif not self._memo:
                q = self.update(q, counts)
                self._memo = [self.look(part, q) for part in parts]
                counts = vb.summed(self._memo)
            else:  # the other batches keep what they counted last
                for number, part in enumerate(parts):
                    q = self.update(q, counts)
                    self._memo[number] = self.look(part, q)
                    counts = vb.summed(self._memo)
            self._last = q, counts
        return q, counts

    def stream(self, q: Globals, counts: Counts) -> tuple[Globals, Counts]:
        """One pass in which every batch stands for all sentences, and older ones fade."""
        parts = self.on(q.shape)
        total = sum(map(len, parts))
        for part in parts:
            q = self.update(q, counts)
            self.steps += 1
            share = (self.steps + DELAY) ** -FORGET
            counts = vb.mixed(counts, self.look(part, q), share, total / max(len(part), 1))
        return q, counts

    def look(self, part: Sentences, q: Globals) -> Counts:
        """The local step."""
        if self.config.states == "factored":
            from chaffinch.models.hmmdp.published.mean_field import factored_step

            return factored_step(part, vb.expected(q), q.emissions)
        return vb.local_step(part, vb.expected(q), q.emissions)

    def update(self, q: Globals, counts: Counts) -> Globals:
        """The global step, and the concentration of the sticks if it is learnt."""
        q = vb.global_step(q, counts, self.config.sticks)
        if self.config.alpha_sticks is None and any(len(own.a) for own in q.sticks):
            q = replace(q, priors=replace(q.priors, alpha=vb.learnt_alpha(q)))
        return q
