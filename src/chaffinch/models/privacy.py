"""Whether a model keeps words from inside spans: the user's word, else the labels decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from chaffinch.errors import ConfigError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.text.identifiers import names_identifier

Chosen = TypeVar("Chosen", Cascade, HMMDP, ClassHMM)


def decide_privacy(config: Chosen, labels: Iterable[str]) -> Chosen:
    """Return the config with `private` decided: where it is None, true if a label names identifiers.

    ConfigError if it would have to be true and cannot be, since two stages are made of the words inside spans.
    """
    if config.private is not None:
        return config
    identifiers = [label for label in labels if names_identifier(label)]
    if identifiers and isinstance(config, Cascade) and config.stages == 2:
        raise ConfigError(
            f"label {identifiers[0]!r} names identifiers, and two stages keep the words inside spans; use stages=1, "
            "or say private=False (--no-private) if the model may hold them"
        )
    return replace(config, private=bool(identifiers))
