"""The publications' benchmark: pages that cannot drift from `published()`, and rows in common columns."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.papers import benchmark as papers
from benchmarks.papers import pages

from chaffinch import CHMM, HMMDP, Cascade, ClassHMM, PhraseHMM
from chaffinch.errors import ConfigError

PUBLISHED: dict[str, Any] = {
    "hmmdp.md": HMMDP.published(),
    "chmm.md": CHMM.published(),
    "phrasehmm.md": PhraseHMM.published("phrase"),
    "classhmm.md": ClassHMM.published(),
    "cascade.md": Cascade.published(),
}


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None = None
    split: str = "dev"
    seeds: int = 1


@pytest.mark.parametrize("page", PUBLISHED)
def test_every_field_of_published_has_the_value_that_its_page_says(page: str) -> None:
    config = PUBLISHED[page]
    assert pages.fields(page) == {field.name: repr(getattr(config, field.name)) for field in fields(config)}


def test_every_publication_has_a_page_with_differences_and_parts_that_exist() -> None:
    assert {paper.page for paper in papers.PAPERS.values()} == set(PUBLISHED)
    for paper in papers.PAPERS.values():
        points = pages.differences(paper.page)
        assert len(points) >= 4
        assert all(point.what and point.why for point in points)
        module = importlib.import_module(f"benchmarks.{paper.benchmark}.benchmark")
        assert set(paper.parts) <= set(module.PARTS)


def test_a_page_whose_table_lacks_a_field_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (pages.PAGES / "cascade.md").read_text(encoding="utf-8")
    (tmp_path / "cascade.md").write_text(text.replace("| `cutoff` | `6` |", "| `cutoff` | `5` |"), encoding="utf-8")
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    assert pages.fields("cascade.md")["cutoff"] == "5"
    with pytest.raises(AssertionError):
        test_every_field_of_published_has_the_value_that_its_page_says("cascade.md")


def test_rows_of_other_benchmarks_come_in_common_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str | None, str]] = []

    def run(options: papers.Part) -> dict[str, Any]:
        asked.append((options.only, options.split))
        row = {"system": "cascade, online", "score": 72.5, "published": 72.16, "RSS MB": 400, "train CPU s": 41.0}
        return {"bars": [{"id": "one"}], "rows": [{**row, "interval": "-", "MB": 3, "leaked": 7, "new": 1}]}

    monkeypatch.setattr(importlib, "import_module", lambda _: SimpleNamespace(run=run))
    result = papers.run(Options(tmp_path, "P4"))
    assert asked == [("published", "dev"), ("factors", "dev"), ("unstated", "dev")]
    assert result["bars"] == [{"id": "one"}] * 3
    first, _, _, *others = result["rows"]
    assert first["paper"] == "P4"
    assert (first["F1"], first["published"], first["CPU s"], first["peak MB"]) == (72.5, 72.16, 41.0, 400)
    assert "MB" not in first
    assert (first["leaked"], list(first)[-1], first["new"]) == (7, "new", 1)  # no column is lost but those left out
    assert [row["system"] for row in others] == [point.what for point in pages.differences("cascade.md")]
    assert {row["table"] for row in others} == {"differences"}


def test_without_data_or_with_an_unknown_publication_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data or CHAFFINCH_DATA"):
        papers.run(Options(None, "P4"))
    with pytest.raises(ConfigError, match="unknown publication 'P5'; choose one of P0, P1, P2, P3, P4"):
        papers.run(Options(tmp_path, "P5"))
