"""What the commands on votes share: reading them, choosing among sources, and the names of aggregators."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from chaffinch.checks import did_you_mean
from chaffinch.cli import common as frame
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, read
from chaffinch.weak.aggregate import BY_NAME, Aggregator
from chaffinch.weak.analysis import choose_sources

Votes = Annotated[Path, typer.Argument(metavar="VOTES", help="Documents with votes, as `weak apply` writes them.")]
Some = Annotated[str | None, typer.Option("--sources", metavar="A,B", help="These sources alone; default: all.")]


def read_votes(path: Path, form: str | None, how: ReadOptions, *, quiet: bool) -> list[Document]:
    """The documents; DataError if none has a vote."""
    docs = list(frame.progress(read(path, format=form, how=how), "documents", quiet=quiet))
    try:
        choose_sources(docs)
    except DataError:
        raise DataError("has no votes, no layer source:NAME; run chaffinch weak apply first", path=path) from None
    return docs


def chosen(given: str | None, docs: list[Document]) -> tuple[str, ...]:
    """The sources that were named, or all."""
    return choose_sources(docs, None if given is None else [name.strip() for name in given.split(",") if name.strip()])


def method_of(name: str) -> Aggregator:
    """Return the aggregator of that name."""
    if name not in BY_NAME:
        raise ConfigError(f"--method {name!r} is unknown; {did_you_mean(name, BY_NAME)}")
    return BY_NAME[name]


@contextmanager
def told_of_silence(*, quiet: bool) -> Iterator[None]:
    """Says which sources never speak, as a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(own.message) for own in caught if "never speak" in str(own.message)):
        frame.note(f"{text[0].upper()}{text[1:]}.", quiet=quiet)


class Stopped(BaseException):
    """Ctrl-C, in a form that no learner takes for a wish to keep what it has."""


@contextmanager
def stop_at_once() -> Iterator[None]:
    """Makes Ctrl-C end the whole command, not the part that is just learning."""

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise Stopped

    before: Any = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
