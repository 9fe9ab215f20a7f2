"""What may be chosen for an extractor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from chaffinch.checks import check_choices, check_flags, check_text, check_wholes, to_texts
from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation
from chaffinch.relations.features.vectors import VIEWS
from chaffinch.relations.joint.pairing import PAIRINGS, Pairing

Mode = Literal["entities", "joint", "documents"]
Labels = Literal["chances", "path"]
_CHOICES = {
    "mode": get_args(Mode), "labels": get_args(Labels), "pairing": PAIRINGS,
    "representation": ("auto", *REPRESENTATIONS),
}  # fmt: skip
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
        check_choices(self, _CHOICES)
        views = to_texts(self.views, "views")
        if not views or not set(views) <= set(VIEWS):
            raise ConfigError(f"views must be some of {', '.join(VIEWS)}, got {', '.join(views) or 'none'}")
        object.__setattr__(self, "views", views)
        strengths = self.strengths if isinstance(self.strengths, tuple | list) else ()
        if not strengths or not all(isinstance(own, int | float) and 0 < own < float("inf") for own in strengths):
            raise ConfigError(f"strengths must be numbers above 0, got {self.strengths!r}")
        check_wholes(self, "folds", least=2)
        check_wholes(self, "floor", least=1, optional=True)
        check_wholes(self, "seed")
        check_flags(self, "mask")
        if self.layer is not None:
            check_text(self.layer, "layer")
        if not isinstance(self.hmm, PhraseHMM):
            raise ConfigError(f"hmm must be a PhraseHMM, got {type(self.hmm).__name__}")
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
