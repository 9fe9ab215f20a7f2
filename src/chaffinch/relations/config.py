"""Settings of relation extractors."""

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
# Documents or patients. With fewer, `floor=None` keeps every feature; from here on a feature needs two.
FEW = 500


@dataclass(frozen=True, slots=True)
class Extraction:
    """Settings of a relation extractor: what to learn, and how.

    In the mode "entities" the entities of `layer` are given (by hand, or by a tagger), and a logistic regression over
    `views` scores each tuple of them. Statistics and paths are computed over segments of the `representation`;
    "auto" chooses it by cross-validation. `strengths` are tried in `folds` over documents, which also calibrate the
    scores. The mode "documents" merges these results by concept.

    In the mode "joint" a phrase HMM finds the arguments itself, `pairing` combines them into tuples, and `mask` says
    whether the model sees entities as such; the representation is that of `hmm`. `labels` are those of the likeliest
    path, as published, or of all segments whose probability reaches a level; the same folds then choose that level and
    the lead that the positive model needs. The other modes refuse these four settings.

    A feature or word is kept if `floor` documents (or patients, if documents name them) show it. None means 2 from 500
    documents on, and 1 below; the model file then holds words of single documents.
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
        """Check the settings, make `views` a tuple; ConfigError for a bad value or one that the mode does not use."""
        check_choices(self, _CHOICES)
        views = to_texts(self.views, "views")
        if not views or not set(views) <= set(VIEWS):
            raise ConfigError(f"views must be some of {', '.join(VIEWS)}, got {', '.join(views) or 'none'}")
        object.__setattr__(self, "views", views)
        strengths = self.strengths if isinstance(self.strengths, tuple | list) else ()
        if not strengths or not all(isinstance(value, int | float) and 0 < value < float("inf") for value in strengths):
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
        """Raise ConfigError for settings that are not the default and that the chosen mode does not use."""
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
        """Return settings of the mode "entities" from an HMM's representation and seed; ConfigError if it sets more.

        Raise ConfigError if any other setting differs from its default: between given entities the states of the HMM
        and their statistics are features, and a logistic regression learns the weights.
        """
        usual = PhraseHMM(representation=hmm.representation, seed=hmm.seed)
        names = [field.name for field in fields(hmm)]
        unused = [name for name in names if getattr(hmm, name) != getattr(usual, name)]
        if unused:
            raise ConfigError(
                f"{', '.join(unused)}: not used where entities are given; leave it out, or choose the mode joint"
            )
        return cls(representation=hmm.representation, seed=hmm.seed)

    def floor_for(self, groups: int) -> int:
        """Return how many of `groups` documents or patients must show a feature: as set, else 1, or 2 of many."""
        return self.floor if self.floor is not None else 2 if groups >= FEW else 1

    def facts(self) -> dict[str, Any]:
        """Return the settings as plain values, for a manifest."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Extraction:
        """Return the settings of a manifest, from the plain values that `facts` made; ConfigError for bad ones."""
        plain = {**facts, "views": tuple(facts["views"]), "strengths": tuple(facts["strengths"])}
        return cls(**{**plain, "hmm": PhraseHMM(**facts["hmm"])})
