"""Settings of the conditional HMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from chaffinch.checks import check_choice, check_flags, check_fractions, check_numbers, check_wholes, to_texts
from chaffinch.errors import ConfigError
from chaffinch.models.votes.multihmm.config import MultiHMM

Silence = Literal["abstain", "weighed", "published"]


@dataclass(frozen=True, slots=True)
class CHMM:
    """Settings of a conditional HMM; `published()` returns those of the publication.

    Transitions and confusions are (1 - weight) times a table for all tokens, plus `weight` times a softmax of a linear
    layer on each token's embedding; with `offset` the layer adds to the logs of the table: weights of 0, towards
    which `ridge` pulls them, leave the table as it is. Weight 0 is the multi-source HMM. The layer learns by `epochs`
    of generalised EM in batches of sentences, after `warm` epochs that make it reproduce the tables. Learning ends
    after `patience` epochs that do no better, by dev tags or by the likelihood of the share `held_out` of documents;
    the best epoch is kept, which may be the state before the first. `iid` drops transitions. `rank` is the size of a
    bottleneck between embeddings and confusions, 0 for none; None adds one only if there are many confusions.

    `constant` is the HMM whose tables, silence, weights and choice of spans are used as they are. With
    None the tables are learnt here, by `passes` of EM with Dirichlet priors of size `prior`, and the rest applies. A
    source that abstains where another votes is left out ("abstain"), or its silence is a symbol that counts
    `silence_weight` ("weighed"), or it votes for almost any entity if another does ("published"), and so do sources
    that vote "not an entity" except those in `reliable`; where all are silent they vote "not an entity". With
    `voted_is_entity` a token that some source calls an entity is one. With `valid` an I tag only follows its own label.
    """

    weight: float = 1.0
    offset: bool = True
    constant: MultiHMM | None = MultiHMM()  # noqa: RUF009  (frozen)
    silence: Silence = "abstain"
    silence_weight: float = 0.1
    reliable: tuple[str, ...] = ()
    voted_is_entity: bool = True
    valid: bool = True
    iid: bool = False
    prior: float = 1.0
    ridge: float = 0.3
    rate: float = 5e-4
    passes: int = 8
    warm: int = 0
    epochs: int = 10
    batch: int = 32
    patience: int = 3
    held_out: float = 0.1
    rank: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings, make `reliable` a tuple; ConfigError for a bad value, or `constant` without `offset`."""
        object.__setattr__(self, "reliable", to_texts(self.reliable, "reliable"))
        check_choice(self.silence, "silence", get_args(Silence))
        check_wholes(self, "passes", "warm", "epochs", "seed")
        check_wholes(self, "batch", "patience", least=1)
        check_wholes(self, "rank", optional=True)
        check_fractions(self, "weight", "silence_weight", "rate")
        check_numbers(self, "held_out", least=0, most=0.5)
        check_numbers(self, "prior", "ridge", least=0, most=1e6)
        check_flags(self, "offset", "voted_is_entity", "valid", "iid")
        if self.constant is not None and not self.offset:
            raise ConfigError("layers add to the tables of the constant HMM; use offset=True, or constant=None")

    @classmethod
    def published(cls, *, rate: float = 5e-4, batch: int = 64, iid: bool = False, seed: int = 0) -> CHMM:
        """Return the published system's settings: no table, any tag after any, and its rule for silent sources."""
        return cls(
            offset=False, constant=None, silence="published", voted_is_entity=False, valid=False, iid=iid, ridge=0.0,
            rate=rate, passes=0, warm=5, epochs=20, batch=batch, patience=20, rank=0, seed=seed,
        )  # fmt: skip
