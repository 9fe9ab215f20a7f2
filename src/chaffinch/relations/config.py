"""What may be chosen for an extractor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation
from chaffinch.relations.features.vectors import VIEWS
from chaffinch.relations.joint.pairing import PAIRINGS, Pairing

Mode = Literal["entities", "joint", "documents"]
Labels = Literal["chances", "path"]
FEW = 500  # documents; below that any feature enters


@dataclass(frozen=True, slots=True)
class Extraction:
    """What to learn and how.

    In the mode "entities" the entities of `layer` are given (by hand, or by a tagger), and each tuple of them is judged
    by a logistic regression over `views`; segments of `representation` are what statistics and paths are taken of, and
    "auto" chooses it by folds. Its `strengths` are tried in `folds` over documents, which also calibrate the scores.
    The mode "documents" merges what is found so by concept.

    In the mode "joint" a phrase HMM finds the arguments themselves, `pairing` makes tuples of them, and `mask` says
    whether entities are seen as such; the representation is that of `hmm`. Its `labels` are those of the likeliest
    path, as published, or of all segments whose chance reaches a level; that, and what the positive model must be ahead
    by, are then chosen by the same folds. These four belong to this mode and are refused in the others.

    A feature or word enters when `floor` documents (patients, if documents say which) show it. None is 2 from 500
    documents on and 1 below, where the model file then holds words of single documents.
    """

    mode: Mode = "entities"
    views: tuple[str, ...] = ("words", "statistics", "paths")
    representation: Representation | Literal["auto"] = "phrase"
    layer: str | None = None
    strengths: tuple[float, ...] = (1.0, 3.0, 10.0)
    folds: int = 5
    floor: int | None = None
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
        if self.representation not in ("auto", *REPRESENTATIONS):
            raise ConfigError(
                f"representation must be one of auto, {', '.join(REPRESENTATIONS)}, got {self.representation!r}"
            )
        unknown = [view for view in self.views if view not in VIEWS]
        if unknown or not self.views:
            raise ConfigError(f"views must be some of {', '.join(VIEWS)}, got {', '.join(self.views) or 'none'}")
        if not self.strengths or min(self.strengths) <= 0:
            raise ConfigError(f"strengths must be above 0, got {self.strengths}")
        if self.folds < 2 or (self.floor is not None and self.floor < 1):
            raise ConfigError(f"folds must be at least 2 and floor at least 1, got {self.folds} and {self.floor}")
        self._check_unused()

    def _check_unused(self) -> None:
        if self.mode == "joint":
            if self.representation != "phrase":
                raise ConfigError("in the mode joint the representation is that of hmm; set it there")
            return
        usual = {"hmm": PhraseHMM(), "pairing": "cross", "labels": "chances", "mask": True}
        unused = [name for name, value in usual.items() if getattr(self, name) != value]
        if unused:
            raise ConfigError(f"{', '.join(unused)}: used in the mode joint alone, not in the mode {self.mode}")

    @classmethod
    def of_hmm(cls, hmm: PhraseHMM) -> Extraction:
        """The settings of the mode "entities" with the representation and seed of a phrase HMM.

        ConfigError for anything else that was chosen: for given entities its states and their statistics are taken,
        while logistic regression does the learning.
        """
        usual = PhraseHMM(representation=hmm.representation, seed=hmm.seed)
        unused = [own.name for own in fields(hmm) if getattr(hmm, own.name) != getattr(usual, own.name)]
        if unused:
            raise ConfigError(
                f"{', '.join(unused)}: not used where entities are given; leave it out, or choose the mode joint"
            )
        return cls(representation=hmm.representation, seed=hmm.seed)

    def floor_for(self, groups: int) -> int:
        """How many of so many documents or patients must show a feature."""
        return self.floor if self.floor is not None else 2 if groups >= FEW else 1

    def facts(self) -> dict[str, Any]:
        """The settings as plain values, for a manifest."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Extraction:
        """The settings of a manifest."""
        plain = {**facts, "views": tuple(facts["views"]), "strengths": tuple(facts["strengths"])}
        return cls(**{**plain, "hmm": PhraseHMM(**facts["hmm"])})
