"""The page of a note in a real browser, with keys alone: every key does what the help says, exactly at its offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from chaffinch.text import Document, Span
from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Mark
from chaffinch.web.review.project import Project
from chaffinch.web.review.store import schema
from tests.attacks.sizes import sized
from tests.browser.review.conftest import FirstNote, Opened, long_note
from tests.browser.review.keyboard import press, ready, settled
from tests.web.review.world import PASSWORD, note, task_of, user

pytestmark = pytest.mark.slow


def marks_of(project: Project, name: str, number: int) -> tuple[Mark, ...]:
    """Return what is stored of a reader's marks."""
    return reading.open_task(Desk(project), user(project, name), task_of(project, name, number)).marks


def words_of(project: Project, name: str, number: int, doc: Document) -> list[tuple[str, str, bool]]:
    """Return the words, the type and the state of each mark, cut from the note that went in."""
    return [(doc.text[m.start : m.end], m.label, m.confirmed) for m in marks_of(project, name, number)]


def test_every_key_on_a_long_note(first_note: FirstNote, database_url: str) -> None:
    doc = long_note()
    assert len(doc.text) >= 100_000
    assert len(doc.layer("machine")) == 500
    project, ann = first_note([doc], url=database_url)
    page = ann.page
    expect(page.locator("#here .words")).to_have_text("Farrow0")
    press(page, "a")  # accept, and on to the next
    expect(page.locator("#here .words")).to_have_text("Farrow1")
    press(page, "x")  # remove
    expect(page.locator("#here .words")).to_have_text("Farrow2")
    press(page, "3")  # another type
    press(page, "]", "[", "Alt+}")  # a word more on both sides, a character less at the end
    settled(page)
    found = words_of(project, "ann", 1, doc)
    assert found[0] == ("Farrow0", "DOCTOR", True)
    assert found[1] == ("with Farrow2 an", "DATE", True)
    press(page, "u", "u", "u", "u")
    expect(page.locator("#here .words")).to_have_text("Farrow2")
    press(page, "U", "U", "u", "u", "p")
    expect(page.locator("#here .words")).to_have_text("Farrow0")
    press(page, "n", "n", "t")  # span first, then the type by its first letters
    page.keyboard.type("hosp")
    press(page, "Enter")
    settled(page)
    found = words_of(project, "ann", 1, doc)
    assert found[0] == ("Farrow0", "DOCTOR", True)
    assert ("Farrow1", "DOCTOR", False) not in found
    assert found[2] == ("Farrow3", "HOSPITAL", True)
    press(page, "Enter")
    expect(page.locator("#live")).to_contain_text("497 suggestions are open")
    press(page, "?")
    expect(page.locator("#help")).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#help")).to_be_hidden()
    press(page, "g")
    expect(page.locator("#guideline")).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#guideline")).to_be_hidden()
    press(page, "v")
    expect(page.locator("#live")).to_contain_text("in sight accepted")
    settled(page)
    left = sum(not confirmed for *_, confirmed in words_of(project, "ann", 1, doc))
    assert 450 < left < 497, "only what is in sight is accepted"
    ann.check()


def test_offsets_after_emoji_combining_characters_and_crlf(first_note: FirstNote) -> None:
    doc = long_note(3000, 5)
    project, ann = first_note([doc])
    page = ann.page
    page.evaluate("station.goTo(0)")
    wanted = ["Zoë", "Penn", "4", "Mary"]
    walked: list[str] = []
    for _ in range(60):
        words = page.evaluate("station.text.slice(...station.cursor.pointed)")
        walked.append(words)
        if words in wanted:
            if words == "4":
                press(page, "Shift+ArrowRight", "Shift+ArrowRight", "3")
            else:
                press(page, "1")
            wanted.remove(words)
        if not wanted:
            break
        press(page, "ArrowRight")
    settled(page)
    found = [words for words, _, confirmed in words_of(project, "ann", 1, doc) if confirmed]
    assert found == ["Zoë", "Penn", "4 May 2010", "Mary"]
    tokens = [doc.text[a:b] for a, b in doc.tokens]
    assert walked == tokens[: len(walked)]
    ann.check()


def test_characters_with_alt_are_those_that_readers_see(first_note: FirstNote) -> None:
    doc = long_note(2000, 2)
    project, ann = first_note([doc])
    page = ann.page
    place = doc.text.index("cafe\u0301")
    page.evaluate("place => station.goTo(station.units.fromPoint(place))", place)
    press(page, "Alt+ArrowRight", "Alt+ArrowRight", "Alt+ArrowRight", "Alt+Shift+ArrowRight", "1")
    settled(page)
    found = [row for row in words_of(project, "ann", 1, doc) if row[2]]
    assert [words for words, *_ in found] == ["e\u0301 "]
    press(page, "Alt+[")  # a character to the left
    settled(page)
    assert next(row[0] for row in words_of(project, "ann", 1, doc) if row[2]) == "fe\u0301 "
    ann.check()


