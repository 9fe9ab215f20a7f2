"""Checks of settings: an invalid value raises ConfigError, which names the setting, the value and what is expected.

A check with a plural name checks fields of a config, for its `__post_init__`; one with a singular name checks a value,
and takes the name to use in the message.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence

from chaffinch.errors import ConfigError

_LARGEST = sys.float_info.max  # infinite numbers, and whole ones too large for a float, exceed it


def check_wholes(config: object, *names: str, least: int = 0, optional: bool = False) -> None:
    """Raise ConfigError unless the named fields are whole numbers from `least` on, or None if `optional`.

    >>> from types import SimpleNamespace
    >>> check_wholes(SimpleNamespace(epochs="3"), "epochs", least=1)
    Traceback (most recent call last):
    chaffinch.errors.ConfigError: epochs must be a whole number, at least 1, got '3'
    """
    for name in names:
        value = getattr(config, name)
        if optional and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} must be a whole number, at least {least}, got {value!r}")


def check_numbers(
    config: object, *names: str, least: float | None = None, above: float | None = None, most: float | None = None,
    below: float | None = None, optional: bool = False, instead: str | None = None,
) -> None:  # fmt: skip
    """Raise ConfigError unless the named fields are finite numbers in the range, `instead`, or None if `optional`.

    >>> from types import SimpleNamespace
    >>> check_numbers(SimpleNamespace(dropout=1), "dropout", least=0, below=1)
    Traceback (most recent call last):
    chaffinch.errors.ConfigError: dropout must be a number of at least 0 and below 1, got 1
    """
    for name in names:
        value = getattr(config, name)
        if (optional and value is None) or (instead is not None and value == instead):
            continue
        fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
        fits = fits and (least is None or value >= least) and (above is None or value > above)
        if not fits or (most is not None and value > most) or (below is not None and value >= below):
            other = "" if instead is None else f", or {instead!r}"
            raise ConfigError(f"{name} must be a number{_range(least, above, most, below)}{other}, got {value!r}")


def check_fractions(config: object, *names: str, optional: bool = False) -> None:
    """Raise ConfigError unless the named fields are numbers from 0 to 1, or None if `optional`."""
    check_numbers(config, *names, least=0, most=1, optional=optional)


def check_flags(config: object, *names: str, optional: bool = False) -> None:
    """Raise ConfigError unless the named fields are true or false, or None if `optional`."""
    for name in names:
        value = getattr(config, name)
        if not (isinstance(value, bool) or (optional and value is None)):
            raise ConfigError(f"{name} must be true or false, got {value!r}")


def check_choices(config: object, choices: Mapping[str, Sequence[object]]) -> None:
    """Raise ConfigError unless each named field has one of the values listed for it."""
    for name, known in choices.items():
        check_choice(getattr(config, name), name, known)


def check_choice(value: object, what: str, known: Sequence[object]) -> None:
    """Raise ConfigError, with a hint at a similar one, unless the value is one of those listed, in type too.

    >>> check_choice("IOBSE", "scheme", ["IOBES", "IOB2"])
    Traceback (most recent call last):
    chaffinch.errors.ConfigError: scheme must be one of IOBES, IOB2, got 'IOBSE'; did you mean 'IOBES'?
    """
    if any(_is_same(value, choice) for choice in known):
        return
    names = [str(choice) for choice in known]
    near = nearest(value, names) if isinstance(value, str) else None
    hint = "" if near is None else f"; did you mean {near!r}?"
    raise ConfigError(f"{what} must be one of {', '.join(names)}, got {value!r}{hint}")


def check_name(value: object, what: str) -> None:
    """Raise ConfigError unless a name or label is printable text, not empty, without spaces at its ends."""
    if not isinstance(value, str) or not value or value != value.strip() or not value.isprintable():
        raise ConfigError(f"{what} must be a short text without spaces at its ends, got {value!r}")


def check_text(value: object, what: str) -> None:
    """Raise ConfigError unless the value is a string."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} must be text, got {type(value).__name__}")


def to_texts(value: object, what: str, *, least: int = 0) -> tuple[str, ...]:
    """Return a list's texts as a tuple; ConfigError for a single text, an empty text, or fewer than `least`."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{what} must be a list of texts, got {type(value).__name__}")
    texts = tuple(value)
    if not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"{what} must be a list of texts, none of them empty")
    if len(texts) < least:
        raise ConfigError(f"{what} is empty; name at least {least}")
    return texts


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a hint for an unknown word: the most similar known word, or all of them.

    >>> did_you_mean("Lable", ["label", "name"]), did_you_mean("zzz", ["label", "name"])
    ("did you mean 'label'?", 'choose one of label, name')
    """
    names = list(known)
    near = nearest(word, names)
    return f"choose one of {', '.join(names) or 'none'}" if near is None else f"did you mean {near!r}?"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to a word, ignoring case; None if none is similar enough."""
    by_fold = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(str(word).casefold(), by_fold, n=1)
    return by_fold[near[0]] if near else None


def _is_same(value: object, choice: object) -> bool:
    """Tell whether a value equals a choice in type and value; 1, 1.0 and True are three different values."""
    kinds = isinstance(value, type(choice)) and isinstance(value, bool) == isinstance(choice, bool)
    return kinds and value == choice


def _range(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    """Return the text that describes a range of numbers, such as " of at least 0 and below 1"; "" for none."""
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    low = f"of at least {least:g}" if least is not None else f"above {above:g}" if above is not None else ""
    high = f"at most {most:g}" if most is not None else f"below {below:g}" if below is not None else ""
    return "".join(f" {word}" for word in (low, "and" if low and high else "", high) if word)
