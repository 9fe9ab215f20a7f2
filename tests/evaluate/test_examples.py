"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

# Not `chaffinch.evaluate`: that name is the function.
ROOM = importlib.import_module("chaffinch.evaluate")
MODULES = [module.name for module in pkgutil.iter_modules(ROOM.__path__, "chaffinch.evaluate.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
