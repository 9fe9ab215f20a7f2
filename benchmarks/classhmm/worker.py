"""One process of the class HMM's benchmark: one system trained and run on one sample or several.

`python -m benchmarks.classhmm.worker JOB` reads a job as JSON and leaves, for every sample, what was found (places and
labels, no text), what it cost and, if asked for, how states follow roles, in the job's folder under the sample's key.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

import chaffinch as cf
from benchmarks.classhmm.data import Sample, Texts, documents
from benchmarks.hmmdp.data import digest
from benchmarks.hmmdp.worker import FOUND, keep, readings, rss, spent, unlabelled
from benchmarks.tagger.peers import PEERS
from chaffinch import Cascade, ClassHMM, Tagger
from chaffinch.models.classhmm.describe import states as substructure

WARMING = 12, 60  # documents, or sentences, to compile on


@dataclass(frozen=True, slots=True)
class System:
    """A method by name and all its settings."""

    method: Literal["ClassHMM", "Cascade", "CRF"]
    fields: dict[str, Any] = field(default_factory=dict)
    shown: str = ""  # the label whose sub-structure is measured

    @classmethod
    def of(cls, config: ClassHMM | Cascade, *, shown: str = "") -> System:
        """The system of a config."""
        return cls("ClassHMM" if isinstance(config, ClassHMM) else "Cascade", asdict(config), shown)

    def config(self) -> Any:
        """The config."""
        return msgspec.convert(self.fields, getattr(cf, self.method))

    def but(self, **changed: Any) -> System:
        """The same with other settings."""
        return replace(self, fields={**self.fields, **changed})


PEER = System("CRF")


def key(system: System, sample: Sample) -> str:
    """The name under which a system's results on a sample are kept."""
    return digest(msgspec.json.encode([system, sample]).decode())


def fit_key(system: System, sample: Sample) -> str:
    """The name of a fit: the decoder, and which text of CoNLL-2003 is tagged, change no weight."""
    fields = {name: value for name, value in system.fields.items() if name != "decode"}
    split = "" if sample.corpus == "conll2003" else sample.split
    return digest(msgspec.json.encode([system.method, fields, asdict(sample) | {"split": split}]).decode())


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is told."""

    data: str
    folder: str
    system: System
    samples: list[Sample]


def work(job: Job) -> None:
    """Trains and tags every sample of a job."""
    if job.system.method != "CRF":
        warm(job)
    for sample in job.samples:
        (peer if job.system.method == "CRF" else ours)(job, sample)


def warm(job: Job) -> None:
    """Compiles what training and tagging need, on a few documents and in as few steps as the config allows."""
    texts, config = documents(Path(job.data), job.samples[0]), job.system.config()
    some = WARMING[job.samples[0].tagged > 0]
    few = {one.name: 2 for one in fields(config) if one.name in ("evaluations", "epochs")}
    tagger = learn(Texts(texts.train[:some], texts.untagged[:some], []), replace(config, **few))
    tagger.annotate(texts.test[:2]).load()


def ours(job: Job, sample: Sample) -> None:
    """Trains unless a system with another decoder did, saves, loads and tags."""
    folder, name, config = Path(job.folder), key(job.system, sample), job.system.config()
    texts, path = documents(Path(job.data), sample), folder / f"{fit_key(job.system, sample)}.cfm"
    _, test = unlabelled([], texts.test)
    if not path.exists():
        trained, seconds = spent(lambda: learn(texts, config))
        trained.save(path)
        path.with_suffix(".seconds").write_text(repr(seconds), encoding="utf-8")
    tagger, seconds = cf.load(path), float(path.with_suffix(".seconds").read_text(encoding="utf-8"))
    if isinstance(config, ClassHMM):
        read_by = replace(tagger.model.config, decode=config.decode)
        tagger = replace(tagger, model=replace(tagger.model, config=read_by))
    memory, tokens = rss(), sum(len(doc.tokens) for doc in test)
    found, rate = readings(lambda: list(tagger.annotate(test, layer=FOUND)), tokens)
    costs = {"train CPU s": seconds, "tokens per CPU s": rate, "MB": path.stat().st_size / 1e6, "RSS MB": memory}
    if job.system.shown:
        told = substructure.measure(tagger.model, texts.test, layer="gold")[job.system.shown]
        (folder / f"{name}.roles").write_bytes(msgspec.json.encode(told))
    keep(folder / name, found, costs | climb(tagger))


def climb(tagger: Tagger) -> dict[str, float]:
    """Where the climb of a class HMM ended, and what held-out text says of its states; nothing for other methods."""
    if not isinstance(tagger.model.config, ClassHMM):
        return {}
    portrait = tagger.model.portrait  # type: ignore[attr-defined]  # the protocol of models knows of none
    out = {"objective": float(portrait.trace[-1]), "steps": float(len(portrait.trace))}
    names = ("held out", "held out, one state")
    return out | dict(zip(names, portrait.held_out.tolist(), strict=False))


def learn(texts: Texts, config: ClassHMM | Cascade) -> Tagger:
    """The tagger of tagged documents, and of those without tags, if there are any."""
    return cf.train(texts.train, replace(config, private=False), layer="gold", untagged=texts.untagged)  # public news


def peer(job: Job, sample: Sample) -> None:
    """The same for the peer: extraction and training, tagging with extraction."""
    texts, system = documents(Path(job.data), sample), PEERS["crfsuite"](**job.system.fields)
    _, test = unlabelled([], texts.test)
    _, seconds = spent(lambda: system.train(texts.train))
    tokens = sum(len(doc.tokens) for doc in test)
    found, rate = readings(lambda: [doc.with_layer(FOUND, system.tag(doc)) for doc in test], tokens)
    costs = {"train CPU s": seconds, "tokens per CPU s": rate, "MB": system.size / 1e6, "RSS MB": rss()}
    keep(Path(job.folder) / key(job.system, sample), found, costs)


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Job))
