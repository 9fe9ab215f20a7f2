"""Settings of alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaffinch.checks import check_choice, check_numbers, check_wholes

MODES = ("recall", "balanced")


@dataclass(frozen=True, slots=True)
class Alignment:
    """Settings of alignment. With mode "recall" an identifier never becomes O, with "balanced" it can.

    `penalty` is the strength of regularisation towards the default weights; `folds` and `seed` are for `cross_fit`.
    """

    mode: Literal["recall", "balanced"] = "recall"
    penalty: float = 0.1
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings; ConfigError for a bad mode, penalty, folds or seed."""
        check_mode(self.mode)
        check_numbers(self, "penalty", above=0)
        check_wholes(self, "folds", least=2)
        check_wholes(self, "seed")


def check_mode(mode: str) -> str:
    """Return the mode of alignment as it is; raise ConfigError if there is no such mode."""
    check_choice(mode, "mode", MODES)
    return mode
