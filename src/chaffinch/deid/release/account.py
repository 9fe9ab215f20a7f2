"""The account of a release: one line for each document, chained by hashes, and a manifest of the whole. No text.

The lines are private: `OUT.private/documents.jsonl`. A line of a document that went out: `{"id", "status": "released",
"text": SHA-256 of the output, "replacements": [[start, end, label, operator, out_start, out_end], …], "hash"}`; of one
that was withheld: `{"id", "status": "withheld", "reason", "replacements": [], "hash"}`. Each hash covers the one before
and the line itself; the first covers the settings. The manifest may be published: it has no offset, id or file name.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from chaffinch.deid.leakage import Risk, expected
from chaffinch.deid.release.patient import BANDS, Released, Withheld, settings_digest
from chaffinch.deid.vault import digest
from chaffinch.errors import DataError

FORMAT = 2
# Of a reason: what is quoted, and numbers, which may be places or lengths; but not the 8 of UTF-8.
_DETAIL = re.compile(r"""(?<!\w)(["']).*\1|0x[0-9a-f]+|(?<![\w-])\d[\d,]*""", re.DOTALL)


def private_folder(output: Path) -> Path:
    """Return the folder of what tells of originals, beside the output.

    >>> private_folder(Path("clean.jsonl")).name
    'clean.jsonl.private'
    """
    return output.with_name(f"{output.name}.private")


def public_reason(reason: str) -> str:
    """Return a reason for withholding without its numbers and quotations.

    >>> public_reason("byte 8 (0xff) is not valid UTF-8; convert it first")
    'byte … (…) is not valid UTF-8; convert it first'
    """
    return _DETAIL.sub("…", reason)


class Account:
    """Counts what goes out and what does not, document by document, in the order of the input."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.first = self.last = settings_digest(settings)
        self.released = self.withheld = self.tokens = self.characters = self.replacements = 0
        self.patients: set[str] = set()
        self.alone = 0
        self._labels: dict[str, Counter[str]] = {}
        self._operators: dict[str, Counter[str]] = {}
        self._reasons = Counter[str]()
        self._risks: list[Risk] = []

    def add(self, one: Released | Withheld) -> bytes:
        """Counts a document, and gives its line."""
        if isinstance(one, Withheld):
            self.withheld += 1
            self._reasons[public_reason(one.reason)] += 1
            return self._line({"id": one.id, "status": "withheld", "reason": one.reason, "replacements": []})
        self.released += 1
        self.tokens += one.tokens
        self.characters += one.characters
        self.replacements += len(one.places)
        self.alone += not one.patient
        self.patients.add(one.patient)
        for label, counts in one.bands.items():
            self._labels.setdefault(label, Counter()).update(counts)
        for place in one.places:
            self._operators.setdefault(place[2], Counter())[place[3]] += 1
        if one.risk is not None:
            self._risks.append(msgspec.convert(one.risk, Risk))
        return self._line(
            {"id": one.id, "status": "released", "text": digest(one.text), "replacements": list(one.places)}
        )

    def _line(self, entry: dict[str, Any]) -> bytes:
        self.last = _next(self.last, entry)
        return msgspec.json.encode({**entry, "hash": self.last}) + b"\n"

    def manifest(self, **more: Any) -> dict[str, Any]:
        """All that can be told of the release without text, names or times."""
        whole = expected(self._risks) if self._risks else None
        return {
            "format": FORMAT,
            "settings": self.settings,
            "versions": {
                "chaffinch": self.settings["chaffinch"], "python": platform.python_version(), "numpy": np.__version__
            },
            "documents": {
                "in": self.released + self.withheld, "released": self.released, "withheld": self.withheld
            },
            "withheld": dict(sorted(self._reasons.items())),
            "patients": len(self.patients - {""}) + self.alone,
            "without a patient": self.alone,
            "characters": self.characters,
            "tokens": self.tokens,
            "replacements": self.replacements,
            "labels": {label: self._label(label) for label in sorted({*self._labels, *self._operators})},
            "expected leaks": None if whole is None else whole.as_dict(),
            "chain": {"first": self.first, "last": self.last},
            **more,
        }  # fmt: skip

    def _label(self, label: str) -> dict[str, Any]:
        found = self._labels.get(label, Counter())
        bands = {name: found[name] for name, _ in BANDS}
        return {
            "found": found.total(),
            "bands": bands,
            "operators": dict(sorted(self._operators.get(label, {}).items())),
        }


def _next(before: str, entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(before.encode() + msgspec.json.encode(entry, order="sorted")).hexdigest()


def check_chain(lines: Iterable[bytes], manifest: Mapping[str, Any]) -> int:
    """How many documents a release has, if the lines and the manifest are as they were written; else DataError."""
    last, number = settings_digest(manifest["settings"]), 0
    for number, line in enumerate(lines, start=1):
        try:
            entry = msgspec.json.decode(line)
            found = entry.pop("hash")
        except (msgspec.DecodeError, KeyError, AttributeError, UnicodeError):
            raise DataError("is not a line of a release", line=number) from None
        last = _next(last, entry)
        if found != last:
            raise DataError("this line or one before it was changed, moved or left out", line=number)
    if last != manifest["chain"]["last"] or number != manifest["documents"]["in"]:
        raise DataError(f"the lines end at {number}, and the manifest tells of others")
    return number
