"""The reader's forward pass in float32: rows are never rounded to bytes, so that it computes what torch computes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from chaffinch.models.reader import forward
from chaffinch.models.reader.model import Model
from chaffinch.models.reader.wordpieces import Ints


class FloatMatrix(NamedTuple):
    """A linear map in float32: the twin of one on bytes."""

    weight: forward.Floats32
    bias: forward.Floats32


def float_gelu(x: forward.Floats32) -> forward.Floats32:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)), np.float32)


def with_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let networks that are prepared from here on multiply floats: rows are never rounded to bytes."""
    maps = {
        "pack": lambda matrix, scales, bias: FloatMatrix(matrix.astype(np.float32) * scales, bias),
        "to_bytes": lambda x: x,
        "apply": lambda x, matrix: x @ matrix.weight + matrix.bias,
        "apply_gelu": lambda x, matrix: float_gelu(x @ matrix.weight + matrix.bias),
    }
    for name, twin in maps.items():
        monkeypatch.setattr(forward, name, twin)


def around(columns: Ints, model: Model) -> Ints:
    """The columns of a window with the special pieces."""
    out = np.pad(columns, ((0, 0), (1, 1)))
    out[0, [0, -1]] = model.vocabulary.begin, model.vocabulary.end
    return out
