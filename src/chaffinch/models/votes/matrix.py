"""The vote (label) matrix: per token and source a tag, "not an entity", or an abstention.

T tokens in B sentences, S sources, R linking rules, E entity labels, L = 1 + 2 E tags (O, then B and I of each label).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.core.labels import Labels

SILENT = -1  # a source abstains; 0 is a vote for "not an entity", 1 and above are tags
TOGETHER, APART = 1, -1  # a linking rule's verdict on a token and the one before it; 0 is none


@dataclass(frozen=True, slots=True, eq=False)
class VoteMatrix:
    """The votes of all sources on the tokens of some sentences, and the verdicts of linking rules.

    A source that gives distributions has `soft` rows as well, in the order of tags; a row of zeros is no vote, and
    its codes are the likeliest tags.
    """

    sources: tuple[str, ...]
    names: tuple[str, ...]  # E
    codes: NDArray[np.int16]  # (T, S)
    bounds: Ints  # (B+1,) sentence b is tokens bounds[b] to bounds[b+1]
    documents: Ints  # (D+1,) document d is tokens documents[d] to documents[d+1]
    soft: Mapping[str, Floats] = field(default_factory=dict)  # source, (T, L)
    rules: tuple[str, ...] = ()
    links: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8))  # (T, R)

    def __post_init__(self) -> None:
        """Raise DataError if sources, sentences or documents do not fit the shape of the codes."""
        T, S = self.codes.shape
        if len(self.sources) != S:
            raise DataError(f"votes have {S} columns for {len(self.sources)} sources")
        if self.bounds[-1] != T or self.documents[-1] != T:
            raise DataError(
                f"votes on {T} tokens; sentences end at {self.bounds[-1]}, documents at {self.documents[-1]}"
            )

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.codes)

    @property
    def labels(self) -> Labels:
        """Return the labels in IOB2; codes are numbers of their tags."""
        return Labels(self.names, "IOB2")

    def choose(self, sources: Sequence[str]) -> VoteMatrix:
        """Return the votes of some sources, in that order, rules kept; DataError for an unknown one."""
        missing = [name for name in sources if name not in self.sources]
        if missing:
            raise DataError(f"there is no source {missing[0]!r}; there is {', '.join(self.sources) or 'none'}")
        columns = [self.sources.index(name) for name in sources]
        soft = {name: rows for name, rows in self.soft.items() if name in sources}
        return replace(self, sources=tuple(sources), codes=np.ascontiguousarray(self.codes[:, columns]), soft=soft)

    def with_rules(self, rules: tuple[str, ...]) -> VoteMatrix:
        """Return the matrix with the verdicts of these linking rules only; an unknown rule has none."""
        links = np.zeros((len(self), len(rules)), np.int8)
        for column, name in enumerate(rules):
            if name in self.rules:
                links[:, column] = self.links[:, self.rules.index(name)]
        return replace(self, rules=rules, links=links)

    def part(self, documents: Ints) -> VoteMatrix:
        """Return the matrix of some documents, by number, in that order."""
        spans = [(int(self.documents[d]), int(self.documents[d + 1])) for d in documents]
        tokens = np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in spans)]).astype(np.int64)
        ends = [self.bounds[(self.bounds > a) & (self.bounds <= b)] - a for a, b in spans]
        shifts = np.cumsum([0, *(b - a for a, b in spans)])
        bounds = np.concatenate([[0], *(end + shift for end, shift in zip(ends, shifts, strict=False))])
        links = self.links[tokens] if self.rules else self.links
        soft = {name: rows[tokens] for name, rows in self.soft.items()}
        return replace(
            self, codes=self.codes[tokens], bounds=bounds.astype(np.int64), documents=shifts.astype(np.int64),
            soft=soft, links=links,
        )  # fmt: skip
