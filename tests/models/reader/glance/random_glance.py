"""A glance with random weights: no training, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.models.reader.forward import Quantised
from chaffinch.models.reader.glance.config import Glance
from chaffinch.models.reader.glance.model import KIND, Model
from chaffinch.models.reader.inputs import GAPS, LENGTHS, SHAPES
from tests.models.reader.random_reader import PIECES

CUES = ("cue:field doctor", "cue:section plan")


def glance_state(labels: Sequence[str], *, reach: int = 2, width: int = 8, hidden: int = 12, seed: int = 0) -> State:
    """The state of a glance of these labels, which spells every word and knows two cues."""
    rng = np.random.default_rng(seed)
    config = Glance(reach=reach, width=width, hidden=hidden, layers=("cue:field", "cue:section"))

    def table(rows: int, spread: float = 0.5) -> NDArray[np.float32]:
        return rng.normal(0, spread, (rows, width)).astype(np.float32)

    def linear(name: str, rows: int, columns: int) -> dict[str, NDArray[Any]]:
        made = Quantised.of(rng.normal(0, 2 * rows**-0.5, (rows, columns)), axis=0)
        return {
            name: made.values,
            f"{name}_scale": made.scales,
            f"{name}_bias": rng.normal(0, 0.3, columns).astype(np.float32),
        }

    words, cued = Quantised.of(table(len(PIECES), 1.0), axis=1), table(1 + len(CUES))
    cued[0] = 0.0
    arrays: dict[str, NDArray[Any]] = {
        "words": words.values,
        "words_scale": words.scales,
        "shapes": table(SHAPES),
        "gaps": table(GAPS),
        "lengths": table(LENGTHS),
        "cues": cued,
        "edge": table(1)[0],
    }
    arrays |= linear("inner", (2 * reach + 1) * width, hidden) | linear("outer", hidden, 1 + len(labels))
    return State(arrays, {"pieces": PIECES, "cues": CUES}, KIND, asdict(config), tuple(sorted(labels)))


def glance_of(labels: Sequence[str], *, seed: int = 0) -> Model:
    """A glance of these labels with random weights."""
    return Model.of(glance_state(labels, seed=seed))
