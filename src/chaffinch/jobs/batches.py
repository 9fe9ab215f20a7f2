"""The work of a release: units of the input in parcels, and what becomes of each; where things go is said here, too."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaffinch.deid.keys import Secret, check_apart
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import (
    Detector,
    Numbered,
    Release,
    Released,
    Withheld,
    release,
    settings_digest,
    withheld,
)
from chaffinch.deid.release.units import Unit, UnitSource
from chaffinch.deid.vault import Seal
from chaffinch.errors import ConfigError
from chaffinch.jobs.run import WorkItem, key_of
from chaffinch.text import Document
from chaffinch.text.formats import Format, by_name

_PARCEL_DOCUMENTS = 64
_PARCEL_BYTES = 1 << 20
_HELD_BYTES = 1 << 25  # of documents that are not read a second time
EXACT = ("txt", "brat", "i2b2", "meddocan", "jsonl", "csv", "tsv", "parquet", "doccano", "labelstudio")  # keep the text


@dataclass(frozen=True, slots=True)
class OptionNames:
    """What the caller calls the options that messages name."""

    group_by: str
    each_note: str


CALL = OptionNames("group_by=…", "each_note_a_patient=True")
COMMAND = OptionNames("--group-by …", "--each-note-a-patient")


@dataclass(frozen=True, slots=True)
class Job:
    """What to release, how, and where to. `each_note_a_patient`: no two notes are of one patient."""

    source: UnitSource
    output: Path
    how: Release
    detector: Detector
    settings: str = ""  # a digest of how the input is read, and of whose notes are whose
    vault: Path | None = None
    key: Secret | None = None
    each_note_a_patient: bool = False
    words: OptionNames = CALL

    def __post_init__(self) -> None:
        if (self.vault is None) != (self.key is None):
            raise ConfigError("a vault needs a key, and a key a vault; give --vault FILE with --key-file FILE")
        check_apart(self.how.secret, self.key)
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

    @property
    def by_patient(self) -> bool:
        """Whether it matters which notes are one patient's.

        The detector or the policy may read them together, and that no two are is checked.
        """
        return self.detector.by_patient or self.how.policy.reads_patients or self.each_note_a_patient

    def told(self) -> dict[str, Any]:
        """The settings for the manifest."""
        told = {"format": self.form.name, "each note a patient": self.each_note_a_patient}
        return {**self.how.settings(self.detector), **told}

    def digest(self) -> str:
        """Return what a second run must have in common with the first to go on with it: all that changes the output.

        Each note is in the key of its item. The digest is kept in the ledger only, as phrases could be guessed from it.
        """
        vault = "" if self.vault is None else os.path.relpath(self.vault, self.output.parent)
        key = "" if self.key is None else self.key.fingerprint()
        told = settings_digest({**self.told(), "versions": versions()})
        return key_of(told, self.detector.inputs, str(self.detector.by_patient), self.settings, vault, key)

    @property
    def manifest(self) -> Path:
        """Where the manifest goes."""
        return self.output.with_name(f"{self.output.name}.manifest.json")

    @property
    def private(self) -> Path:
        """The folder of what tells of originals."""
        return private_folder(self.output)


def versions() -> dict[str, str]:
    """Return the versions of all that computes results."""
    packages = {name: version(name) for name in ("chaffinch", "numpy", "scipy", "numba")}
    return {**packages, "python": ".".join(platform.python_version_tuple()[:2])}


def parcels(job: Job) -> Iterator[list[WorkItem[Unit]]]:
    """Return units with their keys, a few at a time; whole patients where a patient's notes depend on one another.

    Then all units are read once here, to learn whose they are, before the first parcel is asked for. ConfigError if
    the policy needs patients and notes have none, or if notes have one that are said to have none.
    """
    return _parcels_of_patients(job, _group_units(job)) if job.by_patient else _parcels_of_notes(job)


def _parcels_of_notes(job: Job) -> Iterator[list[WorkItem[Unit]]]:
    """Yield units in the order of the input; each has a key of its own."""
    held: list[WorkItem[Unit]] = []
    size, settings = 0, job.digest()
    for unit in map(_read_once, job.source):
        held.append(WorkItem(unit.number, key_of(settings, *_parts(unit)), unit))
        size += len(_content(unit))
        if len(held) >= _PARCEL_DOCUMENTS or size >= _PARCEL_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _group_units(job: Job) -> list[list[Unit]]:
    """Return the units of each patient, in the order of the input; patients in the order of their first notes."""
    patients: dict[str, list[Unit]] = {}
    notes = grouped = 0
    room = _HELD_BYTES
    for unit in job.source:
        read = _read_once(unit)
        doc = _document(read)
        if doc is None:
            patients.setdefault(unit.id, []).append(unit)
            continue
        notes += 1
        grouped += doc.group is not None
        held = len(_content(read)) <= room
        room -= len(_content(read)) if held else 0
        patients.setdefault(doc.patient, []).append(replace(read, parse=_constant(doc)) if held else unit)
    _check_patients(job, notes, grouped)
    return list(patients.values())


def _check_patients(job: Job, notes: int, grouped: int) -> None:
    """Refuse a keyed policy for notes without a patient, and notes with one that are said to have none."""
    policy, words = job.how.policy, job.words
    if job.each_note_a_patient and grouped:
        raise ConfigError(
            f"{words.each_note} says that no two notes are of one patient, but {grouped:,} of {notes:,} notes name a "
            "patient; leave it out"
        )
    if policy.keyed and grouped < notes and not job.each_note_a_patient:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or shifts dates by patient, and {notes - grouped:,} of {notes:,} "
            f"notes have no patient: give {words.group_by}, or {words.each_note} if every note is of another patient"
        )


def _parcels_of_patients(job: Job, patients: Iterable[Sequence[Unit]]) -> Iterator[list[WorkItem[Unit]]]:
    """Yield whole patients; the results of a patient's units depend on one another, and so do their keys."""
    settings = job.digest()
    held: list[WorkItem[Unit]] = []
    size = 0
    for units in patients:
        read = [_read_once(unit) for unit in units]
        patient = key_of(settings, *(part for unit in read for part in _parts(unit)))
        held += [WorkItem(unit.number, key_of(patient, str(unit.number)), unit) for unit in read]
        size += sum(len(_content(unit)) for unit in read)
        if len(held) >= _PARCEL_DOCUMENTS or size >= _PARCEL_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _parts(unit: Unit) -> tuple[str | bytes, ...]:
    """Return all of a unit that its result depends on: its place, what it is called, and its content."""
    return str(unit.number), unit.id, unit.name, _content(unit)


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


def _document(unit: Unit) -> Document | None:
    try:
        return unit.read()
    except Exception:  # as above
        return None


def _constant(doc: Document) -> Callable[[bytes], Document]:
    return lambda _: doc


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
