"""A review project: a private folder with `project.toml`, which says what it is, and its database.

name = "Cardiology letters"
policy = "i2b2-surrogate"        # a packaged policy, or a file
readers = 2                      # of each note
without_suggestions = 0.2        # share of notes whose second reader does not see the machine's marks
random = 0.2                     # share of the queue that is drawn at random
key_file = "../cardiology.key"   # of the notes in the database; else CHAFFINCH_PROJECT_KEY
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from chaffinch.checks import check_choice, did_you_mean
from chaffinch.deid.dates.order import DateOrder
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import KINDS
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.errors import ConfigError, DataError
from chaffinch.web.review.store.database import Database, sqlite_url

VARIABLE = "CHAFFINCH_PROJECT_KEY"
FILE, DATABASE = "project.toml", "review.sqlite"
RULES = "rules"  # the model of a project whose detector has none
MOST_READERS = 2  # more is hardly worth it: two people find about .99 of all identifiers
LONGEST_LABEL = 40
# The types of the keys 1 to 9: those that are most frequent in notes.
_FIRST = ("PATIENT", "DOCTOR", "DATE", "HOSPITAL", "CITY", "AGE", "PHONE", "MEDICALRECORD", "PROFESSION")


def default_labels() -> tuple[str, ...]:
    """Return the types of a project that names none: the most frequent first, then all others."""
    rest = (name for name, kind in KINDS.items() if name not in _FIRST and not kind.generic)
    return (*_FIRST, *sorted(rest))


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What `project.toml` says."""

    name: str
    policy: str = "safe-harbor"
    model: str = "deid-en"
    readers: int = 2
    without_suggestions: float = 0.2
    random: float = 0.2
    idle_minutes: float = 15.0
    date_order: str = "auto"
    labels: tuple[str, ...] = field(default_factory=default_labels)
    key_file: str = ""
    secret_file: str = ""
    database: str = ""

    def __post_init__(self) -> None:
        """Raise ConfigError for a setting out of its range, or labels that are empty or repeated."""
        if not self.name.strip():
            raise ConfigError("name is empty; give the project a name")
        if not 1 <= self.readers <= MOST_READERS:
            raise ConfigError(f"readers must be 1 or {MOST_READERS}, got {self.readers}")
        for name in ("without_suggestions", "random"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is a share from 0 to 1, got {getattr(self, name)}")
        if not 0 < self.idle_minutes <= 24 * 60:
            raise ConfigError(f"idle_minutes must be over 0 and at most a day, got {self.idle_minutes}")
        if self.readers == 1 and self.without_suggestions not in (0, 0.2):
            raise ConfigError("without_suggestions is for second readers, and readers = 1; leave it out")
        check_choice(self.date_order, "date_order", get_args(DateOrder))
        if not self.labels or len(set(self.labels)) != len(self.labels):
            raise ConfigError("labels must name at least one type, and each once")
        for label in self.labels:
            if not label.strip() or len(label) > LONGEST_LABEL or not label.isprintable():
                raise ConfigError(f"a label has 1 to {LONGEST_LABEL} printable characters")

    @classmethod
    def parse(cls, content: str) -> ProjectConfig:
        """Return the configuration that a TOML text describes; raise ConfigError for an unknown key or a wrong type."""
        try:
            values = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}") from None
        known = {one.name: one for one in fields(cls)}
        for key, value in values.items():
            if key not in known:
                raise ConfigError(f"unknown key {key!r}; {did_you_mean(key, known)}")
            values[key] = _check_type(key, value)
        if "name" not in values:
            raise ConfigError('name is missing; add a line: name = "…"')
        return cls(**values)

    def to_toml(self) -> str:
        """Return the configuration as TOML: what was chosen, and the shares, which users look for first."""
        lines = [f"name = {_quote(self.name)}", f"policy = {_quote(self.policy)}", f"model = {_quote(self.model)}"]
        lines += [f"readers = {self.readers}"]
        if self.readers > 1:
            lines += [f"without_suggestions = {self.without_suggestions}"]
        lines += [f"random = {self.random}", f"idle_minutes = {self.idle_minutes}"]
        for name in ("key_file", "secret_file", "database"):
            if getattr(self, name):
                lines.append(f"{name} = {_quote(getattr(self, name))}")
        if self.labels != default_labels():
            lines.append(f"labels = [{', '.join(map(_quote, self.labels))}]")
        if self.date_order != "auto":
            lines.append(f"date_order = {_quote(self.date_order)}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """An open project: its folder, configuration and database."""

    folder: Path
    config: ProjectConfig
    database: Database = field(repr=False)

    @property
    def policy(self) -> Policy:
        """Read and return the policy of the project's releases."""
        return Policy.read(_policy_path(self.folder, self.config.policy))

    def detector(self) -> HybridDetector:
        """Return the detector that makes suggestions; raise an error if its model cannot be loaded."""
        return detector(None if self.config.model == RULES else self.config.model, by_patient=True)

    def release_settings(self) -> Release:
        """Return policy, secret and date order of a release; ConfigError if a needed secret is missing."""
        path = self.config.secret_file
        secret = Secret.read(self.folder / path) if path else None
        order: Any = self.config.date_order
        return Release(self.policy, secret, date_order=order)

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def create_project(folder: Path, config: ProjectConfig, key: Secret) -> Project:
    """Create a project in a new or empty folder, mode 0700, and return it open; ConfigError if it cannot be."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; choose another name")
    if not folder.parent.is_dir():
        raise ConfigError(f"the folder {folder.parent} does not exist; make it first")
    Policy.read(_policy_path(folder, config.policy))
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    path = folder / FILE
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(config.to_toml())
    try:
        database = Database.open(_url(folder, config), key, create=True)
    except BaseException:
        path.unlink()
        raise
    with database.change("chaffinch") as change:
        change.record("project created", "", readers=config.readers)
    return Project(folder, config, database)


def open_project(folder: Path, key: Secret | None = None) -> Project:
    """Open a project, by default with its configured key; ConfigError if others may read the folder."""
    config = read_config(folder)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        raise ConfigError(f"{folder} is open to others; run: chmod 700 {folder}")
    return Project(folder, config, Database.open(_url(folder, config), key or find_key(folder, config)))


def is_project(folder: Path) -> bool:
    """Tell whether a path is the folder of a project."""
    return (folder / FILE).is_file()


def read_config(folder: Path) -> ProjectConfig:
    """Return a project's configuration; DataError if its file cannot be read, ConfigError if it is not valid."""
    path = folder / FILE
    try:
        return ProjectConfig.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror
        raise DataError(f"cannot be read ({reason}); name the folder of a project", path=path) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8; save it as UTF-8", path=path) from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def find_key(folder: Path, config: ProjectConfig) -> Secret:
    """Return the key of a project; raise ConfigError if there is none, or it lies in the project's folder."""
    if not config.key_file:
        if not os.environ.get(VARIABLE):
            raise ConfigError(
                f"no key: give --key-file FILE, name it as key_file in {FILE}, or set {VARIABLE}; make one with: "
                "chaffinch deid secret new FILE"
            )
        return Secret.read(variable=VARIABLE)
    path = folder / config.key_file
    check_key_outside(folder, path)
    return Secret.read(path)


def check_key_outside(folder: Path, key: Path) -> None:
    """Raise ConfigError if a key lies in the project's folder: a copy of the folder would hold both."""
    if key.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"the key {key.name} lies in the project's folder, which it should protect; move it elsewhere"
        )


def _url(folder: Path, config: ProjectConfig) -> str:
    """Return the URL of the database: as configured, else a file in the folder."""
    return config.database or sqlite_url(folder / DATABASE)


def _policy_path(folder: Path, name: str) -> str | Path:
    """Return the policy's file if the project's folder has one of this name, else the name itself."""
    return folder / name if (folder / name).is_file() else name


def _check_type(key: str, value: Any) -> Any:
    """Return the value of a key, lists as tuples; raise ConfigError if it has a wrong type."""
    if key == "labels":
        if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
            raise ConfigError("labels must be a list of types in quotes")
        return tuple(value)
    expected: tuple[type, ...] = {"readers": (int,)}.get(key, (str,))
    if key in ("without_suggestions", "random", "idle_minutes"):
        expected = (int, float)
    if not isinstance(value, expected) or isinstance(value, bool):
        raise ConfigError(f"{key} must be {'a text in quotes' if expected == (str,) else 'a number'}")
    return value


def _quote(value: str) -> str:
    """Return a text in quotes, as TOML and JSON write it."""
    import json

    return json.dumps(value, ensure_ascii=False)
