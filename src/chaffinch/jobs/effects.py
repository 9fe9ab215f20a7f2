"""Check, before anything is written, that every setting of a release has an effect on its notes.

    notes  →  survey  →  ConfigError | the job with its warnings

What protects (patients, admission lists, denied phrases, types, kept fields) and has no effect raises ConfigError; what
helps (allowed phrases), or has less effect than asked, is a warning, which the table and the manifest show. Messages
have counts and the user's settings, and no word of a note. A warning begins with the name of its option, without
dashes: it is the same for commands and calls, as the manifest is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from chaffinch.checks import nearest
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.protocol import RememberingDetector
from chaffinch.deid.kinds import KINDS, fold_label
from chaffinch.deid.release.kept_fields import KeptField
from chaffinch.deid.release.memory import patient_key
from chaffinch.deid.release.state import ReleaseState
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import Lexicon
from chaffinch.jobs.job import OptionNames, ReleaseJob
from chaffinch.text import Document
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.document import uncut_documents
from chaffinch.text.formats import Unit
from chaffinch.text.grouping import Grouping
from chaffinch.weak.sources.base import Source, collect_spans


class _Effect(Protocol):
    """The effect of a setting, counted over the notes."""

    def see(self, doc: Document) -> None:
        """Note whether the setting has an effect on this note."""

    def check(self, notes: int) -> Iterator[str]:
        """After `notes` notes were seen, yield warnings; raise ConfigError if a setting that protects had no effect."""


def check_effects(job: ReleaseJob, *, warnings: Iterable[str] = (), strict: bool = False) -> ReleaseJob:
    """Return the job with warnings from its notes; ConfigError if a protection has no effect, or on any if `strict`.

    All notes are read once if a setting needs it; nothing is written. With `strict`, a warning is an error.
    """
    _check_policy_types(job)
    effects = list(_effects(job))
    notes = _survey(job, effects) if effects else 0
    found = [*warnings]
    if notes:
        found += [message for effect in effects for message in effect.check(notes)]
    if strict and found:
        raise ConfigError(f"{job.option_names.of('strict')}: {'--' if job.option_names.flags else ''}{found[0]}")
    return replace(job, warnings=tuple(found))


def _effects(job: ReleaseJob) -> Iterator[_Effect]:
    """Yield an effect checker for each setting of the job whose effect shows only in the notes."""
    names, find = job.option_names, job.detector
    if job.state.path is not None:
        yield _StateEffect(job.earlier, names, isinstance(find, RememberingDetector))
    if job.grouping:
        yield _GroupingEffect(job.grouping)
    if job.columns:
        yield _ColumnsEffect(job.columns, names)
    if isinstance(find, HybridDetector):
        if find.known is not None:
            yield _KnownEffect(find.known, names)
        if find.deny is not None:
            yield _PhrasesEffect(find.deny, "deny", names, protects=True)
        if find.allow is not None:
            yield _PhrasesEffect(find.allow, "allow", names, protects=False)
        if find.types:
            yield _TypesEffect(find.types, names.of("types"))
    for name in job.release.fields:
        yield _KeepEffect(KeptField(name, job.release.policy, job.release.keep_ids, names.of("keep")))


def _survey(job: ReleaseJob, effects: Sequence[_Effect]) -> int:
    """Let each effect checker see every readable note of the job, and return the number of readable notes."""
    notes = 0
    read = _read_quietly if any(isinstance(effect, _TypesEffect) for effect in effects) else _read_uncut
    for doc in filter(None, map(read, job.source)):
        notes += 1
        for effect in effects:
            effect.see(doc)
    return notes


def _read_uncut(unit: Unit) -> Document | None:
    """Parse a unit without tokens, which is faster; None if it cannot be read; ConfigError is raised."""
    with uncut_documents():
        return _read_quietly(unit)


def _read_quietly(unit: Unit) -> Document | None:
    """Parse a unit; None if it cannot be read, as it is withheld later; only ConfigError is raised."""
    try:
        return unit.read()
    except ConfigError:
        raise
    except Exception:  # as above, with the reason
        return None


def _check_policy_types(job: ReleaseJob) -> None:
    """Raise ConfigError for the first policy type that neither model nor source finds, if their labels are known."""
    find, policy = job.detector, job.release.policy
    if not isinstance(find, HybridDetector):
        return
    known = {*KINDS, *map(fold_label, find.model.labels)}
    for source in find.types:
        labels = _labels_of(source)
        if labels is None:
            return
        known |= set(map(fold_label, labels))
    for label in policy.types:
        if fold_label(label) not in known:
            near = nearest(fold_label(label), known)
            hint = "" if near is None else f"; did you mean {near!r}?"
            raise ConfigError(
                f"policy {policy.name}: type {label!r} is found by neither the model nor a source of "
                f"{job.option_names.of('types')}, so its rule has no effect; give the source, or remove the type{hint}"
            )


def _labels_of(source: Source) -> set[str] | None:
    """Return the labels that a source declares; None if it declares none."""
    label, labels = getattr(source, "label", None), getattr(source, "labels", None)
    if isinstance(label, str) and label:
        return {label}
    return set(labels.values()) if isinstance(labels, dict) and labels else None


@dataclass(slots=True)
class _GroupingEffect:
    """Patients that a pattern or a table assigns."""

    grouping: Grouping
    assigned: int = 0
    used: set[str] = field(default_factory=set, repr=False)

    def see(self, doc: Document) -> None:
        """Count the note if the grouping assigns it a patient; remember its id if that is in the table."""
        self.assigned += self.grouping.find(doc.id) is not None
        if self.grouping.table is not None and doc.id in self.grouping.table:
            self.used.add(doc.id)

    def check(self, notes: int) -> Iterator[str]:
        """Warn of notes that the grouping gives no patient, and of unused ids; ConfigError if it gives no note one."""
        table = self.grouping.table
        if not self.assigned:
            raise ConfigError(self.grouping.explain_no_effect(notes))
        if self.assigned < notes:
            yield f"group-by: no patient is assigned to {notes - self.assigned:,} of {notes:,} notes"
        if table is not None and len(self.used) < len(table):
            yield f"group-by: {len(table) - len(self.used):,} of {len(table):,} ids in the table are of no note"


class _StateEffect:
    """Patients of the notes that a state knows, and whether the detector searches for the names in it."""

    def __init__(self, state: ReleaseState | None, names: OptionNames, remembers: bool) -> None:
        """Collect the keys of all patients of the state."""
        self._state, self._names, self._remembers = state, names, remembers
        self._patients = {patient_key(memory.patient) for memory in state or ()}
        self._met = False

    def see(self, doc: Document) -> None:
        """Remember whether the state knows the patient of this note or of an earlier one."""
        self._met = self._met or patient_key(doc.patient) in self._patients

    def check(self, notes: int) -> Iterator[str]:
        """Warn if the state is new, if it knows no patient of the notes, or if the detector cannot use its names."""
        if self._state is None:
            yield "state: the file is new; no earlier release is remembered"
        elif self._patients and not self._met:
            yield (
                f"state: none of its {len(self._patients):,} patients is the patient of one of the {notes:,} notes; do "
                f"{self._names.group_by} and the notes call them as before?"
            )
        if not self._remembers:
            yield "state: the detector takes no names of earlier releases, so it does not search for them in new notes"


@dataclass(slots=True)
class _ColumnsEffect:
    """Columns that the user names: texts and patients in them."""

    columns: ColumnChoice
    names: OptionNames
    texts: set[int] = field(default_factory=set)  # places of the text columns that some note fills
    patients: int = 0

    def see(self, doc: Document) -> None:
        """Remember which text columns are not blank in the note; count it if it names a patient."""
        cells = [doc.text] if doc.columns is None else doc.columns.cut(doc.text).values()
        self.texts |= {place for place, cell in enumerate(cells) if cell.strip()}
        self.patients += doc.group is not None

    def check(self, notes: int) -> Iterator[str]:
        """Warn if a text column is blank, or some patients; ConfigError if all texts or all patients are."""
        if self.columns.texts and not self.texts:
            raise ConfigError(f"{self.names.of('text-column')}: it is empty in all {notes:,} notes; name another")
        for place in range(len(self.columns.texts)):
            if place not in self.texts:
                yield f"text-column: number {place + 1} of {len(self.columns.texts)} is empty in all {notes:,} notes"
        if self.columns.patient is not None and not self.patients:
            raise ConfigError(f"{self.names.of('patient-column')}: it is empty in all {notes:,} notes; name another")
        if self.columns.patient is not None and self.patients < notes:
            yield f"patient-column: {notes - self.patients:,} of {notes:,} notes have no patient in it"


@dataclass(slots=True)
class _KnownEffect:
    """Patients of an admission list that have notes, and notes whose patients are in the list."""

    known: KnownIdentifiers
    names: OptionNames
    seen: set[str] = field(default_factory=set, repr=False)
    listed: int = 0
    hit: bool = False

    def see(self, doc: Document) -> None:
        """Count the note if its patient is listed; remember whether any note has a known identifier in its text."""
        if doc.patient in self.known.patients:
            self.seen.add(doc.patient)
            self.listed += 1
        self.hit = self.hit or bool(self.known(doc))

    def check(self, notes: int) -> Iterator[str]:
        """Warn of patients without notes, notes not listed, values not found; ConfigError if no patient has a note."""
        option, patients = self.names.of("known"), self.known.patients.keys() - {""}
        if patients and not self.seen and not self.known.patients.get(""):
            raise ConfigError(
                f"{option}: none of its {len(patients):,} patients is the patient of one of the {notes:,} notes; give "
                f"the patients of the notes as the list calls them, with {self.names.group_by}, "
                f"{self.names.of('patient-column')} or in its column patient"
            )
        if patients and self.listed < notes and not self.known.patients.get(""):
            yield f"known: {notes - self.listed:,} of {notes:,} notes are of patients that it does not list"
        if len(self.seen) < len(patients):
            yield f"known: {len(patients) - len(self.seen):,} of its {len(patients):,} patients have no note"
        if not self.hit:
            yield "known: none of its identifiers is in a note of its patient"
        if self.known.too_short:
            yield f"known: {self.known.too_short:,} of its values are too short to be searched for"


@dataclass(slots=True)
class _PhrasesEffect:
    """Phrases of a list that occur in notes."""

    phrases: Lexicon
    option: str
    names: OptionNames
    protects: bool
    seen: set[int] = field(default_factory=set)

    def see(self, doc: Document) -> None:
        """Add the numbers of the list's phrases that occur in the note."""
        self.seen |= self.phrases.find_phrases(doc.text)

    def check(self, notes: int) -> Iterator[str]:
        """Warn of phrases that are in no note; raise ConfigError if none is in any, and the list protects."""
        number = len({phrase for phrases in self.phrases.phrases for phrase in phrases})
        if not self.seen and self.protects:
            raise ConfigError(
                f"{self.names.of(self.option)}: none of its {number:,} phrases is in any of the {notes:,} notes; "
                "correct it, or leave it out"
            )
        if len(self.seen) < number:
            yield f"{self.option}: {number - len(self.seen):,} of its {number:,} phrases are in no note"


