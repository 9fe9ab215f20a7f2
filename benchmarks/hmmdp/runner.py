"""Runs systems on samples, each system in processes of its own and each fit once, and reads back what they found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks._folder import ROOT, Folder
from benchmarks.hmmdp.data import Sample, documents
from benchmarks.hmmdp.peers import PIP
from benchmarks.hmmdp.worker import FOUND, Job, Result, System, key
from chaffinch import Document, Soft, Span
from chaffinch.errors import ConfigError


class Runner(Folder):
    """The fits of one run of the benchmark, kept in a folder that goes when it ends: `with Runner(data) as runner`."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.documents = lru_cache(maxsize=8)(lambda sample: documents(self.data, sample))

    def absent(self, system: System) -> str:
        """Why a system cannot be run, or nothing."""
        if system.method == "CRF":
            try:
                import pycrfsuite  # noqa: F401
            except ImportError:
                return PIP
            return ""
        try:
            system.config()
        except (AttributeError, TypeError, ConfigError) as error:
            return str(error)
        return ""

    def fit(self, system: System, samples: Iterable[Sample], decoders: Sequence[str] = ()) -> None:
        """Trains and tags where that was not done before."""
        asked = [replace(system, decode=name) for name in ("", *decoders)]
        new = [s for s in samples if not all((self.folder / key(one, s)).exists() for one in asked)]
        if not new:
            return
        job = Job(str(self.data), str(self.folder), system, new, list(decoders))
        told = msgspec.json.encode(job).decode()
        command = [sys.executable, "-m", "benchmarks.hmmdp.worker", told]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True, check=True)

    def found(self, system: System, samples: Sequence[Sample]) -> tuple[list[Document], dict[str, float]]:
        """The tagged documents of all samples, with the layer "found", and the costs; training times are added up."""
        if not system.decode:
            self.fit(system, samples)
        out: list[Document] = []
        costs: list[dict[str, float]] = []
        for sample in samples:
            result = msgspec.msgpack.decode((self.folder / key(system, sample)).read_bytes(), type=Result)
            docs = self.documents(sample)[1]
            for doc, spans in zip(docs, result.spans, strict=True):
                out.append(doc.with_layer(FOUND, [Span(*span) for span in spans]))
            costs.append(result.costs)
        names = list(costs[0])
        total: dict[str, float] = {name: float(np.median([one[name] for one in costs])) for name in names}
        if "train CPU s" in total:
            total["train CPU s"] = sum(one["train CPU s"] for one in costs)
        return out, total

    def posteriors(self, system: System, sample: Sample) -> list[Document]:
        """The tagged documents with the layer "found" and the distributions of that name."""
        docs, _ = self.found(system, [sample])
        with np.load(self.folder / f"{key(system, sample)}.npz") as held:
            values, labels = held["values"].astype(np.float64), tuple(held["labels"].tolist())
        cuts = np.cumsum([len(doc.tokens) for doc in docs])[:-1]
        parts = np.split(values, cuts)
        return [doc.with_soft(FOUND, Soft(labels, own)) for doc, own in zip(docs, parts, strict=True)]


def aligned(docs: Sequence[Document]) -> list[Document]:
    """The documents with one answer per repeated word, by the alignment that comes with the package.

    They have spans and distributions called "found"; the answer takes the place of the spans.
    """
    alignment: Any = _alignment()
    return list(alignment.align(docs, alignment.Model.default(), layer=FOUND))


def alignment_absent() -> str:
    """Why there is no alignment, or nothing."""
    try:
        _alignment()
    except ImportError as error:
        return str(error)
    return ""


def _alignment() -> Any:
    import importlib

    return importlib.import_module("chaffinch.models.alignment.model")
