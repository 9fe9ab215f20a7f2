"""What may be chosen for the HMM of many sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaffinch.checks import check_choice, check_flags, check_fractions, check_numbers, check_wholes, to_texts

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
        check_wholes(self, "passes", least=1)
        check_numbers(self, "silence", least=0, most=1, instead=HELD_OUT)
        check_choice(self.voted_is_entity, "voted_is_entity", (True, False, HELD_OUT))
        check_numbers(self, "certainty", above=0, most=1e9)
        check_numbers(self, "trust", least=0, most=1e9)
        check_choice(self.decode, "decode", DECODE)
        check_fractions(self, "threshold")
        check_flags(self, "dependence")
        object.__setattr__(self, "negative_reliable", to_texts(self.negative_reliable, "negative_reliable"))
