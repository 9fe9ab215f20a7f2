"""Edits over marks: against a slow oracle that keeps every character's owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.web.review.domain.identical import find_identical, free_places
from chaffinch.web.review.domain.marks import (
    Edit,
    Mark,
    apply_edit,
    check_edit,
    flatten,
    open_suggestions,
    replay,
)

LENGTH = 30


@st.composite
def marks(draw: st.DrawFn) -> Mark:
    start = draw(st.integers(0, LENGTH - 1))
    end = draw(st.integers(start + 1, LENGTH))
    return Mark(start, end, draw(st.sampled_from("AB")), draw(st.booleans()))


edits = st.builds(
    lambda removed, added, number: Edit(f"edit-{number:08d}", tuple(removed), tuple(added)),
    st.lists(marks(), max_size=3),
    st.lists(marks(), max_size=3),
    st.integers(0, 10**8 - 1),
)


def slow_apply(before: list[Mark], edit: Edit) -> list[Mark]:
    """Pairwise overlaps of sets of characters, in any order, sorted at the end."""
    kept = [mark for mark in before if all(mark.place != gone.place for gone in edit.removed)]
    for mark in edit.added:
        characters = set(range(mark.start, mark.end))
        kept = [other for other in kept if not characters & set(range(other.start, other.end))] + [mark]
    return sorted(kept, key=lambda mark: mark.start)


@given(st.lists(edits, max_size=6))
def test_edits_agree_with_sets_of_characters(done: list[Edit]) -> None:
    fast: tuple[Mark, ...] = ()
    slow: list[Mark] = []
    for edit in done:
        fast, slow = apply_edit(fast, edit), slow_apply(slow, edit)
        assert list(fast) == slow


@given(st.lists(marks(), max_size=8), st.lists(edits, max_size=5))
def test_an_edit_that_arrives_again_changes_nothing(suggestions: list[Mark], done: list[Edit]) -> None:
    once = list({edit.id: edit for edit in done}.values())
    assert replay(suggestions, [*once, *once]) == replay(suggestions, once)


@given(st.lists(marks(), max_size=10))
def test_flat_marks_do_not_overlap_and_keep_the_longest(given: list[Mark]) -> None:
    flat = flatten(given)
    taken = [place for mark in flat for place in range(mark.start, mark.end)]
    assert len(taken) == len(set(taken))
    assert list(flat) == sorted(flat, key=lambda mark: mark.start)
    if given:
        assert max(mark.end - mark.start for mark in given) == max(mark.end - mark.start for mark in flat)


def test_an_edit_and_its_inverse_leave_what_was_there() -> None:
    before = (Mark(0, 3, "A", False), Mark(5, 9, "B"))
    edit = Edit("edit-00000001", removed=(before[1],), added=(Mark(4, 9, "A"),))
    back = Edit("edit-00000002", removed=edit.added, added=edit.removed)
    assert apply_edit(apply_edit(before, edit), back) == before
    assert open_suggestions(before) == 1


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit("short"), "needs an id"),
        (Edit("edit-00000001", added=(Mark(2, 31, "A"),)), "does not fit a text of 30"),
        (Edit("edit-00000001", added=(Mark(2, 2, "A"),)), "does not fit"),
        (Edit("edit-00000001", removed=(Mark(-1, 2, "A"),)), "does not fit"),
        (Edit("edit-00000001", added=(Mark(1, 2, "SECRETLABEL"),)), "a type that this project does not have"),
        (Edit("edit-00000001", added=(Mark(1, 2, "A", score=7.0),)), "from 0 to 1"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_without_its_words(edit: Edit, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        check_edit(edit, length=LENGTH, labels=frozenset("AB"))
    assert "SECRETLABEL" not in str(caught.value)


def test_identical_words_are_whole_words_that_no_mark_touches() -> None:
    text = "Ann, Anna, ann; (Ann) Ann-Marie ANN Änn"
    assert [text[a:b] for a, b in find_identical(text, "Ann")] == ["Ann", "Ann", "Ann"]
    assert find_identical(text, "(Ann)") == [(16, 21)]
    assert find_identical(text, "  ") == []
    assert free_places(find_identical(text, "Ann"), [Mark(0, 4, "A")]) == [(17, 20), (22, 25)]
