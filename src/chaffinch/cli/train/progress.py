"""What `chaffinch train` shows: one live line while it learns, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress as Live
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from chaffinch.cli.frame.results import DevScore, TrainResult
from chaffinch.evaluate import Pair, Pairs, score
from chaffinch.models.core.training import Progress
from chaffinch.models.registry import method_of
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document

_BY_FOLDS = ("first readings", "jack-knife", "calibration", "held out")  # parts that count folds and have no loss
_PASSES = "passes"  # the part that raises a bound
_CLIMB = "kappa "  # parts that climb a likelihood, by the penalty's weight


@contextmanager
def live_line(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a callback that shows training progress on one line of stderr; None if quiet or stderr is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    began: dict[str, float] = {}
    now = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Live(*columns, console=console, transient=True) as live:
        task = live.add_task("looking for features", total=None)

        def show(step: Progress) -> None:
            """Update the line with a step's progress, and the time since its part began."""
            nonlocal now
            since = began.setdefault(step.part, now)
            now = time.monotonic()
            live.update(task, description=progress_line(step, now - since))

        yield show


def progress_line(now: Progress, seconds: float) -> str:
    """Return a step's progress as text: part, epoch, loss or bound, dev F1, and the seconds left in its part.

    >>> progress_line(Progress("reading", 2, 8, 0.25, 0.9), 3.0)
    'reading · epoch 2/8 · loss 0.25 · dev F1 0.900 · 9 s left'
    >>> progress_line(Progress("passes", 5, 20, 25124.3), 2.0)
    'passes 5/20 · bound -25,124 · 6 s left'
    """
    done = f"{now.epoch}/{now.epochs}"
    if now.part in _BY_FOLDS:
        words = [now.part, f"fold {done}"]
    elif now.part == _PASSES:  # the loss is minus the bound
        words = [f"{now.part} {done}", f"bound {-now.loss:,.0f}"]
    elif now.part.startswith(_CLIMB):
        words = [now.part, f"evaluation {done}", f"loss {now.loss:.3g} per token"]
    else:
        words = [now.part, f"epoch {done}", f"loss {now.loss:.2g}"]
    if now.score is not None:
        words.append(f"dev F1 {now.score:.3f}")
    if now.epoch < now.epochs:
        words.append(f"{seconds / now.epoch * (now.epochs - now.epoch):.0f} s left")
    return " · ".join(words)


def dev_score(tagger: Tagger, dev: Sequence[Document], layer: str | None) -> DevScore | None:
    """Return precision, recall and F1 of a tagger on the dev documents; None if there are none."""
    if not dev:
        return None
    tagged = tagger.annotate(dev)
    pairs = [Pair(doc, doc.layer(layer), out.layers[tagger.layer], False) for doc, out in zip(dev, tagged, strict=True)]
    micro = score(Pairs(tuple(pairs), 0, 0), intervals=False).micro
    return DevScore(documents=len(dev), precision=micro.precision, recall=micro.recall, f1=micro.f1)


def result_of(
    tagger: Tagger, documents: Sequence[Document], output: Path, *, spans: int, sentences: str, dev: DevScore | None,
    seconds: float, lost: dict[str, int],
) -> TrainResult:  # fmt: skip
    """Return the result of `train`: sizes of data and model, dev scores, seconds, losses."""
    config = tagger.model.config
    method = method_of(config)
    return TrainResult(
        model=str(output),
        method=tagger.manifest.kind,
        documents=len(documents),
        patients=len({doc.patient for doc in documents}),
        documents_with_patient=sum(doc.group is not None for doc in documents),
        labels=list(tagger.labels),
        spans=spans,
        tokens=sum(len(doc.tokens) for doc in documents),
        size=dict(method.facts(tagger.model)),
        megabytes=round(output.stat().st_size / 1e6, 3),
        vocabulary_floor=tagger.manifest.vocabulary_floor,
        private=getattr(config, "private", None) if method.has_setting("private") else None,
        calibrated=tagger.calibrated,
        sentences=sentences,
        dev=dev,
        interrupted=bool(tagger.manifest.metrics.get("interrupted")),
        seconds=seconds,
        lost=lost,
    )
