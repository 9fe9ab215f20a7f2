"""A review station, browsers of several users that must stay on it and complain of nothing, and a long note."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from chaffinch.text import Document, Span
from chaffinch.web.review.project import Project
from tests.browser.review.keyboard import press, ready
from tests.web.review.databases import cheap_passwords, database_url, postgres
from tests.web.review.world import PASSWORD, make_project, served

__all__ = ["cheap_passwords", "database_url", "postgres"]

START = "Pat: Zoë O\u2019Neil 🧑‍⚕️ cafe\u0301 👍🏽 seen by Dr. Penn\r\non 4 May 2010 at St. Mary.\r\n"


def long_note(characters: int = 100_000, spans: int = 500) -> Document:
    """Return a long note: emoji, combining characters and CRLF first, then lines with a suggestion here and there."""
    parts, marks, length = [START], [], len(START)
    line = "Day {0}: stable overnight, tolerating diet; discussed with Farrow{0} and the team, plan unchanged. "
    filler = "No fever, chills or rigors. Wound clean and dry.\r\n"
    number = 0
    step = characters / spans
    while length < characters:
        words = line.format(number) if number < spans else filler
        if number < spans:
            place = length + words.index("Farrow")
            marks.append(Span(place, place + len(f"Farrow{number}"), "DOCTOR", 0.8, "cascade"))
        parts.append(words)
        length += len(words)
        number += 1
        while length < min(step * number, characters):
            parts.append(filler)
            length += len(filler)
    return Document.make("".join(parts), id="long", group="p1", layers={"machine": marks[:spans]})


class Visit:
    """A user's browser; what it asked for and what it complained of is kept."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context, self.base = context, base
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context.add_init_script("addEventListener('pointerdown', () => { window.usedMouse = true; }, true)")
        # Chromium lets some requests pass for a while after the first route of a page: with a route from the start that
        # nothing asks for, later ones hold from the next key on.
        context.route("**/nothing-asks-for-this", lambda route: route.abort())
        self.page = self.tab()

    def tab(self) -> Page:
        """Open another tab."""
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def log_in(self, name: str) -> Page:
        """Log in with the keyboard."""
        self.page.goto(f"{self.base}/login")
        self.page.wait_for_function("() => document.activeElement?.name === 'name'")
        self.page.keyboard.type(name)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: "/login" not in url)
        return self.page

    def check(self, *, offline: bool = False) -> None:
        """Raise AssertionError unless the browser stayed on the server, complained of nothing and used no mouse."""
        assert all(url.startswith(self.base + "/") for url in self.requests), "a request left the server"
        assert offline or self.complaints == []
        assert all(page.evaluate("window.usedMouse") is None for page in self.context.pages)


Visitors: TypeAlias = Callable[..., Visit]
Opened: TypeAlias = Callable[..., tuple[Project, Visitors]]
FirstNote: TypeAlias = Callable[..., tuple[Project, Visit]]


@pytest.fixture
def station(tmp_path: Path, browser: Browser) -> Iterator[Opened]:
    """Opens a project of some documents, and returns it with a function that opens a browser of a user."""
    stack: list[Callable[[], object]] = []

    def open_station(documents: Sequence[Document], **settings: Any) -> tuple[Project, Visitors]:
        project = make_project(tmp_path, documents, **settings)
        serving = served(project)
        base = serving.__enter__()
        stack.append(lambda: serving.__exit__(None, None, None))
        stack.append(project.close)

        def visit(name: str = "", **options: Any) -> Visit:
            options.setdefault("viewport", {"width": 1280, "height": 860})
            context = browser.new_context(**options)
            stack.insert(0, context.close)
            made = Visit(context, base)
            if name:
                made.log_in(name)
            return made

        return project, visit

    yield open_station
    for close in stack:
        close()


@pytest.fixture
def first_note(station: Opened) -> FirstNote:
    """Opens a project of some documents, and the first note of its reader ann."""

    def open_first(documents: Sequence[Document], **settings: Any) -> tuple[Project, Visit]:
        project, visit = station(documents, **settings)
        ann = visit("ann")
        press(ann.page, "Enter")
        ready(ann.page)
        return project, ann

    return open_first


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which the package axe-playwright-python carries."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
