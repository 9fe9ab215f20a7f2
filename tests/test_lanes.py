"""What the quick lane leaves out."""

from __future__ import annotations

import pytest

from tests.conftest import FEW, QUICK


@pytest.mark.skipif(not QUICK, reason="of `make quick` alone")
def test_a_property_with_a_number_of_its_own_has_few_examples_too(request: pytest.FixtureRequest) -> None:
    functions = [item.function for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [getattr(function, "_hypothesis_internal_use_settings", None) for function in functions]
    assert {one.max_examples for one in chosen if one is not None} <= set(range(FEW + 1))
