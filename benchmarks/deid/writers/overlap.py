"""Count the runs of eight words that the notes of a split share with what the model and its makers know.

    python -m benchmarks.deid.writers.overlap        # test and fresh notes; counts only

Words are letters and digits in small letters, punctuation and line breaks aside. A run that a note repeats counts once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import chaffinch
from benchmarks.deid.data import written
from benchmarks.deid.writers.corpus import HELD_OUT, NOTES, SPLITS, Split, read_notes

Run: TypeAlias = tuple[str, ...]

LENGTH: Final = 8
_PACKAGE: Final = Path(chaffinch.__file__).parent
_WORD: Final = re.compile(r"[^\W_]+")


def runs_of(texts: Iterable[str]) -> set[Run]:
    """Return the distinct runs of words of texts; none reaches from one text into the next.

    >>> sorted(runs_of(["A b, c d e f-g h i"]))[0][-1]
    'h'
    """
    runs: set[Run] = set()
    for text in texts:
        words = _WORD.findall(text.casefold())
        runs.update(tuple(words[place : place + LENGTH]) for place in range(len(words) - LENGTH + 1))
    return runs


def count_overlaps(split: Split, folder: Path = NOTES) -> tuple[int, dict[str, int], int]:
    """Return the runs of a split's notes, how many each source shares, and how many any source shares."""
    runs = runs_of(doc.text for doc in read_notes(split, folder))
    shared = {name: runs & runs_of(texts) for name, texts in _sources(split, folder).items()}
    return len(runs), {name: len(common) for name, common in shared.items()}, len(set().union(*shared.values()))


def _sources(split: Split, folder: Path) -> Mapping[str, Iterable[str]]:
    """Return the texts by source; of lists, each line is a text."""
    others = {f"{name} notes": _texts(name, folder) for name in SPLITS if name not in {split, *HELD_OUT}}
    return {
        "templates": _files(_PACKAGE / "deid" / "synth" / "templates"),
        "lists": (line for text in _files(_PACKAGE / "languages" / "en") for line in text.splitlines()),
        "older written notes": (doc.text for name in ("dev", "test") for doc in written(name)),
        **others,
    }


def _texts(split: Split, folder: Path) -> Iterator[str]:
    return (doc.text for doc in read_notes(split, folder))


def _files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".txt", ".toml"):
            yield path.read_text(encoding="utf-8")


if __name__ == "__main__":
    for held_out in sorted(HELD_OUT):
        size, by_source, anywhere = count_overlaps(held_out)
        for source, count in by_source.items():
            sys.stdout.write(f"{held_out}, {source}: {count} of {size}\n")
        sys.stdout.write(f"{held_out}, any: {anywhere} of {size} ({100 * anywhere / max(size, 1):.3f} %)\n")
