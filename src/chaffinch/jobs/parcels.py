"""The work of a release: units of the input in parcels, and what becomes of each; where things go is said here, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaffinch.deid.keys import Secret
from chaffinch.deid.release import Detector, Numbered, Release, Released, Withheld, release, settings_digest, withheld
from chaffinch.deid.release_units import Source, Unit
from chaffinch.deid.vault import Seal
from chaffinch.errors import ConfigError
from chaffinch.jobs.run import Item, key_of
from chaffinch.text.formats import Format, by_name

_PARCEL_DOCUMENTS = 64
_PARCEL_BYTES = 1 << 20
_HELD_BYTES = 1 << 25  # of documents that are not read a second time
EXACT = ("txt", "brat", "i2b2", "meddocan", "jsonl", "csv", "tsv", "parquet", "doccano", "labelstudio")  # keep the text


@dataclass(frozen=True, slots=True)
class Job:
    """What to release, how, and where to."""

    source: Source
    output: Path
    how: Release
    detector: Detector
    settings: str = ""  # what else decides the result: how the input is read
    vault: Path | None = None
    key: Secret | None = None

    def __post_init__(self) -> None:
        if (self.vault is None) != (self.key is None):
            raise ConfigError("a vault needs a key, and a key a vault; give --vault FILE with --key-file FILE")
        if self.vault is not None and self.form.name not in EXACT:
            raise ConfigError(f"{self.form.name} does not keep texts exactly, so nothing could be restored from it")

    @property
    def form(self) -> Format:
        """The format of the output: that of the input."""
        table = self.source.form.name == "csv" and self.output.suffix == ".tsv"
        return by_name("tsv") if table else self.source.form

    @property
    def work(self) -> Path:
        """The folder of all that is not finished."""
        return self.output.with_name(self.output.name + ".part")

    def told(self) -> dict[str, Any]:
        """The settings for the manifest."""
        return {**self.how.settings(self.detector), "format": self.form.name}

    def digest(self) -> str:
        """What a second run must have in common with the first to go on with it."""
        key = "" if self.key is None else self.key.fingerprint()
        return key_of(settings_digest(self.told()), self.settings, key)

    def beside(self, name: str) -> Path:
        """A file that accompanies the output."""
        return self.output.with_name(f"{self.output.name}.{name}")


def parcels(job: Job) -> Iterator[list[Item[Unit]]]:
    """Units with their keys, a few at a time; whole patients, where the detector or the policy reads them together."""
    if job.detector.by_patient or job.how.policy.reads_patients:
        yield from _patients(job)
        return
    held: list[Item[Unit]] = []
    size, settings = 0, job.digest()
    for unit in job.source:
        read = _read_once(unit)
        content = _content(read)
        held.append(Item(unit.number, key_of(settings, str(unit.number), content), read))
        size += len(content)
        if len(held) >= _PARCEL_DOCUMENTS or size >= _PARCEL_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _patients(job: Job) -> Iterator[list[Item[Unit]]]:
    """All units of each patient together; their results depend on one another, and so do their keys."""
    settings = job.digest()
    patients: dict[str, list[Unit]] = {}
    room = _HELD_BYTES
    for unit in job.source:
        patient, known, size = _known(unit, room)
        room -= size
        patients.setdefault(patient, []).append(known)
    held: list[Item[Unit]] = []
    for units in patients.values():
        contents = [_content(unit) for unit in units]
        numbers = [str(unit.number) for unit in units]
        held += [Item(unit.number, key_of(settings, str(unit.number), *numbers, *contents), unit) for unit in units]
        if len(held) >= _PARCEL_DOCUMENTS:
            yield held
            held = []
    if held:
        yield held


def _read_once(unit: Unit) -> Unit:
    """The unit with its content in memory, unless it cannot be read."""
    try:
        content = unit.content()
    except Exception:  # it is read again, and then withheld with the reason
        return unit
    return replace(unit, content=lambda: content)


def _content(unit: Unit) -> bytes:
    try:
        return unit.content()
    except Exception:  # as above
        return b""


def _known(unit: Unit, room: int) -> tuple[str, Unit, int]:
    """The patient, the unit, and its size if it is held in memory, read, because there is room for it."""
    try:
        content = unit.content()
        doc = unit.parse(content)
    except Exception:  # as above
        return unit.id, unit, 0
    if len(content) > room:
        return doc.patient, unit, 0
    return doc.patient, replace(unit, content=lambda: content, parse=lambda _: doc), len(content)


def worked(units: Sequence[Unit], job: Job, seal: Seal | None) -> list[Released | Withheld]:
    """What becomes of each unit, in order."""
    results: dict[int, Released | Withheld] = {}
    given: list[Numbered] = []
    for unit in units:
        try:
            given.append(Numbered(unit.number, unit.read()))
        except Exception as error:  # whatever is wrong with a document, it is withheld
            results[unit.number] = withheld(unit.id, unit.number, error, job.how)
    done = release(given, job.how, job.detector, seal=seal) if given else []
    results |= {one.number: result for one, result in zip(given, done, strict=True)}
    return [results[unit.number] for unit in units]


def packed(units: Sequence[Unit], job: Job, seal: Seal | None) -> list[bytes | Withheld]:
    """The same as bytes for the ledger."""
    results: list[bytes | Withheld] = []
    for unit, one in zip(units, worked(units, job, seal), strict=True):
        try:
            results.append(one.pack() if isinstance(one, Released) else one)
        except Exception as error:  # a field that cannot be written
            results.append(withheld(one.original, unit.number, error, job.how))
    return results


def apart(results: Iterable[Released | Withheld], job: Job, seen: set[str]) -> Iterator[Released | Withheld]:
    """The results; where each document is a file, one whose id cannot name a file, or names an earlier one's, stays."""
    for one in results:
        if isinstance(one, Released) and job.form.folder:
            fault = _fault(one.id, seen)
            seen.add(one.id)
            yield Withheld(one.id, one.original, fault) if fault else one
        else:
            yield one


def _fault(name: str, seen: set[str]) -> str:
    if name in seen:
        return "has the id of an earlier document; make the ids differ"
    parts = name.split("/")
    if "\0" in name or any(not part or part.startswith(".") for part in parts):
        return "has an id that cannot be the name of a file; give it another, or leave out --ids keep"
    return ""
