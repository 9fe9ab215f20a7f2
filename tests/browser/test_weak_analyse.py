"""The page of sources in a real browser: it loads nothing, complains of nothing, and shows tables and maps."""

from __future__ import annotations

from pathlib import Path

from chaffinch.cli import main
from chaffinch.text.formats import write
from tests.browser.conftest import Opened
from tests.weak.training.made_notes import notes


def test_the_page_of_sources_stands_alone(opened: Opened, tmp_path: Path) -> None:
    votes, page_file = tmp_path / "votes.jsonl", tmp_path / "sources.html"
    write(notes(0, 20, gold=True), votes)
    assert main(["weak", "analyse", str(votes), "--html", str(page_file), "-q"]) == 0
    with opened(page_file) as page:
        assert page.get_by_role("heading", name="Sources by spans").is_visible()
        assert page.locator(".matrix").count() == 4, "a map for each source, and their dependence"
        assert page.locator("svg.bar").count() > 20
