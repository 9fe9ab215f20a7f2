"""Shared by the commands on votes: read them, choose sources and aggregators, handle Ctrl-C."""

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
from chaffinch.cli import frame
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, read
from chaffinch.weak.aggregate import BY_NAME, Aggregator
from chaffinch.weak.analysis import choose_sources

Votes = Annotated[Path, typer.Argument(metavar="VOTES", help="Documents with votes, as `weak apply` writes them.")]
Only = Annotated[str | None, typer.Option("--only", metavar="A,B", help="Use these sources only; default: all.")]


def read_votes(path: Path, form: str | None, how: ReadOptions, *, quiet: bool) -> list[Document]:
    """Read all documents of a path, with a progress bar; raise DataError if none has a vote."""
    docs = list(frame.progress(read(path, format=form, how=how), "documents", quiet=quiet))
    try:
        choose_sources(docs)
    except DataError:
        raise DataError("has no votes, no layer source:NAME; run chaffinch weak apply first", path=path) from None
    return docs


def choose_by_name(names: str | None, docs: list[Document]) -> tuple[str, ...]:
    """Return the sources named by --only, or all sources of the documents; raise ConfigError for unknown names."""
    return choose_sources(docs, None if names is None else [name.strip() for name in names.split(",") if name.strip()])


def method_of(name: str) -> Aggregator:
    """Return the aggregation method of that name; raise ConfigError with the nearest name if unknown."""
    if name not in BY_NAME:
        raise ConfigError(f"--method {name!r} is unknown; {did_you_mean(name, BY_NAME)}")
    return BY_NAME[name]


@contextmanager
def warn_about_silent_sources(*, quiet: bool) -> Iterator[None]:
    """Print remarks on stderr for sources that never vote in the block; hide all other warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught if "never speak" in str(warning.message)):
        frame.note(f"{text[0].upper()}{text[1:]}.", quiet=quiet)


class Stopped(BaseException):
    """Ctrl-C as a BaseException that learners do not take for "stop early and keep the best model"."""


@contextmanager
def abort_on_sigint() -> Iterator[None]:
    """Make Ctrl-C inside the block raise Stopped, so that learners abort and do not keep a half-trained model."""

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        """Raise Stopped, which learners do not take for "stop early"."""
        raise Stopped

    before: Any = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
