"""The names of one patient's notes and their surrogates, over all notes of a run, and of earlier ones with a state.

Surrogates are drawn from ranges so wide that two names of a patient hardly ever collide. Where they do, or where a
surname's surrogate is another real name of the patient, the later name is drawn again. A surrogate never changes: later
notes do not affect earlier ones.

A name that is avoided in all patients of a clinician is missing among their surrogates. Among 3.4 million surnames this
shows only over millions of names; first names are too few to be avoided, and reveal too little to need it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

_MOST_DRAWS = 64  # attempts, far more than ever needed; after them two names share a surrogate


class NameBook:
    """The real words of names seen so far and the surrogate of each, for one patient.

    Notes come in the order of the input: `add_real_words` gets the words of a note's names before any of them is drawn.
    """

    __slots__ = ("_new_real", "_new_surrogates", "_real", "_surrogates", "_words", "drawn")

    def __init__(self, surrogates: Mapping[str, str] | None = None, real: Collection[str] = ()) -> None:
        """Start with the surrogates of folded words and with the real words of earlier notes, in their order."""
        self.drawn: dict[tuple[str, str], str] = {}  # the surrogates so far, by text and kind; none ever changes
        self._real = set(real)
        self._surrogates = dict(surrogates or {})  # by folded word
        self._words: dict[str, str] = {}  # the first word that got a folded surrogate
        for word, surrogate in self._surrogates.items():
            self._words.setdefault(surrogate.casefold(), word)
        self._new_real: set[str] = set()
        self._new_surrogates: dict[str, str] = {}

    def __repr__(self) -> str:
        """Return the number of names, never a name."""
        return f"NameBook({len(self._surrogates)} names)"

    def add_real_words(self, words: Collection[str]) -> None:
        """Add folded words of real names: from now on no other surname is replaced by one of them."""
        new = set(words) - self._real
        self._real |= new
        self._new_real |= new

    def take_new(self) -> tuple[dict[str, str], list[str]]:
        """Return surrogates by word, and real words, that came since the last call, the latter sorted."""
        new = self._new_surrogates, sorted(self._new_real)
        self._new_surrogates, self._new_real = {}, set()
        return new

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
            first = draw(0)
            others = (drawn for drawn in map(draw, range(1, _MOST_DRAWS)) if free(drawn))
            surrogate = first if free(first) else next(others, first)
            self._surrogates[word] = self._new_surrogates[word] = surrogate
            self._words.setdefault(surrogate.casefold(), word)
        return surrogate
