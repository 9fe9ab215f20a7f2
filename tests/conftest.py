"""Fixtures for all tests, and how hypothesis runs here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.canary import Canary

# Compiled kernels of a test run are kept in one place, outside the user's own cache; chosen before any is imported.
os.environ.setdefault("CHAFFINCH_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "chaffinch"))

# What trains models, runs whole commands or starts processes: `make test` has it, `make quick` has not.
SLOW = (
    "attacks", "benchmarks", "browser", "cli", "docs/test_pages.py", "docs/test_walkthroughs.py",
    "deid/test_promises.py", "deid/training", "deid/release/test_bad_input.py", "deid/release/test_two_passes.py",
    "deid/surrogates/test_lists.py", "jobs", "kernels/test_compiled.py",
    "models", "recipes", "relations", "weak/training", "web/api/test_hostile.py", "web/api/test_openapi.py",
    "web/review/store", "web/review/test_work.py", "web/test_load.py", "web/presidio/test_litellm.py", "integrations",
)  # fmt: skip
# What waits for other programs, and what takes long: begun first, so that no process is alone with it in the end, and
# by one process, so that Spark is started once.
FIRST = ("jobs/spark", "jobs", "browser", "docs/test_pages.py")
QUICK = bool(os.environ.get("CHAFFINCH_QUICK"))  # set by `make quick`: fewer generated examples for each property

FEW = 15  # examples of a property in the quick lane

_PROFILE = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _PROFILE)
settings.register_profile("quick", _PROFILE, max_examples=FEW)
settings.load_profile("quick" if QUICK else "default")


def pytest_configure() -> None:
    """Let the processes of a run compile each kernel once."""
    if "PYTEST_XDIST_WORKER" in os.environ and sys.platform != "win32":
        import chaffinch  # noqa: F401  (before numba: it limits the threads of linear algebra)
        from tests.compiling import take_turns

        take_turns()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests by where they are, and put those first that take longest."""
    here = Path(__file__).parent
    order = [here / name for name in FIRST]

    def turn(item: pytest.Item) -> int:
        """Return the place of a test among those that are begun first, or after them."""
        return next((n for n, place in enumerate(order) if item.path.is_relative_to(place)), len(order))

    items.sort(key=turn)
    slow = [here / name for name in SLOW]
    for item in items:
        chosen = getattr(getattr(item, "function", None), "_hypothesis_internal_use_settings", None)
        if QUICK and chosen is not None and chosen.max_examples > FEW:  # a number of its own, for the other lanes
            item.function._hypothesis_internal_use_settings = settings(chosen, max_examples=FEW)  # type: ignore[attr-defined]
        if any(item.path.is_relative_to(place) for place in slow):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    """A word planted in documents, and a way to run commands that fails if it turns up where it must not."""
    return Canary(tmp_path)
