"""Answers of the server that come late, or never: the page shows what is stored, and no decision is lost or doubled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.project import Project
from tests.browser.review.conftest import FirstNote, Opened
from tests.browser.review.keyboard import arrived, held, let_events_come, press, ready, settled
from tests.browser.review.test_note import marks_of, words_of
from tests.web.review.world import CANARY, PASSWORD, TEXT, note, task_of, user

pytestmark = pytest.mark.slow

NAME = f"Mary {CANARY}"
_SHOWN = "() => station.marks.list.map(({start, end, label}) => [station.text.slice(start, end), label])"


@contextmanager
def without_answers(page: Page, pattern: str) -> Iterator[list[int]]:
    """Let messages to addresses of this pattern arrive, and lose their answers; yields the statuses that were lost."""
    lost: list[int] = []

    def lose(route: Route) -> None:
        lost.append(route.fetch().status)
        route.abort()

    page.route(pattern, lose)
    yield lost
    page.unroute(pattern, lose)


def go_to(page: Page, words: str) -> None:
    """Put the cursor on the first place of these words."""
    page.evaluate("words => station.goTo(station.text.indexOf(words))", words)


def is_done(project: Project, name: str, number: int) -> bool:
    """Tell whether a reader is done with a note."""
    return reading.open_task(Desk(project), user(project, name), task_of(project, name, number)).assignment.done


def stored(project: Project, name: str, number: int) -> list[list[str]]:
    """Return the words and type of each stored mark of a reader's note."""
    return [[TEXT[mark.start : mark.end], mark.label] for mark in marks_of(project, name, number)]


def test_an_answer_to_an_earlier_question_does_not_decide_a_later_one(first_note: FirstNote) -> None:
    project, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    go_to(page, "Mary")
    press(page, "Shift+ArrowRight", "1")
    settled(page)
    scopes = page.locator("#scopes")
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/identical", hold)
    press(page, "Shift+A", "Escape")
    go_to(page, "555")
    press(page, "Shift+A")
    arrived(page, waiting, 2)
    with page.expect_response("**/identical"):
        waiting[0].continue_()
    let_events_come(page)
    expect(scopes).to_contain_text("of this patient: counting")
    press(page, "2", "3")
    expect(page.locator("#everywhere")).to_be_visible()
    waiting[1].continue_()
    expect(scopes).to_contain_text("of this patient: 1 in 1 other notes")
    press(page, "2")
    expect(page.locator("#live")).to_contain_text("suggested 1 in 1 other notes")
    settled(page)
    words = [row[0] for row in words_of(project, "ann", 3 - first, note(2 - first))]
    assert NAME not in words
    assert "555-0134" in words
    ann.check()


def test_two_windows_that_mark_the_same_words_show_what_is_stored(station: Opened, database_url: str) -> None:
    project, visit = station([note(0)], random=0.0, url=database_url)
    ann = visit("ann")
    first, second = ann.page, ann.tab()
    for page in (first, second):
        page.goto(f"{ann.base}/notes/{task_of(project, 'ann', 1)}")
        ready(page)
        go_to(page, "Mary")
    press(first, "Shift+ArrowRight", "2")
    settled(first)
    press(second, "1")  # one word of two: whichever is stored last displaces the other
    settled(second)
    expect(second.locator("#live")).to_contain_text("Another window changed this note")
    assert second.evaluate(_SHOWN) == stored(project, "ann", 1)
    assert ["Mary", "PATIENT"] in stored(project, "ann", 1)
    press(first, "n")
    press(first, "a")
    settled(first)
    assert first.evaluate(_SHOWN) == stored(project, "ann", 1)
    ann.check()


def test_a_type_is_for_the_words_that_were_asked_about(station: Opened) -> None:
    project, visit = station([note(0)], random=0.0)
    ann = visit("ann")
    first, second = ann.page, ann.tab()
    for page in (first, second):
        page.goto(f"{ann.base}/notes/{task_of(project, 'ann', 1)}")
        ready(page)
    go_to(first, "Mary")
    press(first, "Shift+ArrowRight", "2")
    settled(first)
    with held(second, "**/edits"):
        press(second, "a")
        go_to(second, "Mary")
        press(second, "t")
    expect(second.locator("#live")).to_contain_text("Another window changed this note")
    second.keyboard.type("patient")
    press(second, "Enter")
    settled(second)
    assert ["Mary", "PATIENT"] in stored(project, "ann", 1)
    assert second.evaluate(_SHOWN) == stored(project, "ann", 1)
    ann.check()


