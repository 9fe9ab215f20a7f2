"""What may be chosen of a cascade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from chaffinch.errors import ConfigError
from chaffinch.kernels.linear import Objective
from chaffinch.models.core.labels import SCHEMES, Scheme


@dataclass(frozen=True, slots=True)
class Cascade:
    """What to learn and how. The defaults suit most corpora; `published()` is the system of the publication.

    `objective` is the margin ("pa"), the likelihood ("crf"), or the likelihood with steps that get shorter for every
    weight by itself ("adagrad", with a larger `rate`, say 0.15), which carries over best to texts of another kind.
    `edge_features` lets features speak for pairs of tags (None: where there are two stages); `documents` lets the
    tagger read each document twice; `layers` names span layers (parts of speech, say) that serve as features; `cutoff`
    is how often a feature must be seen, `floor` by how many patients (None: 2 where there are 20 patients or more);
    with `private`, words inside spans do not count for it (None: where a label names identifiers).
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
    violator: Literal["cost", "predict"] = "cost"
    dropout: float = 0.1
    cutoff: int = 1
    floor: int | None = None
    private: bool | None = None
    folds: int = 5
    calibrate: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("stages", (1, 2)), ("scheme", SCHEMES), ("objective", get_args(Objective))):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(map(str, choices))}, got {getattr(self, name)!r}")
        if self.violator not in ("cost", "predict"):
            raise ConfigError(f"violator must be one of cost, predict, got {self.violator!r}")
        for name, least in (("epochs", 1), ("cutoff", 1), ("folds", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.floor is not None and self.floor < 1:
            raise ConfigError(f"floor must be at least 1, got {self.floor}")
        for name in ("aggressiveness", "rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.private and self.stages == 2:
            raise ConfigError("private hides the words inside spans, of which two stages are made; use stages=1")
        object.__setattr__(self, "layers", tuple(self.layers))

    @property
    def pairs(self) -> bool:
        """Whether states are pairs of tags."""
        return self.stages == 2 if self.edge_features is None else self.edge_features

    @classmethod
    def published(cls) -> Cascade:
        """Two stages, label pairs with every feature of the segmenter, features seen five times."""
        return cls(
            stages=2, scheme="IOB2", edge_features=True, documents=False, cutoff=5, dropout=0.0, aggressiveness=0.01
        )
