"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import chaffinch

MODULES = ["chaffinch", *(found.name for found in pkgutil.walk_packages(chaffinch.__path__, "chaffinch."))]
# `walk_packages` looks inside a package by its attribute, and `chaffinch.evaluate` is the function of that name.
MODULES += [f"chaffinch.evaluate.{found.name}" for found in pkgutil.iter_modules([f"{chaffinch.__path__[0]}/evaluate"])]


@pytest.mark.parametrize("name", sorted({name for name in MODULES if not name.endswith("__main__")}))
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_in_every_room() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    rooms = ("chaffinch.text.span", "chaffinch.kernels.chain", "chaffinch.evaluate.scoring", "chaffinch.errors")
    for name in rooms:
        assert any(test.examples for test in finder.find(importlib.import_module(name)))
