"""Two readers at once, an adjudicator and a steward, with keys alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.review.conftest import Opened, Visit, long_note
from tests.browser.review.keyboard import press, ready, settled, type_ahead
from tests.web.review.world import CANARY, note

pytestmark = pytest.mark.slow


def read_note(visit: Visit, extra: str = "") -> None:
    """Read the open note with keys: accept, remove, accept, mark a name, done."""
    page = visit.page
    ready(page)
    number = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    if extra:
        page.evaluate("word => station.goTo(station.text.indexOf(word))", extra)
        press(page, "Shift+ArrowRight", "1")
    press(page, "Enter")
    page.wait_for_function("number => !window.station || station.task.number !== number", arg=number)


def test_two_readers_an_adjudicator_and_a_release(station: Opened, database_url: str) -> None:
    project, visit = station([note(0), note(1)], random=0.0, url=database_url)
    ann, bob = visit("ann"), visit("bob")
    for one in (ann, bob):
        press(one.page, "Enter")
    for turn in range(2):  # both at once, note by note
        read_note(ann, "Mary")
        read_note(bob, "Mary" if turn == 0 else "")
    for one in (ann, bob):
        one.page.wait_for_url(f"{one.base}/")
        expect(one.page.get_by_text("All your notes are done.")).to_be_visible()
    cay = visit("cay")
    press(cay.page, "Enter")
    cay.page.wait_for_selector("body[data-ready=case]")
    expect(cay.page.locator(".difference")).to_have_count(1)
    content = cay.page.content()
    assert ">ann<" not in content
    assert ">bob<" not in content
    marked = cay.page.locator(".column mark").first.locator("xpath=ancestor::section").get_attribute("data-side")
    press(cay.page, str(marked), "m")
    settled(cay.page)
    press(cay.page, "Enter")
    cay.page.wait_for_url(f"{cay.base}/")
    sue = visit("sue")
    sue.page.get_by_label("Name of the release").focus()
    sue.page.keyboard.type("first")
    press(sue.page, "Enter")
    expect(sue.page.get_by_text("Released: 2 notes, 6 replacements")).to_be_visible(timeout=30_000)
    released = (project.folder / "released" / "first.jsonl").read_text()
    assert released.count(CANARY) == 2, "one mention of each note was marked"
    sue.page.goto(f"{sue.base}/agreement")
    expect(sue.page.get_by_role("heading", name="ann and bob")).to_be_visible()
    for one in (ann, bob, cay, sue):
        one.check()


def test_two_readers_of_a_long_note_at_once(station: Opened) -> None:
    doc = long_note()
    assert (len(doc.text) >= 100_000, len(doc.layer("machine"))) == (True, 500)
    project, visit = station([doc])
    ann, bob = visit("ann"), visit("bob")
    for one in (ann, bob):
        press(one.page, "Enter")
        ready(one.page)
    for turn in range(500):  # in turns, so that both write at once; bob takes one suggestion for no identifier
        press(ann.page, "a")
        press(bob.page, "x" if turn == 250 else "a")
    ann.page.evaluate("station.goTo(station.text.indexOf('Penn'))")  # behind emoji and combining characters
    press(ann.page, "2")
    for one in (ann, bob):
        press(one.page, "Enter")
        one.page.wait_for_url(f"{one.base}/")
    cay = visit("cay")
    press(cay.page, "Enter")
    cay.page.wait_for_selector("body[data-ready=case]")
    expect(cay.page.locator(".difference")).to_have_count(2)
    for row in range(2):  # the mark counts in both: whoever has it is right
        marked = cay.page.locator(".difference").nth(row).locator("section", has=cay.page.locator("mark"))
        chosen = str(marked.first.get_attribute("data-side"))
        assert cay.page.locator(".difference.here").get_attribute("aria-label") == f"Difference {row + 1} of 2"
        assert marked.count() == 1
        press(cay.page, chosen, "m")
    press(cay.page, "Enter")
    cay.page.wait_for_url(f"{cay.base}/")
    sue = visit("sue")
    sue.page.get_by_label("Name of the release").focus()
    sue.page.keyboard.type("long")
    press(sue.page, "Enter")
    expect(sue.page.get_by_text("Released: 1 notes, 501 replacements")).to_be_visible(timeout=60_000)
    released = (project.folder / "released" / "long.jsonl").read_text()
    assert "Farrow" not in released
    assert "Penn" not in released
    for one in (ann, bob, cay, sue):
        one.check()


def test_an_adjudicator_types_ahead(station: Opened) -> None:
    _, visit = station([note(0)], random=0.0)
    for name, extra in (("ann", "Mary"), ("bob", "")):
        reader = visit(name)
        press(reader.page, "Enter")
        read_note(reader, extra)
        reader.page.wait_for_url(f"{reader.base}/")
    cay = visit("cay")
    press(cay.page, "Enter")
    cay.page.wait_for_selector("body[data-ready=case]")
    type_ahead(cay.page, "1", "m", "Enter")
    cay.page.wait_for_url(f"{cay.base}/")
    cay.check()
