"""Checks of settings: every config refuses values of a wrong type or size, and names what is expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaffinch as cf
from chaffinch import checks
from chaffinch.deid.operators import OPERATORS
from chaffinch.errors import ConfigError
from chaffinch.features.clusters import Clusters
from chaffinch.weak.vote_rules import TokenVote

CONFIGS: list[Any] = [
    cf.Cascade(), cf.HMMDP(), cf.ClassHMM(), cf.Encoder(), cf.PhraseHMM(), cf.CHMM(), cf.MultiHMM(), cf.Alignment(),
    cf.relations.Extraction(), cf.weak.Recipe(), cf.weak.Published(), Clusters(), TokenVote(),
    *(make() for make in OPERATORS.values()),
    cf.weak.Lexicon("drugs", ["aspirin"], label="DRUG"), cf.weak.Suffix("itis", ["itis"], label="DISEASE"),
    cf.weak.Context("doctor", ["Dr."], label="NAME"), cf.weak.History("again", ["list"]),
    cf.weak.Regex("dose", r"\d+ mg", label="DOSE"), cf.weak.Link("caps", "capitalised"),
]  # fmt: skip
WRONG: dict[Any, tuple[Any, ...]] = {
    bool: ("yes", 1, 0.0),
    int: ("3", 2.5, True, -1, math.nan),
    float: ("0.5", True, math.nan, math.inf, [0.5]),
    str: (3, "no such", b"x"),
}
FREE = {"language", "folder", "layer", "name", "label", "pattern", "phrases", "character"}  # any text will do for these


def wrong_values() -> list[Any]:
    """Return every field of every config that is a flag, a number or one of several words, with wrong values of it."""
    out = []
    for config in CONFIGS:
        hints = get_type_hints(type(config))
        for setting in fields(config):
            kind = type(getattr(config, setting.name))
            if not setting.init or kind not in WRONG:
                continue
            for value in WRONG[kind]:
                if (setting.name in FREE and isinstance(value, str)) or (kind is float and value == [0.5]):
                    continue
                if (
                    kind is str
                    and isinstance(value, str)
                    and "Literal" not in str(hints[setting.name])
                    and setting.name != "by"
                ):
                    continue
                out.append(
                    pytest.param(config, setting.name, value, id=f"{type(config).__name__}.{setting.name}={value!r}")
                )
    return out


@pytest.mark.parametrize(("config", "name", "value"), wrong_values())
def test_a_wrong_value_is_refused_by_name(config: Any, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} must be |^language must be |date shift needs") as caught:
        replace(config, **{name: value})
    assert repr(value) in str(caught.value) or type(value).__name__ in str(caught.value) or name == "language"


def test_none_is_refused_where_it_is_no_default() -> None:
    for config in CONFIGS:
        for setting in fields(config):
            if (
                setting.init
                and type(getattr(config, setting.name)) in (bool, int, float)
                and setting.default is not MISSING
            ):
                with pytest.raises(ConfigError, match="must be"):
                    replace(config, **{setting.name: None})


def test_a_cascade_says_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"^epochs must be a whole number, at least 1, got '3'$"):
        cf.Cascade(epochs="3")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^scheme must be one of IOBES, .*, got 'IOEBS'; did you mean 'IOBES'\?$"):
        cf.Cascade(scheme="IOEBS")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^layers must be a list of texts, got str$"):
        cf.Cascade(layers="pos")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^floor must be a whole number, at least 1, got 0$"):
        cf.Cascade(floor=0)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, "a number"),
        ({"least": 0}, "a number of at least 0"),
        ({"above": 0}, "a number above 0"),
        ({"most": 0.5}, "a number at most 0.5"),
        ({"below": 1}, "a number below 1"),
        ({"least": 0, "most": 1}, "a number from 0 to 1"),
        ({"least": 0, "below": 1}, "a number of at least 0 and below 1"),
        ({"above": 0, "most": 1e4}, "a number above 0 and at most 10000"),
        ({"least": 0, "most": 1, "instead": "held-out"}, "a number from 0 to 1, or 'held-out'"),
    ],
)
def test_a_range_is_said_in_words(bounds: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checks.check_numbers(SimpleNamespace(rate="much"), "rate", **bounds)
    assert str(caught.value) == f"rate must be {expected}, got 'much'"


@given(
    value=st.floats() | st.integers(), low=st.floats(-5, 5), size=st.floats(0, 5), ends=st.tuples(*[st.booleans()] * 2)
)
def test_numbers_are_taken_in_their_range_alone(
    value: float, low: float, size: float, ends: tuple[bool, bool]
) -> None:  # fmt: skip
    high = low + size
    least, above = (low, None) if ends[0] else (None, low)
    most, below = (high, None) if ends[1] else (None, high)
    fits = (low <= value if ends[0] else low < value) and (value <= high if ends[1] else value < high)
    taken = _taken(
        lambda: checks.check_numbers(SimpleNamespace(x=value), "x", least=least, above=above, most=most, below=below)
    )
    assert taken == fits


def _taken(check: Callable[[], None]) -> bool:
    try:
        check()
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, -math.inf, math.nan])
def test_a_number_that_no_float_can_hold_is_none(value: float) -> None:
    with pytest.raises(ConfigError, match="x must be a number, got"):
        checks.check_numbers(SimpleNamespace(x=value), "x")


def test_none_and_words_in_place_of_numbers() -> None:
    config = SimpleNamespace(rate=None, floor=None, on=None, silence="held-out")
    checks.check_numbers(config, "rate", above=0, optional=True)
    checks.check_wholes(config, "floor", least=1, optional=True)
    checks.check_flags(config, "on", optional=True)
    checks.check_numbers(config, "silence", least=0, most=1, instead="held-out")
    for check in (checks.check_numbers, checks.check_wholes):
        with pytest.raises(ConfigError, match="got None"):
            check(config, "rate")
    with pytest.raises(ConfigError, match="on must be true or false, got None"):
        checks.check_flags(config, "on")


@pytest.mark.parametrize(
    ("value", "known"), [(1.0, (1, 2)), (True, (1, 2)), (1, (True, False)), ("1", (1, 2)), ([], (1,))]
)
def test_one_true_and_1_are_three_choices(value: object, known: tuple[object, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^x must be one of "):
        checks.check_choice(value, "x", known)


@pytest.mark.parametrize("value", ["", " a", "a\n", "a\0b", 3, None])
def test_odd_names_are_refused(value: object) -> None:
    checks.check_name("a b", "label")
    with pytest.raises(ConfigError, match=r"^label must be a short text"):
        checks.check_name(value, "label")


def test_lists_of_texts() -> None:
    assert checks.to_texts(["a", "b"], "on") == ("a", "b")
    assert checks.to_texts((), "on") == ()
    for value in ("abc", 3, None):
        with pytest.raises(ConfigError, match=rf"^on must be a list of texts, got {type(value).__name__}$"):
            checks.to_texts(value, "on")
    for texts in ([""], [3], ["a", None]):
        with pytest.raises(ConfigError, match=r"^on must be a list of texts, none of them empty$"):
            checks.to_texts(texts, "on")
    with pytest.raises(ConfigError, match=r"^on is empty; name at least 1$"):
        checks.to_texts([], "on", least=1)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("doctr", "did you mean 'DOCTOR'?"),
        ("DATES", "did you mean 'Date'?"),
        (7, "choose one of DOCTOR, Date"),
        ("zzz", "choose one of DOCTOR, Date"),
    ],
)
def test_the_nearest_word_is_named_whatever_its_case(word: object, hint: str) -> None:
    assert checks.did_you_mean(word, ["DOCTOR", "Date"]) == hint
    assert checks.did_you_mean(word, []) == "choose one of none"
