"""The audit trail: entries chained by SHA-256 and signed with the project's key.

Each entry has the hash of the one before it, so that none can be changed, moved or left out; the signature (`mac`)
shows that whoever wrote it had the key. The last hash and the number of entries, noted elsewhere, show a cut end.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from chaffinch.errors import DataError
from chaffinch.web.review.store import schema

FIRST = "0" * 64  # what the first entry has in place of the hash of an earlier one


@dataclass(frozen=True, slots=True)
class Entry:
    """What happened: when, who, what, to what, and counts or hashes, never text."""

    at: str
    actor: str
    action: str
    target: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class TrailLine(msgspec.Struct, frozen=True):
    """An entry in the trail, one line of the exported file."""

    seq: int
    at: str
    actor: str
    action: str
    target: str
    detail: str
    previous: str
    hash: str
    mac: str


def append(connection: Connection, key: bytes, entry: Entry) -> TrailLine:
    """Append an entry to the audit, chained by hash and signed by `key`, in the transaction given; return its line."""
    last = connection.execute(
        select(schema.audit.c.seq, schema.audit.c.hash).order_by(schema.audit.c.seq.desc()).limit(1)
    ).first()
    seq, previous = (1, FIRST) if last is None else (last.seq + 1, last.hash)
    detail = msgspec.json.encode(entry.detail, order="sorted").decode()
    digest = _hash(seq, entry.at, entry.actor, entry.action, entry.target, detail, previous)
    mac = hmac.digest(key, digest.encode(), "sha256").hex()
    line = TrailLine(seq, entry.at, entry.actor, entry.action, entry.target, detail, previous, digest, mac)
    connection.execute(insert(schema.audit).values(**msgspec.structs.asdict(line)))
    return line


def lines(connection: Connection) -> Iterator[TrailLine]:
    """Yield the entries of the audit trail, oldest first."""
    for row in connection.execute(select(schema.audit).order_by(schema.audit.c.seq)):
        yield TrailLine(**row._mapping)


def check(trail: Iterable[TrailLine], key: bytes | None = None) -> tuple[int, str]:
    """Check the chain of hashes, and signatures if `key`; return (entries, last hash); DataError at the first fault."""
    previous, number = FIRST, 0
    for number, line in enumerate(trail, start=1):
        expected = _hash(line.seq, line.at, line.actor, line.action, line.target, line.detail, line.previous)
        if line.seq != number or line.previous != previous or line.hash != expected:
            raise DataError(f"entry {number} of the audit trail was changed, moved or left out; take an untouched copy")
        if key is not None and not hmac.compare_digest(line.mac, hmac.digest(key, line.hash.encode(), "sha256").hex()):
            raise DataError(f"entry {number} of the audit trail was not signed with this project's key")
        previous = line.hash
    return number, previous


def _hash(*parts: str | int) -> str:
    """Return the SHA-256 (hex) of an entry's parts as JSON."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
