"""A project as a whole: verified, backed up, restored into either database, purged; by commands."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from chaffinch.cli import main
from chaffinch.deid.keys import Secret
from chaffinch.errors import DataError
from chaffinch.text.formats import read
from chaffinch.web.review import lifecycle, reading, releasing
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.project import open_project
from tests.web.review.test_work import NAME, confirm
from tests.web.review.world import CANARY, PASSWORD, make_project, note, task_of, user


def test_a_backup_restores_everything_into_either_database(tmp_path: Path, database_url: str) -> None:
    (tmp_path / "a").mkdir()
    project = make_project(tmp_path / "a", [note(0), note(1)])
    for name in ("ann", "bob"):
        confirm(Desk(project), name, 1, NAME)
    before = [(doc.id, doc.text, doc.layer("gold")) for doc in releasing.gold_documents(Desk(project))]
    lifecycle.back_up(project, tmp_path / "backup", "test")
    checked = lifecycle.check_project(project)
    key = Secret.read(tmp_path / "a" / "project.key")
    project.close()
    content = (tmp_path / "backup").read_bytes()
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert CANARY.encode() not in content
    restored = lifecycle.restore(tmp_path / "backup", tmp_path / "b", key, database=database_url)
    assert [(doc.id, doc.text, doc.layer("gold")) for doc in releasing.gold_documents(Desk(restored))] == before
    assert lifecycle.check_project(restored) == checked
    task = task_of(restored, "ann", 2)
    assert reading.open_task(Desk(restored), user(restored, "ann"), task).note.number == 2
    assert lifecycle.purge(restored, audit=tmp_path / "audit.jsonl") == 2
    assert len((tmp_path / "audit.jsonl").read_bytes().splitlines()) == checked.entries
    assert not (tmp_path / "b").exists()
    (tmp_path / "cut").write_bytes(content[:-200])
    with pytest.raises(DataError, match="backup"):
        lifecycle.restore(tmp_path / "cut", tmp_path / "c", key)
    (tmp_path / "changed").write_bytes(content.replace(b'"reader"', b'"steward"', 1))
    with pytest.raises(DataError, match="damaged"):
        lifecycle.restore(tmp_path / "changed", tmp_path / "c", key)
    assert not (tmp_path / "c").exists()


def test_a_decision_removed_from_the_disk_is_noticed(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0)])
    confirm(Desk(project), "ann", 1, NAME)
    assert lifecycle.check_project(project).decisions == 1
    with project.database.write_unaudited() as connection:
        connection.execute(text("DROP TRIGGER decisions_no_delete"))
        connection.execute(text("DELETE FROM decisions"))
    with pytest.raises(DataError, match="were changed or removed"):
        lifecycle.check_project(project)
    project.close()


def test_a_project_from_its_making_to_its_end_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        found = main([*arguments, "--json"])
        out = capsys.readouterr()
        assert found == code, out.err
        assert CANARY not in out.out + out.err
        return json.loads(out.out) if out.out else {}

    Path("notes").mkdir()
    for number in range(2):
        Path(f"notes/n{number}.txt").write_text(note(number).text, newline="")
    run("deid", "secret", "new", "p.key")
    run("project", "new", "p", "--key-file", "p.key", "--model", "rules", "--readers", "1")
    for name, role in (("ann", "reader"), ("sue", "steward")):
        monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
        run("project", "user", "p", name, "--role", role, "--password-stdin")
    assert run("project", "import", "p", "notes")["counts"]["added"] == 2
    assert run("project", "import", "p", "notes")["counts"] == {
        "added": 0, "known": 2, "suggestions": 0, "without_risk": 0,
    }  # fmt: skip
    assert run("project", "status", "p", "--assign")["counts"] == {"reading": 2}
    run("project", "release", "p", "-o", "clean.jsonl", code=4)
    run("project", "export", "p", "-o", "gold.jsonl", code=3)
    project = open_project(tmp_path / "p")
    for number in (1, 2):
        desk, ann, task = Desk(project), user(project, "ann"), task_of(project, "ann", number)
        marks = reading.open_task(desk, ann, task).marks
        from chaffinch.web.review.domain.marks import Edit, Mark

        sure = tuple(Mark(mark.start, mark.end, mark.label) for mark in marks)
        reading.save_edits(desk, ann, task, [Edit("edit-0000001", marks, sure)])
        reading.finish_task(desk, ann, task)
    project.close()
    assert run("project", "export", "p", "-o", "gold.jsonl")["counts"]["notes"] == 2
    number = sum(len(doc.layer("gold")) for doc in read("gold.jsonl"))
    assert number > 2
    for form in ("labelstudio", "doccano", "brat", "uima-json", "uima-xmi"):  # out to other tools, and back from them
        assert run("project", "export", "p", "-o", f"gold-{form}", "--to", form)["counts"]["notes"] == 2
        run("project", "new", f"from-{form}", "--key-file", "p.key", "--readers", "1")
        found = run("project", "import", f"from-{form}", f"gold-{form}", "--layer", "gold")["counts"]
        assert (found["added"], found["suggestions"]) == (2, number)
    assert run("project", "release", "p", "-o", "clean.jsonl")["counts"]["released"] == 2
    run("verify", "clean.jsonl")
    assert run("verify", "p")["counts"]["notes"] == 2
    run("project", "audit", "p", "-o", "audit.jsonl")
    run("project", "backup", "p", "-o", "p.backup")
    run("project", "purge", "p", code=2)
    run("project", "purge", "p", "--yes", "--audit", "last.jsonl")
    assert not Path("p/review.sqlite").exists()
    assert run("project", "restore", "p.backup", "-o", "q")["counts"]["notes"] == 2


def test_a_finished_run_is_imported_with_its_spans_and_risks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaffinch.web.review.importing import notes_of_run

    monkeypatch.chdir(tmp_path)
    Path("notes").mkdir()
    for number in range(3):
        Path(f"notes/{CANARY}{number}.txt").write_text(note(number).text, newline="")
    assert main(["deid", "notes", "-o", "clean", "--model", "rules", "-q"]) == 0
    found = list(notes_of_run(read("notes"), Path("clean")))
    lines = [json.loads(line) for line in Path("clean.private/documents.jsonl").read_text().splitlines()]
    expected = [[tuple(row[:3]) for row in line["replacements"]] for line in lines]
    assert [[mark.place for mark in one.suggestions] for one in found] == expected
    assert all(not mark.confirmed for one in found for mark in one.suggestions)
    Path(f"notes/{CANARY}2.txt").unlink()
    with pytest.raises(DataError, match="3 notes were released by this run, and 2 of them") as caught:
        list(notes_of_run(read("notes"), Path("clean")))
    assert CANARY not in str(caught.value)
