"""From notes to notes without identifiers in one call; the command line is made of the same pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaffinch.deid.detect.detector import Detector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Detector as Finder
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import grouping, source
from chaffinch.errors import ConfigError
from chaffinch.jobs.batches import CALL, Job, OptionNames
from chaffinch.jobs.release import released
from chaffinch.text.formats import Losses, ReadOptions
from chaffinch.weak.fingerprint import fingerprint

DEFAULT = "deid-en"  # the packaged model
POLICY = "safe-harbor"

Groups = str | Mapping[str, str] | None


def run(
    notes: str | Path, output: str | Path, find: Detector | None = None, *,
    policy: str | Path | Policy = POLICY, secret: Secret | None = None, group_by: Groups = None,
    each_note_a_patient: bool = False, resume: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Write the notes without identifiers, and return the manifest: counts, hashes and settings, no text.

    `find` is what finds identifiers, `chaffinch.deid.detector(...)`; the packaged model unless given. `group_by` gives
    each note its patient: a regular expression on the id, or a table by id. A policy that draws surrogates or shifts
    dates needs the patients of all notes, or `each_note_a_patient`: no two notes are of one patient. Documents that
    cannot be read are withheld: `result["documents"]["withheld"]` says how many. With `resume`, a run that was stopped
    is finished.
    """
    found = detector(DEFAULT, by_patient=True) if find is None else find
    how = Release(policy if isinstance(policy, Policy) else Policy.read(str(policy)), secret)
    job = plan(Path(notes), Path(output), how, finder(found), groups=group_by, each_note_a_patient=each_note_a_patient)
    return released(job, resume=resume)


def plan(
    notes: Path, output: Path, how: Release, found: Finder, *,
    form: str | None = None, reading: ReadOptions | None = None, groups: Groups = None,
    each_note_a_patient: bool = False,
    vault: Path | None = None, key: Secret | None = None, words: OptionNames = CALL,
) -> Job:  # fmt: skip
    """Return the job of releasing notes. The command line and `run` build theirs here, so that they agree."""
    if each_note_a_patient and groups is not None:
        raise ConfigError(
            f"{words.each_note} says that no two notes are of one patient, and {words.group_by} which are; "
            "leave one of them out"
        )
    place, reading = placed(notes, output), reading or ReadOptions()
    grouped = grouping(groups=groups) if isinstance(groups, Mapping) else grouping(groups)
    given = source(notes, form=form, how=reading, grouping=grouped)
    settings = fingerprint([given.form.name, replace(reading, losses=Losses()), groups])
    return Job(given, place, how, found, settings, vault, key, each_note_a_patient, words)


def finder(found: Detector) -> Finder:
    """A detector as a release knows it."""
    allow, deny = (0 if own is None else sum(map(len, own.phrases)) for own in (found.allow, found.deny))
    known = 0 if found.known is None else sum(map(len, found.known.patients.values()))
    facts = {"recall": found.recall, "allow": allow, "deny": deny, "known": known, "types": len(found.types)}
    return Finder(found, found.name, found.model.digest, found.layer, found.by_patient, facts, found.digest)


def placed(notes: Path, output: Path) -> Path:
    """Where the output goes; ConfigError if that is among the inputs, or can be neither a file nor a folder."""
    if output.resolve().is_relative_to(notes.resolve()):
        raise ConfigError("the output is the input, or inside it; name another place with -o")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise ConfigError(f"{output} is neither a file nor a folder; name another place with -o")
    return output
