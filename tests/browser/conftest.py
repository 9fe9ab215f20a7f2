"""A real browser, and pages that must stand alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

Opened: TypeAlias = Callable[[Path], AbstractContextManager[Page]]

expect.set_options(timeout=30_000)  # as long as Playwright waits for anything else: machines with other work are slow


@pytest.fixture(scope="package")  # no longer: Playwright keeps an event loop, which other tests cannot have beside it
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


@pytest.fixture(params=["light", "dark"])
def opened(browser: Browser, request: pytest.FixtureRequest) -> Opened:
    """Opens a page, light or dark, that loads nothing, complains of nothing, and fits a narrow window."""

    @contextmanager
    def open_page(file: Path) -> Iterator[Page]:
        page = browser.new_page(color_scheme=request.param, viewport={"width": 700, "height": 900})
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        assert requests == [file.as_uri()]
        assert complaints == []
        yield page
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
        style = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
        assert len(set(style)) == 2, "words are of another colour than the paper"
        page.close()

    return open_page
