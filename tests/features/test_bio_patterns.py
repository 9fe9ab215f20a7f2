"""The published features of a word: patterns by hand, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch import Document
from chaffinch.features import bio_patterns, observe
from chaffinch.features.bio_patterns import name_of, patterns, with_published_features
from chaffinch.features.word_types import hash_name

HAND = {
    "IL-2": {"capitals", "digits", "exactly one digit", "dash", "punctuation"},
    "p53": {"digits", "exactly two digits", "letters, then digits"},
    "kappaB": {"small, then capitals"},
    "Factor": {"capital, then small"},
    "10,000": {"digits", "digits with comma or period", "punctuation"},
    "37": {"digits", "exactly two digits", "all digits"},
    "CD4+": {"capitals", "digits", "exactly one digit", "letters, then digits", "punctuation"},
    "5q": {"digits", "exactly one digit", "digits, then letters"},
    "-mediated": {"dash", "leading dash", "punctuation"},
    "anti-": {"dash", "trailing dash", "punctuation"},
    "cells": set(),
    ".": {"punctuation"},
}


@pytest.mark.parametrize("word", HAND)
def test_patterns_by_hand(word: str) -> None:
    assert set(patterns(word)) == HAND[word]


def test_there_are_fourteen_and_each_is_shown_by_a_word() -> None:
    assert len(bio_patterns.PATTERNS) == 14
    assert set().union(*HAND.values()) == {name for name, _ in bio_patterns.PATTERNS}
    assert all(name_of(hash_name(name)) == name for name, _ in bio_patterns.PATTERNS)


def test_a_type_has_the_published_features_and_no_others() -> None:
    before = observe.observe([Document.make("IL-2 gene IL-2 .")])
    seen = with_published_features(before)
    kinds = {int(kind) for kind in seen.kinds}
    assert kinds == {
        observe.WORD,
        observe.CLASS,
        observe.BRIEF,
        observe.LENGTH,
        observe.PREFIX,
        observe.SUFFIX,
        observe.NAMED,
    }
    v = int(seen.types[1])
    listed = slice(seen.lists[v], seen.lists[v + 1])
    found = [name_of(int(key)) for key in seen.keys[listed][seen.kinds[listed] == observe.NAMED]]
    assert set(found) == HAND["IL-2"]
    assert np.count_nonzero(seen.kinds[listed] == observe.PREFIX) == 4
    old = slice(before.lists[v], before.lists[v + 1])
    kept = np.isin(before.kinds[old], bio_patterns.KEPT)
    assert seen.keys[listed][seen.kinds[listed] != observe.NAMED].tolist() == before.keys[old][kept].tolist()
    assert seen.lists[1] == 1  # the pad keeps its word
