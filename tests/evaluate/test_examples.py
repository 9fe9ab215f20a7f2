"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import chaffinch.evaluate

MODULES = [module.name for module in pkgutil.iter_modules(chaffinch.evaluate.__path__, "chaffinch.evaluate.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
