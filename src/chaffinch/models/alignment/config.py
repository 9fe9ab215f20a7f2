"""What may be chosen of alignment."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from chaffinch.errors import ConfigError

MODES = ("recall", "balanced")


@dataclass(frozen=True, slots=True)
class Alignment:
    """What may be chosen. With mode "recall" an identifier never becomes O, with "balanced" it can.

    `penalty` draws weights to the hand-set ones; `folds` and `seed` are for `cross_fitted`.
    """

    mode: Literal["recall", "balanced"] = "recall"
    penalty: float = 0.1
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_mode(self.mode)
        if not (self.penalty > 0 and isfinite(self.penalty)):
            raise ConfigError(f"penalty must be above 0, got {self.penalty}")
        for name, least in (("folds", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")


def check_mode(mode: str) -> str:
    """Return the mode; ConfigError if there is no such mode."""
    if mode not in MODES:
        raise ConfigError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    return mode
