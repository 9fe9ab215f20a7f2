"""What is shown beside a note, and to whom: names and notes of the patient, why a span, the release, the list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.web.review import judging, reading, releasing
from chaffinch.web.review.desk import Desk, Forbidden
from chaffinch.web.review.domain.marks import Edit, Mark
from chaffinch.web.review.preview import preview
from chaffinch.web.review.project import Project
from chaffinch.web.review.store import trail
from chaffinch.web.review.why import explain_stretch
from tests.web.review.world import CANARY, TEXT, Visitor, make_project, note, served, task_of, user

NAME = f"Mary {CANARY}"


def opened(project: Project, name: str, number: int) -> reading.OpenTask:
    """Return a reader's task of a note."""
    return reading.open_task(Desk(project), user(project, name), task_of(project, name, number))


def with_quota(tmp_path: Path, *, hidden: float = 0.0) -> Project:
    """Return a project of four notes of two patients, of which bob reads all and ann the first two alone."""
    from sqlalchemy import delete

    from chaffinch.web.review.store import schema

    given = [note(number, patient=f"patient-{number % 2}") for number in range(4)]
    project = make_project(tmp_path, given, without_suggestions=hidden, random=0.0)
    with project.database.change("test") as change:
        ann = user(project, "ann").id
        change.connection.execute(
            delete(schema.assignments).where(schema.assignments.c.user == ann).where(schema.assignments.c.note > 2)
        )
        change.record("test", "")
    return project


def test_other_notes_of_the_patient_are_text_alone_and_those_of_others_are_not_shown(tmp_path: Path) -> None:
    project = with_quota(tmp_path)
    task, bob = task_of(project, "ann", 1), task_of(project, "bob", 3)
    start = TEXT.index(NAME)
    edit = Edit("edit-0000001", added=(Mark(start, start + len(NAME), "PATIENT"),))
    reading.save_edits(Desk(project), user(project, "bob"), bob, [edit])
    with served(project) as base:
        ann = Visitor(base)
        ann.log_in("ann")
        message = ann.get(f"/review/tasks/{task}").json()
        assert message["others"] == [{"note": 3, "task": None, "done": False}]
        words = {row["words"]: row["times"] for row in message["names"]}
        assert words == {"Penn": 2, "saw": 2}, "the detector's names of both notes, and nothing that bob marked"
        page = ann.get(f"/notes/{task}/others/3")
        assert (page.status_code, CANARY in page.text, "<mark" in page.text) == (200, True, False)
        for path in (f"/notes/{task}/others/2", f"/notes/{task}/others/99", f"/notes/{bob}/others/1"):
            answer = ann.get(path)
            assert (answer.status_code, CANARY in answer.text) == (403, False), path
    with project.database.read() as connection:
        actions = [line.action for line in trail.lines(connection)]
    assert actions.count("read other note") == 1
    project.close()


def test_a_reader_without_suggestions_gets_none_by_names_or_reasons(tmp_path: Path) -> None:
    project = with_quota(tmp_path, hidden=1.0)
    desk = Desk(project)
    (blind,) = (name for name in ("ann", "bob") if not opened(project, name, 1).assignment.suggested)
    task = opened(project, blind, 1)
    assert task.marks == ()
    assert reading.read_patient(desk, user(project, blind), task).names == ()
    with pytest.raises(DataError, match="hidden"):
        explain_stretch(desk, user(project, blind), task.assignment.id, 4, 8)
    seeing = {"ann": "bob", "bob": "ann"}[blind]
    assert reading.read_patient(desk, user(project, seeing), opened(project, seeing, 1)).names
    project.close()


def test_why_names_the_voices_of_the_detector_and_no_word_of_the_note(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0), note(1)], model="rules")
    desk, ann = Desk(project), user(project, "ann")
    task = task_of(project, "ann", 1)
    start = TEXT.index("4 May 2010")
    why = explain_stretch(desk, ann, task, start, start + 10)
    assert why.headline.startswith("DATE")
    assert any(voice.startswith("pattern date") for voice in why.voices)
    assert CANARY not in str(why)
    assert "May" not in str(why)
    nothing = explain_stretch(desk, ann, task, TEXT.index("wrote"), TEXT.index("wrote") + 5)
    assert (nothing.headline, nothing.voices) == ("The project's detector finds nothing here.", ())
    with pytest.raises(Forbidden):
        explain_stretch(desk, ann, task_of(project, "bob", 1), start, start + 10)
    with pytest.raises(DataError, match="does not fit"):
        explain_stretch(desk, ann, task, 0, 10_000)
    project.close()


def test_the_preview_reads_dates_in_the_order_that_the_release_counts(tmp_path: Path) -> None:
    texts = [
        "Seen on 03/04/1998.",
        *(f"Seen on {day}/04/1998." for day in range(13, 23)),
    ]  # day first
    given = []
    for number, text in enumerate(texts):
        place = text.index("/") - 2
        spans = [Span(place, place + 10, "DATE")]
        given.append(Document.make(text, id=f"n{number}", group=f"p{number}", layers={"machine": spans}))
    project = make_project(tmp_path, given, people=(("ann", "reader"), ("sue", "steward")), readers=1, random=0.0,
                           without_suggestions=0.2)  # fmt: skip
    desk, ann = Desk(project), user(project, "ann")
    first = opened(project, "ann", 1)
    ((start, end, shown),) = preview(desk, ann, first.note, first.marks)
    assert (start, end) == (8, 18)
    for number in range(1, len(texts) + 1):
        task = opened(project, "ann", number)
        sure = tuple(Mark(mark.start, mark.end, mark.label) for mark in task.marks)
        reading.save_edits(desk, ann, task.assignment.id, [Edit("edit-0000001", task.marks, sure)])
        reading.finish_task(desk, ann, task.assignment.id)
    releasing.release_notes(desk, user(project, "sue"), tmp_path / "out.jsonl")
    released = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert f"Seen on {shown}." in released
    assert "[" not in shown, "an order was counted"
    project.close()


def test_the_list_of_notes_is_filtered_by_reader_and_state_and_is_the_stewards(tmp_path: Path) -> None:
    project = with_quota(tmp_path)
    desk, sue = Desk(project), user(project, "sue")
    assert sorted(row.note for row in judging.list_notes(desk, sue)) == [1, 2, 3, 4]
    assert sorted(row.note for row in judging.list_notes(desk, sue, reader="ann")) == [1, 2]
    assert sorted(row.note for row in judging.list_notes(desk, sue, state="reading")) == [1, 2]
    assert [row.note for row in judging.list_notes(desk, sue, reader="ann", state="unassigned")] == []
    with served(project) as base:
        steward = Visitor(base)
        steward.log_in("sue")
        page = steward.get("/tasks?reader=ann")
        assert page.status_code == 200
        assert CANARY not in page.text
        assert page.text.count('<tr><th scope="row">') == 2
        table = steward.get("/tasks?state=unassigned", **{"hx-request": "true"})
        assert "<html" not in table.text
        assert table.text.count('<tr><th scope="row">') == 2
        for name in ("ann", "cay", "otto"):
            other = Visitor(base)
            other.log_in(name)
            assert other.get("/tasks").status_code == 403, name
    project.close()
