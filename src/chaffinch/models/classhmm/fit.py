"""Training of a class HMM: several hidden states per class, emissions by features of words, by direct gradient.

Classes are known in training and states are not: the gradient sums over all paths of states that agree with the
classes. The chain is generative (joint), conditional but locally normalised (krogh), between both (mix), or a
conditional random field over its states (crf).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chaffinch.kernels import Batch, Floats
from chaffinch.kernels.lattice import Bools
from chaffinch.models.classhmm.config import KAPPA, KAPPAS, ClassHMM
from chaffinch.models.classhmm.describe import states as substructure
from chaffinch.models.classhmm.generative import Likelihood, MStepObjective
from chaffinch.models.classhmm.model import Model, scheme_of
from chaffinch.models.classhmm.objectives import Ground, Problem
from chaffinch.models.core import lbfgs as ascent
from chaffinch.models.core.confidence import SENTENCES, Calibration
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.privacy import decide_privacy
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.runs import span_f1
from chaffinch.models.core.tasks import Task, runs_of
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.latent.layout import tokens_of
from chaffinch.models.latent.span_probabilities import calibrate
from chaffinch.text import Document

# Evaluations of a short climb from a random start, and of one M-step of EM. More of either costs time.
SHORT, INNER = 20, 10
JUDGED = 60  # evaluations of the climbs for calibration and held-out likelihood, which may stop before they converge
FOLDS = 5  # one of them, a fifth of the patients, is held out for calibration
TOLERANCE = 1e-6  # EM stops when an iteration gains less than this share of the value


def fit(
    data: TrainingSet, config: ClassHMM, *, resources: Resources | None = None, watcher: Watcher | None = None
) -> Model:
    """Train a class HMM on spans or soft labels, calibrate and describe it; dev documents choose kappa.

    Rows of soft labels with only zeros leave a token open: all paths are valid there. Dev documents choose kappa.
    An interrupt ends training; the weights learnt so far are kept.
    """
    task, watcher = Task.of(data.documents, layer=data.layer, soft=data.soft), watcher or Watcher()
    watcher.scores |= task.fitted.summary()
    config = decide_privacy(config, task.names)
    evidence = Evidence.of(task, Labels(task.names, scheme_of(config)))
    return _Run(task, evidence, config, resources or Resources(), watcher, tuple(data.dev), data.layer).model()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Run:
    """One run of `fit`: its task, evidence, settings and helpers."""

    task: Task
    evidence: Evidence
    config: ClassHMM
    resources: Resources
    watcher: Watcher
    dev: tuple[Document, ...]
    layer: str | None

    def model(self) -> Model:
        """Train the model, measure it on held-out text, describe its states; return it. An interrupt skips the rest."""
        ground = Ground.of(self.config, self.evidence)
        problem = ground.problem(self.resources)
        model, kappa = self.choose_kappa(problem)
        try:
            if self.config.calibrate and not self.watcher.should_stop():
                model = self.evaluate_held_out(model, problem, kappa)
            return substructure.describe(model, self.evidence, ground.seen)
        except KeyboardInterrupt:
            self.watcher.interrupted = True
            return model

    def choose_kappa(self, problem: Problem) -> tuple[Model, float]:
        """Return the model and its kappa: as set, best on dev, or the default; KeyboardInterrupt before any step."""
        kappas = [self.config.kappa] if self.config.kappa is not None else [KAPPA]
        if self.config.kappa is None and self.dev:
            kappas = sorted(KAPPAS, reverse=True)
        tried: list[tuple[float, Model, float]] = []
        found = self.choose_start(problem, kappas[0])
        learnt = len(found.trace) > 1
        for kappa in kappas:  # each continues from the weights of the one before
            if not self.watcher.should_stop():
                found = self.climb(problem, kappa, found.x, f"kappa {kappa:g}")
                learnt |= len(found.trace) > 1
            if self.watcher.should_stop() and not learnt:
                raise KeyboardInterrupt  # first weights are no model
            model = problem.model(found.x, found.trace)
            tried.append((self.score(model) if self.dev else 0.0, model, kappa))
            if self.watcher.should_stop():
                break
        score, model, kappa = max(tried, key=lambda attempt: attempt[0])
        if self.dev:
            self.watcher.scores |= {"F1 on dev": score, "kappa": kappa}
        return model, kappa

    def choose_start(self, problem: Problem, kappa: float) -> ascent.Optimum:
        """Return first weights: the only start or best of short climbs, climbed on tagged text if some is untagged."""
        rng, untagged = np.random.default_rng(self.config.seed), self.evidence.untagged
        starts = [problem.start(rng) for _ in range(self.config.restarts)]
        best = ascent.Optimum(starts[0], -np.inf, (), 0)
        for x in starts if len(starts) > 1 else ():
            found = ascent.maximise(problem.objective(kappa), x, evaluations=SHORT)
            best = max(best, found, key=lambda optimum: optimum.value)
            if found.interrupted:
                self.watcher.interrupted = True
                break
        if (
            untagged.any() and not untagged.all() and not self.watcher.should_stop()
        ):  # first the labelled sentences alone
            best = ascent.maximise(problem.objective(kappa, ~untagged), best.x, evaluations=self.config.evaluations)
            self.watcher.interrupted |= best.interrupted
        return best

    def climb(self, problem: Problem, kappa: float, x: Floats, part: str) -> ascent.Optimum:
        """Climb from x by gradient or EM, and return the optimum; progress is reported under the name `part`."""
        objective, most, tokens = problem.objective(kappa), self.config.evaluations, len(self.evidence.allowed)

        def watch(evaluations: int, value: float) -> None:
            """Report an evaluation of the objective as progress, with the loss per token."""
            if self.watcher.tell is not None:
                self.watcher.tell(Progress(part, evaluations, most, -value / max(tokens, 1)))

        if self.config.trainer == "em" and isinstance(objective, Likelihood):
            found = _run_em(objective, x, most, watch)
        else:
            found = ascent.maximise(objective, x, evaluations=most, watch=watch)
        self.watcher.interrupted |= found.interrupted
        return found

    def score(self, model: Model) -> float:
        """Return the F1 on the dev documents; 0 after an interrupt."""
        try:
            return span_f1([runs_of(doc, self.layer) for doc in self.dev], model.read(self.dev))
        except KeyboardInterrupt:
            self.watcher.interrupted = True
            return 0.0

    def evaluate_held_out(self, model: Model, problem: Problem, kappa: float) -> Model:
        """Return the model with calibration and likelihood of a held-out fold of patients; unchanged if there is none.

        A fifth of the patients is held out; two shorter climbs on the others, one with a single state per class,
        measure the likelihood of the held-out text.
        """
        folds = self.task.folds(FOLDS, self.config.seed)
        if folds is None:
            return model
        open_before = np.append(0, np.cumsum(self.evidence.allowed.sum(axis=1) > 1))[self.evidence.bounds]
        out = (folds == 0) & (np.diff(open_before) == 0)
        if not out.any() or not (folds > 0).any():
            return model
        single = replace(self.config, states_per_class=1, outside_states=None)
        problems = [problem]
        if max(model.labels.subs) > 1:
            problems.append(Ground.of(single, self.evidence).problem(self.resources))
        likely = []
        for candidate in problems:
            x = candidate.start(np.random.default_rng(self.config.seed))
            found = ascent.maximise(candidate.objective(kappa, folds > 0), x, evaluations=JUDGED)
            self.watcher.interrupted |= found.interrupted
            if found.interrupted:
                return model
            likely.append(candidate.objective(0.0, out)(found.x)[0])
            if candidate is problem:
                model = replace(model, calibration=self.calibration(candidate.model(found.x, ()), out))
            if self.watcher.tell is not None:
                self.watcher.tell(Progress("held out", len(likely), len(problems), 0.0))
        tokens = np.diff(self.evidence.bounds)[out].sum()
        portrait = replace(model.portrait, held_out=np.array(likely) / max(tokens, 1))
        return replace(model, portrait=portrait)

    def calibration(self, model: Model, sentences: Bools) -> Calibration:
        """Return the calibration fitted to at most `SENTENCES` of these sentences, which the model did not learn."""
        _, batch = model.batch(self.task.docs)
        some = np.flatnonzero(sentences)[:SENTENCES]
        tokens, bounds = tokens_of(batch.bounds, some)
        part = Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds)
        gold = self.evidence.allowed[tokens].argmax(axis=1)
        return calibrate(part, model.labels, gold, model.decode(part))


def _run_em(objective: Likelihood, x: Floats, most: int, watch: Callable[[int, float], None]) -> ascent.Optimum:
    """Climb from x by EM, a few M-steps for each E-step; return the optimum. An interrupt ends it early."""
    evaluations, trace, interrupted = 0, list[float](), False
    try:
        while evaluations < most and not interrupted:
            value, _ = objective(x)
            gained = value - trace[-1] if trace else np.inf
            trace.append(value)
            watch(evaluations, value)
            if gained < TOLERANCE * max(abs(value), 1.0):
                break
            found = ascent.maximise(MStepObjective.at(objective, x), x, evaluations=min(INNER, most - evaluations))
            x, evaluations, interrupted = found.x, evaluations + found.evaluations + 1, found.interrupted
    except KeyboardInterrupt:
        interrupted = True
    return ascent.Optimum(x, trace[-1] if trace else -np.inf, tuple(trace), evaluations, interrupted)
