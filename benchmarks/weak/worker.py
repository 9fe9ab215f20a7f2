"""One process of the weak-supervision benchmark: one system on one sample.

`python -m benchmarks.weak.worker JOB` reads a job as JSON and leaves what was found (places and labels, no text), what
it cost, F1 by loop and, where there are soft labels, their squared error, in the job's folder under the sample's key.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.hmmdp.data import digest
from benchmarks.hmmdp.worker import FOUND, rss
from benchmarks.weak.data import GOLD, SOURCE, Sample, Texts, documents
from benchmarks.weak.systems import METHODS, System, Work
from chaffinch import Document
from chaffinch.weak.training.soft_labels import one_hot_tags

WARMING = 24, 12, 4  # documents to learn from, to stop with and to label, for compiling
# Embeddings of the public corpora, kept between runs; those of a corpus of the user's go with the run.
KEPT = Path(tempfile.gettempdir()) / f"chaffinch-bench-embeddings-{os.getuid()}"
COLD = ("rule", "peer", "embed", "supervised")  # methods that need no compiling, or whose cost hides it


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is told."""

    data: str
    folder: str
    system: System
    sample: Sample


@dataclass(frozen=True, slots=True)
class Result:
    """By way of labelling: spans of every document as (start, end, label), and squared errors of soft labels, if any.

    Costs by name; for every loop its number, and F1 of aggregator and student.
    """

    spans: dict[str, list[list[tuple[int, int, str]]]]
    errors: dict[str, list[float]]
    costs: dict[str, float]
    turns: list[tuple[int, float | None, float | None]] = field(default_factory=list)


def key(system: System, sample: Sample) -> str:
    """The name under which a system's results on a sample are kept."""
    return digest(msgspec.json.encode([system, sample]).decode())


def work(job: Job) -> None:
    """Does a job: compiles on a few documents, then learns and labels."""
    texts, folder = documents(Path(job.data), job.sample), Path(job.folder)
    method = METHODS[job.system.method]
    kept = folder / "embeddings" if job.sample.folder else KEPT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sources that never speak
        if job.system.method not in COLD:
            method(Work(few(texts), _quick(job.system), folder, kept))
        found = method(Work(texts, job.system, folder, kept))
    spans = {
        way: [[(span.start, span.end, span.label) for span in doc.layer(FOUND)] for doc in docs]
        for way, docs in found.ways.items()
    }
    errors = {way: squared(texts.test, docs) for way, docs in found.ways.items() if all(FOUND in d.soft for d in docs)}
    costs = {**found.costs, "tokens": float(sum(len(doc.tokens) for doc in texts.test)), "RSS MB": rss()}
    result = Result(spans, errors, costs, list(found.turns))
    (folder / key(job.system, job.sample)).write_bytes(msgspec.msgpack.encode(result))


def few(texts: Texts) -> Texts:
    """Some of the documents that have votes, enough to compile on."""
    learn, stop, test = WARMING
    voted = [doc for doc in texts.votes if any(spans for name, spans in doc.layers.items() if name.startswith(SOURCE))][
        :learn
    ]
    ids = {doc.id for doc in voted}
    train = [doc for doc in texts.train if doc.id in ids] or texts.train[:learn]
    known = [doc for doc in texts.known if doc.id in ids] or texts.known[:1]
    missing = [doc for doc in texts.votes if doc.id in {own.id for own in known} - ids]
    return Texts([*voted, *missing], train, texts.stop[:stop], texts.test[:test], known)


def squared(gold: Sequence[Document], found: Sequence[Document]) -> list[float]:
    """The squared error of each document's soft labels, summed over tokens and tags (Brier).

    A document's gold has labels that its soft labels know.
    """
    out = []
    for doc, own in zip(gold, found, strict=True):
        soft = own.soft[FOUND]
        names = [tag[2:] for tag in soft.labels if tag.startswith("B-")]
        known = replace(doc, layers={GOLD: tuple(span for span in doc.layer(GOLD) if span.label in names)})
        right = one_hot_tags(known, GOLD, names)
        order = [soft.labels.index(tag) for tag in right.labels]
        out.append(float(np.square(soft.values[:, order] - right.values).sum()))
    return out


def _quick(system: System) -> System:
    """The same with as few steps as will do."""
    less: dict[str, Any] = {"epochs": 1} if system.method == "conditional" else {}
    if system.method == "loops":
        less["loops"] = 1
    if "encoder" in system.fields:
        less["encoder"] = {**system.fields["encoder"], "epochs": 1}
    return replace(system, fields={**system.fields, **less})


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Job))
