"""Ctrl-C in the midst of a training, at a place that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaffinch.kernels.linear import Learner
from chaffinch.models.hmmdp.schedule import Course


def interrupt_at_pass(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after so many passes of the generative stage."""
    usual: Callable[..., Any] = Course.passes

    def passes(self: Course, *arguments: Any) -> Any:
        if len(self.trace) == number:
            raise KeyboardInterrupt
        return usual(self, *arguments)

    monkeypatch.setattr(Course, "passes", passes)


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
