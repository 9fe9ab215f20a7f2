"""The names of one patient's notes and their surrogates, over all notes of a run.

Surrogates are drawn from ranges so wide that two names of a patient hardly ever collide. Where they do, or where a
surname's surrogate is another real name of the patient, the later name is drawn again. A surrogate never changes: later
notes do not affect earlier ones.

A name that is avoided in all patients of a clinician is missing among their surrogates. Among 3.4 million surnames this
shows only over millions of names; first names are too few to be avoided, and reveal too little to need it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

_MOST_DRAWS = 64  # attempts, far more than ever needed; after them two names share a surrogate


class NameBook:
    """The real words of names seen so far and the surrogate of each, for one patient and one run.

    Notes come in the order of the input: `add_real_words` gets the words of a note's names before any of them is drawn.
    """

    __slots__ = ("_real", "_surrogates", "_words", "drawn")

    def __init__(self) -> None:
        """Start a book without names."""
        self.drawn: dict[tuple[str, str], str] = {}  # the surrogates so far, by text and kind; none ever changes
        self._real: set[str] = set()
        self._surrogates: dict[str, str] = {}  # by folded word
        self._words: dict[str, str] = {}  # the first word that got a folded surrogate

    def __repr__(self) -> str:
        """Return the number of names, never a name."""
        return f"NameBook({len(self._surrogates)} names)"

    def add_real_words(self, words: Collection[str]) -> None:
        """Add folded words of real names: from now on no other surname is replaced by one of them."""
        self._real |= set(words)

    def surrogate_for(self, word: str, draw: Callable[[int], str], *, avoid_real: bool = True) -> str:
        """Return and remember a folded word's surrogate: the earlier one, else the first free draw, else draw 0.

        With `avoid_real`, another real name of the patient is not free either. `draw` returns the surrogate of an
        attempt: 0, 1, … A word may become itself: if that were excluded, the one name that a clinician of many patients
        never gets would be the clinician's own.
        """

        def free(drawn: str) -> bool:
            """Tell whether nobody else has a drawn name and, where that matters, it is no real name of the patient."""
            folded = drawn.casefold()
            real = avoid_real and folded != word and folded in self._real
            return not real and self._words.get(folded, word) == word

        surrogate = self._surrogates.get(word)
        if surrogate is None:
            surrogate = next((drawn for drawn in map(draw, range(_MOST_DRAWS)) if free(drawn)), draw(0))
            self._surrogates[word] = surrogate
            self._words.setdefault(surrogate.casefold(), word)
        return surrogate
