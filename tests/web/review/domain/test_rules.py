"""Queue, assignment, agreement and differences: cases worked by hand, and properties that must hold."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.web.review.domain.agreement import cohens_kappa, compare_readers
from chaffinch.web.review.domain.assignment import NeedsReaders, Reviewer, assign
from chaffinch.web.review.domain.differences import (
    Settlement,
    find_agreed_marks,
    find_differences,
    last_settlements,
    settle,
)
from chaffinch.web.review.domain.marks import Mark, flatten
from chaffinch.web.review.domain.queue import Waiting, reading_order
from tests.web.review.domain.test_marks import marks


def test_every_fifth_place_of_the_queue_is_drawn_at_random() -> None:
    risky = [Waiting(number, 100 - number, 0.5) for number in range(40)]
    lucky = [Waiting(100 + number, 0.0, 0.01 + number / 1000) for number in range(10)]
    order = reading_order([*lucky, *risky], 0.2)
    assert [place.note for place in order if place.stratum == "risk"] == list(range(40))
    assert [index for index, place in enumerate(order) if place.stratum == "random"] == list(range(4, 54, 5))[:10]


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), max_size=30), st.floats(0, 1))
def test_the_queue_has_every_note_once(rows: list[tuple[float, float]], share: float) -> None:
    notes = [Waiting(number, *row) for number, row in enumerate(rows)]
    assert sorted(place.note for place in reading_order(notes, share)) == list(range(len(rows)))


def test_more_notes_do_not_change_the_stratum_of_earlier_ones() -> None:
    first = [Waiting(number, 1.0, number / 10) for number in range(10)]
    more = [Waiting(10 + number, 2.0, number / 10) for number in range(10)]
    before = {place.note: place.stratum for place in reading_order(first, 0.3)}
    after = {place.note: place.stratum for place in reading_order(first + more, 0.3)}
    assert all(after[note] == stratum for note, stratum in before.items())


@given(
    st.lists(st.floats(0, 1), max_size=30),
    st.lists(st.one_of(st.none(), st.integers(1, 12)), min_size=2, max_size=4),
)
def test_quotas_hold_and_no_reader_has_two_arms(draws: list[float], quotas: list[int | None]) -> None:
    readers = [Reviewer(f"r{number}", quota) for number, quota in enumerate(quotas)]
    tasks = assign([NeedsReaders(number, draw, {}) for number, draw in enumerate(draws)], readers, arms=2)
    loads = Counter(task.reader for task in tasks)
    assert all(reader.quota is None or loads[reader.name] <= reader.quota for reader in readers)
    assert len({(task.note, task.reader) for task in tasks}) == len(tasks) == len({(t.note, t.arm) for t in tasks})
    if None not in quotas:
        assert len(tasks) <= sum(quota for quota in quotas if quota is not None)
    if all(quota is None for quota in quotas):
        assert len(tasks) == 2 * len(draws)


def test_assignment_fills_what_is_free_and_balances_arms() -> None:
    tasks = assign([NeedsReaders(7, 0.1, {1: "ann"})], [Reviewer("ann"), Reviewer("bob")], arms=2)
    assert [(task.reader, task.arm) for task in tasks] == [("bob", 2)]
    many = assign([NeedsReaders(n, n / 200, {}) for n in range(200)], [Reviewer("ann"), Reviewer("bob")], arms=2)
    second = Counter(task.reader for task in many if task.arm == 2)
    assert min(second.values()) > 60


def test_kappa_worked_by_hand() -> None:
    # Wikipedia's grant proposals: p_o = .7, p_e = .5, so (.7 - .5) / .5 = .4
    assert cohens_kappa(Counter({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15})) == pytest.approx(0.4)
    assert cohens_kappa(Counter()) is None
    assert cohens_kappa(Counter({("O", "O"): 9})) is None


def test_agreement_of_two_readers_worked_by_hand() -> None:
    doc = Document.make("Ann Penn saw Bob on Monday .", id="n1")
    first = [Mark(0, 8, "PATIENT"), Mark(13, 16, "DOCTOR"), Mark(20, 26, "DATE")]
    second = [Mark(0, 8, "PATIENT"), Mark(13, 16, "PATIENT")]
    found = compare_readers(doc, first, second)
    assert found.spans["NAME"].f1 == pytest.approx(2 * 1 / (2 + 2))
    assert found.spans["DATE"].f1 == 0
    assert found.total.f1 == pytest.approx(2 / 5)
    # 7 tokens; NAME by both on 3, O by both on 3, DATE against O on 1: p_o = 6/7, p_e = (3·3 + 3·4) / 49 = 21/49
    assert found.kappa() == pytest.approx((6 / 7 - 21 / 49) / (1 - 21 / 49))
    assert found.kappa("NAME") == pytest.approx(1.0)
    assert (found + found).total.first == 6


@given(st.lists(marks(), max_size=6), st.lists(marks(), max_size=6))
def test_agreed_and_differing_marks_are_all_marks(left: list[Mark], right: list[Mark]) -> None:
    first, second = flatten(left), flatten(right)
    differences = find_differences(first, second)
    same = [mark.place for mark in find_agreed_marks(first, second)]
    for side, marked in (("first", first), ("second", second)):
        rest = [mark.place for one in differences for mark in getattr(one, side)]
        assert sorted(same + rest) == sorted(mark.place for mark in marked)
    ends = [(one.start, one.end) for one in differences]
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    for choice, marked in (("first", first), ("second", second)):
        decided = {one.key: Settlement("x" * 8, one.key, choice, "type") for one in differences}  # type: ignore[arg-type]
        assert [mark.place for mark in settle(first, second, decided)] == [mark.place for mark in marked]


def test_an_open_difference_stops_the_settlement_and_the_last_decision_counts() -> None:
    first, second = [Mark(0, 3, "A")], [Mark(0, 3, "B")]
    with pytest.raises(DataError, match="not settled"):
        settle(first, second, {})
    rows = [Settlement("a" * 8, "0-3", "first", "type"), Settlement("b" * 8, "0-3", "neither", "no-identifier")]
    assert settle(first, second, last_settlements(rows)) == ()
    other = Settlement("c" * 8, "0-3", "other", "boundary", (Mark(0, 2, "C"),))
    assert settle(first, second, last_settlements([*rows, other])) == (Mark(0, 2, "C"),)
