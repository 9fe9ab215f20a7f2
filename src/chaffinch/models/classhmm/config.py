"""What may be chosen for a class HMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaffinch.checks import check_choices, check_flags, check_fractions, check_numbers, check_wholes
from chaffinch.errors import ConfigError
from chaffinch.features.word_types import WORD_SETS, WordSet

CHOICES = {
    "objective": ("crf", "krogh", "joint", "mix"),
    "features": WORD_SETS,
    "classes": ("types", "IOB2"),
    "topology": ("free", "left-right"),
    "trainer": ("gradient", "em"),
    "decode": ("kl+rerank", "kl", "joint", "posterior"),
}
KAPPA = 0.25  # where there is nothing to choose it on
KAPPAS = (0.05, 0.25, 1.0)  # that dev documents choose from, where none is given


@dataclass(frozen=True, slots=True)
class ClassHMM:
    """What to learn and how; `published()` is the system of the publication.

    Every class, a type of spans or O, has `states_per_class` states, O `outside_states` if that is given; with
    `classes="IOB2"` a type is two classes, its first token and the others. `objective` is the joint likelihood of
    words and classes, the conditional one of the same chain ("krogh"), a mixture of both with the share `mix` of the
    conditional, or the conditional one without local normalisation ("crf"), whose features look around a word.
    `features` are those of the publication or all of ours. `kappa` times the squares of all weights is the penalty,
    `identity` times as much for features that name a word; None is chosen on dev documents, if there are any, else
    0.25. With `shared`, states borrow from their class and from all. Of words seen once, the share `replicas` is read
    as unknown in learning. `restarts` short climbs choose where the long one of so many `evaluations` begins.
    All sentences of which nothing is known count together as much as the share `untagged` of the others.
    With `private`, words inside spans are no features (None: where a label names identifiers).
    `trainer="em"` holds expected counts fixed for a few steps at a time, for the joint objective alone.
    """

    states_per_class: int = 2
    outside_states: int | None = None
    objective: Literal["crf", "krogh", "joint", "mix"] = "crf"
    mix: float = 0.5
    features: WordSet = "rich"
    classes: Literal["types", "IOB2"] = "types"
    language: str = "en"
    kappa: float | None = None
    identity: float = 1.0
    shared: bool = True
    topology: Literal["free", "left-right"] = "free"
    trainer: Literal["gradient", "em"] = "gradient"
    restarts: int = 1
    evaluations: int = 200
    replicas: float = 0.05
    untagged: float = 0.15
    decode: Literal["kl+rerank", "kl", "joint", "posterior"] = "kl+rerank"
    cutoff: int = 2
    private: bool | None = None
    floor: int | None = None
    calibrate: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_wholes(self, "states_per_class", "restarts", "evaluations", "cutoff", least=1)
        check_wholes(self, "outside_states", "floor", least=1, optional=True)
        check_wholes(self, "seed")
        check_numbers(self, "kappa", least=0, optional=True)
        check_numbers(self, "identity", least=0)
        check_fractions(self, "mix", "replicas", "untagged")
        check_flags(self, "shared", "calibrate")
        check_flags(self, "private", optional=True)
        if self.trainer == "em" and self.objective != "joint":
            raise ConfigError(f"trainer em is for the objective joint, got {self.objective!r}")
        if not isinstance(self.language, str):
            raise ConfigError("language must be the name of a pack, or of a folder with one")

    @classmethod
    def published(
        cls, states_per_class: int = 1, features: Literal["basic", "capitalisation", "shape", "muc"] = "capitalisation"
    ) -> ClassHMM:
        """The published system: joint likelihood, as many states for O as for every type, weights of states alone."""
        return cls(
            states_per_class, objective="joint", features=features, kappa=0.25, shared=False, evaluations=300,
            cutoff=1, private=False, floor=1, calibrate=False,
        )  # fmt: skip

    @property
    def conditional(self) -> float:
        """The share of the conditional likelihood in the objective of a locally normalised chain."""
        return {"joint": 0.0, "krogh": 1.0, "mix": self.mix}.get(self.objective, 1.0)
