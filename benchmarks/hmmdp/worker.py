"""One process of the HMM-DP benchmark: one system trained and run on one sample or several.

`python -m benchmarks.hmmdp.worker JOB` reads a job as JSON and leaves, for every sample, what was found (places and
labels, no text), what it cost, the model and, if asked for, the posteriors, in the job's folder under the sample's key.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

import chaffinch as cf
from benchmarks.hmmdp import rules
from benchmarks.hmmdp.data import Sample, as_categories, categories, digest, documents
from benchmarks.hmmdp.peers import CRF
from chaffinch import Alignment, Document, Tagger

ROUNDS = 3
SLOW = 30.0  # CPU seconds of a reading that is not repeated; the first also loads compiled kernels
FOUND = "found"
LANGUAGES = {"meddocan": "es", "grascco": "de"}  # packs of word lists; else English
ALIGNED = "aligned"  # in place of a decoder: the same model, one answer for a word of a patient


@dataclass(frozen=True, slots=True)
class System:
    """A method by name, one of its ready-made settings ("published"), and what is changed of it."""

    method: Literal["HMMDP", "Cascade", "CRF"]
    start: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    labels: Literal["types", "categories"] = "types"  # what it learns; types then follow by rules
    posteriors: bool = False
    decode: str = ""  # not trained: the same model, decoded otherwise
    align: bool = False  # learns alignment too, from readings by taggers that saw other patients

    def config(self, corpus: str = "meddocan") -> Any:
        """The config for a corpus; AttributeError, TypeError or ConfigError say that there is no such thing."""
        method = getattr(cf, self.method)
        made = getattr(method, self.start)() if self.start else method()
        language = (
            {"language": LANGUAGES.get(corpus, "en")} if any(one.name == "language" for one in fields(made)) else {}
        )
        return replace(made, private=False, **{**language, **self.fields})  # public notes; `bench deid` has its price

    def but(self, **changed: Any) -> System:
        """The same with other settings."""
        return replace(self, fields={**self.fields, **changed})


def key(system: System, sample: Sample) -> str:
    """The name under which a system's results on a sample are kept."""
    return digest(msgspec.json.encode([system, sample]).decode())


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is told."""

    data: str
    folder: str
    system: System
    samples: list[Sample]
    decoders: list[str] = field(default_factory=list)  # further readings by the same model


@dataclass(frozen=True, slots=True)
class Result:
    """Spans of every document as (start, end, label), and costs by name."""

    spans: list[list[tuple[int, int, str]]]
    costs: dict[str, float]


def spent(work: Callable[[], Any], *, rounds: int = 1) -> tuple[Any, float]:
    """What the work gives, and its CPU seconds; of several rounds, the middle."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
    return result, sorted(seconds)[rounds // 2]


def readings(tag: Callable[[], list[Document]], tokens: int) -> tuple[list[Document], float]:
    """The tagged documents, and tokens per CPU second: the middle of three readings, or one if it is slow."""
    found, first = spent(tag)
    rates = [tokens / max(first, 1e-9)]
    if first < SLOW:
        rates = sorted(tokens / max(spent(tag)[1], 1e-9) for _ in range(ROUNDS))
    return found, rates[len(rates) // 2]


def rss() -> float:
    """The most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def unlabelled(train: list[Document], test: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """The same, but nobody can look at what the documents to tag hold."""
    return train, [replace(doc, layers={}) for doc in test]


def ours(job: Job, sample: Sample) -> None:
    """Trains, saves, loads and tags; then tags by the other decoders, if there are any."""
    folder, name = Path(job.folder), key(job.system, sample)
    train, test = unlabelled(*documents(Path(job.data), sample))
    if job.system.labels == "categories":
        table = categories(Path(job.data), sample.corpus)
        learnt, fine = as_categories(train, "gold", table), rules.learn(train, table)
    else:
        learnt, fine = train, None
    config, path = job.system.config(sample.corpus), folder / f"{name}.cfm"
    align = Alignment("recall") if job.system.align else None
    tagger, seconds = spent(lambda: cf.train(learnt, config, layer="gold", align=align))
    tagger.save(path)
    tagger = cf.load(path)
    tokens, memory = sum(len(doc.tokens) for doc in test), rss()
    found, rate = readings(lambda: list(tagger.annotate(test, layer=FOUND)), tokens)
    if fine is not None:
        found = [doc.with_layer(FOUND, fine(doc, doc.layer(FOUND))) for doc in found]
    if job.system.posteriors:
        keep_posteriors(folder / f"{name}.npz", list(tagger.posteriors(test, name=FOUND)))
    costs = {"train CPU s": seconds, "tokens per CPU s": rate, "MB": path.stat().st_size / 1e6, "RSS MB": memory}
    keep(folder / name, found, costs)
    if align is not None:
        docs, rate = readings(lambda: list(tagger.annotate(test, layer=FOUND, align="recall")), tokens)
        keep(folder / key(replace(job.system, decode=ALIGNED), sample), docs, {**costs, "tokens per CPU s": rate})
    for decoder in job.decoders:
        other = _decoding(tagger, decoder)
        found, rate = readings(lambda: list(other.annotate(test, layer=FOUND)), tokens)  # noqa: B023  (used at once)
        keep(folder / key(replace(job.system, decode=decoder), sample), found, {"tokens per CPU s": rate})


def _decoding(tagger: Tagger, decoder: str) -> Tagger:
    """The tagger with another way of decoding."""
    model: Any = tagger.model
    return replace(tagger, model=replace(model, config=replace(model.config, decode=decoder)))


def peer(job: Job, sample: Sample) -> None:
    """The same for the peer: extraction and training, tagging with extraction."""
    train, test = unlabelled(*documents(Path(job.data), sample))
    system = CRF(**job.system.fields)
    _, seconds = spent(lambda: system.train(train))
    tokens = sum(len(doc.tokens) for doc in test)
    found, rate = readings(lambda: [doc.with_layer(FOUND, system.tag(doc)) for doc in test], tokens)
    costs = {"train CPU s": seconds, "tokens per CPU s": rate, "MB": system.size / 1e6, "RSS MB": rss()}
    keep(Path(job.folder) / key(job.system, sample), found, costs)


def keep(path: Path, found: Sequence[Document], costs: dict[str, float]) -> None:
    """Writes what was found and what it cost."""
    spans = [[(span.start, span.end, span.label) for span in doc.layer(FOUND)] for doc in found]
    path.write_bytes(msgspec.msgpack.encode(Result(spans, costs)))


def keep_posteriors(path: Path, docs: Sequence[Document]) -> None:
    """Writes the distributions of all tokens, one document after another, and their labels."""
    values = np.concatenate([doc.soft[FOUND].values for doc in docs]).astype(np.float32)
    np.savez(path, values=values, labels=np.array(docs[0].soft[FOUND].labels))


def warm(job: Job) -> None:
    """Compiles what training and tagging need, on a dozen notes and as few passes as the config allows."""
    train, test = documents(Path(job.data), job.samples[0])
    config = job.system.config(job.samples[0].corpus)
    few = {one.name: 1 for one in fields(config) if one.name in ("passes", "epochs")}
    list(cf.train(train[:12], replace(config, **few), layer="gold").posteriors(test[:2]))


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1], type=Job)
    if asked.system.method != "CRF":
        warm(asked)
    for one in asked.samples:
        (peer if asked.system.method == "CRF" else ours)(asked, one)
