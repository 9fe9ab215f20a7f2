"""The account of a release: one line per document, chained by hashes, and a manifest of the whole. No text.

The lines are private: `OUT.private/documents.jsonl`. The line of a released document: `{"id", "status": "released",
"text": SHA-256 of the output, "replacements": [[start, end, label, operator, out_start, out_end], …], "hash"}`; of a
withheld one: `{"id", "status": "withheld", "reason", "replacements": [], "hash"}`; of an item that a rule excludes:
`{"status": "excluded", "reason", "hash"}`. Each hash covers the one before and the line itself; the first covers the
settings. The manifest may be published: it has no offset, id or file name.
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

from chaffinch.deid.leakage import Risk, RiskSums
from chaffinch.deid.release.clinical_classes import PROTECTED
from chaffinch.deid.release.patient import BANDS, Released, Withheld, settings_digest
from chaffinch.deid.vault import digest
from chaffinch.errors import ChaffinchError, DataError

FORMAT = 4
# Details in a reason: quotations, and numbers, which may be offsets or lengths; but not the 8 of UTF-8.
_DETAIL = re.compile(r"""(?<!\w)(["']).*\1|0x[0-9a-f]+|(?<![\w-])\d[\d,]*""", re.DOTALL)


def private_folder(output: Path) -> Path:
    """Return the path of the private folder beside an output: its name with `.private`.

    >>> private_folder(Path("clean.jsonl")).name
    'clean.jsonl.private'
    """
    return output.with_name(f"{output.name}.private")


def public_reason(reason: str) -> str:
    """Return a reason for withholding with its numbers and quotations replaced by "…".

    >>> public_reason("byte 8 (0xff) is not valid UTF-8; convert it first")
    'byte … (…) is not valid UTF-8; convert it first'
    """
    return _DETAIL.sub("…", reason)


class Account:
    """Counts of released, withheld and excluded documents, in the order of the input; excluded files are added last."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Begin with no documents; the chain of hashes begins with the digest of the settings."""
        self.settings = dict(settings)
        self.first = self.last = settings_digest(settings)
        self.released = self.withheld = self.excluded = self.tokens = self.characters = self.replacements = 0
        self.patients: set[str] = set()
        self.alone = 0
        self._labels: dict[str, Counter[str]] = {}
        self._operators: dict[str, Counter[str]] = {}
        self._reasons, self._rules, self._classes = Counter[str](), Counter[str](), Counter[str]()
        self._risks = RiskSums()

    def add(self, result: Released | Withheld) -> bytes:
        """Count a released or withheld document, and return its line of documents.jsonl, chained by a hash."""
        if isinstance(result, Withheld):
            self.withheld += 1
            self._reasons[public_reason(result.reason)] += 1
            return self._line({"id": result.id, "status": "withheld", "reason": result.reason, "replacements": []})
        self.released += 1
        self.tokens += result.tokens
        self.characters += result.characters
        self.replacements += len(result.places)
        self.alone += not result.patient
        self.patients.add(result.patient)
        for label, counts in result.bands.items():
            self._labels.setdefault(label, Counter()).update(counts)
        for _, _, label, operator, _, _ in result.places:
            self._operators.setdefault(label, Counter())[operator] += 1
        self._classes.update(result.over_redaction)
        if result.risk is not None:
            self._risks.add(msgspec.convert(result.risk, Risk))
        return self._line(
            {"id": result.id, "status": "released", "text": digest(result.text), "replacements": list(result.places)}
        )

    def exclude(self, rule: str) -> bytes:
        """Count an item that a rule excludes, and return its line of documents.jsonl, chained by a hash."""
        self.excluded += 1
        self._rules[rule] += 1
        return self._line({"status": "excluded", "reason": rule})

    def check_count(self, seen: int) -> None:
        """Raise ChaffinchError unless released, withheld and excluded items add up to `seen`, the reader's count."""
        counted = self.released + self.withheld + self.excluded
        if counted != seen:
            raise ChaffinchError(
                f"the reader counted {seen:,} documents, but {counted:,} were released, withheld or excluded; nothing "
                "was released: please report this line"
            )

    def _line(self, entry: dict[str, Any]) -> bytes:
        """Return an entry as a JSON line with its hash, and make that hash the last of the chain."""
        self.last = _next_hash(self.last, entry)
        return msgspec.json.encode({**entry, "hash": self.last}) + b"\n"

    def manifest(self, **more: Any) -> dict[str, Any]:
        """Return the manifest: counts, settings and hashes of the release, and `more`; no text, ids or times."""
        expected_leaks = self._risks.total() if self._risks.notes else None
        return {
            "format": FORMAT,
            "settings": self.settings,
            "versions": {
                "chaffinch": self.settings["chaffinch"], "python": platform.python_version(), "numpy": np.__version__
            },
            "documents": {
                "in": self.released + self.withheld + self.excluded,
                "released": self.released, "withheld": self.withheld, "excluded": self.excluded,
            },
            "withheld": dict(sorted(self._reasons.items())),
            "excluded": dict(sorted(self._rules.items())),
            "patients": len(self.patients - {""}) + self.alone,
            "without_patient": self.alone,
            "characters": self.characters,
            "tokens": self.tokens,
            "replacements": self.replacements,
            "labels": {label: self._label_counts(label) for label in sorted({*self._labels, *self._operators})},
            "over_redaction": {name: self._classes[name] for name in PROTECTED if self._classes[name]},
            "expected_leaks": None if expected_leaks is None else expected_leaks.as_dict(),
            "chain": {"first": self.first, "last": self.last},
            **more,
        }  # fmt: skip

    def _label_counts(self, label: str) -> dict[str, Any]:
        """Return the manifest's entry for a label: spans found by band of confidence, replacements by operator."""
        counts = self._labels.get(label, Counter())
        bands = {name: counts[name] for name, _ in BANDS}
        return {
            "found": counts.total(),
            "bands": bands,
            "operators": dict(sorted(self._operators.get(label, {}).items())),
        }


def _next_hash(last_hash: str, entry: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the last hash followed by an entry."""
    return hashlib.sha256(last_hash.encode() + msgspec.json.encode(entry, order="sorted")).hexdigest()


def check_chain(lines: Iterable[bytes], manifest: Mapping[str, Any]) -> int:
    """Recompute the hashes of documents.jsonl; return the number of lines; DataError if one is changed or missing."""
    last, number = settings_digest(manifest["settings"]), 0
    for number, line in enumerate(lines, start=1):
        try:
            entry = msgspec.json.decode(line)
            written_hash = entry.pop("hash")
        except (msgspec.DecodeError, KeyError, AttributeError, UnicodeError):
            raise DataError("is not a line of a release", line=number) from None
        last = _next_hash(last, entry)
        if written_hash != last:
            raise DataError("this line or one before it was changed, moved or left out", line=number)
    if last != manifest["chain"]["last"] or number != manifest["documents"]["in"]:
        raise DataError(f"there are {number} lines, but the manifest describes others")
    return number
