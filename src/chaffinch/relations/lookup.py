"""Numbers of features by their parts: what a name is made of is looked up, and the name made once.

Candidates of a sentence share most of their features; making every name anew costs more than all else in extraction.
"""

from __future__ import annotations

from collections.abc import Callable

MOST = 1 << 19  # parts kept in one table; then it starts anew, so that no text makes it grow without end


class Table(dict[str, "int | None"]):
    """The column of the feature that a part makes, None if the model does not know it; made when first asked for."""

    __slots__ = ("_known", "_name")

    def __init__(self, known: dict[str, int], name: Callable[[str], str]) -> None:
        self._known, self._name = known, name

    def __missing__(self, part: str) -> int | None:
        if len(self) >= MOST:
            self.clear()
        found = self[part] = self._known.get(self._name(part))
        return found


class Tables(dict[str, Table]):
    """Tables by the first part of a name, the second being looked up in the table."""

    __slots__ = ("_known", "_name")

    def __init__(self, known: dict[str, int], name: Callable[[str, str], str]) -> None:
        self._known, self._name = known, name

    def __missing__(self, first: str) -> Table:
        if len(self) >= MOST:
            self.clear()
        name = self._name
        found = self[first] = Table(self._known, lambda second: name(first, second))
        return found
