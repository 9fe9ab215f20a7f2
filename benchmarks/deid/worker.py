"""One process of the de-identification benchmark: `python -m benchmarks.deid.worker JOB` reads a job as JSON.

What comes back (counts and costs, no text) is written as JSON to the job's file; models are left in its folder for
later jobs. Costs are CPU seconds of this process with compiled kernels warm.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

import chaffinch as cf
from benchmarks.deid import data as notes
from benchmarks.deid import dates, peers
from benchmarks.deid.scores import Tally, tally
from benchmarks.hmmdp.worker import FOUND, spent
from chaffinch import Document, Span
from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import RECALLS, Dial
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release import replace as acting
from chaffinch.deid.training.learn import DetectorLesson, learn, names_in, with_lists
from chaffinch.errors import ModelError
from chaffinch.kernels.bytes_product import has_byte_products, multiply, pack, to_bytes

Job: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]

SAFE = 0.995
DEFAULT = "deid-en"
MODEL = "CHAFFINCH_BENCH_MODEL"  # names a model file to score in place of the packaged one
ROUNDS = 5
RUN_PATIENTS = 400  # of a whole run, with five notes each
TIMES = 100  # products that are timed together


def bare(docs: Sequence[Document]) -> list[Document]:
    """The documents without anything that is known of them."""
    return [replace(doc, layers={}) for doc in docs]


def found(
    model: Model, docs: Sequence[Document], recall: float | None = None, lists: WordLists | None = None
) -> list[list[Span]]:
    """What a model finds in documents, those of a patient together, as the command reads them."""
    detect = HybridDetector(model, recall, by_patient=True, lists=lists or word_lists())
    return [list(doc.layer(LAYER)) for doc in detect(bare(docs))]


def meddocan(job: Job) -> Answer:
    """A detector for Spanish, learnt as `deid adapt --model none --language es` does: both taggers or one, with a dial.

    It is private, or words of identifiers may be features.
    """
    train, held, test = notes.meddocan(Path(job["data"]), job["split"])
    whole = DetectorLesson.for_other_languages("es")
    chosen = [own for own in whole.configs if job["method"] in ("both", type(own).__name__)]
    lesson = replace(whole, configs=tuple(replace(own, private=job["private"]) for own in chosen))
    learn(train[:12], held[:2], lesson=lesson)  # compiles
    model, seconds = spent(lambda: learn(train, held, lesson=lesson))
    decoded = [
        doc.with_layer(FOUND, own) for doc, own in zip(test, found(replace(model, dial=Dial()), test), strict=True)
    ]
    gold = cf.evaluate(test, decoded, scheme="meddocan", layer="gold", predicted_layer=FOUND)
    return {
        "strict F1": gold.micro.f1, "interval": gold.micro.f1_interval, "train CPU s": seconds,
        "balanced": tally(test, found(model, test)), "safe": tally(test, found(model, test, SAFE)),
    }  # fmt: skip


def english(job: Job) -> Answer:
    """The default's recipe without the corpus or sites of a fold, on these, with lists that lack their names."""
    data = Path(job["data"])
    train, test = notes.english(data, job["fold"], job["split"])
    prose = notes.prose(data)
    lists = word_lists(hidden=names_in(test, "gold"))
    model, seconds = spent(lambda: learn(train, lesson=DetectorLesson.for_invented_notes(), lists=lists))
    model.save(Path(job["folder"]) / f"{job['fold']}.cfm")
    answer: Answer = {"train CPU s": seconds}
    systems = {"": model, "whole ": _with_packaged(model)} if job["fold"] in notes.CORPORA else {"": model}
    for system, chosen in systems.items():
        for name, recall in (("balanced", None), ("safe", SAFE)):
            answer[f"{system}{name}"] = tally(test, found(chosen, test, recall, lists), ignored="by rule")
            answer[f"{system}{name} prose"] = tally(prose, found(chosen, prose, recall, lists))
    return answer


