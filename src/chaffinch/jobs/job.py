"""A release job: what to release, how, and where to; and the one digest of all that changes its output."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret, check_apart
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import Release, settings_digest
from chaffinch.deid.release.units import UnitSource
from chaffinch.errors import ConfigError
from chaffinch.jobs.run import key_of
from chaffinch.text.formats import Format, ReadOptions, output_variant

Groups: TypeAlias = str | Mapping[str, str] | None  # a regular expression on the id, a table by id, or nothing


@dataclass(frozen=True, slots=True)
class NotesInput:
    """The notes to release: a file, folder or archive; its format unless it is to be recognised; how it is read."""

    path: Path
    form: str | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True, slots=True)
class Patients:
    """Whose notes are whose: by `groups`, else as the notes say. `each_note`: no two notes are of one patient."""

    groups: Groups = field(default=None, repr=False)
    each_note: bool = False


AS_THE_NOTES_SAY = Patients()


@dataclass(frozen=True, slots=True)
class VaultTarget:
    """The new file for the originals, encrypted, and its key; both or none."""

    path: Path | None = None
    key: Secret | None = None

    def __post_init__(self) -> None:
        if (self.path is None) != (self.key is None):
            raise ConfigError("a vault needs a key, and a key a vault; give --vault FILE with --key-file FILE")

    @property
    def part(self) -> Path | None:
        """The unfinished vault, beside its place."""
        return None if self.path is None else self.path.with_name(self.path.name + ".part")


NO_VAULT = VaultTarget()


@dataclass(frozen=True, slots=True)
class OptionNames:
    """What the caller calls the options that messages name."""

    group_by: str
    each_note: str


CALL = OptionNames("group_by=…", "each_note_a_patient=True")
COMMAND = OptionNames("--group-by …", "--each-note-a-patient")


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """What to release, how, and where to; made by `jobs.deid.plan`.

    `input_digest` stands for how the input is read, and for whose notes are whose.
    """

    source: UnitSource
    output: Path
    release: Release
    detector: Detector
    input_digest: str = field(default="", repr=False)
    vault: VaultTarget = NO_VAULT
    each_note_a_patient: bool = False
    option_names: OptionNames = CALL

    def __post_init__(self) -> None:
        check_apart(self.release.secret, self.vault.key)
        if self.vault.path is not None and not self.form.can.exact:
            raise ConfigError(f"{self.form.name} does not keep texts exactly, so nothing could be restored from it")

    @property
    def form(self) -> Format:
        """The format of the output: that of the input, or its variant that the name of the output asks for."""
        return output_variant(self.source.form, self.output)

    @property
    def by_patient(self) -> bool:
        """Whether it matters which notes are one patient's.

        The detector or the policy may read them together, and that no two are is checked.
        """
        return self.detector.by_patient or self.release.policy.reads_patients or self.each_note_a_patient

    @property
    def settings(self) -> dict[str, Any]:
        """The settings for the manifest."""
        own = {"format": self.form.name, "each note a patient": self.each_note_a_patient}
        return {**self.release.settings(self.detector), **own}

    @cached_property
    def digest(self) -> str:
        """What a second run must have in common with the first to go on with it: all that changes the output.

        Each note is in the key of its item. The digest is kept in the ledger only, as phrases could be guessed from it.
        """
        path, key = self.vault.path, self.vault.key
        return key_of(
            settings_digest({**self.settings, "versions": versions()}),
            self.detector.digest,
            str(self.detector.by_patient),
            self.input_digest,
            "" if path is None else os.path.relpath(path, self.output.parent),
            "" if key is None else key.fingerprint(),
        )

    @property
    def work(self) -> Path:
        """The folder of all that is not finished."""
        return self.output.with_name(self.output.name + ".part")

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
