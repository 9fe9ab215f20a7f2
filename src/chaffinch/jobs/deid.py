"""Release notes in one call, and the factory of release jobs for the command line, Python and services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import (
    AS_THE_NOTES_SAY,
    CALL,
    NO_VAULT,
    Groups,
    NotesInput,
    OptionNames,
    Patients,
    ReleaseJob,
    VaultTarget,
)
from chaffinch.jobs.release import run_release
from chaffinch.text.formats import Losses
from chaffinch.text.grouping import Grouping
from chaffinch.weak.fingerprint import fingerprint

DEFAULT = "deid-en"  # the packaged model
POLICY = "safe-harbor"


def run(
    notes: str | Path,
    output: str | Path,
    find: Detector | None = None,
    *,
    policy: str | Path | Policy = POLICY,
    secret: Secret | None = None,
    group_by: Groups = None,
    each_note_a_patient: bool = False,
    follow: bool = False,
    resume: bool = False,
) -> dict[str, Any]:
    """Write the notes without identifiers, and return the manifest: counts, hashes and settings, no text.

    `find` detects identifiers, `chaffinch.deid.detector(...)`; the packaged model by default. `group_by` assigns each
    note its patient: a regular expression on the id, or a table by id. A policy that draws surrogates or shifts
    dates needs the patients of all notes, or `each_note_a_patient`: no two notes are of one patient. Documents that
    cannot be read are withheld: `result["documents"]["withheld"]` says how many; `result["excluded"]` has the rules by
    which files were left out. With `follow`, links that lead out of a folder are read. With `resume`, an interrupted
    run is finished.
    """
    finder = detector(DEFAULT, by_patient=True) if find is None else find
    release = Release(policy if isinstance(policy, Policy) else Policy.read(str(policy)), secret)
    patients = Patients(group_by, each_note_a_patient)
    source = NotesInput(Path(notes), follow=follow)
    return run_release(plan(source, Path(output), release, finder, patients=patients), resume=resume)


def plan(
    notes: NotesInput,
    output: Path,
    release: Release,
    detector: Detector,
    *,
    patients: Patients = AS_THE_NOTES_SAY,
    vault: VaultTarget = NO_VAULT,
    option_names: OptionNames = CALL,
) -> ReleaseJob:
    """Return the job of releasing notes; raise ConfigError if it is impossible. It writes nothing and reads no note."""
    groups = patients.groups
    if patients.each_note and groups is not None:
        raise ConfigError(
            f"{option_names.each_note} says that no two notes are of one patient, but {option_names.group_by} "
            "assigns patients to notes; give only one of them"
        )
    check_output(notes.path, output)
    table, pattern = (groups, None) if isinstance(groups, Mapping) else (None, groups)
    grouping = Grouping(pattern, table, option="--group-by")
    source = open_source(notes.path, form=notes.form, options=notes.reading, grouping=grouping, follow=notes.follow)
    input_digest = fingerprint([source.form.name, replace(notes.reading, losses=Losses()), groups])
    return ReleaseJob(source, output, release, detector, input_digest, vault, patients.each_note, option_names)


def check_output(notes: Path, output: Path) -> None:
    """Raise ConfigError if the output is among the inputs, or is neither a file nor a folder."""
    if output.resolve().is_relative_to(notes.resolve()):
        raise ConfigError("the output is the input, or inside it; name another path with -o")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise ConfigError(f"{output} is neither a file nor a folder; name another path with -o")
