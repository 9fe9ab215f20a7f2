"""Shared by the commands on votes: read them, choose sources and aggregators, handle Ctrl-C."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, get_type_hints

import typer

from chaffinch.checks import did_you_mean
from chaffinch.cli import frame
from chaffinch.cli.train.settings import convert_setting, parse_assignments
from chaffinch.errors import ConfigError, DataError
from chaffinch.features import embed
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, read
from chaffinch.weak.aggregate import BY_NAME, Aggregator, Settings
from chaffinch.weak.analysis import choose_sources
from chaffinch.weak.embedded import Embedder

Votes = Annotated[Path, typer.Argument(metavar="VOTES", help="Documents with votes, as `weak apply` writes them.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method, such as published=true. Several times."),
]
EncoderFolder = Annotated[
    Path | None, typer.Option("--encoder", metavar="FOLDER", help="For chmm: a Hugging Face encoder on this computer.")
]
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


def settings_of(aggregator: Aggregator, assignments: Iterable[str], *, seed: int = 0) -> Settings:
    """Return an aggregator's settings with those of --set KEY=VALUE; ConfigError for one that it has not.

    `published=true` starts from the settings of the publication.
    """
    given, hints = parse_assignments(assignments), get_type_hints(aggregator.config)
    published = given.pop("published", "false")
    if published not in ("true", "false"):
        raise ConfigError(f"--set published must be true or false, got {published!r}")
    if published == "true" and not hasattr(aggregator.config, "published"):
        raise ConfigError(f"--method {aggregator.name} has no published settings, chmm has; leave out --set published")
    for name in given:
        if name not in hints or name in ("names", "constant", "seed"):
            able = [one for one in hints if one not in ("names", "constant", "seed")]
            raise ConfigError(f"{aggregator.name} has no setting {name!r}; {did_you_mean(name, ['published', *able])}")
    base: Any = aggregator.settings(seed=seed)
    if published == "true":
        base = getattr(aggregator.config, "published")(seed=seed)  # noqa: B009  (only chmm has it)
    settings: Settings = replace(base, **{key: convert_setting(key, value, hints[key]) for key, value in given.items()})
    return settings


def load_embedder(folder: Path | None, aggregator: Aggregator) -> Embedder | None:
    """Return the embedder of an encoder's folder, None without one; ConfigError if the aggregator needs none."""
    if folder is None:
        return None
    if not aggregator.embeds:
        raise ConfigError(f"--encoder is for --method chmm, and {aggregator.name} reads no words; leave it out")
    return embed.Embedder.load(folder)


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
