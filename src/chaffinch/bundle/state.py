"""What a model learnt, as a file holds it; parts of a model lie in it by name.

A part's arrays and strings have names that begin with the part's and a dot: those of a tagger's first step are
`before0.stops`, `before0.reading0.keys`, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Value = TypeVar("Value")

_DOT = "."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """Arrays and lists of strings, and what must be known to read them.

    `kind` names the method that reads them, `config` is what was chosen, `labels` are the names it knows, and `floor`
    is the number of patients that must have used a word before it entered. A model that is about to be saved leaves
    these four to its manifest.

    >>> inner = State(strings={"words": ("of", "by")})
    >>> outer = State(strings={"labels": ("NAME",)}).with_child("before0", inner)
    >>> sorted(outer.strings), outer.child("before0").strings
    (['before0.words', 'labels'], {'words': ('of', 'by')})
    """

    arrays: Mapping[str, Array] = field(default_factory=dict)
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kind: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    floor: int = 0

    def child(
        self, name: str, *, kind: str = "", config: Mapping[str, Any] | None = None, labels: Iterable[str] = ()
    ) -> State:
        """Return the part of that name, empty if there is none; the floor is that of the whole."""
        arrays, strings = _part(self.arrays, name), _part(self.strings, name)
        return State(arrays, strings, kind, {} if config is None else config, tuple(labels), self.floor)

    def with_child(self, name: str, child: State) -> State:
        """Return the state with the arrays and strings of one more part."""
        arrays = {f"{name}{_DOT}{key}": array for key, array in child.arrays.items()}
        strings = {f"{name}{_DOT}{key}": words for key, words in child.strings.items()}
        return self.merged(State(arrays, strings))

    def merged(self, other: State) -> State:
        """Return the state with the arrays and strings of another beside its own, under the names they have."""
        taken = [*(self.arrays.keys() & other.arrays.keys()), *(self.strings.keys() & other.strings.keys())]
        if taken:
            raise ValueError(f"two parts of a model file would have the name {min(taken)!r}")
        return replace(self, arrays={**self.arrays, **other.arrays}, strings={**self.strings, **other.strings})


def _part(items: Mapping[str, Value], name: str) -> dict[str, Value]:
    prefix = name + _DOT
    return {key.removeprefix(prefix): value for key, value in items.items() if key.startswith(prefix)}
