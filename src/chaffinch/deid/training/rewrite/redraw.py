"""Draw other identifiers for notes, so that a model learns contexts and not names.

Names, numbers, contacts and streets become surrogates, and dates are shifted, as a release does it under a secret of
its own. Institutions, places and jobs are taken from other notes: what stands for them in a release has lost its form.
"""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.replace import replace_identifiers
from chaffinch.deid.synth.personas import jobs
from chaffinch.deid.training.rewrite.edits import Edit, Marked
from chaffinch.text import Document

POLICY = "i2b2-surrogate"
KEPT = 0.25  # the share of identifiers that stay as they are: real forms are better than drawn ones
BORROWED = {  # the share that is taken from other notes
    "HOSPITAL": 1.0, "ORGANIZATION": 1.0, "LOCATION-OTHER": 1.0, "PROFESSION": 1.0, "CITY": 0.5, "STATE": 0.5,
    "COUNTRY": 0.5,
}  # fmt: skip
_TRIES = 6  # of which the one with the most similar number of words is taken


@dataclass(frozen=True, slots=True, repr=False)
class Redrawer:
    """A drawer of other identifiers, made from the notes whose institutions, places and jobs it may lend."""

    policy: Policy
    lent: Mapping[str, Sequence[str]]
    hide: bool = False  # leave no identifier as it is, but numbers that tell nothing by chance; else some stay

    @classmethod
    def of(cls, docs: Iterable[Document], layer: str = "gold", *, hide: bool = False) -> Redrawer:
        """Return a redrawer that can lend the notes' identifiers of some labels, and all listed jobs."""
        lent: defaultdict[str, list[str]] = defaultdict(list)
        for doc in docs:
            for span in doc.layer(layer):
                if span.label in BORROWED:
                    lent[span.label].append(doc.text[span.start : span.end])
        lent["PROFESSION"] += jobs("all")
        return cls(Policy.read(POLICY), dict(lent), hide)

    def __call__(self, doc: Document, rng: np.random.Generator, layer: str = "gold") -> Marked:
        """Return the note with identifiers redrawn by a random secret, equal ones of a label alike."""
        secret = Secret(rng.bytes(32).hex().encode())
        acted = replace_identifiers(doc, layer, self.policy, secret)
        drawn, edits = dict[tuple[str, str], str](), list[Edit]()
        for made in acted.replacements:
            old = doc.text[made.start : made.end]
            key = (made.label, old.casefold())
            if key not in drawn:
                drawn[key] = self._draw(made.label, old, acted.text[made.out_start : made.out_end], rng)
            if drawn[key] != old:
                edits.append(Edit(made.start, made.end, drawn[key]))
        return Marked.of(doc, layer).apply_edits(edits)

    def _draw(self, label: str, old: str, surrogate: str, rng: np.random.Generator) -> str:
        """Draw an identifier's new text: the old one, one lent by another corpus, an age, or the surrogate."""
        if rng.random() < KEPT and not self.hide:
            return old
        if label in self.lent and rng.random() < BORROWED[label]:
            size, pool = len(old.split()), self.lent[label]
            tried = [pool[int(rng.integers(len(pool)))] for _ in range(_TRIES)]
            return _copy_case(min(tried, key=lambda name: abs(len(name.split()) - size)), old)
        if label == "AGE":
            if old.isdigit() and len(old) == 2:
                return str(rng.integers(10, 100))
            return _scramble(old, rng, letters=False) if self.hide else old
        if not surrogate.startswith("["):
            return surrogate
        return _scramble(old, rng, letters=label != "DATE") if self.hide else old  # a tag: there was no surrogate


def _scramble(old: str, rng: np.random.Generator, *, letters: bool) -> str:
    """Return a text of the same shape with random digits and, if `letters`, random letters of the same case."""
    return "".join(_draw_sign(sign, rng, letters) for sign in old)


def _draw_sign(sign: str, rng: np.random.Generator, letters: bool) -> str:
    """Return a random digit for a digit and, if `letters`, a random letter of the same case for a letter."""
    if sign.isdigit():
        return str(rng.integers(10))
    if letters and sign.isalpha():
        drawn = string.ascii_lowercase[int(rng.integers(26))]
        return drawn.upper() if sign.isupper() else drawn
    return sign


def _copy_case(new: str, old: str) -> str:
    """Return the new phrase in one line, in capitals or small letters if the old one is."""
    line = " ".join(new.split())
    return line.upper() if old.isupper() else line.lower() if old.islower() else line
