"""The tables of a project, their version, and the upgrades from earlier versions.

Everything that holds a word of a note, a name of a file or a patient, or a type of identifier is sealed. `notes`,
`decisions` and `audit` are only ever added to: triggers refuse anything else, in SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

VERSION = 2  # of the tables; an older project is upgraded when it is opened, a newer one is refused

tables = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up integers of that name only

meta = Table("meta", tables, Column("key", String(40), primary_key=True), Column("value", LargeBinary, nullable=False))

users = Table(
    "users",
    tables,
    Column("id", _Number, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("password", String(200)),  # argon2; None: no password, only a link or a proxy lets the user in
    Column("quota", Integer),
    Column("active", Boolean, nullable=False, default=True),
)

notes = Table(
    "notes",
    tables,
    Column("id", _Number, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),  # keyed: of the id, the patient and the text
    Column("patient", String(64), nullable=False, index=True),  # keyed
    Column("expected", Float, nullable=False),
    Column("draw", Float, nullable=False),
    Column("length", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

assignments = Table(
    "assignments",
    tables,
    Column("id", _Number, primary_key=True),
    Column("note", _Number, ForeignKey("notes.id"), nullable=False, index=True),
    Column("user", _Number, ForeignKey("users.id"), nullable=False, index=True),
    Column("arm", Integer, nullable=False),  # 1, 2, …; 0 is the adjudicator
    Column("suggested", Boolean, nullable=False),  # whether the machine's marks are shown
    Column("done", Boolean, nullable=False, default=False),
    Column("seconds", Float, nullable=False, default=0.0),
    UniqueConstraint("note", "arm"),
    UniqueConstraint("note", "user"),
)

decisions = Table(
    "decisions",
    tables,
    Column("seq", _Number, primary_key=True),
    Column("id", String(64), nullable=False),
    Column("assignment", _Number, ForeignKey("assignments.id"), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    UniqueConstraint("assignment", "id"),
)

outcomes = Table(
    "outcomes",
    tables,
    Column("note", _Number, ForeignKey("notes.id"), primary_key=True, autoincrement=False),
    Column("differences", Integer, nullable=False),
)

audit = Table(
    "audit",
    tables,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("actor", String(80), nullable=False),
    Column("action", String(40), nullable=False),
    Column("target", String(80), nullable=False),
    Column("detail", String, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("mac", String(64), nullable=False),
)

sessions = Table(
    "sessions",
    tables,
    Column("token", String(64), primary_key=True),  # a hash of the cookie
    Column("user", _Number, ForeignKey("users.id"), nullable=False),
    Column("csrf", String(64), nullable=False),
    Column("seen", Float, nullable=False),
    Column("began", Float, nullable=False),
)

attempts = Table(
    "attempts",
    tables,
    Column("id", _Number, primary_key=True),
    Column("name", String(64), nullable=False),  # keyed
    Column("at", Float, nullable=False),
)
Index("attempts_by_name", attempts.c.name, attempts.c.at)

APPEND_ONLY = ("notes", "decisions", "audit")


def create(connection: Connection) -> None:
    """Create all tables and triggers of the newest version."""
    tables.create_all(connection)
    _protect(connection, APPEND_ONLY)


def _protect(connection: Connection, names: tuple[str, ...]) -> None:
    """Create triggers that refuse every update and removal of rows of these tables."""
    if connection.dialect.name == "sqlite":
        for name in names:
            for action in ("UPDATE", "DELETE"):
                connection.execute(
                    text(
                        f"CREATE TRIGGER {name}_no_{action.lower()} BEFORE {action} ON {name} "
                        "BEGIN SELECT RAISE(ABORT, 'rows are only added'); END"
                    )
                )
        return
    connection.execute(
        text(
            "CREATE OR REPLACE FUNCTION only_add() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'rows are only added'; END $$"
        )
    )
    for name in names:
        connection.execute(
            text(
                f"CREATE TRIGGER {name}_only_add BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
                "FOR EACH STATEMENT EXECUTE FUNCTION only_add()"
            )
        )


def _add_sessions(connection: Connection) -> None:
    """Upgrade version 1: add the table of sessions, that of login attempts, and seconds per assignment."""
    connection.execute(text("ALTER TABLE assignments ADD COLUMN seconds FLOAT NOT NULL DEFAULT 0"))
    tables.create_all(connection, tables=[sessions, attempts])


UPGRADES: Mapping[int, Callable[[Connection], None]] = {1: _add_sessions}  # from a version to the next
