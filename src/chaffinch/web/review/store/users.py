"""Users, their roles and passwords, sessions, and the limit of failed logins."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, func, insert, select, update

from chaffinch.checks import check_choice
from chaffinch.errors import ConfigError, DataError
from chaffinch.web.review.store import schema
from chaffinch.web.review.store.database import Change, Database, next_number

Role = Literal["reader", "adjudicator", "steward", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)

SHORTEST_PASSWORD = 12  # characters, as NIST SP 800-63B-4 asks of passwords that are the only factor, rounded down
LONGEST_PASSWORD = 1000
LONGEST_NAME = 80
MOST_FAILURES, FAILURE_WINDOW = 5, 900.0  # failed logins of a name in so many seconds, then it has to wait
LONGEST_SESSION = 12 * 3600.0  # seconds; a working day

_hasher = PasswordHasher()
# Checked for names that do not exist, so that the time of a login does not tell whether a name does.
_NOBODY = _hasher.hash(secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class User:
    """A user: number, name, role, and the quota of notes to read."""

    id: int
    name: str
    role: Role
    quota: int | None = None
    active: bool = True


@dataclass(frozen=True, slots=True)
class Session:
    """An open session: whose, its CSRF token, and whether it has been idle for too long."""

    user: User
    csrf: str = field(repr=False)
    token: str = field(repr=False)  # the hash of the cookie
    idle: bool = False


def add_user(change: Change, name: str, role: str, *, password: str | None = None, quota: int | None = None) -> User:
    """Store a user, audited, and return them; ConfigError for a bad or taken name, role or password."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise ConfigError(f"a user's name has 1 to {LONGEST_NAME} printable characters, with no blank at an end")
    check_choice(role, "role", ROLES)
    if change.connection.scalar(select(schema.users.c.id).where(schema.users.c.name == name)) is not None:
        raise ConfigError("there is a user of that name; choose another")
    number = next_number(change.connection, schema.users)
    values = {
        "id": number, "name": name, "role": role, "quota": quota, "active": True,
        "password": None if password is None else _hash_password(password),
    }  # fmt: skip
    change.connection.execute(insert(schema.users).values(**values))
    change.record("user added", f"user {number}", role=role, quota=quota)
    return User(number, name, cast(Role, role), quota)


def set_password(change: Change, user: User, password: str) -> None:
    """Store a user's new password as a hash, and end all their sessions; ConfigError if its length is wrong."""
    values = {"password": _hash_password(password)}
    change.connection.execute(update(schema.users).where(schema.users.c.id == user.id).values(**values))
    change.connection.execute(delete(schema.sessions).where(schema.sessions.c.user == user.id))
    change.record("password set", f"user {user.id}")


def _hash_password(password: str) -> str:
    """Return the argon2 hash of a password; raise ConfigError if it is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ConfigError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; a sentence is a good one"
        )
    return _hasher.hash(password)


def list_users(connection: Connection) -> list[User]:
    """Return all users by number."""
    return [_user(row) for row in connection.execute(select(schema.users).order_by(schema.users.c.id))]


def find_user(connection: Connection, name: str) -> User | None:
    """Return the active user of a name, or None."""
    row = connection.execute(select(schema.users).where(schema.users.c.name == name)).first()
    return None if row is None or not row.active else _user(row)


def log_in(database: Database, name: str, password: str) -> User | None:
    """Return the user if name and password are right, else None (audited); DataError after too many failed attempts.

    Failures count per name, whether or not it exists; success forgets them.
    """
    key, now = database.digest("login", name), database.clock()
    with database.write_unaudited() as connection:
        old = schema.attempts.c.at < now - FAILURE_WINDOW
        connection.execute(delete(schema.attempts).where(old))
        failed = connection.scalar(
            select(func.count()).select_from(schema.attempts).where(schema.attempts.c.name == key)
        )
        if (failed or 0) >= MOST_FAILURES:
            raise DataError(f"too many failed logins; wait {FAILURE_WINDOW / 60:.0f} minutes")
        connection.execute(insert(schema.attempts).values(name=key, at=now))  # before the check: parallel guesses count
        row = connection.execute(select(schema.users).where(schema.users.c.name == name)).first()
    stored = row.password if row is not None and row.active and row.password else _NOBODY
    if not _is_right(stored, password) or row is None or stored == _NOBODY:
        with database.change("nobody") as change:
            change.record("login failed")
        return None
    with database.write_unaudited() as connection:
        connection.execute(delete(schema.attempts).where(schema.attempts.c.name == key))
    return _user(row)


def _is_right(stored: str, password: str) -> bool:
    """Tell whether a password is the one that was stored as a hash."""
    try:
        return _hasher.verify(stored, password[: LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError):
        return False


def begin_session(database: Database, user: User, how: str) -> str:
    """Begin a session, audited with `how` the user logged in; return its cookie, of which only a hash is stored."""
    cookie, now = secrets.token_urlsafe(32), database.clock()
    with database.change(user.name) as change:
        change.connection.execute(delete(schema.sessions).where(schema.sessions.c.began < now - LONGEST_SESSION))
        change.connection.execute(
            insert(schema.sessions).values(
                token=_hash_token(cookie), user=user.id, csrf=secrets.token_urlsafe(24), seen=now, began=now
            )
        )
        change.record("login", f"user {user.id}", how=how)
    return cookie


def find_session(database: Database, cookie: str, *, idle_seconds: float, touch: bool) -> Session | None:
    """Return the session of a cookie, which tells if it is idle, or None; `touch` notes the time unless idle."""
    token, now = _hash_token(cookie), database.clock()
    with database.read() as connection:
        query = select(schema.sessions, schema.users).join(schema.users, schema.sessions.c.user == schema.users.c.id)
        row = connection.execute(query.where(schema.sessions.c.token == token)).first()
    if row is None or not row.active or now - row.began > LONGEST_SESSION:
        return None
    idle = now - row.seen > idle_seconds
    user = User(row.id, row.name, cast(Role, row.role), row.quota, row.active)
    if touch and not idle and now - row.seen > 5:  # not more often: it is a write
        with database.write_unaudited() as connection:
            connection.execute(update(schema.sessions).where(schema.sessions.c.token == token).values(seen=now))
    return Session(user, row.csrf, token, idle)


def unlock_session(database: Database, session: Session, password: str) -> bool:
    """Continue an idle session if the password is its user's, and audit it; return whether it was right."""
    user = log_in(database, session.user.name, password)
    if user is None or user.id != session.user.id:
        return False
    with database.change(user.name) as change:
        where = schema.sessions.c.token == session.token
        change.connection.execute(update(schema.sessions).where(where).values(seen=database.clock()))
        change.record("unlock", f"user {user.id}")
    return True


def end_session(database: Database, session: Session) -> None:
    """Delete a session from the database, and record the logout in the audit trail."""
    with database.change(session.user.name) as change:
        change.connection.execute(delete(schema.sessions).where(schema.sessions.c.token == session.token))
        change.record("logout", f"user {session.user.id}")


def same_token(given: str, expected: str) -> bool:
    """Tell whether two tokens are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _hash_token(cookie: str) -> str:
    """Return the SHA-256 of a session's cookie, in hexadecimal."""
    return hashlib.sha256(cookie.encode()).hexdigest()


def _user(row: object) -> User:
    """Return the user of a row."""
    return User(*(getattr(row, name) for name in ("id", "name", "role", "quota", "active")))
