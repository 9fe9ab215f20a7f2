"""How large the attacks are: a size that fits the daily tests, and the full size of `make drill`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

DRILL = bool(os.environ.get("CHAFFINCH_DRILL"))  # set by `make drill`


def sized(daily: T, full: T) -> T:
    """Return the full size in a drill, else the daily one."""
    return full if DRILL else daily
