"""Settings of a cascade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from chaffinch.checks import check_choices, check_flags, check_numbers, check_wholes, to_texts
from chaffinch.errors import ConfigError
from chaffinch.kernels.linear import Objective
from chaffinch.models.core.labels import SCHEMES, Labels, Scheme
from chaffinch.models.core.linear import Goal

Violator: TypeAlias = Literal["cost", "predict", "second"]

LIKELIHOOD_EVALUATIONS = 60  # of the published baseline here; the publication does not say how many it used

_CHOICES = {
    "stages": (1, 2), "scheme": SCHEMES, "objective": (*get_args(Objective), "lbfgs"),
    "violator": get_args(Violator), "features": ("rich", "published"), "classify": ("segments", "tokens"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cascade:
    """Settings of a cascade. The defaults suit most corpora; `published()` is the system of the publication.

    `objective` is the margin ("pa"), the likelihood ("crf"), or the likelihood with a step size per weight ("adagrad",
    with a larger `rate`, say 0.15), which transfers best to texts of another kind; "lbfgs" is the likelihood of label
    pairs with a penalty, climbed in at most `epochs` evaluations. The `violator` is the best labelling with the cost
    added, the prediction, or the best wrong labelling ("second"). `features` are all of ours, or only those of the
    publication; a second stage can `classify` segments, or their tokens as published. `edge_features` gives features
    weights for pairs of tags (None: if there are two stages); with `documents` the tagger reads each document twice;
    `layers` names span layers (parts of speech, say) that serve as features; `cutoff` is how often a feature must
    occur, `floor` in the text of how many patients (None: 2 if there are 20 patients or more); with `private`, words
    inside spans do not count for it (None: if a label names identifiers).
    """

    stages: Literal[1, 2] = 1
    scheme: Scheme = "IOBES"
    objective: Goal = "pa"
    features: Literal["rich", "published"] = "rich"
    classify: Literal["segments", "tokens"] = "segments"
    edge_features: bool | None = None
    documents: bool = True
    layers: tuple[str, ...] = ()
    epochs: int = 10
    aggressiveness: float = 0.015
    rate: float = 0.02
    violator: Violator = "cost"
    dropout: float = 0.1
    cutoff: int = 1
    floor: int | None = None
    private: bool | None = None
    folds: int = 5
    calibrate: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings, make `layers` a tuple; ConfigError for a bad value, or `private` with two stages."""
        check_choices(self, _CHOICES)
        check_wholes(self, "epochs", "cutoff", least=1)
        check_wholes(self, "folds", least=2)
        check_wholes(self, "floor", least=1, optional=True)
        check_wholes(self, "seed")
        check_numbers(self, "aggressiveness", "rate", above=0)
        check_numbers(self, "dropout", least=0, below=1)
        check_flags(self, "documents", "calibrate")
        check_flags(self, "edge_features", "private", optional=True)
        if self.private and self.stages == 2:
            raise ConfigError("private hides the words inside spans, which two stages need; use stages=1")
        object.__setattr__(self, "layers", to_texts(self.layers, "layers"))
        self._check_published()

    def _check_published(self) -> None:
        """Raise ConfigError if settings of the publication come without those that they need."""
        if self.classify == "tokens" and (self.stages == 1 or self.calibrate):
            raise ConfigError(
                "classify='tokens' is a second stage that is not calibrated; use stages=2, calibrate=False"
            )
        if self.classify == "tokens" and self.scheme == "IOBES":
            raise ConfigError("classify='tokens' tells B from I and no E or S; use scheme='IOB2'")
        if self.features == "published" and (self.documents or self.dropout):
            raise ConfigError("features='published' are read once and never hidden; use documents=False, dropout=0")
        plain = self.stages == 1 and self.features == "published" and self.pairs and not self.calibrate
        if self.objective == "lbfgs" and not plain:
            raise ConfigError(
                "objective='lbfgs' is the publication's single stage; use stages=1, features='published', "
                "edge_features=True, calibrate=False"
            )

    @property
    def pairs(self) -> bool:
        """Tell whether states are pairs of tags."""
        return self.stages == 2 if self.edge_features is None else self.edge_features

    def labels(self, names: tuple[str, ...]) -> Labels:
        """Return the labels of a reading, as tags or pairs of tags; published pairs have no weights of moves."""
        return Labels(names, self.scheme, self.pairs, moves=not (self.pairs and self.features == "published"))

    @classmethod
    def published(cls, stages: Literal[1, 2] = 2, objective: Literal["pa", "lbfgs"] = "pa") -> Cascade:
        """Return the settings of the publication: label pairs, features seen more than 5 times, or 20 in one stage."""
        return cls(
            stages=stages, scheme="IOB2", objective=objective, features="published",
            classify="tokens" if stages == 2 else "segments", edge_features=True, documents=False,
            epochs=10 if objective == "pa" else LIKELIHOOD_EVALUATIONS, aggressiveness=0.01, violator="second",
            dropout=0.0, cutoff=6 if stages == 2 else 21, floor=1, calibrate=False,
        )  # fmt: skip
