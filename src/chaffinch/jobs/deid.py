"""Release notes in one call, and the factory of release jobs for the command line, Python and services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from chaffinch.deid import DEFAULT_POLICY
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import ConfigError
from chaffinch.jobs.date_order import settle_date_order
from chaffinch.jobs.effects import check_effects
from chaffinch.jobs.job import (
    AS_THE_NOTES_SAY,
    CALL,
    DEFAULT_SETTINGS,
    NO_SEALED,
    Groups,
    NotesInput,
    OptionNames,
    Patients,
    ReleaseJob,
    RunSettings,
    SealedTargets,
    StateTarget,
)
from chaffinch.jobs.release import run_release
from chaffinch.jobs.state import check_state, open_state
from chaffinch.jobs.work import DetectorSource, DetectorSpec
from chaffinch.text.formats import Losses, check_columns
from chaffinch.text.formats.archives import entry_of_bytes
from chaffinch.text.grouping import Grouping
from chaffinch.weak.fingerprint import fingerprint

__all__ = ["DEFAULT", "RunSettings", "StateTarget", "check_output", "plan", "run"]

DEFAULT = "deid-en"  # the packaged model
_STREAM = "stdin.txt"  # the file name of notes that come as bytes: plain text unless they look otherwise


def run(
    notes: str | Path,
    output: str | Path,
    find: Detector | DetectorSpec | None = None,
    *,
    policy: str | Path | Policy = DEFAULT_POLICY,
    secret: Secret | None = None,
    group_by: Groups = None,
    each_note_a_patient: bool = False,
    settings: RunSettings = DEFAULT_SETTINGS,
) -> dict[str, Any]:
    """De-identify a file or folder of notes to `output`; return the manifest: counts, hashes and settings, no text.

    `find` detects identifiers, `chaffinch.deid.detector(...)`; the packaged model by default. `group_by` assigns each
    note its patient: a regular expression on the id, or a table by id. A policy that draws surrogates or shifts
    dates needs the patients of all notes, or `each_note_a_patient`: no two notes are of one patient. `settings` say how
    to run: workers, resuming, overwriting, following links, the order of dates, the state of earlier releases
    (`chaffinch.deid.RunSettings`).
    Documents that cannot be read are withheld: `result["documents"]["withheld"]` says how many; `result["excluded"]`
    has the rules by which files were left out.
    """
    spec = DetectorSpec(DEFAULT) if find is None else find if isinstance(find, DetectorSpec) else None
    finder = spec.build() if spec is not None else cast(Detector, find)
    rules = policy if isinstance(policy, Policy) else Policy.read(str(policy))
    release = Release(rules, secret, date_order=settings.date_order)
    patients = Patients(group_by, each_note_a_patient)
    job = plan(
        NotesInput(Path(notes), follow=settings.follow),
        Path(output),
        release,
        finder,
        patients=patients,
        sealed=SealedTargets(state=settings.state),
        detector_source=None if spec is None else spec.pin(finder),
    )
    return run_release(
        check_effects(job), resume=settings.resume, overwrite=settings.overwrite, workers=settings.workers
    )


def plan(
    notes: NotesInput,
    output: Path,
    release: Release,
    detector: Detector,
    *,
    patients: Patients = AS_THE_NOTES_SAY,
    sealed: SealedTargets = NO_SEALED,
    option_names: OptionNames = CALL,
    detector_source: DetectorSource | None = None,
) -> ReleaseJob:
    """Check and return the job of releasing notes to `output`, and write nothing; raise ConfigError if it cannot work.

    Where the policy shifts dates, and no order of their numbers is given, it reads a sample of the notes to count it.
    """
    groups = patients.groups
    if patients.each_note and groups is not None:
        raise ConfigError(
            f"{option_names.each_note} says that no two notes are of one patient, but {option_names.group_by} "
            "assigns patients to notes; give only one of them"
        )
    if notes.content is None:
        check_output(notes.path, output)
    table, pattern = (groups, None) if isinstance(groups, Mapping) else (None, groups)
    grouping = Grouping(pattern, table, option=option_names.of("group-by"))
    files = None if notes.content is None else [entry_of_bytes(_STREAM, "-", notes.content)]
    source = open_source(
        notes.path, form=notes.form, options=notes.reading, grouping=grouping, given=files, follow=notes.follow
    )
    state = sealed.state
    earlier = open_state(state)
    known = None if earlier is None else earlier.head.date_order
    release = settle_date_order(release, source, option_names.of("date-order"), known)
    check_state(earlier, state, release, option_names.of("state"))
    input_digest = fingerprint([source.form.name, replace(notes.reading, losses=Losses()), groups])
    check_columns(source.form, notes.reading)
    return ReleaseJob(
        source, output, release, detector, input_digest, sealed.vault, state, earlier, patients.each_note, option_names,
        grouping, notes.single, notes.reading.columns, notes.reading, detector_source,
    )  # fmt: skip


def check_output(notes: Path, output: Path) -> None:
    """Raise ConfigError if the output is the input or inside it, or exists and is neither a file nor a folder."""
    if output.resolve().is_relative_to(notes.resolve()):
        raise ConfigError("the output is the input, or inside it; name another path with -o")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise ConfigError(f"{output} is neither a file nor a folder; name another path with -o")
