"""Run one system on the notes of a split, in a process of its own.

What comes back is counts and CPU seconds, no text. The packaged model is run as it is at every setting of the dial, the
notes of a patient together, as `chaffinch deid --group-by` reads them; the CRF learns from the notes of the train
writers. Costs are CPU seconds of this process, warm: reading files, loading and compiling come before. The first
setting of the packaged model meets the words of the notes for the first time; later ones remember them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.deid import peers
from benchmarks.deid.worker import DEFAULT, MODEL, bare, found
from benchmarks.deid.writers.corpus import Split, read_notes, read_second_marks
from benchmarks.deid.writers.counts import NoteCounts, count_note
from benchmarks.deid.writers.voices import score_voices
from benchmarks.hmmdp.worker import spent
from chaffinch import Document, Span
from chaffinch.deid.detect.model import load

OURS: Final = "chaffinch"
VOICES: Final = "voices"  # of the packaged model, each alone, in pairs and all
READER: Final = "second reader"  # what a person-like reader of the plain text marked, against the settled marks
RECALLS: Final = (0.95, 0.97, 0.98, 0.99, 0.995)
SAFE: Final = 0.995
_WARM: Final = 20  # notes of train writers that are read before costs are taken


class SystemJob(msgspec.Struct, frozen=True):
    """Which system to run on which notes, and where its result goes."""

    system: str
    split: Split
    notes: str
    out: str


class SystemResult(msgspec.Struct, frozen=True):
    """The counts of every note at one setting of a system, and its costs."""

    setting: str
    notes: list[NoteCounts]
    seconds: float
    training: float = 0.0
    asked: float | None = None
    expected: float | None = None  # the recall that the model says to expect on notes of unseen writers
    promised: float | None = None  # the recall that it promises with 90 % confidence
    typed: bool = True  # whether its types are those of the guideline


def run_system(job: SystemJob) -> list[SystemResult]:
    """Return what a system does on the notes, one result per setting."""
    folder = Path(job.notes)
    docs = read_notes(job.split, folder)
    if job.system == OURS:
        return list(_run_ours(docs, folder))
    if job.system == VOICES:
        return [
            _result(f"{names}, words at recall {level}", docs, spans, 0.0, typed=False)
            for names, level, spans in score_voices(load(os.environ.get(MODEL, DEFAULT)), docs)
        ]
    if job.system == READER:
        marks = read_second_marks(job.split, folder)
        return [_result(READER, docs, [marks.get(doc.id, []) for doc in docs], 0.0)]
    if job.system == peers.TRAINED:
        tag, training = spent(lambda: peers.trained(read_notes("train", folder)))
        spans, seconds = spent(lambda: [tag(doc) for doc in bare(docs)])
        return [_result(job.system, docs, spans, seconds, training=training)]
    find = peers.finder(job.system)
    places, seconds = spent(lambda: [find(doc.text) for doc in docs])
    spans = [[Span(start, end, "PHI") for start, end in sorted(edges)] for edges in places]
    return [_result(job.system, docs, spans, seconds, typed=False)]


def _run_ours(docs: Sequence[Document], notes: Path) -> Iterator[SystemResult]:
    whole = load(os.environ.get(MODEL, DEFAULT))
    for model, fast in ((whole, ""), (whole.fast(), ", fast"))[: 1 if whole.context is None else 2]:
        found(model, read_notes("train", notes)[:_WARM])  # compiles
        for asked in (None, *RECALLS):
            spans, seconds = spent(partial(found, model, docs, asked))
            setting = "balanced" if asked is None else f"recall {asked}"
            said = model.dial.outlook(asked)
            more = {"asked": asked, "expected": said.expected, "promised": said.promised}
            yield _result(setting + fast, docs, spans, seconds, **more)


def _result(
    setting: str, docs: Sequence[Document], spans: Sequence[Sequence[Span]], seconds: float, **more: Any
) -> SystemResult:
    counted = [count_note(doc, each) for doc, each in zip(docs, spans, strict=True)]
    return SystemResult(setting, counted, seconds, **more)


def read_results(path: Path) -> list[SystemResult]:
    """Return the results that a process has left."""
    return msgspec.json.decode(path.read_bytes(), type=list[SystemResult])
