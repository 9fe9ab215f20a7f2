"""The names of one patient's notes, and what each of them became, note after note.

Surrogates are drawn from ranges so wide that two names of a patient hardly ever meet. Where they do all the same, or
where a surname's surrogate is another real name of the patient, the name that comes later is drawn again. What was
given stays: the notes that follow change nothing in those before.

A name that is avoided in all patients of a clinician is missing among their surrogates. Among 3.4 million surnames that
shows only over millions of names; first names are too few to be avoided, and tell too little of anybody to need it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

_MOST_DRAWS = 64  # so many never come to pass; then two names share a surrogate


class NameBook:
    """Keeps, for one patient and one run, the real words of names met so far and what each word became.

    Notes come in the order of the input: `meet` tells the words of the next note's names before any of them is drawn.
    """

    __slots__ = ("_given", "_real", "_taken", "drawn")

    def __init__(self) -> None:
        self.drawn: dict[tuple[str, str], str] = {}  # by text and kind, the surrogates so far, as none ever changes
        self._real: set[str] = set()
        self._given: dict[str, str] = {}
        self._taken: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"NameBook({len(self._given)} names)"

    def meet(self, words: Collection[str]) -> None:
        """Add folded words of real names: no other word is replaced by one of them from now on."""
        self._real |= set(words)

    def settle(self, word: str, draw: Callable[[int], str], *, avoid_real: bool = True) -> str:
        """Return what a folded word became: what it got before, else the first draw that no other word became.

        With `avoid_real`, nor may it be another real name of the patient. `draw` gives the surrogate of an attempt: 0,
        1, … A word may become itself: were that left out, the name that a clinician of many patients never gets would
        be the clinician's own.
        """

        def free(drawn: str) -> bool:
            folded = drawn.casefold()
            real = avoid_real and folded != word and folded in self._real
            return not real and self._taken.get(folded, word) == word

        given = self._given.get(word)
        if given is None:
            given = next((drawn for drawn in map(draw, range(_MOST_DRAWS)) if free(drawn)), draw(0))
            self._given[word] = given
            self._taken.setdefault(given.casefold(), word)
        return given
