"""Mask the identifier (`****`): one character for each character, or a fixed number of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_text, check_wholes
from chaffinch.deid.release.replace import FoundIdentifier, Memory
from chaffinch.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Mask:
    """Operator that masks all characters except line breaks, so that offsets stay; with `length`, that many."""

    character: str = "*"
    length: int = 0
    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __post_init__(self) -> None:
        """Raise ConfigError unless `character` is one printable character and `length` a whole number."""
        check_wholes(self, "length")
        check_text(self.character, "character")
        if len(self.character) != 1 or not self.character.isprintable():
            raise ConfigError(f"character must be one printable character, got {self.character!r}")

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return `length` mask characters, or if it is 0 one per character of the text; then line ends stay."""
        if self.length:
            return self.character * self.length
        return "".join(mark if mark in "\r\n" else self.character for mark in seen.text)
