"""A project as a whole: checked, backed up, restored, purged.

A backup is one file of JSON lines: a header with the configuration, every row of every table, and an end with a hash.
Notes and decisions in it are sealed as in the database, so it is worth nothing without the key. It fits every database.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, LargeBinary, Table, insert, select

from chaffinch.deid.keys import Secret
from chaffinch.errors import ConfigError, DataError
from chaffinch.text.formats.base import atomic_output
from chaffinch.web.review.project import (
    DATABASE,
    FILE,
    Project,
    ProjectConfig,
    create_project,
    find_key,
    open_project,
)
from chaffinch.web.review.store import schema, trail
from chaffinch.web.review.store.notes import load_notes
from chaffinch.web.review.store.work import hash_decisions

FORMAT = 1
_LEFT_OUT = ("sessions", "attempts")  # who is logged in is nothing to keep
_PART = 500  # rows that are inserted at once


@dataclass(frozen=True, slots=True)
class Checked:
    """What was checked: entries of the audit trail, decisions, notes; and the last hash, to be noted elsewhere."""

    entries: int
    decisions: int
    notes: int
    last: str


def check_project(project: Project) -> Checked:
    """Check audit trail, decisions and notes; return their counts and the last hash; DataError if anything differs."""
    database = project.database
    with database.read() as connection:
        lines = list(trail.lines(connection))
        entries, last = trail.check(lines, database.key)
        decisions = _check_decisions(connection, lines)
        notes = sum(1 for _ in load_notes(connection, database))
    return Checked(entries, decisions, notes, last)


def _check_decisions(connection: Connection, lines: list[trail.TrailLine]) -> int:
    """Return the number of decisions; raise DataError unless they are those that the audit trail has hashes of."""
    rows = list(connection.execute(select(schema.decisions).order_by(schema.decisions.c.seq)))
    place = 0
    for line in lines:
        if line.action != "decide":
            continue
        detail = msgspec.json.decode(line.detail)
        part = rows[place : place + detail["decisions"]]
        if len(part) != detail["decisions"] or hash_decisions(part) != detail["hash"]:
            raise DataError(f"the decisions of audit entry {line.seq} were changed or removed; restore a backup")
        place += len(part)
    if place != len(rows):
        raise DataError(f"{len(rows) - place} decisions are in no audit entry; restore a backup")
    return place


def back_up(project: Project, output: Path, actor: str) -> int:
    """Write a project to a new file (mode 0600, with checksum); return how many rows; ConfigError if it exists."""
    if output.exists():
        raise ConfigError(f"{output} exists, and a backup is never overwritten; choose another name")
    rows = 0
    with project.database.change(actor) as change:  # nobody else writes meanwhile
        change.record("backup")
        with atomic_output(output) as beside:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            whole = hashlib.sha256()
            with os.fdopen(handle, "wb") as file:
                for line in _lines(change.connection, project.config):
                    whole.update(line)
                    file.write(line)
                    rows += 1
                file.write(msgspec.json.encode({"end": rows, "sha256": whole.hexdigest()}) + b"\n")
                file.flush()
                os.fsync(file.fileno())
    return rows - 1


def _lines(connection: Connection, config: ProjectConfig) -> Iterator[bytes]:
    """Yield a backup's header, then each row of each table kept in backups, as JSON lines."""
    yield msgspec.json.encode({"chaffinch_review": FORMAT, "version": schema.VERSION, "toml": config.to_toml()}) + b"\n"
    for table in schema.tables.sorted_tables:
        if table.name not in _LEFT_OUT:
            for row in connection.execute(select(table)):
                yield msgspec.json.encode({"table": str(table.name), "row": list(row)}) + b"\n"


def restore(backup: Path, folder: Path, key: Secret | None = None, *, database: str | None = None) -> Project:
    """Make a project from a backup in a new folder, check it, return it; DataError, ConfigError: nothing is left.

    `database` is the URL of another database than the one that the project had.
    """
    header, rows = _read_backup(backup)
    config = ProjectConfig.parse(header["toml"])
    if database is not None:
        config = replace(config, database=database)
    secret = key or find_key(folder, config)
    project = create_project(folder, config, secret)
    try:
        with project.database.write_unaudited() as connection:
            schema.tables.drop_all(connection)  # the new project has an entry of its own in the audit trail
            schema.create(connection)
            for table in schema.tables.sorted_tables:
                values = [_decode(table, row) for name, row in rows if name == table.name]
                for start in range(0, len(values), _PART):
                    connection.execute(insert(table), values[start : start + _PART])
        project.close()
        project = open_project(folder, secret)
        check_project(project)
    except BaseException:
        project.close()
        _remove(project)
        raise
    return project


def _read_backup(backup: Path) -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
    """Return the header and the rows of a backup; raise DataError unless it is whole and unchanged."""
    try:
        lines = backup.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", path=backup) from None
    try:
        header, *content = (msgspec.json.decode(line) for line in lines)
        end = content.pop()
        whole = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
        if header["chaffinch_review"] != FORMAT or end != {"end": len(lines) - 1, "sha256": whole}:
            raise DataError("is damaged or cut short; take another backup", path=backup)
        rows = [(row["table"], row["row"]) for row in content]
    except (msgspec.DecodeError, UnicodeError, KeyError, TypeError, ValueError, IndexError):
        raise DataError("is no whole backup of a project; take another", path=backup) from None
    if header["version"] != schema.VERSION:
        raise DataError(
            f"is of version {header['version']}, and this Chaffinch restores {schema.VERSION}; restore it with the "
            "version that wrote it",
            path=backup,
        )
    return header, rows


def _decode(table: Table, row: list[Any]) -> dict[str, Any]:
    """Return a backup's row as {column: value}, with binary columns as bytes."""
    values = dict(zip((column.name for column in table.columns), row, strict=True))
    for column in table.columns:
        if isinstance(column.type, LargeBinary):
            values[column.name] = msgspec.convert(values[column.name], bytes)
    return values


def purge(project: Project, *, audit: Path | None = None) -> int:
    """Delete a project for good, after writing its audit trail to `audit` if given; return the number of notes."""
    with project.database.read() as connection:
        lines = list(trail.lines(connection))
        notes = len(list(connection.execute(select(schema.notes.c.id))))
    if audit is not None:
        with atomic_output(audit) as beside:
            beside.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    _remove(project)
    return notes


def _remove(project: Project) -> None:
    """Remove a project's tables and the files that it made, and its folder if then empty; other files stay."""
    if project.config.database:
        with project.database.write_unaudited() as connection:
            schema.tables.drop_all(connection)
    project.close()
    for name in (FILE, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (project.folder / name).unlink(missing_ok=True)
    if project.folder.is_dir() and not any(project.folder.iterdir()):
        project.folder.rmdir()
