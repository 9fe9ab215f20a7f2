"""What may be chosen for the HMM of many sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaffinch.errors import ConfigError

HELD_OUT = "held-out"
DECODE = ("spans", "viterbi")


@dataclass(frozen=True, slots=True)
class MultiHMM:
    """How votes are joined.

    `silence` tempers, in reading, what the silence of a source says of a token that another speaks of: 0 is nothing, 1
    is all; "held-out" chooses it for each source without gold, by how well it foretells the votes of the others on
    documents held out. Sources that are `negative_reliable` have 1. With `voted_is_entity` no token that some source
    calls an entity is read as O; "held-out" is chosen in the same way. With `dependence`, sources that say the same
    more often than labels explain count less. `certainty` is how many votes the prior of a source's confusions is
    worth; `trust` how many times all votes the prior weighs that hardly any is on a token outside of entities: with
    little of it, EM can come to take for noise what a single source says. `decode="spans"` takes the spans that sources
    propose (or the best path, where there are linking rules) with a probability above `threshold`, those with the most
    in all; "viterbi" takes the best path.
    """

    passes: int = 5
    silence: float | Literal["held-out"] = 1.0
    voted_is_entity: bool | Literal["held-out"] = False
    negative_reliable: tuple[str, ...] = ()
    dependence: bool = True
    certainty: float = 10.0
    trust: float = 4.0
    decode: Literal["spans", "viterbi"] = "spans"
    threshold: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.passes, int) or isinstance(self.passes, bool) or self.passes < 1:
            raise ConfigError(f"passes must be a whole number, at least 1, got {self.passes!r}")
        if self.silence != HELD_OUT and not _is_number(self.silence, 1.0):
            raise ConfigError(f"silence must be a number from 0 to 1, or {HELD_OUT!r}, got {self.silence!r}")
        if self.voted_is_entity not in (True, False, HELD_OUT):
            raise ConfigError(f"voted_is_entity must be true, false or {HELD_OUT!r}, got {self.voted_is_entity!r}")
        if not _is_number(self.certainty, 1e9) or self.certainty <= 0:
            raise ConfigError(f"certainty must be a number above 0, got {self.certainty!r}")
        if not _is_number(self.trust, 1e9):
            raise ConfigError(f"trust must be a number of at least 0, got {self.trust!r}")
        if self.decode not in DECODE:
            raise ConfigError(f"decode must be one of {', '.join(DECODE)}, got {self.decode!r}")
        if not _is_number(self.threshold, 1.0):
            raise ConfigError(f"threshold must be a number from 0 to 1, got {self.threshold!r}")


def _is_number(value: object, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= high
