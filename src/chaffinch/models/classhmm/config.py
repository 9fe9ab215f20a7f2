"""Settings of a class HMM."""

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
KAPPA = 0.25  # the default without dev documents, as published; higher regularises more
KAPPAS = (0.05, 0.25, 1.0)  # candidates among which dev documents choose; each costs one more climb


@dataclass(frozen=True, slots=True)
class ClassHMM:
    """Settings of a class HMM; `published()` is the system of the publication.

    Every class, a type of spans or O, has `states_per_class` states, O `outside_states` if that is set; with
    `classes="IOB2"` a type is two classes, its first token and the others. `objective` is the joint likelihood of
    words and classes, the conditional one of the same chain ("krogh"), a mixture of both with the share `mix` of the
    conditional, or the conditional one without local normalisation ("crf"), whose features include a word's context.
    `features` are those of the publication or all of ours. The penalty is `kappa` times the squares of all weights,
    `identity` times as much for features that identify a word; None is chosen on dev documents, if there are any, else
    0.25. With `shared`, states share weights with their class and with all states. Of words seen once, the share
    `replicas` is read as unknown in training. `restarts` short climbs choose the start of the long one, which has at
    most `evaluations`. All sentences without any label count together as much as the share `untagged` of the others.
    With `private`, words inside spans are not features (None: if a label names identifiers).
    `trainer="em"` fixes expected counts for a few steps at a time, for the joint objective only.
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
        """Check the settings; ConfigError for a bad value, or for the trainer em with another objective than joint."""
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
            raise ConfigError("language must be the name of a language pack, or the path of a folder with one")

    @classmethod
    def published(
        cls, states_per_class: int = 1, features: Literal["basic", "capitalisation", "shape", "muc"] = "capitalisation"
    ) -> ClassHMM:
        """Return the published settings: joint likelihood, as many states for O as per type, best path of states."""
        return cls(
            states_per_class, objective="joint", features=features, kappa=0.25, shared=False, evaluations=300,
            decode="joint", cutoff=1, private=False, floor=1, calibrate=False,
        )  # fmt: skip

    @property
    def conditional(self) -> float:
        """Return the weight of the conditional likelihood: 0 for joint, `mix` for mix, 1 for krogh and crf."""
        return {"joint": 0.0, "krogh": 1.0, "mix": self.mix}.get(self.objective, 1.0)
