"""Settings of a cascade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from chaffinch.checks import check_choices, check_flags, check_numbers, check_wholes, to_texts
from chaffinch.errors import ConfigError
from chaffinch.kernels.linear import Objective
from chaffinch.models.core.labels import SCHEMES, Scheme

Violator: TypeAlias = Literal["cost", "predict"]

_CHOICES = {
    "stages": (1, 2), "scheme": SCHEMES, "objective": get_args(Objective), "violator": get_args(Violator)
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cascade:
    """Settings of a cascade. The defaults suit most corpora; `published()` is the system of the publication.

    `objective` is the margin ("pa"), the likelihood ("crf"), or the likelihood with a step size per weight ("adagrad",
    with a larger `rate`, say 0.15), which transfers best to texts of another kind. `edge_features` gives features
    weights for pairs of tags (None: if there are two stages); with `documents` the tagger reads each document twice;
    `layers` names span layers (parts of speech, say) that serve as features; `cutoff` is how often a feature must
    occur, `floor` in the text of how many patients (None: 2 if there are 20 patients or more); with `private`, words
    inside spans do not count for it (None: if a label names identifiers).
    """

    stages: Literal[1, 2] = 1
    scheme: Scheme = "IOBES"
    objective: Objective = "pa"
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

    @property
    def pairs(self) -> bool:
        """Tell whether states are pairs of tags."""
        return self.stages == 2 if self.edge_features is None else self.edge_features

    @classmethod
    def published(cls) -> Cascade:
        """Return the published settings: two stages, label pairs with every feature, cut-off 5."""
        return cls(
            stages=2, scheme="IOB2", edge_features=True, documents=False, cutoff=5, dropout=0.0, aggressiveness=0.01
        )