def test_the_same_words_everywhere_with_the_count_first(station: Opened, database_url: str) -> None:
    given = [note(number) for number in range(3)]
    project, visit = station(given, random=0.0, url=database_url)
    ann = visit("ann")
    page = ann.page
    page.goto(f"{ann.base}/notes/{task_of(project, 'ann', 1)}")
    ready(page)
    page.evaluate("station.goTo(station.text.indexOf('Mary'))")
    press(page, "Shift+ArrowRight", "1", "Shift+A")
    expect(page.locator("#scopes")).to_contain_text("1 more in this note")
    expect(page.locator("#scopes")).to_contain_text("of this patient: 2 in 1 other notes")
    expect(page.locator("#scopes")).to_contain_text("all your notes: 4 in 2 other notes")
    press(page, "2")
    expect(page.locator("#live")).to_contain_text("suggested 2 in 1 other notes")
    settled(page)
    name = "Mary Quillfeather"
    assert [row for row in words_of(project, "ann", 1, given[0]) if row[0] == name] == [(name, "PATIENT", True)] * 2
    assert [row for row in words_of(project, "ann", 2, given[1]) if row[0] == name] == [(name, "PATIENT", False)] * 2
    assert not [row for row in words_of(project, "ann", 3, given[2]) if row[0] == name]
    press(page, "Shift+X")
    expect(page.locator("#scopes")).to_contain_text("2 in this note")
    press(page, "1")
    settled(page)
    assert not [row for row in words_of(project, "ann", 1, given[0]) if row[0] == name]
    assert len([row for row in words_of(project, "ann", 2, given[1]) if row[0] == name]) == 2, "never beyond the note"
    ann.check()


def test_done_and_next_and_the_note_as_released(first_note: FirstNote) -> None:
    project, ann = first_note([note(0), note(1)])
    page = ann.page
    first = int(page.evaluate("station.task.number"))
    press(page, "a", "x", "a", "o")
    expect(page.locator("#text")).to_have_class("text released", timeout=60_000)
    expect(page.locator("#live")).to_contain_text("As released")
    shown = page.locator("mark.m[data-new]").evaluate_all("all => all.map(one => one.dataset.new)")
    assert len(shown) == 2
    assert "4 May 2010" not in shown
    press(page, "o", "o", "w")
    expect(page.locator("#live")).to_contain_text("score")
    press(page, "Enter")
    page.wait_for_function("number => station.task.number !== number", arg=first)
    assert page.url.endswith(f"/notes/{page.evaluate('station.task.task')}")
    press(page, "a", "x", "a", "Enter")
    page.wait_for_url(f"{ann.base}/")
    expect(page.get_by_text("All your notes are done.")).to_be_visible()
    assert all(mark.confirmed for mark in marks_of(project, "ann", 1))
    ann.check()


_SHOWN = "station.marks.list.map(mark => [station.units.toPoint(mark.start), mark.label, mark.confirmed])"


def test_nothing_is_lost_without_a_connection(first_note: FirstNote) -> None:
    project, ann = first_note([long_note(4000, 10)])
    page = ann.page
    press(page, "a")
    settled(page)
    ann.context.set_offline(True)
    press(page, "a", "a", "x", "2")
    expect(page.locator("#saved")).to_contain_text("4 waiting")
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 1
    ann.context.set_offline(False)
    settled(page)
    stored = marks_of(project, "ann", 1)
    assert page.evaluate(_SHOWN) == [[mark.start, mark.label, mark.confirmed] for mark in stored]
    assert sum(mark.confirmed for mark in stored) == 4
    ann.check(offline=True)


def test_nothing_is_lost_by_a_reload_before_edits_are_acknowledged(first_note: FirstNote) -> None:
    project, ann = first_note([long_note(4000, 10)])
    page = ann.page
    page.route("**/edits", lambda route: route.abort())
    press(page, "a", "a", "x", "2")
    before = page.evaluate(_SHOWN)
    page.reload()
    ready(page)
    assert page.evaluate(_SHOWN) == before
    assert page.evaluate("station.outbox.waiting.length") == 4
    assert not any(mark.confirmed for mark in marks_of(project, "ann", 1))
    page.unroute("**/edits")
    settled(page)
    assert [[mark.start, mark.label, mark.confirmed] for mark in marks_of(project, "ann", 1)] == before
    ann.check(offline=True)


