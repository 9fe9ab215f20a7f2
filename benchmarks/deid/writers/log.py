"""Log every scoring of held-out notes (test, fresh): date, commit, command, reason, figures; a line of JSON each.

Who looks at figures of held-out notes again and again chooses by them in the end. So a scoring needs a reason, in the
variable CHAFFINCH_REASON, and leaves a line in `benchmarks/deid/scorings.jsonl`, which is committed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.deid.writers.corpus import HELD_OUT
from chaffinch.errors import ConfigError

SCORINGS: Final = Path(__file__).parents[1] / "scorings.jsonl"
VARIABLE: Final = "CHAFFINCH_REASON"


def reason_for(split: str) -> str:
    """Return why the notes of a split are scored; held-out notes are not without a reason."""
    reason = os.environ.get(VARIABLE, "").strip()
    if split in HELD_OUT and not reason:
        raise ConfigError(
            f"each scoring of the {split} notes is logged with its reason; set {VARIABLE}, or use --split dev"
        )
    return reason


def append_scoring(
    command: str, reason: str, figures: Mapping[str, Any], by_category: Mapping[str, Any], path: Path = SCORINGS
) -> None:
    """Append a line for a scoring of held-out notes: figures by system, and by category for our settings."""
    entry = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit(), "command": command,
        "reason": reason, "figures": figures, "by category": by_category,
    }  # fmt: skip
    with path.open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")


def _commit() -> str:
    """Return the commit of the checkout, and whether files differ from it."""
    try:
        commit = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!*scorings.jsonl")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} with changes" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()
