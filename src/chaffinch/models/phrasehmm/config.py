"""Settings of the phrase HMM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chaffinch.checks import check_choices, check_flags, check_numbers, check_wholes
from chaffinch.errors import ConfigError

CHOICES = {
    "representation": ("auto", "phrase", "pos", "token"),
    "background": ("unigram", "uniform"),
    "trainer": ("ml", "krogh", "lbfgs"),
    "update": ("exponentiated", "plain"),
}
PUBLISHED = ("phrase", "pos", "token 1", "token 2")
# Of the additive rule, whose steps are in probabilities; the publication states none. `bench relations --only rates`
# has others beside it: larger ones lose recall.
PUBLISHED_RATE = 0.001


@dataclass(frozen=True, slots=True)
class PhraseHMM:
    """Settings of a phrase HMM; `published()` returns those of the publication's models.

    A sentence is a row of segments: phrases, words with their part of speech, or bare words; "auto" leaves the choice
    to cross-validation. Each type and label has `states` states, in a positive model of sentences with the relation
    and, unlabelled, in a null model of the others. With `zones`, unlabelled states of the positive model come before,
    between or after the arguments. `shrinkage` shrinks the words of a state towards those of its label. `transition_m`
    times the number of states and `emission_m` times that of words are the weights of the m-estimates; None is 0.3 and
    0.05 with shrinkage, 1 and 0.2 without; `tune` chooses around them, by how sure held-out labels are. `lengths`
    adds a distribution over the number of words of a segment. `hierarchical` gives each state an inner chain over
    words, which finds the argument inside a phrase; `inner_states` is its length in unlabelled states. `context` adds
    the words before and after a word and its part of speech.

    `combined` decodes with both models combined into one. The trainers "krogh" (steps of `rate` after each `batch` of
    sentences; a batch of 1 is the publication's) and "lbfgs" (with `penalty` on the distance from the start) raise the
    probability of the right labels given the words in that model, for at most `epochs`, as long as the share
    `held_out` of the groups gains; with a share of 0 nothing is held out, and all `epochs` are run. Steps of "krogh"
    add to probabilities ("plain", the publication's rule) or multiply them ("exponentiated", ours).
    `threshold` is the lead in log-likelihood that the positive model needs, where the models are separate.
    `balance` learns from as many negative as positive sentences. `entities` keeps labels off segments without an entity
    of their domain, where sentences list their entities.
    """

    representation: Literal["auto", "phrase", "pos", "token"] = "auto"
    states: int = 1
    zones: bool = True
    shrinkage: bool = True
    background: Literal["unigram", "uniform"] = "unigram"
    transition_m: float | None = None
    emission_m: float | None = None
    tune: bool = False
    min_count: int = 2
    lengths: bool = False
    hierarchical: bool = False
    inner_states: int = 1
    context: bool = False
    entities: bool = True
    balance: bool = True
    passes: int = 15
    combined: bool = False
    threshold: float = 0.0
    trainer: Literal["ml", "krogh", "lbfgs"] = "ml"
    update: Literal["exponentiated", "plain"] = "exponentiated"
    rate: float = 0.05
    epochs: int = 5
    batch: int = 8
    penalty: float = 1.0
    held_out: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings; ConfigError for a bad value, or for a trainer that needs the combined model."""
        check_choices(self, CHOICES)
        check_wholes(self, "states", "min_count", "inner_states", "passes", "epochs", "batch", least=1)
        check_wholes(self, "seed")
        check_numbers(self, "transition_m", "emission_m", above=0, optional=True)
        check_numbers(self, "rate", "penalty", above=0)
        check_numbers(self, "held_out", least=0, below=1)
        check_numbers(self, "threshold")
        check_flags(self, "zones", "shrinkage", "tune", "lengths", "hierarchical", "context", "entities")
        check_flags(self, "balance", "combined")
        if self.trainer != "ml" and not self.combined:
            raise ConfigError(f"trainer {self.trainer!r} trains the combined model; set combined=True")
        if self.tune and not self.held_out:
            raise ConfigError("tune scores weights on held-out groups; set held_out above 0, or leave out tune")

    @property
    def transition_weight(self) -> float:
        """Return the m-estimate weight of moves per state: as set, else 0.3 with shrinkage, 1 without."""
        return (0.3 if self.shrinkage else 1.0) if self.transition_m is None else self.transition_m

    @property
    def emission_weight(self) -> float:
        """Return the m-estimate weight of words per word: as set, else 0.05 with shrinkage, 0.2 without."""
        return (0.05 if self.shrinkage else 0.2) if self.emission_m is None else self.emission_m

    @classmethod
    def published(cls, model: str, *, combined: bool = False, trainer: Literal["ml", "krogh"] = "ml") -> PhraseHMM:
        """Return the settings of the published model "phrase", "pos", "token 1" or "token 2"; or ConfigError.

        "krogh" is the additive rule after each sentence, for a fixed number of epochs.

        >>> PhraseHMM.published("token 2").zones
        True
        """
        if model not in PUBLISHED:
            raise ConfigError(f"the publication has the models {', '.join(PUBLISHED)}, not {model!r}")
        plain = cls(zones=model == "token 2", shrinkage=False, entities=False, combined=combined or trainer != "ml")
        kind: Literal["phrase", "pos", "token"] = (
            "phrase" if model == "phrase" else "pos" if model == "pos" else "token"
        )
        return replace(
            plain, representation=kind, trainer=trainer, batch=1, update="plain", rate=PUBLISHED_RATE, held_out=0.0
        )
