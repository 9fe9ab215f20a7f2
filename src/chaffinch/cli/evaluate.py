"""`chaffinch evaluate` and `chaffinch compare`: predictions beside gold, in any two readable formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import common as frame
from chaffinch.errors import ConfigError, GateError
from chaffinch.evaluate import SCHEMES, compare, html, pair, score
from chaffinch.text import Corpus
from chaffinch.text.formats import ReadOptions, read
from chaffinch.text.formats.base import atomic_output, write_text

Gold = Annotated[Path, typer.Argument(metavar="GOLD", help="The right answers, in any readable format.")]
Schemes = Annotated[list[str], typer.Option("--scheme", help=f"{', '.join(SCHEMES)}; may be given several times.")]
GoldLayer = Annotated[str | None, typer.Option("--layer", help="Layer of GOLD; default: gold, or the only one.")]
Seed = Annotated[int, typer.Option(help="Seed of the drawn intervals.")]


def evaluate_command(
    gold: Gold,
    predicted: Annotated[Path, typer.Argument(metavar="PRED", help="The predictions, in any readable format.")],
    scheme: Schemes = ["strict"],  # noqa: B006  (typer copies it)
    layer: GoldLayer = None,
    pred_layer: Annotated[str | None, typer.Option(help="Layer of PRED; default: the only one beside gold.")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="Format of GOLD.")] = None,
    pred_from: Annotated[str | None, typer.Option(help="Format of PRED.")] = None,
    report: Annotated[Path | None, typer.Option("--html", help="Write a report, one HTML file.")] = None,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="List mistakes with their words in the report.")
    ] = False,
    fail_under: Annotated[float | None, typer.Option(help="Exit with 4 if micro F1 is below.", min=0, max=1)] = None,
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
    pairs = pair(
        _documents(gold, from_, max_chars, quiet=quiet),
        _documents(predicted, pred_from, max_chars, quiet=quiet),
        layer=layer,
        predicted_layer=pred_layer,
    )
    scores = score(pairs, scheme=scheme, seed=seed)
    if report is not None:
        with atomic_output(report) as beside:
            write_text(beside, html(scores, pairs, title=f"{predicted.name} against {gold.name}", with_text=with_text))
        frame.note(f"wrote {report}", quiet=quiet)
    frame.emit(scores.as_dict(), as_json=json, tables=[str(scores)])
    if fail_under is not None and scores.micro.f1 < fail_under:
        raise GateError(f"micro F1 {scores.micro.f1:.4f} is below --fail-under {fail_under}")


def compare_command(
    gold: Gold,
    first: Annotated[Path, typer.Argument(metavar="A", help="Predictions of one system.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Predictions of the other.")],
    scheme: Annotated[str, typer.Option(help=", ".join(SCHEMES))] = "strict",
    layer: GoldLayer = None,
    a_layer: Annotated[str | None, typer.Option(help="Layer of A; default: the only one beside gold.")] = None,
    b_layer: Annotated[str | None, typer.Option(help="Layer of B; default: the only one beside gold.")] = None,
    seed: Seed = 0,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch compare gold/ a.jsonl b.jsonl

    Test whether A is better than B: the difference in micro F1 with its interval and p, by a paired bootstrap.
    """
    corpora = [_documents(path, None, max_chars, quiet=quiet) for path in (gold, first, second)]
    result = compare(*corpora, scheme=scheme, layer=layer, predicted_layers=(a_layer, b_layer), seed=seed)
    frame.emit(result.as_dict(), as_json=json, tables=[str(result)])


def _documents(path: Path, form: str | None, max_chars: int, *, quiet: bool) -> Corpus:
    corpus = read(path, format=form, how=ReadOptions(max_chars=max_chars))
    return Corpus(lambda: frame.progress(corpus, "documents", quiet=quiet), corpus.format)
