"""`chaffinch evaluate` and `chaffinch compare`: predictions beside gold, in any two readable formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from chaffinch.cli import frame
from chaffinch.errors import ConfigError, DataError, GateError
from chaffinch.evaluate import SCHEMES, TABLES, Pairs, compare_pairs, html, pair, score, to_categories
from chaffinch.evaluate.scoring import table_names
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, by_name, read
from chaffinch.text.formats.base import atomic_output, write_text

Found = TypeVar("Found")
Gold = Annotated[Path, typer.Argument(metavar="GOLD", help="The right answers, in any readable format.")]
Schemes = Annotated[list[str], typer.Option("--scheme", help=f"{', '.join(SCHEMES)}; may be given several times.")]
GoldLayer = Annotated[str | None, typer.Option("--layer", help="Layer of GOLD; default: gold, or the only one.")]
Categories = Annotated[
    bool, typer.Option("--categories", help="Score categories of identifiers: NAME in place of DOCTOR and PATIENT.")
]
Seed = Annotated[int, typer.Option(help="Seed of the drawn intervals.")]

_ONE_DOCUMENT = (
    "There is one document, which cannot be resampled: no interval, no test. Cut column files without -DOCSTART- into "
    "documents, in tag and here: --documents block:10."
)
_DISJOINT = "Gold and predictions share no label; say which is which with --map PREDICTED=GOLD, or use --scheme exact."


def evaluate_command(
    gold: Gold,
    predicted: Annotated[Path, typer.Argument(metavar="PRED", help="The predictions, in any readable format.")],
    scheme: Schemes = ["strict"],  # noqa: B006  (typer copies it)
    layer: GoldLayer = None,
    pred_layer: Annotated[str | None, typer.Option(help="Layer of PRED; default: the newest beside gold.")] = None,
    label_map: Annotated[
        list[str],
        typer.Option(
            "--map",
            metavar="PREDICTED=GOLD",
            help="Score a label of PRED as this label of GOLD; O leaves it out. Several times.",
        ),
    ] = [],  # noqa: B006  (typer copies it)
    categories: Categories = False,
    from_: Annotated[str | None, typer.Option("--from", help="Format of GOLD.")] = None,
    pred_from: Annotated[str | None, typer.Option(help="Format of PRED.")] = None,
    documents: frame.Documents = None,
    tag_names: frame.TagNames = "",
    report: Annotated[Path | None, typer.Option("--html", help="Write a report, one HTML file.")] = None,
    with_text: Annotated[
        bool,
        typer.Option("--with-text", help="Show the words of mistakes in the report, which then holds document text."),
    ] = False,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with code 4 if micro F1 is below this.", min=0, max=1)
    ] = None,
    seed: Seed = 0,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch evaluate gold/ predicted.jsonl --html report.html

    Score predicted spans: precision, recall and F1 by label, with 95 % intervals by a bootstrap over documents.
    The report holds no document text unless --with-text is given.
    """
    frame.check_page(report, gold, predicted)
    if with_text and report is None:
        raise ConfigError("--with-text is for the report; give --html FILE, or leave it out")
    if categories and any(TABLES[name].official for name in table_names(scheme)):
        raise ConfigError("--categories is for strict, relaxed, token, exact and binary; official schemes score types")
    labels = _parse_map(label_map)
    inputs = _Inputs((gold, predicted), (from_, pred_from), documents, tag_names, max_chars, quiet)
    pairs = inputs.fit(lambda sides: pair(*sides, layer=layer, predicted_layer=pred_layer, labels=labels))
    pairs = to_categories(pairs) if categories else pairs
    scores = score(pairs, scheme=scheme, seed=seed)
    if report is not None:
        with atomic_output(report) as beside:
            write_text(beside, html(scores, pairs, title=f"{predicted.name} against {gold.name}", with_text=with_text))
        frame.note(f"wrote {report}", quiet=quiet)
    frame.emit(scores.as_dict(), as_json=json, tables=[str(scores)])
    _note_newest(pairs, "PRED", "--pred-layer", quiet=quiet)
    for message in [_ONE_DOCUMENT] * scores.untested + [_DISJOINT] * scores.disjoint:
        frame.note(message, quiet=quiet)
    if fail_under is not None and scores.micro.f1 < fail_under:
        raise GateError(f"micro F1 {scores.micro.f1:.4f} is below --fail-under {fail_under}")