def test_two_tabs_of_one_reader_end_with_the_same_marks(station: Opened) -> None:
    doc = long_note(4000, 12)
    project, visit = station([doc])
    ann = visit("ann")
    address = f"{ann.base}/notes/{task_of(project, 'ann', 1)}"
    first, second = ann.page, ann.tab()
    for page in (first, second):
        page.goto(address)
        ready(page)
    press(first, "a", "a", "a")
    settled(first)
    press(second, "n", "n", "n", "n", "x")
    settled(second)
    expect(second.locator("#live")).to_contain_text("Another window changed this note")
    shown = second.evaluate("station.marks.list.map(mark => [station.units.toPoint(mark.start), mark.confirmed])")
    assert shown == [[mark.start, mark.confirmed] for mark in marks_of(project, "ann", 1)]
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 3
    ann.check()


@pytest.mark.drill
def test_many_quick_edits_are_all_stored_once(first_note: FirstNote) -> None:
    doc = long_note(100_000, 500)
    project, ann = first_note([doc])
    page = ann.page
    number = sized(120, 1200)
    for turn in range(number):
        page.keyboard.press("1" if turn % 2 else "2")
        page.wait_for_timeout(25)
    settled(page)
    task = task_of(project, "ann", 1)
    with project.database.read() as connection:
        from chaffinch.web.review.domain.marks import Edit
        from chaffinch.web.review.store.work import load_decisions

        stored = [edit for _, edit in load_decisions(connection, project.database, task, Edit)]
    assert len(stored) == number == len({edit.id for edit in stored})
    ann.check()


def unlock(page: Page) -> None:
    """Give the password with the keyboard."""
    page.locator("#unlock input[name=password]").focus()
    press(page, "Control+a")
    page.keyboard.type(PASSWORD)
    press(page, "Enter")
    expect(page.locator("#lock")).to_be_hidden()


def test_an_idle_station_locks_and_loses_nothing(station: Opened) -> None:
    project, visit = station([long_note(4000, 10)], idle_minutes=10)
    ann = visit("ann")
    page = ann.page
    page.clock.install()
    press(page, "Enter")
    ready(page)
    press(page, "a")
    settled(page)
    page.clock.fast_forward("10:05")  # the page's clock alone: it hides the note without asking the server
    expect(page.locator("#lock")).to_be_visible()
    assert page.locator("#text").evaluate("one => getComputedStyle(one).visibility") == "hidden"
    press(page, "a", "Escape", "Escape", "Escape", "a")
    expect(page.locator("#lock")).to_be_visible()
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 1
    unlock(page)
    press(page, "a")
    settled(page)
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 2
    ann.check()


def test_a_session_that_the_server_locked_keeps_edits_until_the_password_is_given(first_note: FirstNote) -> None:
    project, ann = first_note([long_note(4000, 10)], idle_minutes=10)
    page = ann.page
    with project.database.change("test") as change:
        change.connection.execute(update(schema.sessions).values(seen=schema.sessions.c.seen - 601))
        change.record("test", "")
    press(page, "a")
    expect(page.locator("#lock")).to_be_visible()
    assert not any(mark.confirmed for mark in marks_of(project, "ann", 1))
    unlock(page)
    settled(page)
    assert sum(mark.confirmed for mark in marks_of(project, "ann", 1)) == 1
    ann.check(offline=True)  # the browser notes the refused message


def test_scripts_in_notes_labels_and_names_are_only_text(station: Opened, tmp_path: Path) -> None:
    evil = '<script>window.pwned=1</script><img src=x onerror="window.pwned=2">"\'></script>'
    text = f"{evil} Penn {{{{7*7}}}} saw \u2028 4 May 2010 {evil}"
    spans = [Span(0, len(evil), "<img src=x onerror=pwned=3>", 0.5, "<script>pwned=4</script>")]
    given = [
        Document.make(text, id=f"../../{number}{evil}", group=evil, layers={"machine": spans}) for number in range(2)
    ]
    people = (
        ("<b onmouseover=pwned=5>ann</b>", "reader"),
        ("bob", "reader"),
        ("cay", "adjudicator"),
        ("sue", "steward"),
    )
    _, visit = station(given, people=people)
    sue = visit("sue")
    for path in ("/", "/agreement", "/audit", "/guideline"):
        sue.page.goto(sue.base + path)
        assert sue.page.evaluate("window.pwned") is None
    ann = visit(people[0][0])
    press(ann.page, "Enter")
    ready(ann.page)
    assert ann.page.evaluate("station.text") == text
    assert ann.page.locator("#text script, #text img, aside img, aside script").count() == 0
    press(ann.page, "a", "n", "1", "Shift+A")
    expect(ann.page.locator("#scopes")).to_contain_text("of this patient: 1 in 1 other notes")
    press(ann.page, "2")
    settled(ann.page)
    press(ann.page, "o")
    expect(ann.page.locator("#text")).to_have_class("text released", timeout=60_000)
    assert ann.page.evaluate("window.pwned") is None
    assert ann.page.evaluate("document.title").startswith("Note ")
    assert all("pwned" not in url for url in ann.requests + sue.requests)
    ann.check()
    sue.check()
