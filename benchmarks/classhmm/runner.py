"""Runs systems on samples, each system in a process of its own and each fit once, and reads back what they found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import _folder
from benchmarks.classhmm.data import Sample, documents, files
from benchmarks.classhmm.worker import Job, System, key
from benchmarks.hmmdp.peers import PIP
from benchmarks.hmmdp.worker import FOUND, Result
from chaffinch import Document, Span
from chaffinch.models.classhmm.describe.report import Roles


def launch(job: Job) -> None:
    """Does a job in a process of its own."""
    _folder.launch("classhmm.worker", job)


class Runner(_folder.Folder):
    """The fits of one run of the benchmark, kept in a folder that goes when it ends: `with Runner(data) as runner`."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.documents = lru_cache(maxsize=8)(lambda sample: documents(self.data, sample))

    def absent(self, system: System, samples: Iterable[Sample]) -> str:
        """Why a system cannot be run on samples, or nothing."""
        missing = {name for sample in samples for name in files(sample) if not (self.data / name).exists()}
        if missing:
            return f"no {', '.join(sorted(missing))} in the folder of the corpora"
        if system.method == "CRF":
            try:
                import pycrfsuite  # noqa: F401
            except ImportError:
                return PIP
        return ""

    def found(self, system: System, samples: Sequence[Sample]) -> tuple[list[Document], dict[str, float]]:
        """The tagged documents of all samples, with the layer "found", and the costs; training times are added up."""
        new = [sample for sample in samples if not (self.folder / key(system, sample)).exists()]
        if new:
            launch(Job(str(self.data), str(self.folder), system, new))
        out: list[Document] = []
        costs: list[dict[str, float]] = []
        for sample in samples:
            result = msgspec.msgpack.decode((self.folder / key(system, sample)).read_bytes(), type=Result)
            for doc, spans in zip(self.documents(sample).test, result.spans, strict=True):
                out.append(doc.with_layer(FOUND, [Span(*span) for span in spans]))
            costs.append(result.costs)
        total = {name: float(np.median([one[name] for one in costs])) for name in costs[0]}
        return out, total | {"train CPU s": sum(one["train CPU s"] for one in costs)}

    def roles(self, system: System, sample: Sample) -> Roles:
        """How the states of the label that the system shows follow roles, measured on the tagged documents."""
        self.found(system, [sample])
        return msgspec.json.decode((self.folder / f"{key(system, sample)}.roles").read_bytes(), type=Roles)
