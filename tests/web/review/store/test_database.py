"""The store: what is on the disk is sealed, what was added stays, and nothing happens without an audit entry."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from chaffinch.deid.keys import Secret
from chaffinch.errors import ConfigError, DataError
from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Edit, Mark
from chaffinch.web.review.project import open_project
from chaffinch.web.review.store import schema, trail
from chaffinch.web.review.store.database import AuditError, Database, sqlite_url
from chaffinch.web.review.store.notes import load_note, load_notes
from chaffinch.web.review.store.users import add_user, list_users
from tests.web.review.world import CANARY, TEXT, make_project, note, task_of, user


def test_a_note_comes_back_exactly(tmp_path: Path, database_url: str) -> None:
    given = [note(0), note(1, "\ufeffCRLF\r\n\0 Penn saw e\u0301 🧑‍⚕️ 4 May 2010")]
    project = make_project(tmp_path, given, url=database_url)
    with project.database.read() as connection:
        stored = [one.document for one in load_notes(connection, project.database)]
    assert [(doc.id, doc.text, doc.group) for doc in stored] == [(doc.id, doc.text, doc.group) for doc in given]
    project.close()


def test_nothing_of_a_note_is_readable_without_the_key(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0), note(1)])
    task = task_of(project, "ann", 1)
    mark = Mark(TEXT.index(CANARY), TEXT.index(CANARY) + len(CANARY), "MEDICALRECORD")
    reading.save_edits(Desk(project), user(project, "ann"), task, [Edit("edit-0000001", added=(mark,))])
    files = [path for path in (tmp_path / "project").rglob("*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in files)
    assert len(content) > 10_000
    for word in (CANARY, "Penn", "4 May", "DOCTOR", "MEDICALRECORD", "cascade", ".txt"):
        assert word.encode() not in content
    project.close()
    with pytest.raises(ConfigError, match="does not open this project"):
        open_project(tmp_path / "project", Secret.new())


def test_the_folder_is_private_and_the_key_lies_elsewhere(tmp_path: Path) -> None:
    project = make_project(tmp_path, [])
    project.close()
    assert project.folder.stat().st_mode & 0o777 == 0o700
    project.folder.chmod(0o750)
    with pytest.raises(ConfigError, match="chmod 700"):
        open_project(project.folder)
    project.folder.chmod(0o700)
    inside = project.folder / "in.key"
    Secret.new().write(inside)
    toml = project.folder / "project.toml"
    toml.write_text(toml.read_text().replace("../project.key", "in.key"))
    with pytest.raises(ConfigError, match="move it elsewhere"):
        open_project(project.folder)


@pytest.mark.parametrize("table", schema.APPEND_ONLY)
def test_rows_are_only_ever_added(tmp_path: Path, database_url: str, table: str) -> None:
    project = make_project(tmp_path, [note(0)], url=database_url)
    task = task_of(project, "ann", 1)
    reading.save_edits(Desk(project), user(project, "ann"), task, [Edit("edit-0000001")])
    target = schema.tables.tables[table]
    first = next(iter(target.primary_key.columns))
    for statement in (delete(target), update(target).values({first.name: 77})):
        with pytest.raises(DBAPIError, match="only added"), project.database.write_unaudited() as connection:
            connection.execute(statement)
    with project.database.read() as connection:
        assert connection.execute(select(target)).first() is not None
    project.close()


def test_a_change_without_an_entry_is_undone(tmp_path: Path, database_url: str) -> None:
    project = make_project(tmp_path, [], url=database_url)
    with pytest.raises(AuditError), project.database.change("ann") as change:
        change.connection.execute(insert(schema.meta).values(key="x", value=b"y"))
    with project.database.read() as connection:
        assert connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "x")) is None
    project.close()


def test_an_action_whose_entry_cannot_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path, [note(0)])
    task, ann = task_of(project, "ann", 1), user(project, "ann")

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(trail, "append", fail)
    with pytest.raises(OSError, match="no space"):
        reading.save_edits(Desk(project), ann, task, [Edit("edit-0000001", added=(Mark(0, 3, "DATE"),))])
    monkeypatch.undo()
    assert reading.open_task(Desk(project), ann, task).head == 0
    project.close()


def test_a_note_changed_on_the_disk_is_not_shown(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0), note(1)])
    with project.database.write_unaudited() as connection:
        connection.execute(text("DROP TRIGGER notes_no_update"))
        second = connection.scalar(select(schema.notes.c.sealed).where(schema.notes.c.id == 2))
        connection.execute(update(schema.notes).where(schema.notes.c.id == 1).values(sealed=second))
    with project.database.read() as connection, pytest.raises(DataError, match="note 1 was changed"):
        load_note(connection, project.database, 1)
    project.close()


@pytest.mark.parametrize("name", ["a?b.sqlite", "a b%20.sqlite", "ü#x.sqlite"])
def test_a_file_is_the_one_of_its_name(tmp_path: Path, name: str) -> None:
    Database.open(sqlite_url(tmp_path / name), Secret.new(), create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_older_database_is_upgraded_and_a_newer_one_refused(tmp_path: Path) -> None:
    """A database of version 1, as its own statements made it."""
    key = Secret.new()
    url = sqlite_url(tmp_path / "old.sqlite")
    database = Database.open(url, key, create=True)
    with database.change("test") as change:
        add_user(change, "ann", "reader")
    with database.write_unaudited() as connection:
        for name in ("sessions", "attempts"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text("ALTER TABLE assignments DROP COLUMN seconds"))
        connection.execute(update(schema.meta).where(schema.meta.c.key == "version").values(value=b"1"))
    database.close()
    upgraded = Database.open(url, key)
    with upgraded.read() as connection:
        assert [one.name for one in list_users(connection)] == ["ann"]
        assert connection.execute(select(schema.assignments.c.seconds)).all() == []
        assert connection.execute(select(schema.sessions)).all() == []
        lines = list(trail.lines(connection))
    assert (lines[-1].action, lines[-1].detail) == ("upgrade", '{"from":1,"to":2}')
    assert trail.check(lines, upgraded.key)[0] == 2
    with upgraded.write_unaudited() as connection:
        connection.execute(update(schema.meta).where(schema.meta.c.key == "version").values(value=b"9"))
    upgraded.close()
    with pytest.raises(DataError, match="version 9"):
        Database.open(url, key)


def test_the_audit_trail_shows_every_change_of_itself(tmp_path: Path, database_url: str) -> None:
    project = make_project(tmp_path, [note(0)], url=database_url)
    with project.database.read() as connection:
        lines = list(trail.lines(connection))
    number, last = trail.check(lines, project.database.key)
    assert (number, last) == (len(lines), lines[-1].hash)
    import msgspec

    for index in range(len(lines)):
        changed = [*lines[:index], msgspec.structs.replace(lines[index], actor="eve"), *lines[index + 1 :]]
        with pytest.raises(DataError, match=f"entry {index + 1} "):
            trail.check(changed)
    for broken in (lines[1:], lines[:1] + lines[2:], [lines[1], lines[0], *lines[2:]]):
        with pytest.raises(DataError, match="changed, moved or left out"):
            trail.check(broken)
    with pytest.raises(DataError, match="not signed"):
        trail.check(lines, b"another key")
    assert not any(CANARY in line.detail + line.target + line.actor for line in lines)
    project.close()
