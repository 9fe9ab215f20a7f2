"""From notes to notes without identifiers in one call; the command line is made of the same pieces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaffinch.deid.detect import Detector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release import Detector as Finder
from chaffinch.deid.release import Release
from chaffinch.deid.release_units import Grouping, grouping, source
from chaffinch.errors import ConfigError
from chaffinch.jobs.parcels import Job
from chaffinch.jobs.release import released
from chaffinch.jobs.run import key_of

DEFAULT = "deid-en"  # the packaged model
POLICY = "safe-harbor"

Groups = str | Mapping[str, str] | None


def run(
    notes: str | Path, output: str | Path, find: Detector | None = None, *,
    policy: str | Path | Policy = POLICY, secret: Secret | None = None, group_by: Groups = None,
    resume: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Writes the notes without identifiers, and returns the manifest: counts, hashes and settings, no text.

    `find` is what finds identifiers, `chaffinch.deid.detector(...)`; the packaged model unless given. `group_by` gives
    each note its patient: a regular expression on the id, or a table by id. Documents that cannot be read are withheld:
    `result["documents"]["withheld"]` says how many. With `resume`, a run that was stopped is finished.
    """
    place = placed(Path(notes), Path(output))
    found = detector(DEFAULT, by_patient=True) if find is None else find
    how = Release(policy if isinstance(policy, Policy) else Policy.read(str(policy)), secret)
    grouped, told = grouped_by(group_by)
    given = source(notes, grouping=grouped)
    return released(Job(given, place, how, finder(found), key_of(given.form.name, told)), resume=resume)


def finder(found: Detector) -> Finder:
    """A detector as a release knows it."""
    return Finder(found, found.name, found.digest, found.layer, found.by_patient)


def grouped_by(groups: Groups) -> tuple[Grouping, str]:
    """What gives documents their patients, and a word for it that changes when it does."""
    if isinstance(groups, Mapping):
        return grouping(groups=groups), key_of(*(part for pair in sorted(groups.items()) for part in pair))
    return grouping(groups), groups or ""


def placed(notes: Path, output: Path) -> Path:
    """Where the output goes; ConfigError if that is among the inputs, or can be neither a file nor a folder."""
    if output.resolve().is_relative_to(notes.resolve()):
        raise ConfigError("the output is the input, or inside it; name another place with -o")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise ConfigError(f"{output} is neither a file nor a folder; name another place with -o")
    return output
