"""Taggers read in tiles of sentences: what they find does not depend on the size of a tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chaffinch.kernels import linear as kernel
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core import linear
from chaffinch.models.core.methods import Config
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.tagger import train
from tests.models.notes import notes

TRAIN, TEST = notes(20), notes(8, 1)
CONFIGS: dict[str, Config] = {
    "cascade": Cascade(epochs=2, private=False),
    "two stages": Cascade(stages=2, scheme="IOB2", documents=False, epochs=2, private=False),
    "hmmdp": HMMDP(2, 2, min_count=2, passes=2, epochs=2),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_spans_and_chances_are_the_same_bits_for_any_tile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger, sizes = train(TRAIN, CONFIGS[name]), list[int]()
    whole = tagger.read(TEST)
    before = kernel.batch

    def counted(*args: Any, **options: Any) -> Any:
        """Return the batch, and note how many sentences it has."""
        batch = before(*args, **options)
        sizes.append(len(batch))
        return batch

    monkeypatch.setattr(kernel, "batch", counted)
    for tile in (1, 7, 40):
        monkeypatch.setattr(linear, "TILE", tile)
        sizes.clear()
        for (spans, rows), (tiled_spans, tiled_rows) in zip(whole, tagger.read(TEST), strict=True):
            assert [replace(span) for span in spans] == tiled_spans
            np.testing.assert_array_equal(rows, tiled_rows)
        assert len(sizes) > 3
