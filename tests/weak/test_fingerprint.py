"""Digests of lists of strings: equal lists have equal ones, and no two different ones share theirs."""

from __future__ import annotations

from itertools import combinations

from chaffinch.weak.fingerprint import fingerprint

DIFFERENT = [
    [], [""], ["", ""], ["ab", "c"], ["a", "bc"], ["abc"], ["a", "b", "c"], ["abc", ""], ["", "abc"], "abc",
    ["c", "ab"], [["ab", "c"]], ["ab", ["c"]], ["ab", 1], ["ab", "1"], {"ab", "c"}, {"ab": "c"}, ["\ud800"],
    ["\ufffd"], b"abc",
]  # fmt: skip


def test_no_two_different_values_share_a_digest() -> None:
    shared = [(one, other) for one, other in combinations(DIFFERENT, 2) if fingerprint(one) == fingerprint(other)]
    assert not shared


def test_lists_and_tuples_of_the_same_strings_share_a_digest() -> None:
    assert fingerprint(["ab", "c"]) == fingerprint(("ab", "c"))
    assert fingerprint(["ab", 1]) == fingerprint(("ab", 1))
