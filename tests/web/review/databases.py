"""Fixtures of databases: SQLite, and a real PostgreSQL server on loopback that is started once and stopped."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from chaffinch.web.review.store import users

_NUMBERS = count()
_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]  # where Debian keeps the programs


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([*map(str, _PLACES), os.environ.get("PATH", "")]))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server, without a database; skipped where it is not installed, but in CI that fails."""
    initdb, control = _program("initdb"), _program("pg_ctl")
    if initdb is None or control is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is missing: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed")
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # the server refuses to run as root
    identity = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid}
    folder = Path(tempfile.mkdtemp(prefix="chaffinch-pg-"))  # not below pytest's folder, which only its owner can enter
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **identity)  # type: ignore[call-overload]

    data = str(folder / "data")
    run(initdb, "-D", data, "-A", "trust", "-U", "chaffinch", "--no-sync")
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
    run(control, "-w", "-D", data, "-l", str(folder / "log"), "-o", options, "start")
    yield f"postgresql://chaffinch@127.0.0.1:{port}"
    run(control, "-w", "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The `database` of a project's configuration: empty for SQLite, a new database of the server otherwise."""
    if request.param == "sqlite":
        return ""
    import psycopg

    base = request.getfixturevalue("postgres")
    name = f"review{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{base}/{name}"


@pytest.fixture(autouse=True, scope="session")
def cheap_passwords() -> Iterator[None]:
    """Let argon2 take little time and memory: its cost is no subject of these tests."""
    before = users._hasher
    users._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    yield
    users._hasher = before
