"""The page of sources in a real browser: it loads nothing, complains of nothing, and shows tables and maps."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from chaffinch.cli import main
from chaffinch.text.formats import write
from tests.browser.test_report import browser
from tests.weak.alternate_notes import notes

__all__ = ["browser"]  # a fixture


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_of_sources_stands_alone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    votes, page_file = tmp_path / "votes.jsonl", tmp_path / "sources.html"
    write(notes(0, 20, gold=True), votes)
    assert main(["weak", "analyse", str(votes), "--html", str(page_file), "-q"]) == 0
    page = browser.new_page(color_scheme="dark" if dark else "light", viewport={"width": 700, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    assert requests == [page_file.as_uri()]
    assert complaints == []
    assert page.get_by_role("heading", name="Sources by spans").is_visible()
    assert page.locator(".matrix").count() == 4, "a map for each source, and their dependence"
    assert page.locator("svg.bar").count() > 20
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    words, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert words != paper
    page.close()
