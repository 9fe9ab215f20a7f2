"""Show without sampling that a surrogate depends on nothing of its original but the form.

All that is drawn is drawn by `SurrogateSource.number`, `SurrogateSource.permute_index` and the map of letters. Here
these are replaced by one list of choices that knows nothing of the original. If every value of a form then has the same
surrogate, the surrogate is a function of form and choices alone: over all choices, as likely as they may be, no
attacker gains anything, however many patients share the value. What is left is that the choices under a key are even,
which the second half is about: exactly, if the hash is ideal, and by counting over many keys with the hash as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.surrogates import letters as surrogate_letters
from chaffinch.deid.surrogates import names as surrogate_names
from chaffinch.deid.surrogates import permute as permutations
from chaffinch.deid.surrogates.letters import SurrogateSource
from chaffinch.deid.surrogates.surrogate import surrogate
from tests.attacks.sizes import sized
from tests.attacks.test_shared_values import VALUES

SECRET = Secret(np.random.default_rng(3).bytes(32))

pytestmark = pytest.mark.drill


class Choices:
    """Stand in for the key: the n-th choice among as many values is the same whatever it is for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.seed, self.asked = seed, list[int]()
        monkeypatch.setattr(SurrogateSource, "number", lambda source, bound, *parts: self._draw(source, bound))
        monkeypatch.setattr(
            SurrogateSource, "permute_index", lambda source, index, size, *parts, text: self._draw(source, size)
        )
        for module in (surrogate_letters, surrogate_names):
            monkeypatch.setattr(module, "letter_map", self._letter_map)

    def _choose(self, size: int) -> int:
        self.asked.append(size)
        words = np.random.default_rng([self.seed, len(self.asked)]).bytes(40)
        return int.from_bytes(words, "big") % size

    def _draw(self, source: SurrogateSource, size: int) -> int:
        source.used = True
        return self._choose(size)

    def _letter_map(self, secret: Secret, patient: str) -> Choices:
        return self

    def get(self, letter: str) -> str | None:
        """Choose the letter that stands for a letter."""
        return "abcdefghijklmnopqrstuvwxyz"[self._choose(26)] if letter.isascii() and letter.isalpha() else None


@pytest.mark.parametrize("name", VALUES)
def test_with_the_same_choices_every_value_of_a_form_has_the_same_surrogate(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    label, domain = VALUES[name]
    for seed in range(sized(3, 30)):
        drawn = set()
        for value in domain():
            choices = Choices(monkeypatch, seed)
            drawn.add((surrogate(value, kind_of(label), "p", SECRET), tuple(choices.asked)))
        assert len(drawn) == 1


def test_a_surrogate_that_avoids_its_original_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack that this file is about, planted: draw again what came out unchanged."""

    def avoid(value: str, seed: int) -> str:
        choices = Choices(monkeypatch, seed)
        drawn = surrogate(value, kind_of("MEDICALRECORD"), "p", SECRET)
        while drawn == value:
            drawn = str(choices._choose(10))
        return drawn

    assert any(len({avoid(str(digit), seed) for digit in range(10)}) > 1 for seed in range(3))


@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (2, 2), (3, 2), (3, 3)])
def test_whatever_the_rounds_before_the_last_two_make_the_image_is_even(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """List all tables that the last two rounds may have; the earlier rounds are fixed at random.

    A size between is walked: passes end evenly among all rows × columns values, and so among the first of them.
    """
    size = rows * columns
    rounds: dict[int, Sequence[int]] = dict(enumerate(np.random.default_rng(size).integers(0, 100, (8, 10)).tolist()))
    monkeypatch.setattr(permutations, "_round_value", lambda key, turn, value: rounds[turn][value])
    images = {index: Counter[int]() for index in range(size)}
    for rounds[8] in product(range(rows), repeat=columns):
        for rounds[9] in product(range(columns), repeat=rows):
            for index in range(size):
                images[index][permutations.permute(index, size, b"")] += 1
    total = rows**columns * columns**rows
    assert all(image == dict.fromkeys(range(size), total // size) for image in images.values())


@pytest.mark.parametrize("size", [2, 3, 10, 26, 51, 100])
def test_over_many_keys_every_image_comes_as_often(size: int) -> None:
    """Count images of all values under many keys: a table of size × size, and how often a value stays itself."""
    keys = sized(20_000, 1_000_000) // size
    table = np.zeros((size, size))
    for number in range(keys):
        key = number.to_bytes(16, "big")
        for index in range(size):
            table[index, permutations.permute(index, size, key)] += 1
    assert table.sum(axis=0).tolist() == [keys] * size  # a permutation, whatever the key
    expected = keys / size
    chi, free = float(((table - expected) ** 2 / expected).sum()), (size - 1) ** 2
    assert chi < free + 5 * np.sqrt(2 * free)
    assert abs(float(np.trace(table)) - keys) < 5 * np.sqrt(keys)  # fixed points: mean and variance are 1
