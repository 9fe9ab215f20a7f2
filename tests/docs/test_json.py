"""docs/json.md lists the keys of every result, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from chaffinch.cli.deid import results as deid_results
from chaffinch.cli.frame.results import Result
from chaffinch.cli.weak import results as weak_results

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"


def test_every_key_is_documented_and_snake_case() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    documented = [re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) for section in sections]
    structures = Result.__subclasses__()
    assert {deid_results.RunResult, weak_results.ApplyResult} <= set(structures)
    assert sorted(documented) == sorted(list(each.__struct_encode_fields__) for each in structures)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", key) for keys in documented for key in keys)
