"""The decision whether a model may keep words from inside spans: the user's setting, else by the labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from chaffinch.text.identifiers import names_identifier


class PrivateConfig(Protocol):
    """Settings that say whether words inside spans are kept out of a model; None leaves it to the labels."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def private(self) -> bool | None:
        """Tell whether words inside spans are kept out of a model; None lets the labels decide."""


Chosen = TypeVar("Chosen", bound=PrivateConfig)


def decide_privacy(config: Chosen, labels: Iterable[str]) -> Chosen:
    """Return the config with `private` set: as it is, or if it is None, whether a label names identifiers."""
    return config if config.private is not None else replace(config, private=first_identifier(labels) is not None)


def first_identifier(labels: Iterable[str]) -> str | None:
    """Return the first label that names identifiers, or None."""
    return next(filter(names_identifier, labels), None)
