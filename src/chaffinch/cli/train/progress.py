"""What `chaffinch train` tells people: one live line while it learns, and a summary when it has learnt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress as Live
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from chaffinch.cli import common as frame
from chaffinch.evaluate import Pair, Pairs, score
from chaffinch.models.core.training import Progress
from chaffinch.models.registry import method_of
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document

_NOT_SAID = ("documents with a patient", "interrupted", "lost")  # in the table; they are in the JSON
_BY_FOLDS = ("first readings", "jack-knife", "calibration", "held out")  # parts that count folds and have no loss
_PASSES = "passes"  # the part that raises a bound
_CLIMB = "kappa "  # parts that climb a likelihood, by the penalty's weight


@contextmanager
def live_line(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Who is told how far learning is: one line on a terminal, else nobody."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    begun: dict[str, float] = {}
    now = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Live(*columns, console=console, transient=True) as live:
        task = live.add_task("looking for features", total=None)

        def tell(step: Progress) -> None:
            nonlocal now
            since = begun.setdefault(step.part, now)
            now = time.monotonic()
            live.update(task, description=progress_line(step, now - since))

        yield tell


def progress_line(now: Progress, seconds: float) -> str:
    """How far learning is, in words; `seconds` have passed since the part began, and the seconds left are the part's.

    >>> progress_line(Progress("reading", 2, 8, 0.25, 0.9), 3.0)
    'reading · epoch 2/8 · loss 0.25 · dev F1 0.900 · 9 s left'
    >>> progress_line(Progress("passes", 5, 20, 25124.3), 2.0)
    'passes 5/20 · bound -25,124 · 6 s left'
    """
    done = f"{now.epoch}/{now.epochs}"
    if now.part in _BY_FOLDS:
        said = [now.part, f"fold {done}"]
    elif now.part == _PASSES:  # the loss is minus the bound
        said = [f"{now.part} {done}", f"bound {-now.loss:,.0f}"]
    elif now.part.startswith(_CLIMB):
        said = [now.part, f"evaluation {done}", f"loss {now.loss:.3g} per token"]
    else:
        said = [now.part, f"epoch {done}", f"loss {now.loss:.2g}"]
    if now.score is not None:
        said.append(f"dev F1 {now.score:.3f}")
    if now.epoch < now.epochs:
        said.append(f"{seconds / now.epoch * (now.epochs - now.epoch):.0f} s left")
    return " · ".join(said)


def dev_score(tagger: Tagger, dev: Sequence[Document], layer: str | None) -> dict[str, Any] | None:
    """Precision, recall and F1 on the dev documents, if there are any."""
    if not dev:
        return None
    tagged = tagger.annotate(dev)
    pairs = [Pair(doc, doc.layer(layer), own.layers[tagger.layer], False) for doc, own in zip(dev, tagged, strict=True)]
    found = score(Pairs(tuple(pairs), 0, 0), intervals=False).micro
    return {"documents": len(dev), "precision": found.precision, "recall": found.recall, "f1": found.f1}


def facts_of(tagger: Tagger, documents: Sequence[Document], spans: int, output: Path) -> dict[str, Any]:
    """What was learnt from, and what came of it."""
    config = tagger.model.config
    method = method_of(config)
    return {
        "model": str(output),
        "method": tagger.manifest.kind,
        "documents": len(documents),
        "patients": len({doc.patient for doc in documents}),
        "documents with a patient": sum(doc.group is not None for doc in documents),
        "labels": list(tagger.labels),
        "spans": spans,
        "tokens": sum(len(doc.tokens) for doc in documents),
        **method.facts(tagger.model),
        "megabytes": round(output.stat().st_size / 1e6, 3),
        "vocabulary floor": tagger.manifest.vocabulary_floor,
        **({"private": getattr(config, "private", None)} if method.has_setting("private") else {}),
        "interrupted": bool(tagger.manifest.metrics.get("interrupted")),
    }


def summary(facts: Mapping[str, Any]) -> Iterator[Table | str]:
    """The facts as a table, in words, and what reading could not keep."""
    said = {key: value for key, value in facts.items() if key not in _NOT_SAID}
    if not facts["documents with a patient"]:
        said["patients"] = f"{facts['patients']:,} (each document counts as one; see --group)"
    said["labels"] = ", ".join(facts["labels"])
    said["vocabulary floor"] = _counted(facts["vocabulary floor"], "patient")
    if "private" in facts:
        said["private"] = said_of_privacy(facts["private"])
    if "symbols" in facts:
        symbols, own = facts["symbols"], facts["sub-tags"]
        said["symbols"] = f"{_counted(symbols['words'], 'word')}, {_counted(symbols['signatures'], 'signature')}"
        said["sub-tags"] = (
            f"{own['O']} of O, {own['others']} of every other tag; {own['in use']} of {own['in all']} in use"
        )
    if "states" in facts:
        own = facts["states"]
        said["states"] = f"{own['O']} of O, {own['others']} of every other class; {own['in all']} in all"
    held = facts.get("held-out log-likelihood per token")
    if held is not None:
        said["held-out log-likelihood per token"] = ", ".join(f"{value} {name}" for name, value in held.items())
    dev = facts["dev"]
    if dev is None:
        del said["dev"]
    else:
        scores = f"precision {dev['precision']:.3f}, recall {dev['recall']:.3f}, F1 {dev['f1']:.3f}"
        said["dev"] = f"{scores} on {_counted(dev['documents'], 'document')}"
    yield frame.facts_table(said)
    if facts["lost"]:
        yield ""
        yield frame.table_of([{"not kept": what, "times": number} for what, number in sorted(facts["lost"].items())])


def said_of_privacy(private: bool) -> str:
    """Return what a table says of a model that is private, or is not."""
    return "yes: no words from inside spans" if private else "no"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
