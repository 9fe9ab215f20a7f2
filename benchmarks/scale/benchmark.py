"""Scale: what processes, notes and patients cost as they become many. Each part is a function in a module beside.

chaffinch bench scale --json                    # all parts, at full size: about 15 minutes of CPU
chaffinch bench scale --only cpu --size 2000    # a quick look
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from benchmarks.scale import length, pool, spark, start
from chaffinch.errors import ConfigError

Part = Callable[[Path, int | None], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
PARTS: dict[str, Part] = {
    "cpu": pool.cpu_rows, "memory": pool.memory_rows, "patient": pool.patient_rows, "length": length.length_rows,
    "spark": spark.spark_rows, "start": start.start_rows,
}  # fmt: skip


class Options(Protocol):
    """What `chaffinch bench` hands over."""

    @property
    def only(self) -> str | None: ...

    @property
    def size(self) -> int | None: ...


def run(options: Options) -> dict[str, Any]:
    """Return the bars and rows of all parts, or of one."""
    if options.only is not None and options.only not in PARTS:
        raise ConfigError(f"--only {options.only!r} is no part of scale; choose one of {', '.join(PARTS)}")
    bars: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in PARTS if options.only is None else (options.only,):
            more_bars, more_rows = PARTS[name](Path(folder), options.size)
            bars += more_bars
            rows += more_rows
    return {"bars": bars, "rows": rows}
