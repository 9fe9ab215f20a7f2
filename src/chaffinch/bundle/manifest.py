"""The manifest: the description of a model inside its file."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from chaffinch.bundle.state import State

FORMAT = 1  # of model files; another number is refused


def current_versions() -> dict[str, str]:
    """Return {name: version} of Python and of the packages that can change a model's numbers."""
    packages = {name: version(name) for name in ("chaffinch", "numpy", "numba", "scipy")}
    return {"python": platform.python_version(), **packages}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The origin of a model and what it needs: everything except the arrays.

    `kind` names the method whose module reads the arrays, `config` holds its settings, `vocabulary_floor` the number of
    patients that must have used a word for it to enter the vocabulary, `notes` the licence and attribution. `corpus` is
    a name that the caller may give; the command line gives none, since a file may be called SMITH_JOHN.
    """

    kind: str
    config: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    seed: int = 0
    corpus: str = ""
    documents: int = 0
    patients: int = 0
    vocabulary_floor: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""
    versions: Mapping[str, str] = field(default_factory=current_versions)
    format: int = FORMAT
    checksum: str = ""

    def for_part(self, part: State) -> Manifest:
        """Return the manifest of a part of the model file: all the same but the part's kind, config and labels."""
        return replace(self, kind=part.kind, config=part.config, labels=part.labels)
