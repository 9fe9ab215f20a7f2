"""Two readers, an adjudicator and a steward: what each can do and see, in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaffinch.errors import DataError, GateError
from chaffinch.text.formats import read
from chaffinch.web.review import judging, reading, releasing
from chaffinch.web.review.desk import Desk, Forbidden
from chaffinch.web.review.domain.differences import Settlement
from chaffinch.web.review.domain.marks import Edit, Mark
from chaffinch.web.review.preview import preview
from tests.web.review.world import CANARY, TEXT, make_project, note, task_of, user

NAME = Mark(TEXT.index("Mary"), TEXT.index(CANARY) + len(CANARY), "PATIENT")


def confirm(desk: Desk, name: str, number: int, *more: Mark) -> None:
    """Accept every suggestion of a note but the wrong one, add marks, and close it."""
    ann = user(desk.project, name)
    task = task_of(desk.project, name, number)
    opened = reading.open_task(desk, ann, task)
    right = [mark for mark in opened.marks if not mark.confirmed and TEXT[mark.start : mark.end] != "saw"]
    wrong = [mark for mark in opened.marks if not mark.confirmed and TEXT[mark.start : mark.end] == "saw"]
    added = tuple(Mark(m.start, m.end, m.label) for m in right) + more
    reading.save_edits(desk, ann, task, [Edit(f"edit-{name}-{number:04d}", tuple(right + wrong), added)])
    reading.finish_task(desk, ann, task)


def test_from_two_readers_to_a_release(tmp_path: Path, database_url: str) -> None:
    project = make_project(tmp_path, [note(0), note(1)], url=database_url)
    desk, sue, cay = Desk(project), user(project, "sue"), user(project, "cay")
    with pytest.raises(GateError, match="2 of 2 notes are open"):
        releasing.release_notes(desk, sue, tmp_path / "out.jsonl")
    for name in ("ann", "bob"):
        confirm(desk, name, 1, NAME)
    assert judging.progress(desk).states == {1: "agreed", 2: "reading"}
    confirm(desk, "ann", 2, NAME)
    confirm(desk, "bob", 2)
    assert judging.cases(desk, cay) == [(2, 1)]
    case = judging.open_case(desk, cay, 2)
    assert [(one.first == (NAME,), one.second) for one in case.differences] in ([(True, ())], [(False, (NAME,))])
    with pytest.raises(DataError, match="1 differences are not settled"):
        judging.close_case(desk, cay, 2)
    with pytest.raises(GateError, match="1 of 2"):
        releasing.release_notes(desk, sue, tmp_path / "out.jsonl")
    side = "first" if case.differences[0].first else "second"
    settlement = Settlement("settle-0001", case.differences[0].key, side, "missed")  # type: ignore[arg-type]
    assert judging.settle_difference(desk, cay, 2, settlement) == 0
    assert judging.settle_difference(desk, cay, 2, settlement) == 0, "twice is once"
    judging.close_case(desk, cay, 2)
    manifest = releasing.release_notes(desk, sue, tmp_path / "out.jsonl")
    assert manifest["documents"] == {"in": 2, "released": 2, "withheld": 0, "excluded": 0}
    assert manifest["settings"]["model"]["name"] == "reviewed"
    released = (tmp_path / "out.jsonl").read_text()
    assert CANARY in released, "the second mention was marked by nobody, so people let it pass"
    assert released.count(CANARY) == 2
    assert "4 May 2010" not in released
    gold = list(releasing.gold_documents(desk))
    assert [len(doc.layer("gold")) for doc in gold] == [3, 3]
    project.close()


def test_a_settlement_that_crosses_the_closing_of_the_note_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path, [note(0)])
    desk, cay = Desk(project), user(project, "cay")
    confirm(desk, "ann", 1, NAME)
    confirm(desk, "bob", 1)
    case = judging.open_case(desk, cay, 1)
    key = case.differences[0].key
    judging.settle_difference(desk, cay, 1, Settlement("settle-0001", key, "first", "missed"))
    judging.close_case(desk, cay, 1)
    before = list(releasing.gold_documents(desk))
    monkeypatch.setattr(judging, "open_case", lambda *_: case)  # as another window saw it a moment before
    with pytest.raises(DataError, match="the task is done"):
        judging.settle_difference(desk, cay, 1, Settlement("settle-0002", key, "second", "missed"))
    assert [doc.layer("gold") for doc in releasing.gold_documents(desk)] == [doc.layer("gold") for doc in before]
    project.close()


def test_agreement_counts_pairs_of_readers(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0), note(1)])
    desk = Desk(project)
    confirm(desk, "ann", 1, NAME)
    assert judging.agreement(desk) == {}
    confirm(desk, "bob", 1)
    found = judging.agreement(desk)[("ann", "bob")]
    assert (found.notes, found.total.both, found.total.first + found.total.second) == (1, 2, 5)
    project.close()


def test_an_edit_sent_twice_is_stored_once_and_another_window_hears_of_it(tmp_path: Path, database_url: str) -> None:
    project = make_project(tmp_path, [note(0)], url=database_url)
    desk, ann, task = Desk(project), user(project, "ann"), task_of(project, "ann", 1)
    first, second = Edit("edit-0000001", added=(NAME,)), Edit("edit-0000002", removed=(NAME,))
    saved = reading.save_edits(desk, ann, task, [first])
    again = reading.save_edits(desk, ann, task, [first, second], head=saved.head)
    assert again.acknowledged == ("edit-0000001", "edit-0000002")
    assert again.marks is None
    other_window = reading.save_edits(desk, ann, task, [Edit("edit-0000003")], head=0)
    assert other_window.marks == reading.open_task(desk, ann, task).marks
    assert NAME not in other_window.marks
    project.close()


def test_a_note_with_open_suggestions_is_not_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0)])
    desk, ann, task = Desk(project), user(project, "ann"), task_of(project, "ann", 1)
    with pytest.raises(DataError, match="3 suggestions are neither accepted nor removed"):
        reading.finish_task(desk, ann, task)
    confirm(desk, "ann", 1)
    with pytest.raises(DataError, match="reopen it"):
        reading.save_edits(desk, ann, task, [Edit("edit-0000009")])
    reading.reopen_task(desk, ann, task)
    reading.finish_task(desk, ann, task)
    confirm(desk, "bob", 1)
    with pytest.raises(DataError, match="all readers are done"):
        reading.reopen_task(desk, ann, task)
    project.close()


def test_messages_that_come_again_after_the_note_is_done_change_nothing(tmp_path: Path, database_url: str) -> None:
    project = make_project(tmp_path, [note(0)], url=database_url)
    desk, ann, task = Desk(project), user(project, "ann"), task_of(project, "ann", 1)
    confirm(desk, "ann", 1, NAME)
    before = reading.open_task(desk, ann, task)
    reading.finish_task(desk, ann, task, seconds=7.0)
    again = reading.save_edits(desk, ann, task, [Edit("edit-ann-0001", added=(NAME,))])
    assert again.acknowledged == ("edit-ann-0001",)
    with pytest.raises(DataError, match="reopen it"):
        reading.save_edits(desk, ann, task, [Edit("edit-ann-0001"), Edit("edit-ann-0002")])
    assert reading.open_task(desk, ann, task) == before
    project.close()


def test_nobody_sees_what_a_reader_decided_before_both_are_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0)])
    desk, task = Desk(project), task_of(project, "ann", 1)
    confirm(desk, "ann", 1, NAME)
    for name in ("bob", "cay", "sue", "otto"):
        with pytest.raises(Forbidden):
            reading.open_task(desk, user(project, name), task)
        with pytest.raises(Forbidden):
            reading.save_edits(desk, user(project, name), task, [])
    with pytest.raises(Forbidden, match="readers are not done"):
        judging.open_case(desk, user(project, "cay"), 1)
    assert judging.cases(desk, user(project, "cay")) == []
    shown = reading.open_task(desk, user(project, "bob"), task_of(project, "bob", 1))
    assert NAME not in shown.marks
    project.close()


def test_for_a_share_of_notes_the_second_reader_sees_no_suggestion(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(number) for number in range(30)], without_suggestions=0.3)
    desk = Desk(project)
    with project.database.read() as connection:
        from chaffinch.web.review.store.work import list_assignments

        rows = list_assignments(connection)
        hidden = [row for row in rows if not row.suggested]
        assert 2 <= len(hidden) <= 20
        assert {row.arm for row in hidden} == {2}
        assert all(desk.marks(connection, row) == () for row in hidden)
        assert all(len(desk.marks(connection, row)) == 3 for row in rows if row.suggested)
    project.close()


def test_identical_words_are_suggested_in_other_open_notes_of_the_reader_only(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(number) for number in range(4)])
    desk, ann, bob = Desk(project), user(project, "ann"), user(project, "bob")
    confirm(desk, "ann", 4)
    task = task_of(project, "ann", 1)
    counts = reading.count_identical(desk, ann, task, NAME.start, NAME.end)
    assert (counts["patient"].places, counts["patient"].notes) == (2, 1)
    assert (counts["project"].places, counts["project"].notes, counts["project"].done) == (4, 2, 2)
    done = reading.apply_identical(desk, ann, task, NAME, scope="project", batch="batch-00001")
    assert done == counts["project"]
    again = reading.apply_identical(desk, ann, task, NAME, scope="project", batch="batch-00001")
    assert again.places == 0
    for number, expected in ((2, 5), (3, 5), (4, 2)):
        marks = reading.open_task(desk, ann, task_of(project, "ann", number)).marks
        assert len(marks) == expected
        assert sum(mark.source == reading.APPLIED and not mark.confirmed for mark in marks) == (2 if number < 4 else 0)
    assert len(reading.open_task(desk, bob, task_of(project, "bob", 2)).marks) == 3
    project.close()


def test_the_preview_is_what_is_released(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0), note(1)])
    desk, ann = Desk(project), user(project, "ann")
    for name in ("ann", "bob"):
        confirm(desk, name, 1, NAME)
        confirm(desk, name, 2, NAME)
    opened = reading.open_task(desk, ann, task_of(project, "ann", 1))
    shown = preview(desk, ann, opened.note, opened.marks)
    releasing.release_notes(desk, user(project, "sue"), tmp_path / "out.jsonl")
    expected = TEXT
    for start, end, words in reversed(shown):
        expected = expected[:start] + words + expected[end:]
    assert expected in [doc.text for doc in read(tmp_path / "out.jsonl")]
    assert len(shown) == 3
    project.close()


def test_the_queue_resumes_where_it_was_left(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(number) for number in range(6)], random=0.0)
    desk, ann = Desk(project), user(project, "ann")
    order = [row.note for row in reading.reader_queue(desk, ann)]
    assert sorted(order) == [1, 2, 3, 4, 5, 6]
    confirm(desk, "ann", order[0])
    assert reading.next_task(desk, ann) == task_of(project, "ann", order[1])
    assert [row.note for row in reading.reader_queue(desk, ann, status="done")] == [order[0]]
    assert reading.reader_queue(desk, ann, category="AGE") == []
    assert len(reading.reader_queue(desk, ann, status="all", category="DATE")) == 6
    project.close()


def test_quotas_and_too_few_readers(tmp_path: Path) -> None:
    project = make_project(tmp_path, [], people=(("ann", "reader"), ("sue", "steward")))
    with pytest.raises(DataError, match="each note has 2 readers, and there are 1"):
        judging.assign_notes(Desk(project), user(project, "sue"))
    with pytest.raises(Forbidden):
        judging.assign_notes(Desk(project), user(project, "ann"))
    project.close()