class _TypesEffect:
    """Sources of types that find something; each is asked until it does."""

    def __init__(self, sources: Sequence[Source], option: str) -> None:
        """Keep all sources as ones that have found nothing yet."""
        self.number, self.option, self.waiting = len(sources), option, list(sources)

    def see(self, doc: Document) -> None:
        """Ask the sources that have found nothing so far, and drop those that find a span in this note."""
        self.waiting = [source for source in self.waiting if not _finds(source, doc)]

    def check(self, notes: int) -> Iterator[str]:
        """Warn of sources that found nothing in any note; raise ConfigError if none of them found anything."""
        if len(self.waiting) == self.number:
            raise ConfigError(
                f"{self.option}: its {self.number:,} sources find nothing in the {notes:,} notes; correct them, or "
                "leave them out"
            )
        if self.waiting:
            yield f"types: {len(self.waiting):,} of its {self.number:,} sources find nothing in the notes"


def _finds(source: Source, doc: Document) -> bool:
    """Return whether a source finds a span in a note; True also if it fails, as the release then withholds the note."""
    try:
        return bool(collect_spans(source(doc), str(getattr(source, "label", "")) or source.name, len(doc.text))[0])
    except Exception:
        return True


@dataclass(slots=True)
class _KeepEffect:
    """Fields that are released: whether any note has them, and whether what they hold may be released."""

    kept: KeptField
    names: set[str] = field(default_factory=set, repr=False)

    def see(self, doc: Document) -> None:
        """Collect the names of the note's fields; ConfigError if the kept field's value is a hidden identifier."""
        self.names |= doc.meta.keys()
        self.kept.see(doc)

    def check(self, notes: int) -> Iterator[str]:
        """Warn of notes without the kept field; raise ConfigError if none has it, or its values may not be kept."""
        name, option, found = self.kept.name, self.kept.option, self.kept.found
        if not found:
            near = nearest(name, self.names)
            hint = "correct it, or leave it out" if near is None else f"did you mean {near!r}?"
            raise ConfigError(f"{option} {name!r}: none of the {notes:,} notes has a field of that name; {hint}")
        self.kept.check()
        if found < notes:
            yield f"keep: {notes - found:,} of {notes:,} notes lack a field that it names"
