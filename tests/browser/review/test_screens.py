"""Every screen of the station, light, dark and at 200 %: accessible, no wider than its window, on one contact sheet."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.review.conftest import Opened, Visit
from tests.browser.review.keyboard import press, ready
from tests.browser.review.test_flow import read_note
from tests.web.review.world import note

pytestmark = pytest.mark.slow

Shoot: TypeAlias = Callable[[Page, str], None]

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "200 %": {"color_scheme": "light", "viewport": {"width": 640, "height": 430}, "device_scale_factor": 2},
}
SCREENS = 21  # of each look
_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def test_every_screen_is_accessible_and_on_the_contact_sheet(
    station: Opened, browser: Browser, axe: str, tmp_path: Path
) -> None:
    _, visit = station([note(number) for number in range(4)], random=0.5, without_suggestions=0.0)
    for name, extra in (("ann", "Mary"), ("bob", "")):  # who differ in one note, and have three to read
        reader = visit(name)
        press(reader.page, "Enter")
        read_note(reader, extra)
        ready(reader.page)
    shots: list[tuple[str, bytes]] = []
    for look, options in LOOKS.items():

        def shoot(page: Page, name: str, look: str = look) -> None:
            check_screen(page, axe, f"{name}, {look}")
            shots.append((f"{name}, {look}", page.screenshot()))

        stranger = visit(**options)
        stranger.page.goto(f"{stranger.base}/login")
        shoot(stranger.page, "login")
        stranger.check()
        show_reader(visit("ann", **options), shoot)
        show_adjudicator(visit("cay", **options), shoot)
        show_steward(visit("sue", **options), shoot)
    assert len(shots) == SCREENS * len(LOOKS) == len(dict(shots))
    sheet = Path(os.environ.get("CHAFFINCH_SHEETS", tmp_path)) / "contact-sheet.png"
    write_sheet(browser, shots, sheet)
    assert sheet.stat().st_size > 100_000


def show_reader(ann: Visit, shoot: Shoot) -> None:
    """Show a reader's screens: the queue, a note with its dialogs, as released, another note, and locked."""
    page = ann.page
    shoot(page, "queue")
    press(page, "Enter")
    ready(page)
    shoot(page, "note")
    dialogs = {"help": "?", "guideline": "g", "chooser": "t", "everywhere": "Shift+A"}
    for name, key in dialogs.items():
        press(page, key)
        expect(page.locator(f"#{name}")).to_be_visible()
        if name == "everywhere":
            expect(page.locator("#scopes")).not_to_contain_text("counting")
        shoot(page, f"{name} in the note")
        press(page, "Escape")
        expect(page.locator(f"#{name}")).to_be_hidden()
    for mode, words in (("released", "As released."), ("both", "Original and as released.")):
        press(page, "o")
        expect(page.locator("#live")).to_have_text(words, timeout=60_000)
        expect(page.locator("#text")).to_have_class(f"text {mode}")
        shoot(page, mode)
    page.evaluate("station.lock()")
    expect(page.locator("#lock")).to_be_visible()
    shoot(page, "lock in the note")
    task, other = page.evaluate("[station.task.task, station.task.others[0].note]")
    for name, path in {"other note": f"/notes/{task}/others/{other}", "locked": "/locked"}.items():
        page.goto(ann.base + path)
        shoot(page, name)
    ann.check()


def show_adjudicator(cay: Visit, shoot: Shoot) -> None:
    """Show an adjudicator's screens: the cases, the differences of one, and the question for a reason."""
    shoot(cay.page, "cases")
    press(cay.page, "Enter")
    cay.page.wait_for_selector("body[data-ready=case]")
    shoot(cay.page, "differences")
    press(cay.page, "1")
    expect(cay.page.locator("#reason")).to_be_visible()
    shoot(cay.page, "reason")
    cay.check()


def show_steward(sue: Visit, shoot: Shoot) -> None:
    """Show a steward's screens, and that of a path that does not exist."""
    names = {"/": "progress", "/nothing-here": "not possible"}
    for path in ("/", "/tasks", "/agreement", "/audit", "/guideline", "/nothing-here"):
        sue.page.goto(sue.base + path)
        shoot(sue.page, names.get(path, path[1:]))


def check_screen(page: Page, axe: str, name: str) -> None:
    """Raise AssertionError if axe-core finds a fault, or the page scrolls sideways."""
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, rules)", _RULES)
    faults = [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found["violations"]]
    assert faults == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"


def write_sheet(browser: Browser, shots: Sequence[tuple[str, bytes]], file: Path) -> None:
    """Write all screens as one picture."""
    cells = "".join(
        f"<figure><img width=420 src='data:image/png;base64,{base64.b64encode(picture).decode()}'>"
        f"<figcaption>{name}</figcaption></figure>"
        for name, picture in shots
    )
    style = "body{font:14px sans-serif;display:flex;flex-wrap:wrap;gap:12px}figure{margin:0}img{border:1px solid #999}"
    page = browser.new_page(viewport={"width": 1330, "height": 900})
    page.set_content(f"<style>{style}</style>{cells}")
    page.screenshot(path=file, full_page=True)
    page.close()
