"""A release job: its input, configuration and output paths, and the digest of everything that changes its output."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from chaffinch.deid.dates.order import DateOrder
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret, check_keys_differ
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import Release, settings_digest
from chaffinch.deid.release.state import ReleaseState, part_of
from chaffinch.deid.release.units import UnitSource
from chaffinch.errors import ConfigError
from chaffinch.jobs.run import key_of
from chaffinch.jobs.work import DetectorSource
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import Format, ReadOptions, check_suffix, output_variant
from chaffinch.text.grouping import Grouping

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
Groups: TypeAlias = str | Mapping[str, str] | None  # a regular expression on the id, a table by id, or None


@dataclass(frozen=True, slots=True)
class NotesInput:
    """The notes to release: a file, folder or archive; its format (None: recognise it); the options to read it.

    `content` are the bytes of a file that is not on the disk.
    `follow`: links that lead out of a folder are read as well.
    """

    path: Path
    form: str | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    content: bytes | None = field(default=None, repr=False)
    follow: bool = False

    @property
    def single(self) -> bool:
        """Tell whether the notes come as bytes, or as one file that is no archive."""
        return self.content is not None or (self.path.is_file() and not self.path.name.endswith(_ARCHIVES))


@dataclass(frozen=True, slots=True)
class Patients:
    """The patients of notes: by `groups`, else as the notes say. `each_note`: no two notes share a patient."""

    groups: Groups = field(default=None, repr=False)
    each_note: bool = False


AS_THE_NOTES_SAY = Patients()


@dataclass(frozen=True, slots=True)
class StateTarget:
    """The file that remembers earlier releases, and its key; both or none. It is made if it does not exist."""

    path: Path | None = None
    key: Secret | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if only one of path and key is given."""
        if (self.path is None) != (self.key is None):
            raise ConfigError(
                "a state needs a key, and a key needs a state; give both --state FILE and --state-key-file FILE"
            )

    @property
    def part(self) -> Path | None:
        """Return the path of the unfinished state, the final path with `.part`; None without a state."""
        return None if self.path is None else part_of(self.path)


NO_STATE = StateTarget()


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a release is run; none of it but the date order and the state changes the released bytes.

    `date_order` ("mdy", "dmy", or "auto": that of nearly all dates) reads 03/04/1998 where the patient's dates do not
    tell. With `follow`, links that lead out of a folder are read. With `resume`, an interrupted run is finished. With
    `overwrite`, an output of an earlier run is replaced. More than one of `workers` (processes) need a detector that
    each can load. `state` remembers earlier releases: only new notes are released, with the same surrogates.
    """

    date_order: DateOrder = "auto"
    follow: bool = False
    resume: bool = False
    overwrite: bool = False
    workers: int = 1
    state: StateTarget = NO_STATE


DEFAULT_SETTINGS = RunSettings()


@dataclass(frozen=True, slots=True)
class VaultTarget:
    """The new file for the encrypted originals, and its key; both or none."""

    path: Path | None = None
    key: Secret | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if only one of path and key is given."""
        if (self.path is None) != (self.key is None):
            raise ConfigError(
                "a vault needs a key, and a key needs a vault; give both --vault FILE and --key-file FILE"
            )

    @property
    def part(self) -> Path | None:
        """Return the path of the unfinished vault, the final path with `.part`; None without a vault."""
        return None if self.path is None else self.path.with_name(self.path.name + ".part")


NO_VAULT = VaultTarget()


@dataclass(frozen=True, slots=True)
class SealedTargets:
    """The encrypted files of a job, each with its key: the vault of originals, and the state of earlier releases."""

    vault: VaultTarget = NO_VAULT
    state: StateTarget = NO_STATE


NO_SEALED = SealedTargets()
NO_GROUPING = Grouping()
NO_CHOICE = ColumnChoice()


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The caller's names of the options that messages mention."""

    group_by: str
    each_note: str
    flags: bool = False

    def of(self, name: str) -> str:
        """Return an option as the caller writes it: `--date-order` for commands, `date_order` for Python calls."""
        return f"--{name}" if self.flags else name.replace("-", "_")


