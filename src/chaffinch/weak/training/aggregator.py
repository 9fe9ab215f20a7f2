"""Aggregators in alternate training: fitted to the votes on documents, with a checkpoint if fitting is slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.training import Watcher
from chaffinch.models.votes.multihmm.config import MultiHMM
from chaffinch.text import Document
from chaffinch.weak.aggregate import (
    FittedAggregator,
    LabelVotes,
    Settings,
    aggregator_of,
    are_settings,
    fit,
    load,
    save,
)  # fmt: skip
from chaffinch.weak.embedded import Embedder
from chaffinch.weak.training.checkpoints import Checkpoints, Step
from chaffinch.weak.votes import sources_of

FitVotes: TypeAlias = Callable[[Sequence[Document]], LabelVotes]  # a user's aggregator
AggregatorChoice: TypeAlias = Settings | FitVotes


def fit_votes(
    docs: Sequence[Document], choice: AggregatorChoice | None, *, embedder: Embedder | None = None
) -> LabelVotes:  # fmt: skip
    """Fit an aggregator (default MultiHMM); DataError, ConfigError if it cannot; KeyboardInterrupt if cut short.

    A conditional HMM reads words through the embedder; None loads the packaged one.
    """
    if not sources_of(docs):
        raise DataError("no document has a layer of a source, source:NAME; apply sources first")
    settings = _settings(choice)
    if settings is None:
        if not callable(choice):
            raise ConfigError(
                f"the aggregator must be MultiHMM, CHMM, a rule or a function, got {type(choice).__name__}"
            )
        return choice(docs)
    watcher = Watcher()
    fitted = fit(docs, settings, watcher=watcher, embedder=embedder)
    if watcher.interrupted:
        raise KeyboardInterrupt
    return fitted


def fit_step(
    docs: Sequence[Document], choice: AggregatorChoice | None, embedder: Embedder | None, steps: Checkpoints, step: Step
) -> LabelVotes:  # fmt: skip
    """Fit the aggregator as a reported step of a run; a slow one is loaded from its checkpoint, or saved as one."""
    settings = _settings(choice)
    if settings is None or not aggregator_of(settings).slow:
        fitted = fit_votes(docs, choice)
        steps.report(step)
        return fitted

    def keep(made: LabelVotes, path: Path) -> None:
        """Save the fitted aggregator at the path; do nothing for a user's function."""
        if isinstance(made, FittedAggregator):
            save(made, path)

    return steps.load_or_make(
        step, lambda: fit_votes(docs, choice, embedder=embedder), lambda path: load(path, embedder=embedder), keep
    )


def _settings(choice: AggregatorChoice | None) -> Settings | None:
    """Return the settings of a built-in aggregator, by default `MultiHMM()`; None for anything else."""
    if choice is None:
        return MultiHMM()
    return choice if are_settings(choice) else None
