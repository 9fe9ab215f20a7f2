"""The learnt state of a model, as its file holds it, with named parts.

The names of a part's arrays and strings begin with the name of the part and a dot: those of a tagger's first step are
`before0.stops`, `before0.reading0.keys`, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ModelError

Array: TypeAlias = NDArray[Any]
Value = TypeVar("Value")

_DOT = "."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """Arrays and lists of strings, with the settings needed to read them.

    `kind` names the method that reads them, `config` holds its settings, `labels` are its labels, and `floor` is the
    number of patients that must have used a word for it to enter the vocabulary. A model that is being saved leaves
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
        """Return the part of that name, empty if there is none; the floor is that of the whole, the rest as given."""
        arrays, strings = _part(self.arrays, name), _part(self.strings, name)
        return State(arrays, strings, kind, {} if config is None else config, tuple(labels), self.floor)

    def with_child(self, name: str, child: State) -> State:
        """Return the state with one more part's arrays and strings; ValueError if a name is taken."""
        arrays = {f"{name}{_DOT}{key}": array for key, array in child.arrays.items()}
        strings = {f"{name}{_DOT}{key}": words for key, words in child.strings.items()}
        return self.merge(State(arrays, strings))

    def merge(self, other: State) -> State:
        """Return the state with the arrays and strings of another added; ValueError if both use a name."""
        taken = [*(self.arrays.keys() & other.arrays.keys()), *(self.strings.keys() & other.strings.keys())]
        if taken:
            raise ValueError(f"two parts of a model file would have the name {min(taken)!r}")
        return replace(self, arrays={**self.arrays, **other.arrays}, strings={**self.strings, **other.strings})


def check_forms(arrays: Mapping[str, Array], **forms: str) -> None:
    """Raise ModelError unless each named array that is there has one dimension, its form's type ("f", "i8"), no NaN.

    Compiled loops read these arrays without looking: a file with others must be refused before. An array that is not
    there is left to the caller.

    >>> import numpy as np
    >>> check_forms({"keys": np.zeros(3, np.uint64)}, keys="u8", stops="u8")
    """
    for name, form in forms.items():
        array = arrays.get(name)
        if array is not None and (array.ndim != 1 or not array.dtype.str[1:].startswith(form)):
            raise ModelError(f"array {name!r} has an unknown form; take the file of its maker, or retrain")
        if array is not None and array.dtype.kind == "f":
            check_numbers(array)


def check_numbers(array: Array) -> None:
    """Raise ModelError if an array of weights or log-probabilities has a NaN."""
    if np.isnan(array).any():
        raise ModelError("has weights that are no numbers; take the file of its maker, or retrain")


def check_counts(counts: Array, most: int) -> None:
    """Raise ModelError unless all counts are at least 1 and their sum is at most `most`.

    What is built of them needs memory for the square of their sum.
    """
    if counts.min(initial=1) < 1 or counts.astype(float).sum() > most:
        raise ModelError(f"has more than {most:,} states, or counts below 1; take the file of its maker, or retrain")


def _part(items: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Return the items of a part, without the prefix of their names."""
    prefix = name + _DOT
    return {key.removeprefix(prefix): value for key, value in items.items() if key.startswith(prefix)}
