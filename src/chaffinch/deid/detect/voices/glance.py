"""A glance at doubtful words: a small net over a word and its neighbours, joined with what the taggers say.

    log-odds of an identifier = (1 - w) · taggers + w · glance, for doubtful words;   types keep their shares

Only words whose chance by the taggers is doubtful are looked at: one in nine. A reader sees more than a glance does,
so with one the glance is left out: on dev writers it adds nothing then. N tokens of all documents of a batch, L labels,
the first of which is O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from chaffinch.bundle import State
from chaffinch.checks import check_fractions
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.deid.detect.voices.stacking import LEAST, MOST, to_log_odds, with_odds
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.reader.glance.model import Model as Glance
from chaffinch.text import Document, Soft

WEIGHT = 0.35  # of the glance; on dev writers .3 to .4 are alike, .15 and .45 lose .002 to .004 of precision
SUREST = 12.0  # log-odds of the glance are clipped to [-SUREST, SUREST], so that it never decides alone


@dataclass(frozen=True, slots=True, eq=False)
class GlanceVoice:
    """A glance, and how much it counts."""

    glance: Glance = field(repr=False)
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        """Raise ConfigError if `weight` is not between 0 and 1."""
        check_fractions(self, "weight")

    def join(self, soft: Soft, index: TokenIndex, docs: Sequence[Document]) -> Soft:
        """Return (N, L) soft labels in which doubtful words have their log-odds averaged with those of the glance.

        `index` holds the documents with cues, `docs` the same documents as they are written.
        """
        chances = 1.0 - soft.values[:, 0]
        tokens = np.flatnonzero((chances > LEAST) & (chances < MOST))
        text = "\n".join(doc.text for doc in docs)  # the index counts one character between two documents
        edges = zip(index.starts[tokens].tolist(), index.ends[tokens].tolist(), strict=True)
        tokens = tokens[np.array([any(map(str.isalnum, text[start:end])) for start, end in edges], np.bool_)]
        seen = self._read(docs, index.docs, tokens)
        odds = (1.0 - self.weight) * to_log_odds(chances[tokens]) + self.weight * seen
        return with_odds(soft, tokens, odds)

    def read(self, doc: Document, cued: Document, tokens: Ints) -> Floats:
        """Return (n,) the log-odds of an identifier for tokens of a document; NaN for those without letter or digit."""
        edges = doc.tokens[tokens].tolist()
        words = np.array([any(map(str.isalnum, doc.text[start:end])) for start, end in edges], np.bool_)
        out = np.full(len(tokens), np.nan)
        out[words] = self._read([doc], [cued], tokens[words])
        return out

    def _read(self, docs: Sequence[Document], cued: Sequence[Document], tokens: Ints) -> Floats:
        """Return (n,) the log-odds of an identifier for words of documents, numbered one document after another."""
        return np.clip(self.glance.log_odds_in(docs, cued, tokens), -SUREST, SUREST)

    def chances(self, doc: Document, cued: Document) -> Floats:
        """Return (T,) each token's chance to be an identifier, by the glance alone; NaN without a letter or digit."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.read(doc, cued, np.arange(len(doc.tokens))))))

    def describe(self) -> dict[str, Any]:
        """Return config, labels and weight as a dict for the manifest; no learnt arrays."""
        config = asdict(replace(self.glance.config, folder=None))
        return {"config": config, "labels": self.glance.names, "weight": self.weight}

    @classmethod
    def of(cls, entry: Mapping[str, Any], state: State) -> GlanceVoice:
        """Rebuild a voice from its manifest entry (see `describe`) and the learnt arrays."""
        part = replace(state, config=entry["config"], labels=tuple(entry["labels"]))
        return cls(Glance.of(part), float(entry["weight"]))
