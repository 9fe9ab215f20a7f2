"""Keys pressed faster than dialogs close, answers come and notes load: each does what its reader sees, or nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from tests.browser.review.conftest import FirstNote, Opened
from tests.browser.review.keyboard import held, press, ready, settled, type_ahead
from tests.browser.review.test_note import words_of
from tests.web.review.world import CANARY, note, task_of, user

pytestmark = pytest.mark.slow

NAME = f"Mary {CANARY}"


def test_a_second_type_is_chosen_while_the_first_dialog_closes(first_note: FirstNote) -> None:
    doc = note(0)
    project, ann = first_note([doc])
    type_ahead(ann.page, "t", "Enter", "t")  # PATIENT is the first of the list; then the list again
    expect(ann.page.locator("#chooser")).to_be_visible()
    ann.page.keyboard.type("hosp")
    press(ann.page, "Enter")
    settled(ann.page)
    assert words_of(project, "ann", 1, doc)[0] == ("Penn", "HOSPITAL", True)
    ann.check()


def test_keys_between_two_notes_do_nothing(first_note: FirstNote) -> None:
    given = [note(0), note(1)]
    project, ann = first_note(given, random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    settled(page)
    with held(page, "**/done"):
        press(page, "Enter")
        press(page, "1", "Enter", "Control+z", "x")
        expect(page.locator("#live")).to_contain_text("this key did nothing")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    ready(page)
    settled(page)
    second = page.evaluate("station.task.number")
    left = words_of(project, "ann", first, given[first - 1])
    assert left == [("Penn", "DOCTOR", True), ("4 May 2010", "DATE", True)]
    assert [confirmed for *_, confirmed in words_of(project, "ann", second, given[second - 1])] == [False] * 3
    opened = reading.open_task(Desk(project), user(project, "ann"), task_of(project, "ann", second))
    assert not opened.assignment.done
    ann.check()


def test_a_held_enter_key_finishes_one_note_only(first_note: FirstNote) -> None:
    _, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    page.keyboard.down("Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    ready(page)
    press(page, "a", "x", "a")
    page.keyboard.down("Enter")  # without a keyup before it, it is a repetition
    page.keyboard.up("Enter")
    settled(page)
    assert page.evaluate("station.leaving") is False
    assert page.evaluate("station.task.number") != first
    ann.check()


def test_a_key_pressed_before_the_counts_come_is_for_the_question(first_note: FirstNote) -> None:
    given = [note(0), note(1)]
    project, ann = first_note(given, random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")  # either of them: their order is drawn under the project's key
    page.evaluate("station.goTo(station.text.indexOf('Mary'))")
    press(page, "Shift+ArrowRight", "1")
    settled(page)
    with held(page, "**/identical"):
        press(page, "Shift+A", "3", "2")  # not before they are counted
        expect(page.locator("#scopes")).to_contain_text("of this patient: counting")
        press(page, "1")
        expect(page.locator("#everywhere")).to_be_hidden()
    settled(page)
    marked = {
        number: [row for row in words_of(project, "ann", number, given[number - 1]) if row[0] == NAME]
        for number in (1, 2)
    }
    assert marked == {first: [(NAME, "PATIENT", True)] * 2, 3 - first: []}
    ann.check()


def test_the_next_note_has_what_was_suggested_for_it_a_moment_ago(first_note: FirstNote) -> None:
    given = [note(0), note(1)]
    _, ann = first_note(given, random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    page.wait_for_function("() => station.prefetched")  # as it was before
    press(page, "a", "x", "a")
    page.evaluate("station.goTo(station.text.indexOf('Mary'))")
    press(page, "Shift+ArrowRight", "1", "Shift+A")
    expect(page.locator("#scopes")).to_contain_text("of this patient: 2 in 1 other notes")
    with held(page, "**/apply"):
        press(page, "2", "Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    ready(page)
    shown = page.evaluate("station.marks.list.map(mark => station.text.slice(mark.start, mark.end))")
    assert shown.count(NAME) == 2
    ann.check()


def test_a_preview_that_comes_late_is_not_shown_in_the_next_note(first_note: FirstNote) -> None:
    _, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    settled(page)
    with page.expect_response("**/preview"), held(page, "**/preview"):
        press(page, "o", "Enter")
        page.wait_for_function("number => station.task.number !== number", arg=first)
    ready(page)
    press(page, "n")
    assert page.locator("#text").get_attribute("class") == "text original"
    assert page.locator("mark.m[data-new]").count() == 0
    ann.check()


def test_the_note_as_released_follows_edits(first_note: FirstNote) -> None:
    _, ann = first_note([note(0)])
    page = ann.page
    press(page, "a", "x", "a", "o")
    expect(page.locator("mark.m[data-new]")).to_have_count(2, timeout=60_000)
    page.evaluate("station.goTo(station.text.indexOf('Mary'))")
    press(page, "Shift+ArrowRight", "1")
    expect(page.locator("mark.m[data-new]")).to_have_count(3, timeout=60_000)
    ann.check()


def test_an_edit_that_the_server_refuses_is_shown_and_blocks_no_key(first_note: FirstNote) -> None:
    _, ann = first_note([note(0)])
    page = ann.page
    refuse = {"status": 422, "content_type": "application/json", "body": '{"code":"x","error":"no such type"}'}
    page.route("**/edits", lambda route: route.fulfill(**refuse))
    press(page, "a", "x", "a")
    expect(page.locator("#saved")).to_have_text("not saved: no such type")
    press(page, "Enter")
    expect(page.locator("#live")).to_have_text("not saved: no such type")
    ready(page)
    assert page.evaluate("station.leaving") is False
    ann.check(offline=True)


def test_an_adjudicator_settles_several_differences_in_haste(station: Opened) -> None:
    _, visit = station([note(0)], random=0.0)
    for name, keys in (("ann", ("a", "x", "a")), ("bob", ("a", "a", "x"))):
        reader = visit(name)
        press(reader.page, "Enter")
        ready(reader.page)
        press(reader.page, *keys, "Enter")
        reader.page.wait_for_url(f"{reader.base}/")
    cay = visit("cay")
    press(cay.page, "Enter")
    cay.page.wait_for_selector("body[data-ready=case]")
    expect(cay.page.locator(".difference")).to_have_count(2)
    type_ahead(cay.page, "1", "m", "1")  # the second question is asked when the first dialog has hardly closed
    expect(cay.page.locator("#reason")).to_be_visible()
    type_ahead(cay.page, "m", "Enter")
    cay.page.wait_for_url(f"{cay.base}/")
    expect(cay.page.get_by_text("Nothing to settle")).to_be_visible()
    cay.check()
