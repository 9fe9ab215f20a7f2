"""The lists of surrogates: small, clean, and with names of every sort for every initial."""

from __future__ import annotations

import gzip
import string
from importlib.resources import files
from pathlib import Path

import pytest

from chaffinch.deid.surrogates.lists import SIZES, entries, names, state_names, states
from recipes import surrogate_lists as recipe

NAMED = [
    *("cities", "countries", "departments", "given-more", "names-first-female", "names-first-male", "names-last"),
    *("names-more", "professions", "states", "streets", "surnames-more", "wards"),
]
OTHERS = ["name-parts.toml", "surnames.txt.gz", "words.toml"]


def test_the_lists_are_small() -> None:
    folder = files("chaffinch.languages") / "en" / "surrogates"
    assert sorted(file.name for file in folder.iterdir()) == sorted([*(f"{name}.txt" for name in NAMED), *OTHERS])
    assert sum(len(file.read_bytes()) for file in folder.iterdir()) < 600_000


@pytest.mark.parametrize("name", NAMED)
def test_lists_have_no_empty_or_double_lines(name: str) -> None:
    lines = entries(name)
    assert all(line and line == line.strip() for line in lines)
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("letter", string.ascii_lowercase)
@pytest.mark.parametrize("role", "FMS")
def test_every_initial_has_equally_many_names_and_all_real_ones(role: str, letter: str) -> None:
    pool, real = list(names().drawable(role, letter)), names().real[role, letter]
    distinct = set(pool)
    assert len(pool) == len({name.casefold() for name in distinct}) == SIZES[role]
    assert all(name[0] == letter.upper() and name.isascii() and name.isalpha() for name in pool)
    assert distinct.issuperset(real)
    assert [names().index(role, name.lower()) for name in real] == list(range(len(real)))
    assert {names().index(role, letter + other) for other in ("zzq", "é", "\0", "?" * 50)} == {None}


def test_made_up_names_are_no_common_words() -> None:
    made = set(names().drawable("S", "b")) - set(names().real["S", "b"])
    assert not {"bandage", "battery", "bishop", "bitter"} & {name.lower() for name in made}
    assert len(made) > 20_000


def test_lists_tell_what_a_name_is() -> None:
    told = {"mary": "F", "john": "M", "leslie": "B", "smith": "S", "taylor": "S", "garcia": "S", "fabrice": "U"}
    assert {name: names().roles.get(name) for name in told} == told
    assert "js" not in names().roles


def test_states_are_fifty_and_the_district() -> None:
    assert len(state_names()) == 51
    assert len(states()[0]) == len(states()[1]) == 51


def test_the_recipe_tells_genders_and_surnames_apart() -> None:
    female = {"Mary": 2.6, "Zelpha": 0.002, "Zuzi": 0.15, "Baxter": 0.001}
    male = {"Zuzi": 0.13, "Zeb": 0.004}
    made = recipe.given_more(female, male, {"Baxter": 0.03})
    own = [f"{mark} {name}" for mark, own in recipe.OWN_GIVEN.items() for name in own.split()]
    assert sorted(set(made) - set(own)) == ["B Zuzi", "F Zelpha", "M Zeb", "S Baxter"]  # Mary is known


def test_the_recipe_adds_surnames_of_rare_initials_and_short_ones() -> None:
    made = recipe.surnames_more({"Smith": 1.0, "Yzaguirre": 0.001, "Bix": 0.001, "Blenkinsop": 0.001})
    assert {"Yzaguirre", "Bix", "Xu"} <= set(made)
    assert not {"Smith", "Blenkinsop"} & set(made)
    assert not set(made) & set(entries("names-last"))


def test_the_recipe_takes_large_cities_with_plain_names(tmp_path: Path) -> None:
    path = tmp_path / "cities.gz"
    rows = (
        "Boston\tMA\t650000\nLas Vegas\tNV\t600000\nSt. Paul\tMN\t300000\nTinytown\tOH\t5001\nSioux Falls\tSD\t200000\n"
    )
    path.write_bytes(gzip.compress(rows.encode()))
    assert recipe.cities(path) == ["Boston", "Sioux Falls"]
