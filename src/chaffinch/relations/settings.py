"""What may be chosen for an extractor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from chaffinch.errors import ConfigError
from chaffinch.models.phrase_segments import REPRESENTATIONS, Representation
from chaffinch.models.phrasehmm_config import PhraseHMM
from chaffinch.relations.assemble import PAIRINGS, Pairing
from chaffinch.relations.vectors import VIEWS

Mode = Literal["entities", "joint"]
Labels = Literal["chances", "path"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What to learn and how.

    In the mode "entities" the entities of `layer` are given (by hand, or by a tagger), and each tuple of them is judged
    by a logistic regression over `views`; segments of `representation` are what statistics and paths are taken of. Its
    `strengths` are tried in `folds` over documents, which also calibrate the scores. A feature enters when `floor`
    documents (patients, if documents say which) show it; below 500 documents, 1. In the mode "joint" a phrase HMM finds
    the arguments themselves, `pairing` makes tuples of them, and `mask` says whether entities are seen as such. Its
    `labels` are those of the likeliest path, as published, or of all segments whose chance reaches a level; that, and
    what the positive model must be ahead by, are then chosen by the same folds.
    """

    mode: Mode = "entities"
    views: tuple[str, ...] = ("words", "statistics", "paths")
    representation: Representation = "phrase"
    layer: str | None = None
    strengths: tuple[float, ...] = (1.0, 3.0, 10.0)
    folds: int = 5
    floor: int = 2
    hmm: PhraseHMM = field(default_factory=PhraseHMM)
    pairing: Pairing = "cross"
    labels: Labels = "chances"
    mask: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(f"mode must be one of {', '.join(get_args(Mode))}, got {self.mode!r}")
        if self.labels not in get_args(Labels):
            raise ConfigError(f"labels must be one of {', '.join(get_args(Labels))}, got {self.labels!r}")
        if self.pairing not in PAIRINGS:
            raise ConfigError(f"pairing must be one of {', '.join(PAIRINGS)}, got {self.pairing!r}")
        if self.representation not in REPRESENTATIONS:
            raise ConfigError(
                f"representation must be one of {', '.join(REPRESENTATIONS)}, got {self.representation!r}"
            )
        unknown = [view for view in self.views if view not in VIEWS]
        if unknown or not self.views:
            raise ConfigError(f"views must be some of {', '.join(VIEWS)}, got {', '.join(self.views) or 'none'}")
        if not self.strengths or min(self.strengths) <= 0:
            raise ConfigError(f"strengths must be above 0, got {self.strengths}")
        if self.folds < 2 or self.floor < 1:
            raise ConfigError(f"folds must be at least 2 and floor at least 1, got {self.folds} and {self.floor}")

    def facts(self) -> dict[str, Any]:
        """The settings as plain values, for a manifest."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Extraction:
        """The settings of a manifest."""
        plain = {**facts, "views": tuple(facts["views"]), "strengths": tuple(facts["strengths"])}
        return cls(**{**plain, "hmm": PhraseHMM(**facts["hmm"])})
