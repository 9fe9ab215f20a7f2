"""Settings of the multi-source HMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaffinch.checks import check_choice, check_flags, check_fractions, check_numbers, check_wholes, to_texts

HELD_OUT = "held-out"
DECODE = ("spans", "viterbi")


@dataclass(frozen=True, slots=True)
class MultiHMM:
    """Settings of the HMM that aggregates votes.

    `silence` weighs, in decoding, the silence of a source on a token that another votes on: 0 ignores it, 1 counts it
    in full; "held-out" chooses it for each source without gold, by how well it predicts the votes of the others on
    held-out documents. Sources that are `negative_reliable` have 1. With `voted_is_entity` no token that some source
    calls an entity is decoded as O; "held-out" chooses it in the same way. With `dependence`, sources that agree
    more often than labels explain count less. `certainty` is the weight, in votes, of the prior of confusions;
    `trust` is the weight, in multiples of all votes, of the prior that few votes are on tokens outside entities: with
    a small one, EM can treat as noise what only a single source says. `decode="spans"` takes the spans that sources
    propose (and those of the best path, if there are linking rules) with a probability above `threshold`, the set with
    the largest sum; "viterbi" takes the best path.
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
        """Check the settings, make `negative_reliable` a tuple; ConfigError for a bad value."""
        check_wholes(self, "passes", least=1)
        check_numbers(self, "silence", least=0, most=1, instead=HELD_OUT)
        check_choice(self.voted_is_entity, "voted_is_entity", (True, False, HELD_OUT))
        check_numbers(self, "certainty", above=0, most=1e9)
        check_numbers(self, "trust", least=0, most=1e9)
        check_choice(self.decode, "decode", DECODE)
        check_fractions(self, "threshold")
        check_flags(self, "dependence")
        object.__setattr__(self, "negative_reliable", to_texts(self.negative_reliable, "negative_reliable"))