CALL = OptionNames("group_by=…", "each_note_a_patient=True")
COMMAND = OptionNames("--group-by …", "--each-note-a-patient", flags=True)


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """The input, configuration and output of a release; made by `jobs.deid.plan`.

    `input_digest` covers how the input is read and how notes are assigned to patients.
    """

    source: UnitSource
    output: Path
    release: Release
    detector: Detector
    input_digest: str = field(default="", repr=False)
    vault: VaultTarget = NO_VAULT
    state: StateTarget = NO_STATE
    earlier: ReleaseState | None = None  # what the state remembers; None if it is new
    each_note_a_patient: bool = False
    option_names: OptionNames = CALL
    grouping: Grouping = NO_GROUPING
    single: bool = False  # the input is one file
    columns: ColumnChoice = NO_CHOICE  # of the input, as the user names them
    reading: ReadOptions | None = None  # of the input
    detector_source: DetectorSource | None = None  # of the detector, for other processes
    warnings: tuple[str, ...] = ()  # settings that have no effect or less than asked; counts, never text

    def __post_init__(self) -> None:
        """Raise ConfigError if keys, output name, columns, spans, vault and output format do not fit together."""
        check_keys_differ(self.release.secret, self.vault.key)
        check_keys_differ(self.release.secret, self.state.key, "state")
        check_suffix(self.form, self.output)
        if len(self.columns.texts) > 1 and (self.release.spans or self.vault.path is not None):
            option = self.option_names.of("spans" if self.release.spans else "vault")
            raise ConfigError(f"{option} takes one text column, and there are {len(self.columns.texts)}; leave it out")
        if self.release.spans and self.form.can.layers == "none":
            raise ConfigError(
                f"{self.option_names.of('spans')} marks replacements, and {self.form.name} holds no spans; leave it "
                "out, or convert the notes first, to jsonl for example"
            )
        if self.vault.path is not None and not self.form.can.exact:
            raise ConfigError(
                f"{self.form.name} does not keep texts exactly, so a vault could restore nothing; "
                "choose another output format"
            )

    @property
    def form(self) -> Format:
        """Return the output format: that of the input, or the variant for one file that the output's name asks for."""
        return output_variant(self.source.form, self.output, single=self.single)

    @property
    def by_patient(self) -> bool:
        """Tell whether the notes of one patient must be processed in one batch.

        The detector, the policy or the state may need it; with `each_note_a_patient` it is checked that none share one.
        """
        together = self.detector.by_patient or self.release.policy.reads_patients or self.state.path is not None
        return together or self.each_note_a_patient

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that the manifest records: policy, detector, output format, patients."""
        job_settings = {"format": self.form.name, "each_note_a_patient": self.each_note_a_patient}
        job_settings["state"] = self.state.path is not None
        return {**self.release.settings(self.detector), **job_settings}

    @cached_property
    def digest(self) -> str:
        """Return a digest of settings, versions, detector, input, vault, state; only with the same one can a run go on.

        Notes are in the keys of their items instead, and the version of the state is in the notes of the ledger. Only
        the ledger stores the digest: it would help to guess phrases.
        """
        return key_of(
            settings_digest({**self.settings, "versions": versions()}),
            self.detector.digest,
            str(self.detector.by_patient),
            self.input_digest,
            *self._describe_file(self.vault.path, self.vault.key),
            *self._describe_file(self.state.path, self.state.key),
        )

    def _describe_file(self, path: Path | None, key: Secret | None) -> tuple[str, str]:
        """Return a file's path relative to the output's folder, and the fingerprint of its key; "" in place of None."""
        name = "" if path is None else os.path.relpath(path, self.output.parent)
        return name, "" if key is None else key.fingerprint()

    @property
    def work(self) -> Path:
        """Return the folder of unfinished files: the output's path with `.part`."""
        return self.output.with_name(self.output.name + ".part")

    @property
    def private_part(self) -> Path:
        """Return the folder of unfinished private lists, apart from `work` because they have ids of the input."""
        return self.private.with_name(self.private.name + ".part")

    @property
    def manifest(self) -> Path:
        """Return the path of the manifest: the output's path with `.manifest.json`."""
        return self.output.with_name(f"{self.output.name}.manifest.json")

    @property
    def private(self) -> Path:
        """Return the folder of private files beside the output: offsets, ids, risks, withheld notes."""
        return private_folder(self.output)


def versions() -> dict[str, str]:
    """Return the versions of Python, Chaffinch, NumPy, SciPy and Numba, which results depend on."""
    packages = {name: version(name) for name in ("chaffinch", "numpy", "scipy", "numba")}
    return {**packages, "python": ".".join(platform.python_version_tuple()[:2])}
