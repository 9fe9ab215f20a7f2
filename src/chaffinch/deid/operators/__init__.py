"""What can be done with an identifier: one operator in each file, a frozen choice of options that is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from chaffinch.deid.operators.generalise import Generalise
from chaffinch.deid.operators.keep import Keep
from chaffinch.deid.operators.mask import Mask
from chaffinch.deid.operators.number import Number
from chaffinch.deid.operators.remove import Remove
from chaffinch.deid.operators.shift import Shift
from chaffinch.deid.operators.surrogate import Surrogate
from chaffinch.deid.operators.tag import Tag
from chaffinch.deid.release.replace import FoundIdentifier, Memory


class Action(Protocol):
    """An operator with its options.

    `only` names the kinds it acts on (if none, it acts on all), `never` those it does not; `keyed`: it needs a secret.
    `hides` is how much of the identifier it hides: nothing (0), a part (1), all but that something stood there and what
    that looked like (2), all (3).
    """

    only: ClassVar[tuple[str, ...]]
    never: ClassVar[tuple[str, ...]]
    keyed: ClassVar[bool]
    hides: ClassVar[int]

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str: ...


OPERATORS: Mapping[str, type[Action]] = {
    "tag": Tag,
    "number": Number,
    "mask": Mask,
    "remove": Remove,
    "keep": Keep,
    "generalise": Generalise,
    "surrogate": Surrogate,
    "shift": Shift,
}

__all__ = [
    "OPERATORS",
    "Action",
    "Generalise",
    "Keep",
    "Mask",
    "Number",
    "Remove",
    "Shift",
    "Surrogate",
    "Tag",
]
