"""Settings of the HMM with Dirichlet-process sub-tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from chaffinch.checks import check_choices, check_flags, check_numbers, check_wholes
from chaffinch.errors import ConfigError
from chaffinch.models.hmmdp.rules import Rules

Decoder: TypeAlias = Literal["kl+rerank", "kl", "kl-pooled", "joint", "tag-viterbi", "posterior", "brute"]

CHOICES = {
    "emissions": ("factored", "categorical", "backoff"),
    "tags": ("IOB2", "types"),
    "sentences": ("given", "stops"),
    "word_classes": ("seven", "five"),
    "form": ("direct", "atoms"),
    "states": ("chain", "factored"),
    "sticks": ("W1", "W2", "W3"),
    "start": ("split", "context", "random"),
    "parameters": ("geometric", "mean"),
    "decode": ("kl+rerank", "kl", "kl-pooled", "joint", "tag-viterbi", "posterior", "brute"),
}
MANY_NOTES = 100  # documents from which alpha_emission defaults to 0.5, below to 0.2


@dataclass(frozen=True, slots=True)
class HMMDP:
    """Settings of an HMM-DP; `published()` and `submitted()` return those of the publication's systems.

    `outside` and `inside` are the numbers of sub-tags of O and of other tags. `language` is a pack of word lists, or a
    folder with one. With `tags="types"` a label is one tag, and spans side by side are one; with "IOB2" it is two, a
    span's first token and the others. `sentences="stops"` also ends sentences at every full stop and every line.
    `word_classes` are those of rare words: "five" has letters, punctuation, numbers, dates and telephone numbers,
    "seven" mixed identifiers and network names as well. A word becomes a symbol if it occurs `min_count` times, in
    `min_patients` patients, and with `private` (None: if a label names identifiers) not mostly inside spans.
    `alpha_emission` None means 0.5, or 0.2
    below 100 documents. With `learn_priors` it is learnt for each kind of symbol, and so is `alpha_tags`, every fifth
    pass; off by default, because the emission prior of highest likelihood is too weak for the best F1.
    `batches` above 1 keep separate counts (memoised learning); with `stochastic` older counts fade little by
    little. `cost_ratio` is the cost of a missed span relative to a false one, for `decode="posterior"`. With
    `discriminative`, training continues with a conditional random field over the chain's states and the features of a
    cascade; its first weights are `offset` times the log-parameters. `rules` name the sub-categories of categories.
    """

    outside: int = 8
    inside: int = 2
    emissions: Literal["factored", "categorical", "backoff"] = "factored"
    language: str = "en"
    tags: Literal["IOB2", "types"] = "IOB2"
    sentences: Literal["given", "stops"] = "given"
    word_classes: Literal["seven", "five"] = "seven"
    min_count: int = 5
    min_patients: int = 2
    private: bool | None = None
    alpha_emission: float | None = None
    alpha_tags: float = 0.1
    alpha_subtags: float = 5.0
    alpha_sticks: float | None = None  # None: learnt
    learn_priors: bool = False
    temper: float = 0.3  # of each kind of symbol, where emissions are factored
    form: Literal["direct", "atoms"] = "direct"
    states: Literal["chain", "factored"] = "chain"
    sticks: Literal["W1", "W2", "W3"] = "W1"
    start: Literal["split", "context", "random"] = "split"
    passes: int = 20
    batches: int = 1
    stochastic: bool = False
    parameters: Literal["geometric", "mean"] = "geometric"
    decode: Decoder = "kl+rerank"
    cost_ratio: float = 1.0
    discriminative: bool = True
    offset: float = 0.1
    epochs: int = 7
    rate: float = 0.15
    dropout: float = 0.1
    floor: int | None = None
    calibrate: bool = True
    rules: Rules | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings; ConfigError for a bad value, or for values that exclude each other."""
        check_choices(self, CHOICES)
        check_wholes(self, "outside", "inside", "min_count", "min_patients", "passes", "batches", "epochs", least=1)
        check_wholes(self, "floor", least=1, optional=True)
        check_wholes(self, "seed")
        check_numbers(self, "alpha_tags", "alpha_subtags", "temper", "offset", "rate", "cost_ratio", above=0)
        check_numbers(self, "alpha_emission", "alpha_sticks", above=0, optional=True)
        check_numbers(self, "dropout", least=0, below=1)
        check_flags(self, "learn_priors", "stochastic", "discriminative", "calibrate")
        check_flags(self, "private", optional=True)
        if not isinstance(self.language, str) or not isinstance(self.rules, Rules | None):
            raise ConfigError("language must be the name of a pack or of a folder, and rules must be Rules")
        if self.discriminative and self.emissions == "backoff":
            raise ConfigError(
                "the discriminative stage starts from factored or categorical emissions, not from backoff; say "
                "discriminative=False"
            )
        if self.form == "atoms" and (self.batches > 1 or self.start == "split" or self.learn_priors):
            raise ConfigError(
                "sticks and atoms are learnt in one batch, from a context or random start, without learn_priors"
            )

    @classmethod
    def published(cls) -> HMMDP:
        """Return the settings of the updated published system: 100 sub-tags of O, 8 of others, projected decoding."""
        return cls(
            100, 8, "categorical", tags="types", sentences="stops", word_classes="five", private=False,
            alpha_emission=0.2, discriminative=False, decode="kl", start="context",
        )  # fmt: skip

    @classmethod
    def submitted(cls, rules: Rules | None = None) -> HMMDP:
        """Return the submitted system: 20 sub-tags of O, brute-force decoding, rules that name sub-categories.

        Without `rules` they are those of i2b2 2014 that come with the package.
        """
        return replace(cls.published(), outside=20, decode="brute", rules=rules or Rules.i2b2())
