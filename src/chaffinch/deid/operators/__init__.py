"""Operators, which replace identifiers: one in each file, a frozen dataclass of options that can be called.

The file's name is the operator's name in policies; its class has the same name, capitalised.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, Protocol

from chaffinch.deid.release.replace import FoundIdentifier, Memory

__all__ = ["OPERATORS", "Action"]


class Action(Protocol):
    """An operator with its options.

    `only` names the kinds it acts on (if empty, all), `never` those it does not; `needs_secret`: it needs a secret.
    `hides` is how much of the identifier it hides: nothing (0), a part (1), all except that there was an identifier and
    what it looked like (2), all (3).
    """

    only: ClassVar[tuple[str, ...]]
    never: ClassVar[tuple[str, ...]]
    needs_secret: ClassVar[bool]
    hides: ClassVar[int]

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the text that takes the place of an identifier."""


OPERATORS: Mapping[str, type[Action]] = {
    module.name: getattr(import_module(f"{__name__}.{module.name}"), module.name.capitalize())
    for module in pkgutil.iter_modules(__path__)
}
