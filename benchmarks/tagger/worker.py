"""One job of the tagger's benchmark in a process of its own: train, tag, score; costs in CPU seconds.

`python -m benchmarks.tagger.worker JOB` reads a job as JSON and prints its result as JSON.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec

import chaffinch as cf
from benchmarks.tagger import calibration
from benchmarks.tagger.peers import PEERS
from chaffinch import Cascade, Document, Tagger
from chaffinch.features.clusters import learn as learn_clusters
from chaffinch.features.lexicon import Lexicon
from chaffinch.features.observe import Column, Observed
from chaffinch.models.cascade import segments
from chaffinch.models.cascade.model import Model as CascadeModel
from chaffinch.models.cascade.token_stage import TokenClasses
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.tasks import Task
from chaffinch.models.core.training import decode_with_certainty
from chaffinch.models.phrasehmm import chunker

JNLPBA = "jnlpba/Genia4ERtask2.iob2.gz", "jnlpba/Genia4EReval2.iob2.gz"
CONLL = "conll2003/eng.train.gz", "conll2003/eng.testb.gz", "conll2003/eng.testa.gz"
# Ten test abstracts that are in the training set as well (the corpus' own README lists them).
LEAKED = frozenset("98230439 98282480 98295832 98305722 98322350 98325368 98339383 98349401 98362153 98374270".split())
UNLABELLED = (
    "bc5cdr/CDR_TrainingSet.PubTator.txt.gz",
    "bc5cdr/CDR_DevelopmentSet.PubTator.txt.gz",
    "ncbi-disease/NCBItrainset_corpus.txt.gz",
    "ncbi-disease/NCBIdevelopset_corpus.txt.gz",
)
MESH = {
    "A11": "cell",
    "D05": "protein",
    "D08": "enzyme",
    "D12": "protein",
    "D13": "nucleic acid",
    "D23": "factor",
    "B04": "virus",
}
FOLDS = 3
ROUNDS = 3


def documents(data: Path, corpus: str, split: str) -> tuple[list[Document], list[Document]]:
    """Training and test documents; with split dev nothing of the test set is read."""
    if corpus == "conll2003":
        return list(cf.read(data / CONLL[0])), list(cf.read(data / CONLL[1 if split == "test" else 2]))
    train = cf.read(data / JNLPBA[0]).load()
    if split == "test":
        return list(train), list(cf.read(data / JNLPBA[1]))
    first, second = train.split(0.85, by="document", seed=0)
    return list(first), list(second)


def mesh(data: Path) -> Lexicon:
    """Names of cells, proteins, nucleic acids and the like from MeSH; "B, A" also as "A B"."""
    import gzip

    phrases: dict[str, set[str]] = {}
    with gzip.open(data / "gazetteers/mesh2015_tree_numbers.tsv.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            _, name, number = line.rstrip("\n").split("\t")[:3]
            label = MESH.get(number[:3])
            if label and len(name) > 2:
                before, comma, after = name.partition(", ")
                phrases.setdefault(label, set()).update({name, f"{after} {before}" if comma else name})
    return Lexicon.make({label: sorted(own) for label, own in sorted(phrases.items())})


def same_text(doc: Document) -> int:
    """A number that two copies of an abstract share, whatever their tokens."""
    return zlib.crc32("".join(sign for sign in doc.text.lower() if sign.isalnum())[:60].encode())


def chunks(job: dict[str, Any]) -> dict[str, Any]:
    """Writes the documents with parts of speech and chunks; training abstracts read by parsers that never saw them."""
    from recipes.genia_chunks import corpus

    data, folder = Path(job["data"]), Path(job["folder"])
    train, test = documents(data, job["corpus"], job["split"])
    trees = list(corpus(data))
    read: dict[int, Document] = {}
    both = [*train, *(test if job["split"] == "dev" else ())]  # dev abstracts are in the treebank too
    for fold in range(FOLDS):
        parser = chunker.fit([doc for doc in trees if same_text(doc) % FOLDS != fold])
        own = [number for number, doc in enumerate(both) if same_text(doc) % FOLDS == fold]
        read |= dict(zip(own, parser.annotate(both[number] for number in own), strict=True))
    parsed = [read[number] for number in range(len(both))]
    cf.write(parsed[: len(train)], folder / "train.jsonl")
    cf.write(parsed[len(train) :] or cf.load("genia").annotate(test), folder / "test.jsonl")
    return {"documents": len(train) + len(test)}


def spent(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its CPU seconds."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def scores(gold: Sequence[Document], found: Iterable[Document], layer: str) -> dict[str, Any]:
    """Micro F1 with its interval, and without the abstracts that are in the training set."""
    held = list(found)
    clean = [(a, b) for a, b in zip(gold, held, strict=True) if a.id not in LEAKED]
    out = {}
    for name, pairs in (("", list(zip(gold, held, strict=True))), (" without leaked", clean)):
        if name and len(clean) == len(held):
            continue
        one = cf.evaluate([a for a, _ in pairs], [b for _, b in pairs], layer="gold", predicted_layer=layer).micro
        out[f"F1{name}"] = round(100 * one.f1, 2)
        if not name:
            out |= {"P": round(100 * one.precision, 2), "R": round(100 * one.recall, 2)}
        if one.f1_interval is not None:
            out[f"low{name}"], out[f"high{name}"] = (round(100 * edge, 2) for edge in one.f1_interval)
    return out


def stages(tagger: Tagger, docs: Sequence[Document]) -> dict[str, float]:
    """F1 of the segments the first stage finds, and of the classes given to the right segments."""
    model, task = cast(CascadeModel, tagger.model), Task.of(docs, layer="gold", soft=None, names=tagger.labels)
    seen, columns = model.observe(task.docs)
    last = model.readings[-1]
    if model.config.classify == "tokens":
        return token_stages(model, task, seen, columns)
    states, certain = decode_with_certainty(last, seen, columns)
    gold = segments.gold_segments(seen, task.pieces)
    found = {(a, b) for a, b in segments.find_segments(last.labels, states).tolist()}
    right = segments.observe_gold(seen, gold, certain)
    tags = model.classifier.labels.tag_of[model.classifier.decode(right.seen, [])[right.seen.places]]  # type: ignore[union-attr]
    hits = sum(int(tag) - 1 == gold[a, b] for (a, b), tag in zip(right.segments.tolist(), tags, strict=True))
    return {
        "segmentation F1": round(200 * len(found & set(gold)) / (len(found) + len(gold)), 2),
        "classification F1": round(200 * hits / (len(gold) + int((tags > 0).sum())), 2),
    }


def token_stages(model: CascadeModel, task: Task, seen: Observed, columns: list[Column]) -> dict[str, float]:
    """The same for the published second stage, which rejects nothing: precision and recall of segments as well."""
    last, gold = model.readings[-1], segments.gold_segments(seen, task.pieces)
    found = {(a, b) for a, b in segments.find_segments(last.labels, last.decode(seen, columns)).tolist()}
    right = task.segments().target(last.labels).gold
    classes = TokenClasses.of(cast(Linear, model.classifier), seen, columns, (last.labels, right))
    given = [name for runs in classes.runs() for _, _, name in runs]
    hits = sum(name == task.names[gold[edges]] for name, edges in zip(given, sorted(gold), strict=True))
    both = len(found & set(gold))
    return {
        "segmentation P": round(100 * both / len(found), 2),
        "segmentation R": round(100 * both / len(gold), 2),
        "segmentation F1": round(200 * both / (len(found) + len(gold)), 2),
        "classification F1": round(100 * hits / len(gold), 2),
    }


def ours(job: dict[str, Any]) -> dict[str, Any]:
    """Trains, saves, loads, tags and scores one of our configs."""
    data, extras = Path(job["data"]), job.get("extras", [])
    train, test = documents(data, job["corpus"], job["split"])
    train = train[: job.get("most") or None]
    config = msgspec.convert(job["config"], Cascade)
    cf.train(train[:30], replace(config, epochs=1)).annotate(test[:2]).load()  # compiles
    start = time.process_time()
    resources = None
    if extras:
        text = [*train, *(doc for path in UNLABELLED for doc in cf.read(data / path))]
        resources = Resources(learn_clusters(text) if "clusters" in extras else None, mesh(data))
    prepared = time.process_time() - start
    if "pos" in extras or "chunks" in extras:
        train, test = (list(cf.read(Path(job["folder"]) / f"{name}.jsonl")) for name in ("train", "test"))
        train = train[: job.get("most") or None]
        config = replace(config, layers=("pos", "chunks") if "chunks" in extras else ("pos",))
    tagger, seconds = spent(lambda: cf.train(train, config, layer="gold", resources=resources))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cfm"
        tagger.save(path)
        size = path.stat().st_size / 1e6
        tagger = cf.load(path)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tokens = sum(len(doc.tokens) for doc in test)
    found, _ = spent(lambda: list(tagger.annotate(test)))
    rates = [tokens / spent(lambda: list(tagger.annotate(test)))[1] for _ in range(ROUNDS)]
    model = cast(CascadeModel, tagger.model)
    parts = [*model.readings, *([model.classifier] if model.classifier else [])]
    return {
        "features": sum(part.vocabulary.height * _columns(part) for part in parts),
        "train CPU s": round(seconds + prepared, 2),
        "MB": round(size, 2),
        "RSS MB": round(rss),
        "tokens per CPU s": round(sorted(rates)[ROUNDS // 2]),
        **scores(test, found, tagger.layer),
        **(stages(tagger, test) if model.classifier else {}),
    }


def _columns(part: Linear) -> int:
    """How many weights a feature has: one for each state and, if states are pairs, one for each tag."""
    return part.labels.states.K + len(part.labels.tags) * part.labels.pairs


def peer(job: dict[str, Any]) -> dict[str, Any]:
    """The same for a peer: extraction and training, tagging with extraction."""
    train, test = documents(Path(job["data"]), job["corpus"], job["split"])
    system = PEERS[job["peer"]]()
    _, seconds = spent(lambda: system.train(train))
    tokens = sum(len(doc.tokens) for doc in test)
    rates = []
    for _ in range(ROUNDS):
        found, tagging = spent(lambda: [doc.with_layer("peer", system.tag(doc)) for doc in test])
        rates.append(tokens / tagging)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    costs = {"train CPU s": round(seconds, 2), "MB": round(system.size / 1e6, 2), "RSS MB": round(rss)}
    return {**costs, "tokens per CPU s": round(sorted(rates)[ROUNDS // 2]), **scores(test, found, "peer")}


def parser(job: dict[str, Any]) -> dict[str, Any]:
    """The packaged shallow parser: on held-out GENIA abstracts, and on CoNLL-2000, another domain."""
    from recipes.genia_chunks import corpus, held_out

    data, tagger = Path(job["data"]), cf.load("genia")
    out: dict[str, Any] = {}
    genia = [doc for doc in corpus(data) if held_out(doc)]
    for name, docs in (("GENIA", genia), ("CoNLL-2000", list(cf.read(data / "conll2000/test.txt.gz")))):
        found = list(tagger.annotate(replace(doc, layers={}) for doc in docs))
        gold = docs if name == "GENIA" else [_conll_layers(doc) for doc in docs]
        words = sum(len(doc.tokens) for doc in gold)
        right = sum(len(set(a.layers["pos"]) & set(b.layers["pos"])) for a, b in zip(gold, found, strict=True))
        out[f"{name} POS accuracy"] = round(100 * right / words, 2)
        report = cf.evaluate(gold, found, layer="chunks", predicted_layer="chunks").micro
        out[f"{name} chunk F1"] = round(100 * report.f1, 2)
    return {**out, "MB": round(cf.bundle.find("genia").stat().st_size / 1e6, 2)}


def _conll_layers(doc: Document) -> Document:
    tags = doc.meta["columns"]["1"]
    spans = [cf.Span(int(a), int(b), tag) for (a, b), tag in zip(doc.tokens, tags, strict=True)]
    return replace(doc, layers={"pos": tuple(spans), "chunks": doc.layer("gold")})


def confidence(job: dict[str, Any]) -> dict[str, Any]:
    """The calibration of our confidence: what is said and what is true, cross-fitted and on the test set."""
    config, test = msgspec.convert(job["config"], Cascade), job["split"] == "test"
    return {"calibration": calibration.measure(Path(job["data"]), job["corpus"], config, test=test)}


JOBS = {"ours": ours, "peer": peer, "parser": parser, "chunks": chunks, "calibration": confidence}


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1])
    sys.stdout.write(msgspec.json.encode(JOBS[asked["job"]](asked)).decode() + "\n")
