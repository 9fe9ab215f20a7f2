"""The HTML report in a real browser: it loads nothing, complains of nothing, and shows its tables and charts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from chaffinch.cli import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; where it is missing the tests are skipped, but in CI that is a failure."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is missing: apt-get install chromium")
        pytest.skip("chromium is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=flags)
        yield started
        started.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_stands_alone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    page_file = tmp_path / "report.html"
    assert main(["evaluate", str(EXAMPLES / "notes"), str(EXAMPLES / "model.jsonl"), "--html", str(page_file)]) == 0
    page = browser.new_page(color_scheme="dark" if dark else "light", viewport={"width": 700, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    assert requests == [page_file.as_uri()]
    assert complaints == []
    assert page.locator("h1").inner_text() == "model.jsonl against notes"
    assert page.get_by_role("row", name="PATIENT").first.is_visible()
    assert page.locator("svg").count() > 20
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    words, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert words != paper
    page.close()