def test_a_note_whose_closing_was_not_answered_is_closed_once_and_not_changed(first_note: FirstNote) -> None:
    project, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    settled(page)
    with without_answers(page, "**/done") as lost:
        press(page, "Enter")
        expect(page.locator("#live")).to_contain_text("no connection to the station")
        ready(page)
        press(page, "1", "u")
        expect(page.locator("#live")).to_contain_text("did not answer whether this note is done")
    assert lost == [200]
    assert is_done(project, "ann", first)
    expect(page.locator("#saved")).to_have_text("saved")
    press(page, "Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    assert stored(project, "ann", first) == [["Penn", "DOCTOR"], ["4 May 2010", "DATE"]]
    ann.check(offline=True)


def test_a_closed_note_stays_closed_when_the_next_does_not_come(first_note: FirstNote) -> None:
    project, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first, task = page.evaluate("[station.task.number, station.task.next]")
    press(page, "a", "x", "a")
    page.route(f"**/review/tasks/{task}", lambda route: route.abort())
    page.evaluate("station.prefetched = null")
    press(page, "Enter")
    expect(page.locator("#live")).to_contain_text("no connection to the station")
    ready(page)
    expect(page.locator("#state")).to_have_text("done")
    press(page, "1")
    expect(page.locator("#live")).to_contain_text("press r to open it again")
    assert is_done(project, "ann", first)
    page.unroute(f"**/review/tasks/{task}")
    press(page, "r")
    expect(page.locator("#live")).to_contain_text("Open again")
    press(page, "1")
    settled(page)
    assert not is_done(project, "ann", first)
    press(page, "Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    assert is_done(project, "ann", first)
    ann.check(offline=True)


def test_names_of_this_note_stand_beside_the_patients_next_one(first_note: FirstNote) -> None:
    _, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    page.wait_for_function("() => station.prefetched")  # as it was before
    press(page, "a", "x", "a")
    go_to(page, "Mary")
    press(page, "Shift+ArrowRight", "1", "Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    expect(page.locator("#names")).to_contain_text(NAME)
    expect(page.locator("#others")).to_have_text(f"Note {first} done")
    ann.check()


def test_q_leaves_when_everything_is_saved(first_note: FirstNote) -> None:
    project, ann = first_note([note(0)])
    page = ann.page
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", accept)
    with held(page, "**/edits"):
        press(page, "a", "q", "x")
        expect(page.locator("#live")).to_contain_text("is being saved; this key did nothing")
    page.wait_for_url(f"{ann.base}/")
    assert asked == []
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 1
    assert len(marks_of(project, "ann", 1)) == 3
    ann.check()


def test_in_a_closed_note_nothing_is_asked_and_nothing_suggested_elsewhere(station: Opened) -> None:
    project, visit = station([note(0), note(1)], random=0.0)
    reading.save_edits(Desk(project), user(project, "ann"), task_of(project, "ann", 1), [])
    ann = visit("ann")
    page = ann.page
    page.goto(f"{ann.base}/notes/{task_of(project, 'ann', 1)}")
    ready(page)
    press(page, "a", "x", "a", "Enter")
    page.wait_for_function("() => station.task.number === 2")
    page.goto(f"{ann.base}/notes/{task_of(project, 'ann', 1)}")
    ready(page)
    for key in ("Shift+A", "Shift+X", "t"):
        page.evaluate("station.say('')")
        press(page, key)
        expect(page.locator("#live")).to_contain_text("press r to open it again")
        assert page.locator("dialog[open]").count() == 0
    assert not any(url.endswith(("/identical", "/apply")) for url in ann.requests)
    ann.check()


def test_a_note_is_done_when_all_its_suggestions_elsewhere_are_stored(first_note: FirstNote) -> None:
    project, ann = first_note([note(0), note(1)], random=0.0)
    page = ann.page
    first = page.evaluate("station.task.number")
    press(page, "a", "x", "a")
    waiting: list[Route] = []

    def hold_first(route: Route) -> None:
        if waiting:
            route.continue_()
        else:
            waiting.append(route)

    page.route("**/apply", hold_first)
    for words, count in (("Mary", 2), ("555", 1)):  # the message for the first is held, that for the second is not
        go_to(page, words)
        press(page, "Shift+A")
        expect(page.locator("#scopes")).to_contain_text(f"of this patient: {count} in 1 other notes")
        press(page, "2")
    expect(page.locator("#live")).to_contain_text("suggested 1 in 1 other notes")
    settled(page)
    press(page, "Enter")
    expect(page.locator("body")).not_to_have_attribute("data-ready", re.compile(""))
    let_events_come(page)
    assert not is_done(project, "ann", first)
    waiting[0].continue_()
    page.wait_for_function("number => station.task.number !== number", arg=first)
    assert {"Mary", "555-0134"} <= {words for words, _ in page.evaluate(_SHOWN)}
    ann.check()


def test_a_password_without_a_connection_leaves_the_page_locked(first_note: FirstNote) -> None:
    _, ann = first_note([note(0)], idle_minutes=10)
    page = ann.page
    page.evaluate("station.lock()")
    page.route("**/unlock", lambda route: route.abort())
    page.keyboard.type(PASSWORD)
    press(page, "Enter")
    expect(page.locator("#unlock-message")).to_have_text("no connection to the station; try again")
    expect(page.locator("#lock")).to_be_visible()
    page.unroute("**/unlock")
    page.locator("#unlock input[name=password]").focus()
    page.keyboard.type(PASSWORD)
    press(page, "Enter")
    expect(page.locator("#lock")).to_be_hidden()
    ann.check(offline=True)
