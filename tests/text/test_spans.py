"""Spans that cannot be are refused where they are made."""

from __future__ import annotations

import pytest

from chaffinch.errors import DataError
from chaffinch.text import Span


@pytest.mark.parametrize(("start", "end"), [(5, 2), (-1, 3), (-4, -2)])
def test_a_span_that_ends_before_it_starts_or_starts_before_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(DataError, match=rf"\[{start}, {end}\)"):
        Span(start, end, "NAME")


def test_an_empty_span_may_be() -> None:
    assert len(Span(5, 5, "NAME")) == 0
