"""Verify a release: its files, the account of its documents, and its manifest still agree.

The account is a chain of hashes that the manifest ends; each line of a released document has the hash of its text. This
detects whatever was changed by accident or by somebody who did not rewrite all of it; it is no signature.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.deid.release.account import FORMAT, check_chain, private_folder, public_reason
from chaffinch.deid.vault import digest
from chaffinch.errors import ConfigError, DataError
from chaffinch.text.formats import ReadOptions, by_name, read

_NO_LIMIT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared: files of the output, lines of the account (None without the private lists), and texts."""

    documents: Mapping[str, int]
    files: int
    lines: int | None
    texts: int


class _Files(msgspec.Struct):
    number: int
    digest: str


class _Compared(msgspec.Struct):
    """The entries of a manifest that are compared."""

    settings: dict[str, Any]
    documents: dict[str, int]
    withheld: dict[str, int]
    excluded: dict[str, int]
    replacements: int
    chain: dict[str, str]
    files: _Files


def digest_files(output: Path) -> dict[str, Any]:
    """Return {number, digest}: how many files an output has, and a SHA-256 of their names and contents."""
    whole, number = hashlib.sha256(), 0
    paths = sorted(path for path in output.rglob("*") if path.is_file()) if output.is_dir() else [output]
    for path in paths:
        number += 1
        name = "" if path == output else path.relative_to(output).as_posix()
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(msgspec.json.encode([name, content]))
    return {"number": number, "digest": whole.hexdigest()}


def verify(output: Path) -> Verification:
    """Check that output, documents.jsonl and manifest agree; return counts; DataError: changed, ConfigError: absent."""
    manifest_path = output.with_name(f"{output.name}.manifest.json")
    if not output.exists():
        raise ConfigError(f"{output} does not exist; name the output of deid run")
    manifest = _read_manifest(manifest_path)
    files = digest_files(output)
    lines = private_folder(output) / "documents.jsonl"
    entries = _check_account(lines, manifest, manifest_path) if lines.exists() else None
    texts = 0 if entries is None else _check_texts(output, entries, manifest)
    if files != manifest["files"]:
        raise DataError(
            f"its {files['number']:,} files are not the {manifest['files']['number']:,} that were released: one was "
            "changed, added, removed or renamed; take an untouched copy",
            path=output,
        )
    return Verification(manifest["documents"], files["number"], None if entries is None else len(entries), texts)


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest; raise DataError if it is missing, no manifest or of another format version."""
    try:
        manifest = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}); a release is checked with its manifest beside it", path=path
        ) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("is not JSON; take an untouched copy", path=path) from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise DataError("is no manifest of a release; take an untouched copy", path=path)
    if manifest["format"] != FORMAT:
        raise DataError(f"has format {manifest['format']}; this version verifies format {FORMAT}", path=path)
    try:
        msgspec.convert(manifest, _Compared)
    except msgspec.ValidationError:
        raise DataError("lacks entries of a manifest; take an untouched copy", path=path) from None
    return manifest


def _check_account(path: Path, manifest: Mapping[str, Any], manifest_path: Path) -> list[dict[str, Any]]:
    """Return the entries of documents.jsonl; raise DataError if hashes or the manifest's counts do not fit."""
    try:
        lines = path.read_bytes().splitlines()
        check_chain(lines, manifest)
        entries: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines]
        differing = [name for name, value in _recount(entries).items() if manifest[name] != value]
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}); check its permissions", path=path) from None
    except DataError as error:
        raise error.at(path) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise DataError("does not fit the account of the release; take an untouched copy", path=manifest_path) from None
    if differing:
        raise DataError(
            f"has other figures for {', '.join(differing)} than the account of the release; take an untouched copy",
            path=manifest_path,
        )
    return entries


def _recount(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's documents, reasons and replacements, counted again from entries of documents.jsonl."""
    by_status = Counter(entry["status"] for entry in entries)
    reasons = [(entry["status"], entry["reason"]) for entry in entries if entry["status"] != "released"]
    return {
        "documents": {"in": len(entries)} | {name: by_status[name] for name in ("released", "withheld", "excluded")},
        "withheld": dict(Counter(public_reason(reason) for status, reason in reasons if status == "withheld")),
        "excluded": dict(Counter(reason for status, reason in reasons if status == "excluded")),
        "replacements": sum(len(entry["replacements"]) for entry in entries if entry["status"] == "released"),
    }


def _check_texts(output: Path, entries: Iterable[Mapping[str, Any]], manifest: Mapping[str, Any]) -> int:
    """Compare ids, and texts if the format is exact, with the output; return the number of texts, or DataError.

    A format that does not keep texts exactly is compared by ids; the hash of its files covers the rest.
    """
    form = by_name(manifest["settings"]["format"])
    released = [entry for entry in entries if entry["status"] == "released"]
    if not released:
        return 0
    exact = form.can.exact
    expected = Counter((entry["id"], entry["text"] if exact else "") for entry in released)
    documents = read(output, format=form.name, how=ReadOptions(max_chars=_NO_LIMIT))
    try:
        found = Counter((doc.id, digest(doc.text) if exact else "") for doc in documents)
    except ConfigError:  # a damaged field or column name reads as a wrong setting
        raise DataError(f"cannot be read as {form.name} any more; take an untouched copy", path=output) from None
    missing, added = expected - found, found - expected
    changed = sum((Counter(name for name, _ in missing.elements()) & Counter(n for n, _ in added.elements())).values())
    if missing or added:
        raise DataError(
            f"of {len(released):,} released documents {changed:,} were changed and {missing.total() - changed:,} are "
            f"missing, and {added.total() - changed:,} others were added; take an untouched copy",
            path=output,
        )
    return found.total() if exact else 0
