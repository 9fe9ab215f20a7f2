"""Open the database of a project; every change is one transaction that has its entry in the audit trail, or fails."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from chaffinch.deid.keys import Secret
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.web.review.store import schema, trail

Clock: TypeAlias = Callable[[], float]

_BUSY_SECONDS = 30  # that a writer waits for another; writers are short
_LOCK = 0x63686166  # any number that all writers of PostgreSQL agree on: "chaf"


class AuditError(ChaffinchError):
    """A change left no entry in the audit trail, so it was undone."""


@dataclass(slots=True)
class Change:
    """A transaction that changes something: its connection, seal, actor and time; `record` must be called."""

    connection: Connection
    seal: Seal
    actor: str
    mac_key: bytes = field(repr=False)
    at: str = ""
    recorded: int = 0

    def record(self, action: str, target: str = "", **detail: Any) -> None:
        """Append an entry to the audit trail: never a word of a note, a label or a name of a file."""
        trail.append(self.connection, self.mac_key, trail.Entry(self.at, self.actor, action, target, detail))
        self.recorded += 1


@dataclass(frozen=True, slots=True, eq=False)
class Database:
    """An open database of a project: `read` for a consistent view, `change` for one audited transaction."""

    engine: Engine = field(repr=False)
    seal: Seal = field(repr=False)
    key: bytes = field(repr=False)
    clock: Clock = time.time

    @classmethod
    def open(
        cls, url: str, secret: Secret, *, create: bool = False, clock: Callable[[], float] = time.time
    ) -> Database:
        """Open or create a database, upgraded if older; ConfigError for a wrong key, DataError if it holds no project.

        With `create`, its tables are made, and they must not be there yet.
        """
        engine = _engine(url)
        try:
            with _write_transaction(engine) as connection:
                exists = inspect(connection).has_table("meta")
                if create and exists:
                    raise ConfigError("the database holds a project already; choose another, or open that one")
                if not create and not exists:
                    raise DataError("the database holds no project; make one with: chaffinch project new")
                seal = _create(connection, secret) if create else _check(connection, secret)
        except OperationalError:
            engine.dispose()
            raise DataError("the database cannot be opened; check its path or URL, and that it is running") from None
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, seal, _derive(secret, "keyed digests"), clock)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def digest(self, *parts: str) -> str:
        """Return a keyed digest of parts: it names something without showing it to those who lack the key."""
        content = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
        return hmac.digest(self.key, content, "sha256").hex()

    def draw(self, *parts: str) -> float:
        """Return a number in [0, 1) drawn from the parts under the key: the same parts, the same number."""
        return int(self.digest("draw", *parts)[:12], 16) / 16**12

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection in a transaction for reading."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def change(self, actor: str) -> Iterator[Change]:
        """Yield a change, stored whole at the end of its block or not at all; AuditError if it recorded nothing."""
        with _write_transaction(self.engine) as connection:
            at = datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="milliseconds")
            change = Change(connection, self.seal, actor, self.key, at)
            yield change
            if not change.recorded:
                raise AuditError("a change had no entry for the audit trail and was undone; please report this line")

    @contextmanager
    def write_unaudited(self) -> Iterator[Connection]:
        """Yield a connection that writes without an audit entry, for what is no decision: sessions, failed logins."""
        with _write_transaction(self.engine) as connection:
            yield connection


def sqlite_url(path: Path) -> str:
    """Return the URL of a SQLite file."""
    return URL.create("sqlite+pysqlite", database=str(path.resolve())).render_as_string(hide_password=False)


def _engine(url: str) -> Engine:
    """Return the engine of a URL: SQLite with prepared connections and explicit transactions, or PostgreSQL."""
    if url.startswith("sqlite"):
        engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), pool_pre_ping=True)


def _prepare_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """Set up a new SQLite connection: WAL, full sync, foreign keys, secure deletion, temporary data in memory."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Begin a SQLite transaction; a writing one takes the lock at once, so that it never fails half-way."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _write_transaction(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in the database's only writing transaction, so that the audit trail is one chain."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name != "sqlite":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


def _derive(secret: Secret, purpose: str) -> bytes:
    """Return a key for one purpose, derived from the project's key."""
    return hmac.digest(secret.key, f"chaffinch review 1 {purpose}".encode(), "sha256")


def _create(connection: Connection, secret: Secret) -> Seal:
    """Create the tables, store version, seal and project id, and return the new seal."""
    seal = Seal.new(secret)
    schema.create(connection)
    rows = {"version": str(schema.VERSION).encode(), "seal": seal.header, "project": os.urandom(16)}
    connection.execute(insert(schema.meta), [{"key": key, "value": value} for key, value in rows.items()])
    return seal


def _check(connection: Connection, secret: Secret) -> Seal:
    """Return the seal of a database, upgraded if old; ConfigError for a wrong key, DataError if it is newer."""
    stored = dict(connection.execute(select(schema.meta.c.key, schema.meta.c.value)).all())
    try:
        seal = Seal.of(bytes(stored["seal"]), secret)
    except ConfigError:
        raise ConfigError("the key does not open this project; give the key with which it was made") from None
    version = int(bytes(stored["version"]))
    if version > schema.VERSION:
        raise DataError(f"the project is of version {version}; this Chaffinch reads {schema.VERSION}: update it")
    for number in range(version, schema.VERSION):
        schema.UPGRADES[number](connection)
    if version < schema.VERSION:
        connection.execute(
            update(schema.meta).where(schema.meta.c.key == "version").values(value=str(schema.VERSION).encode())
        )
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = trail.Entry(at, "chaffinch", "upgrade", "", {"from": version, "to": schema.VERSION})
        trail.append(connection, _derive(secret, "keyed digests"), entry)
    return seal


def next_number(connection: Connection, table: Table) -> int:
    """Return the highest id of a table plus one; safe, as there is one writer at a time."""
    return int(connection.scalar(select(func.max(table.c.id))) or 0) + 1


def hash_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()
