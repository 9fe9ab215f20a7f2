"""Invented sentences of segments: a protein is at a place where the verb says so, and only then."""

from __future__ import annotations

import numpy as np

from chaffinch.models.phrasehmm.fit import Sentence

DOMAINS = ("protein", "place")
PROTEINS, PLACES = [f"p{n}" for n in range(9)], ["nucleus", "membrane", "cytosol", "vacuole"]
FILLERS = ["here", "also", "thus", "often"]


def grammar(count: int, seed: int = 0, *, entities: bool = False) -> tuple[list[Sentence], list[str]]:
    """Sentences and their documents: "the p3 local to the nucleus" states the relation, "the p3 bind ..." does not."""
    rng, out = np.random.default_rng(seed), []
    for number in range(count):
        stated = number % 2 == 0
        noun = ("the", str(rng.choice(PROTEINS)), *(("protein",) if rng.random() < 0.4 else ()))
        place = ("the", str(rng.choice(PLACES)))
        middle = [("VP", ("local",)), ("PP", ("to",))] if stated else [("VP", (str(rng.choice(["bind", "need"])),))]
        lead = [("ADVP", (str(rng.choice(FILLERS)),))] if rng.random() < 0.5 else []
        tail = [("ADVP", (str(rng.choice(FILLERS)),))] if rng.random() < 0.5 else []
        parts = [*lead, ("NP", noun), *middle, ("NP", place), *tail, (".", (".",))]
        at, to = len(lead), len(lead) + 1 + len(middle)
        labels = [1 if n == at else 2 if n == to else 0 for n in range(len(parts))]
        covered = [tuple(word in PROTEINS + PLACES for word in words) for _, words in parts]
        out.append(
            Sentence(
                tuple(kind for kind, _ in parts),
                tuple(words for _, words in parts),
                tuple(labels) if stated else (),
                tuple(labels) if entities else None,
                tuple(covered) if stated else None,
                tuple(tuple("T" for _ in words) for _, words in parts),
            )
        )
    return out, [f"d{number // 3}" for number in range(count)]
