"""Makes the lists of names and cities from which surrogates are drawn.

    python -m recipes.surrogate_lists --data DIR

`surnames.txt.gz` has all surnames of the census, the frequent ones first. `name-parts.toml` has the beginnings and
ends of names, by how many names have them: names are put together of them where the census has too few with an initial.
`given-more.txt` tells first names that the templates' lists of names do not tell, or tell otherwise: F and M borne by
women or by men, B by both, S rather a surname. `surnames-more.txt` has surnames for the rare initials, and short ones,
which are not to be taken for initials. `cities.txt` has cities of the United States. The other lists in the folder are
written by hand, as are the few names below for initials that the census hardly has.

A change of any list changes surrogates made with the same secret: say so in the release notes.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import chaffinch
from chaffinch.deid.surrogates.lists import entries as lines

RARE = "IOQUVXYZ"  # initials of few names
CLEARLY = 5.0  # times as many women as men, or the reverse
RATHER = 2.0  # times as many people bear it as a surname than as a first name
SHORT, KNOWN_SHORT = 3, 20_000  # letters; the census ranks rarer surnames by handfuls of people
LEAST_PEOPLE, MOST_CITIES = 14_000, 2_600
OWN_GIVEN = {
    "F": "Qadira Qiana Quilla Quintessa Udele Ulla Uma Umeko Urszula Urvi Usha Xandra Xanthe Xaviera Xena Ximena Xyla",
    "M": "Ivor Ivo Ignatius Obadiah Octavio Odell Qadir Qasim Quade Quillan Quimby Ulric Ulrich Umar Umberto Urban "
    "Uriah Uriel Usman Xabier Xander Xaver Xenos Xerxes Xiang Ximen Xoan Yannick Yardley Yasir Yehuda Yosef Yuri "
    "Yusuf Yves Zahir Zaid Zander Zebulon Zeke Zoltan",
}
HEADS, TAILS = 24, {"S": 9000, "F": 512, "M": 512}  # beginnings for each initial; ends for each sort of name
VOWELS = "a e i o u ia ie ei ea au ou io ue oe ai oa".split()  # after an initial that few names have
OWN_SURNAMES = "Xanthos Xavier Xenakis Xia Xiao Xidis Xie Ximenes Ximenez Xiong Xu Xue"


def census(path: Path) -> dict[str, float]:
    """Name and share of people, in per cent, from the most to the least frequent."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = [line.split() for line in file if line.strip()]
    return {_capitals(name): float(rate) for name, rate, *_ in rows}


def _capitals(name: str) -> str:
    return re.sub("^Mc(.)", lambda found: "Mc" + found[1].upper(), name.capitalize())


def given_more(female: Mapping[str, float], male: Mapping[str, float], last: Mapping[str, float]) -> list[str]:
    """The lines of given-more.txt: those of which the lists of the templates say something else."""
    told = dict.fromkeys(lines("names-first-female"), "F")
    told |= {name: "B" if name in told else "M" for name in lines("names-first-male")}
    marks = {name: mark for mark, names in OWN_GIVEN.items() for name in names.split()}
    for name in sorted({*female, *male}):
        women, men = female.get(name, 0.0), male.get(name, 0.0)
        if last.get(name, 0.0) > RATHER * (women + men) / 2:
            marks[name] = "S"
        elif name not in marks:
            marks[name] = "F" if women > CLEARLY * men else "M" if men > CLEARLY * women else "B"
    return [f"{mark} {name}" for name, mark in sorted(marks.items()) if told.get(name) != mark and len(name) > 1]


def surnames_more(last: Mapping[str, float]) -> list[str]:
    """The lines of surnames-more.txt."""
    have = set(lines("names-last"))
    wanted = {name for name in list(last)[:KNOWN_SHORT] if name[0] in RARE or len(name) <= SHORT}
    return sorted((wanted | set(OWN_SURNAMES.split())) - have)


def name_parts(name: str) -> tuple[str, str] | None:
    """Cut a name behind its first syllable's vowels; behind the second's if it begins with a vowel.

    >>> name_parts("Sanders"), name_parts("Anderson"), name_parts("Xu")
    (('Sa', 'nders'), ('Ande', 'rson'), None)
    """
    found = re.fullmatch("([AEIOU]?[aeiou]*[^AEIOUaeiou]+[aeiou]+)([^aeiou].*)", name)
    return (found[1], found[2]) if found else None


def parts_of(names: Iterable[str], tails: int) -> tuple[dict[str, list[str]], list[str]]:
    """Return the most frequent beginnings for each initial, and the most frequent ends, of names."""
    found = [parts for name in names if (parts := name_parts(name))]
    heads = Counter(head for head, _ in found)
    by_letter: dict[str, list[str]] = {}
    for letter in string.ascii_uppercase:
        real = [head for head, _ in heads.most_common() if head[0] == letter and len(head) <= 5]
        made = [letter + vowels for vowels in VOWELS]
        if letter in "AEIOU":
            made = [letter + consonant + vowel for consonant in "lrndmsb" for vowel in "aeio"]
        elif letter == "Q":
            made = ["Qu" + vowels for vowels in VOWELS if vowels[0] != "u"]
        by_letter[letter] = list(dict.fromkeys([*real, *made]))[:HEADS]
    ends = Counter(tail for _, tail in found)
    return by_letter, [tail for tail, _ in ends.most_common() if len(tail) <= 7][:tails]


def name_parts_toml(names: Mapping[str, Iterable[str]]) -> str:
    """Return the content of name-parts.toml: by sort of name, beginnings by initial, and ends."""
    lines = []
    for sort, every in names.items():
        heads, tails = parts_of(every, TAILS[sort])
        lines += [f"[{sort}]", f'tails = "{" ".join(tails)}"', f"[{sort}.heads]"]
        lines += [f'{letter} = "{" ".join(own)}"' for letter, own in heads.items()]
    return "\n".join(lines) + "\n"


def cities(path: Path) -> list[str]:
    """The larger cities with names of one or two plain words."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    plain = re.compile("[A-Z][a-z]{3,}( [A-Z][a-z]{3,})?")
    large = {name: int(people) for name, _, people in rows if plain.fullmatch(name) and int(people) >= LEAST_PEOPLE}
    return sorted(sorted(large, key=lambda name: (-large[name], name))[:MOST_CITIES])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=os.environ.get("CHAFFINCH_DATA"))
    data = arguments.parse_args().data
    if data is None:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    folder = Path(data) / "gazetteers"
    names = {key: census(folder / f"us_census_1990_dist.{key}.txt.gz") for key in ("female.first", "male.first")}
    last = census(folder / "us_census_1990_dist.all.last.txt.gz")
    made = {
        "given-more": given_more(names["female.first"], names["male.first"], last),
        "surnames-more": surnames_more(last),
        "cities": cities(folder / "us_cities_geonames5000.tsv.gz"),
    }
    out = Path(chaffinch.__file__).parent / "languages" / "en" / "surrogates"
    with gzip.GzipFile(out / "surnames.txt.gz", "wb", mtime=0) as file:
        file.write("".join(f"{name}\n" for name in last).encode())
    sorts = {"S": last, "F": names["female.first"], "M": names["male.first"]}
    (out / "name-parts.toml").write_text(name_parts_toml(sorts), encoding="utf-8", newline="")
    for name, entries in made.items():
        (out / f"{name}.txt").write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