def _with_packaged(taggers: Model) -> Model:
    """Return taggers with second stage, reader and glance of the packaged model, and dials set on dev notes."""
    from benchmarks.deid.writers.corpus import read_notes  # that package imports this module
    from recipes import deid_en

    packaged = load(DEFAULT)
    if packaged.context is None or packaged.glance is None:
        raise ModelError(f"{DEFAULT} has no reader or no glance to read with; make it with recipes.deid_en")
    stacked = replace(taggers, stack=packaged.stack)
    return deid_en.calibrated(stacked, packaged.context.reader, packaged.glance.glance, read_notes("dev"))


def prose(job: Job) -> Answer:
    """What the packaged model, or the one that is scored in its place, flags in prose without identifiers."""
    model, docs = load(os.environ.get(MODEL, DEFAULT)), notes.prose(Path(job["data"]))
    return {name: tally(docs, found(model, docs, recall)) for name, recall in (("balanced", None), ("safe", SAFE))}


def default(job: Job) -> Answer:
    """The default model learnt anew: CPU seconds and megabytes."""
    from recipes import deid_en

    docs = [doc for own in deid_en.corpora(Path(job["data"])).values() for doc in own]
    model, seconds = spent(lambda: learn(docs, lesson=DetectorLesson.for_invented_notes()))
    path = Path(job["folder"]) / "default.cfm"
    model.save(path)
    return {"train CPU s": seconds, "MB": path.stat().st_size / 1e6}


def peer(job: Job) -> Answer:
    """Another library on the notes of a fold."""
    train, test = notes.english(Path(job["data"]), job["fold"], job["split"])
    size = sum(len(doc.text) for doc in test)
    if job["peer"] == peers.TRAINED:
        learnt, training = spent(lambda: peers.trained(train))
        spans, seconds = spent(lambda: [learnt(doc) for doc in bare(test)])
    else:
        find, training = peers.finder(job["peer"]), 0.0
        places, seconds = spent(lambda: [find(doc.text) for doc in test])
        spans = [[Span(start, end, "PHI") for start, end in sorted(own)] for own in places]
    rate = size / max(seconds, 1e-9)
    return {"found": tally(test, spans, ignored="by rule"), "chars per CPU s": rate, "train CPU s": training}


def adapted(job: Job) -> Answer:
    """What the model without some sites misses there before and after it has read notes of these sites."""
    from chaffinch.deid.training.adapt import adapt

    learnt_from, test = notes.halves(notes.other_sites(patients=2 * notes.PATIENTS))
    lists = word_lists(hidden=names_in(test, "gold") | names_in(learnt_from, "gold"))
    model = with_lists(load(Path(job["folder"]) / f"{notes.SITES}.cfm"), lists)
    site, seconds = spent(lambda: adapt(bare(learnt_from), model, lists=lists))
    answer: Answer = {"adapt CPU s": seconds}
    for name, own in (("before", model), ("after", site)):
        answer[name] = [tally(test, found(own, test, recall, lists)) for recall in (None, *RECALLS)]
    return answer


