"""Start-up: CPU seconds of short commands and of one short note, at the first ever run and with compiled kernels.

Bytecode is kept in a folder of the benchmark, as an installed package has it; so are the compiled kernels.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

NOTE = "Seen by Dr. Penn on 3/4/1998 at Mercy Hospital.\nMRN: 1234567\n"
ROUNDS = 3  # of each command; the middle one counts


def start_rows(folder: Path, _: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars and rows of CPU seconds: --version, --help, one short note by all voices and by the fast ones."""
    (folder / "note.txt").write_text(NOTE, encoding="utf-8")
    note = ["deid", "note.txt", "-o", "out.txt", "--overwrite", "--quiet"]
    first = _cost(folder, note)
    commands = {
        "--version": ["--version"], "--help": ["--help"], "one short note": note,
        "one short note, --fast": [*note, "--fast"],
    }  # fmt: skip
    costs = {name: median(_cost(folder, command) for _ in range(ROUNDS)) for name, command in commands.items()}
    bars = [
        _bar("first_note_ever", first, 15.0, 8.0),
        _bar("short_note", costs["one short note"], 1.2, 0.8),
        _bar("short_note_fast", costs["one short note, --fast"], 1.2, 0.8),
        _bar("version", costs["--version"], 0.35, 0.2),
        _bar("help", costs["--help"], 0.35, 0.2),
    ]
    named = {"one short note, the first ever": first, **costs}
    return bars, [{"part": "start", "what": name, "cpu_s": round(cost, 3)} for name, cost in named.items()]


def _cost(folder: Path, arguments: Sequence[str]) -> float:
    """Return the CPU seconds of a command in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {"CHAFFINCH_CACHE": str(folder / "kernels"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    command = [sys.executable, "-m", "chaffinch", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=folder, env={**kept, **places}, stdout=subprocess.DEVNULL, start_new_session=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bar(name: str, value: float, floor: float, goal: float) -> dict[str, Any]:
    return {"id": name, "value": round(value, 3), "unit": "CPU s", "floor": floor, "goal": goal, "better": "lower"}
