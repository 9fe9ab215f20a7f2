"""All errors that Chaffinch raises on purpose, and the table of their exit codes and HTTP statuses.

A message names the thing, the value found and what to do. It never contains document text: offsets,
counts, labels and paths are enough to locate the problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ChaffinchError(Exception):
    """The base class: catch this to catch every error that Chaffinch raises on purpose."""


class ConfigError(ChaffinchError):
    """An option, flag or configuration file has an invalid value."""


class MissingExtraError(ChaffinchError):
    """An optional dependency is not installed; the message contains the pip command."""

    def __init__(self, package: str, extra: str) -> None:
        """Name the missing package and the extra that installs it."""
        super().__init__(package, extra)
        self.package, self.extra = package, extra

    def __str__(self) -> str:
        """Say that the package is not installed, and which pip command installs its extra."""
        return f"{self.package} is not installed; run: pip install 'chaffinch[{self.extra}]'"


class DataError(ChaffinchError):
    """Input that cannot be read or is inconsistent; `path` and `line` locate it."""

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None) -> None:
        """Keep the message, the path and the line apart, so that they can be shown or left out."""
        super().__init__(message)
        self.message, self.path, self.line = message, path, line

    def at(self, path: str | Path, line: int | None = None) -> DataError:
        """Set path and line where they are not known yet, and return the same error; what is known stays."""
        if self.path is None:
            self.path = path
        if self.line is None:
            self.line = line
        return self

    def __str__(self) -> str:
        """Return the message after "PATH:" or "PATH:LINE:", as far as they are known."""
        location = "" if self.path is None else f"{self.path}:" if self.line is None else f"{self.path}:{self.line}:"
        return f"{location} {self.message}".strip()


class LimitError(DataError):
    """A document is longer than the limit on document size."""


class LossError(DataError):
    """The output format cannot represent everything that was read, and the user asked for no loss (`--strict`)."""


class InfeasibleError(DataError):
    """A lattice on which no path is possible."""


class ModelError(DataError):
    """A model file that is damaged, truncated, or of a format that this version cannot read."""


class StorageError(ChaffinchError):
    """Temporary files cannot be written or read; nothing is wrong with the input."""


class GateError(ChaffinchError):
    """A quality gate the user set was not met."""


class WithheldError(ChaffinchError):
    """The job finished, but some documents were withheld; a list of them is next to the output."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code and the HTTP status that report an error."""

    exit_code: int
    http_status: int


# The first match wins, so a subclass comes before its base.
OUTCOMES: tuple[tuple[type[BaseException], Outcome], ...] = (
    (ConfigError, Outcome(2, 400)),
    (LimitError, Outcome(3, 413)),
    (DataError, Outcome(3, 422)),
    (GateError, Outcome(4, 409)),
    (WithheldError, Outcome(5, 409)),
    (MissingExtraError, Outcome(1, 501)),
    (KeyboardInterrupt, Outcome(130, 499)),
    (BaseException, Outcome(1, 500)),
)


def outcome(error: BaseException) -> Outcome:
    """Return the exit code and HTTP status of an error, by its class.

    >>> outcome(ConfigError("k must be at least 1, got 0")).exit_code
    2
    """
    return next(result for kind, result in OUTCOMES if isinstance(error, kind))