def compare_command(
    gold: Gold,
    first: Annotated[Path, typer.Argument(metavar="A", help="Predictions of one system.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Predictions of the other.")],
    scheme: Annotated[str, typer.Option(help=", ".join(SCHEMES))] = "strict",
    layer: GoldLayer = None,
    a_layer: Annotated[str | None, typer.Option(help="Layer of A; default: the newest beside gold.")] = None,
    b_layer: Annotated[str | None, typer.Option(help="Layer of B; default: the newest beside gold.")] = None,
    documents: frame.Documents = None,
    tag_names: frame.TagNames = "",
    seed: Seed = 0,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch compare gold/ a.jsonl b.jsonl

    Test whether A is better than B: the difference in micro F1 with its interval and p, by a paired bootstrap.
    """
    inputs = _Inputs((gold, first, second), (None, None, None), documents, tag_names, max_chars, quiet)

    def pair_both(sides: Sequence[list[Document]]) -> tuple[Pairs, Pairs]:
        """Pair the gold documents with those of system A, and with those of system B."""
        golds, *others = sides
        a, b = (pair(golds, docs, layer=layer, predicted_layer=name) for docs, name in zip(others, names, strict=True))
        return a, b

    names = (a_layer, b_layer)
    a_pairs, b_pairs = inputs.fit(pair_both)
    result = compare_pairs(a_pairs, b_pairs, scheme=scheme, seed=seed)
    frame.emit(result.as_dict(), as_json=json, tables=[str(result)])
    _note_newest(a_pairs, "A", "--a-layer", quiet=quiet)
    _note_newest(b_pairs, "B", "--b-layer", quiet=quiet)
    if result.difference.p is None:
        frame.note(_ONE_DOCUMENT, quiet=quiet)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Gold and predictions, and how they are read. The first one is gold."""

    paths: tuple[Path, ...]
    formats: tuple[str | None, ...]
    documents: str | None
    tag_names: str
    max_chars: int
    quiet: bool

    def fit(self, use: Callable[[Sequence[list[Document]]], Found]) -> Found:
        """Read all inputs, and return `use(sides)`; on DataError, read again without automatic cutting, and retry.

        If column files were cut by default and then do not fit the other inputs, whose documents are whole files, they
        are read again as whole files.
        """
        documents = frame.documents_of(self.documents)
        sides, cut = self._read(documents)
        try:
            found = use(sides)
        except DataError:
            if documents != "auto" or not any(options.cut for options in cut):
                raise
            return use(self._read("file")[0])
        for options in cut[:1]:
            frame.note_cut(options, quiet=self.quiet)
        return found

    def _read(self, documents: str) -> tuple[list[list[Document]], list[ReadOptions]]:
        """Return each input's documents, cut by `documents`, and its options; ConfigError for unused --tag-names."""
        names, sides, used, named = frame.names_of_tags(self.tag_names), [], [], False
        for number, (path, form) in enumerate(zip(self.paths, self.formats, strict=True)):
            options = ReadOptions(max_chars=self.max_chars, documents=documents, lenient=number > 0)
            corpus = read(path, format=form, how=options)
            if names and by_name(corpus.format).can.names_tags:
                named = True
                options = ReadOptions(
                    max_chars=self.max_chars, documents=documents, lenient=number > 0, tag_names=names
                )
                corpus = read(path, format=form, how=options)
            sides.append(list(frame.progress(corpus, "documents", quiet=self.quiet)))
            used.append(options)
        if names and not named:
            raise ConfigError("--tag-names is for integer tags (hf, parquet), and no input can have any; leave it out")
        return sides, used


def _note_newest(pairs: Pairs, side: str, option: str, *, quiet: bool) -> None:
    """Print on stderr, if a side has several layers, that its newest was scored, and which option names another."""
    if pairs.several:
        frame.note(f"{side} has several layers beside gold; the newest is scored. {option} names another.", quiet=quiet)


def _parse_map(assignments: Iterable[str]) -> dict[str, str]:
    """Parse --map PREDICTED=GOLD into {predicted label: gold label}; raise ConfigError if it is malformed."""
    labels: dict[str, str] = {}
    for item in assignments:
        label, _, ours = item.partition("=")
        if not label or not ours:
            raise ConfigError(f"--map {item!r} is not PREDICTED=GOLD, such as PER=NAME, or PER=O to leave it out")
        labels[label] = ours
    return labels