def speed(job: Job) -> Answer:
    """Characters per CPU second of detection and surrogates by the fast voices, warm, the middle of some rounds."""
    model = load(DEFAULT).fast()
    docs = bare(notes.english(Path(job["data"]), job["fold"])[1])
    policy, secret, detect = Policy.read("i2b2-surrogate"), Secret.new(), HybridDetector(model)

    def work() -> int:
        return sum(len(acting.replace_identifiers(doc, LAYER, policy, secret).text) for doc in detect(docs))

    work()
    seconds = sorted(spent(work)[1] for _ in range(ROUNDS))[ROUNDS // 2]
    return {"chars per CPU s": sum(len(doc.text) for doc in docs) / seconds}


def end_to_end(job: Job) -> Answer:
    """Characters per CPU second of whole runs by the fast voices: invented notes from a file into a file."""
    from chaffinch.deid.synth.notes import notes as invented
    from chaffinch.jobs.deid import run
    from chaffinch.jobs.work import DetectorSpec
    from chaffinch.text.formats import write

    folder, docs = Path(job["folder"]), bare(invented(RUN_PATIENTS, 5, seed=7))
    few, many = folder / "few.jsonl", folder / "many.jsonl"
    write(docs[:20], few)
    write(docs, many)
    secret, find = Secret.new(), DetectorSpec(DEFAULT, fast=True)

    def release(place: Path) -> object:
        return run(place, place.with_suffix(".out.jsonl"), find, policy="i2b2-surrogate", secret=secret)

    release(few)  # compiles, and loads word lists
    return {"chars per CPU s": sum(len(doc.text) for doc in docs) / spent(lambda: release(many))[1]}


def reading(job: Job) -> Answer:
    """Characters per CPU second of detection in notes of dev writers: by all of our voices, by the fast, by a peer."""
    from benchmarks.deid.writers.corpus import read_notes  # whose systems import this module

    docs = bare(read_notes("dev"))
    size = sum(len(doc.text) for doc in docs)
    if job["system"] in peers.MODULES:
        find = peers.finder(job["system"])
        return {"chars per CPU s": size / spent(lambda: [find(doc.text) for doc in docs])[1]}
    model = load(os.environ.get(MODEL) or DEFAULT)
    detect = HybridDetector(model.fast() if job["system"] == "fast" else model)
    list(detect(docs[:20]))  # compiles
    seconds = sorted(spent(lambda: list(detect(docs)))[1] for _ in range(3))[1]
    return {"chars per CPU s": size / seconds, "reader": model.context is not None}


def products(_: Job) -> Answer:
    """Billions of operations per CPU second in the reader's largest product: floats by BLAS, and bytes."""
    import numpy as np  # after chaffinch, which gives BLAS one thread

    rng = np.random.default_rng(0)
    matrix = rng.integers(-127, 128, (384, 1536), dtype=np.int8)
    rows, floats = rng.normal(size=(254, 384)).astype(np.float32), matrix.astype(np.float32)
    packed = pack(matrix, np.ones(1536, np.float32), np.zeros(1536, np.float32))
    count, work = 2 * rows.shape[0] * matrix.size / 1e9, to_bytes(rows)
    ways: dict[str, Callable[[], Any]] = {"floats": lambda: rows @ floats, "bytes": lambda: multiply(work, packed)}
    for way in ways.values():
        way()
    repeated = {name: partial(_repeat, way) for name, way in ways.items()}
    seconds = {name: min(spent(way)[1] for _ in range(ROUNDS)) for name, way in repeated.items()}
    rates = {name: TIMES * count / max(took, 1e-9) for name, took in seconds.items()}
    return {**rates, "compiled": has_byte_products()}


def _repeat(work: Callable[[], Any]) -> None:
    for _ in range(TIMES):
        work()


def intervals(_: Job) -> Answer:
    """Whether dates of patients keep their distances when they are moved."""
    return asdict(dates.check(notes.other_sites(), Secret.new()))


JOBS: Mapping[str, Callable[[Job], Answer]] = {
    own.__name__: own
    for own in (meddocan, english, prose, default, peer, adapted, speed, end_to_end, reading, products, intervals)
}


def told(job: Job) -> Answer:
    """The answer of a job that was done, with its counts as such."""
    answer: Answer = msgspec.json.decode(Path(job["out"]).read_bytes())
    return {name: _counts(value) for name, value in answer.items()}


def _counts(value: Any) -> Any:
    if isinstance(value, list):
        return [_counts(own) for own in value]
    return msgspec.convert(value, Tally) if isinstance(value, dict) and "gold" in value else value


if __name__ == "__main__":
    asked: dict[str, Any] = msgspec.json.decode(sys.argv[1])
    Path(asked["out"]).write_bytes(msgspec.json.encode(JOBS[asked["job"]](asked)))
