"""Ctrl-C in the midst of a training, at a place that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaffinch.kernels.linear import Learner
from chaffinch.models.hmmdp.schedule import TrainingRun


def interrupt_at_pass(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after so many passes of the generative stage."""
    usual: Callable[..., Any] = TrainingRun.run_passes

    def run_passes(self: TrainingRun, *arguments: Any) -> Any:
        if len(self.trace) == number:
            raise KeyboardInterrupt
        return usual(self, *arguments)

    monkeypatch.setattr(TrainingRun, "run_passes", run_passes)


def interrupt_at_walk(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at that walk over the documents, of a cascade or of the discriminative stage."""
    usual: Callable[..., float] = Learner.walk
    walks = 0

    def walk(self: Learner, *arguments: Any) -> float:
        nonlocal walks
        walks += 1
        if walks == number:
            raise KeyboardInterrupt
        return usual(self, *arguments)

    monkeypatch.setattr(Learner, "walk", walk)
