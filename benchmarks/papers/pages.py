"""What a publication's page says: how we differ, and the value of every field of `published()`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from benchmarks._folder import ROOT

PAGES = ROOT / "docs" / "methods"
DIFFERENCES = "## Where we differ, and why"
FIELDS = "## `published()`, field by field"


class Difference(NamedTuple):
    """One point in which our system is not the published one, and why or what that does."""

    what: str
    why: str


def differences(page: str) -> list[Difference]:
    """The differences that a page lists: `- **What.** Why`."""
    points = re.split(r"^- ", _section(PAGES / page, DIFFERENCES), flags=re.MULTILINE)[1:]
    found = [re.fullmatch(r"\*\*(.+?)\*\*\s*(.*)", " ".join(point.split())) for point in points]
    return [Difference(match[1].rstrip("."), match[2]) for match in found if match is not None]


def fields(page: str) -> dict[str, str]:
    """The value of every field of `published()` as a page's table has it: `| field | value | source |`."""
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", _section(PAGES / page, FIELDS), flags=re.MULTILINE)
    return dict(rows)


def _section(path: Path, heading: str) -> str:
    """The text of a page between a heading and the next of its level."""
    _, _, rest = path.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
