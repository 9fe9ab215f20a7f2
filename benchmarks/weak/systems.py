"""What the weak-supervision benchmark runs: rules, HMMs, own sources, students, alternate training, the encoder.

A method gives the labelled documents of a sample, in several ways if it has them, and what it cost. None sees the gold
of what it labels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

import chaffinch as cf
from benchmarks.hmmdp.worker import FOUND, ROUNDS, spent
from benchmarks.weak import peers
from benchmarks.weak.data import GOLD, Texts, bare, consensus, with_gold_source
from chaffinch import CHMM, Cascade, Document, Encoder
from chaffinch.models.tagger import Tagger, load
from chaffinch.models.votes.chmm import fit as chmm
from chaffinch.models.votes.chmm.layer import Rows
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.weak import propagate as text_sources
from chaffinch.weak import vote_rules
from chaffinch.weak.aggregate import FittedMultiHMM, LabelVotes, aggregate
from chaffinch.weak.aggregate import fit as fit_aggregator
from chaffinch.weak.tagger import WeakTagger
from chaffinch.weak.training.aggregator import FitVotes, fit_votes
from chaffinch.weak.training.alternate import Alternated, Published, Recipe, Watch, alternate
from chaffinch.weak.training.checkpoints import MODEL, Step
from chaffinch.weak.training.published import add_student_votes
from chaffinch.weak.training.students import LINEAR, Students
from chaffinch.weak.votes import collect_votes, sources_of, with_labels

NEURAL = "pip install 'chaffinch[neural,minilm]'"
SOURCES, TEXT = "sources", "text alone"  # ways in which a student labels
FIRST = "phase I"  # the first student on the text alone
PAIR = "pair"  # the votes joined with the first student and a linear one, the mean of both
LAYER = "joined"


@dataclass(frozen=True, slots=True)
class System:
    """A method by name and what is changed of its settings."""

    method: str
    fields: dict[str, Any] = field(default_factory=dict)
    seed: int = 0


class Found(NamedTuple):
    """Labelled documents by the way in which they were labelled, costs by name, and F1 by loop, if there are loops."""

    ways: dict[str, list[Document]]
    costs: dict[str, float]
    turns: tuple[tuple[int, float | None, float | None], ...] = ()


class Work(NamedTuple):
    """What a method is given: documents, settings, a folder for the run, and one in which embeddings are kept."""

    texts: Texts
    system: System
    folder: Path
    embeddings: Path


Method: TypeAlias = Callable[[Work], Found]


def rule(work: Work) -> Found:
    """A rule that joins votes; it learns nothing."""
    own = getattr(vote_rules, work.system.fields["rule"])()
    asked = _blind(work.texts.test)
    docs, seconds = spent(lambda: aggregate(asked, own, layer=FOUND))
    return Found({SOURCES: docs}, {"apply CPU s": seconds})


def hmm(work: Work) -> Found:
    """The HMM of many sources; with the field "joint", the votes on the documents it labels are learnt from too."""
    told = dict(work.system.fields)
    votes = _joint(work.texts) if told.pop("joint", False) else work.texts.votes
    config = msgspec.convert(told, MultiHMM)
    asked = _blind(work.texts.test)
    model, seconds = spent(lambda: multihmm.fit(collect_votes(votes), config), rounds=ROUNDS)
    docs, then = spent(lambda: FittedMultiHMM(model)(asked, FOUND), rounds=ROUNDS)
    return Found({SOURCES: docs}, {"fit CPU s": seconds, "apply CPU s": then})


def conditional(work: Work) -> Found:
    """The conditional HMM; embeddings were made before, or are none if it has no layers."""
    config = _chmm(work.system)
    read = embeddings(work.embeddings) if config.weight > 0 else _nothing
    if work.system.fields.get("stopped"):  # as published: learns from train alone, and dev labels choose the epoch
        docs, stop = [bare(doc) for doc in work.texts.train], work.texts.stop
        made, seconds = spent(lambda: fit_aggregator(docs, config, embedder=_embedder(work.embeddings), dev=stop))
        found, then = spent(lambda: made(_blind(work.texts.test), FOUND))
        return Found({SOURCES: found}, {"fit CPU s": seconds, "apply CPU s": then})
    settle, seconds = spent(lambda: chmm_fit(config, read)(work.texts.votes))
    docs, then = spent(lambda: settle(_blind(work.texts.test), FOUND))
    return Found({SOURCES: docs}, {"fit CPU s": seconds, "apply CPU s": then})


def embed(work: Work) -> Found:
    """No labels: the embeddings of all documents, kept for whoever needs them."""
    read = embeddings(work.embeddings)
    _, seconds = spent(lambda: [read([doc]) for doc in (*work.texts.votes, *work.texts.stop, *work.texts.test)])
    return Found({}, {"fit CPU s": seconds})


def own(work: Work) -> Found:
    """The HMM of many sources and own sources; with the field "joint", learnt from the documents it labels too."""
    votes = _joint(work.texts) if work.system.fields.get("joint", False) else work.texts.votes

    def learn() -> tuple[FittedMultiHMM, text_sources.TextSources]:
        fitted = FittedMultiHMM(multihmm.fit(collect_votes(votes)))
        return fitted, text_sources.learn(fitted(votes, LAYER), LAYER)

    (fitted, sources), seconds = spent(learn)
    docs, then = spent(lambda: text_sources.apply(sources, fitted(_blind(work.texts.test), LAYER), LAYER, into=FOUND))
    return Found({SOURCES: docs}, {"fit CPU s": seconds, "apply CPU s": then})


def students(work: Work) -> Found:
    """The recipe without gold: sources and students, and the students on the text alone."""
    how = Recipe(
        embedder=_embedder(work.embeddings) if work.system.fields.get("network") else None, seed=work.system.seed
    )
    return _labelled(work.texts, lambda: alternate(work.texts.votes, student=_linear(work.system), how=how))


def stopped(work: Work) -> Found:
    """The recipe with gold documents that choose the threshold."""
    how = Recipe(
        embedder=_embedder(work.embeddings) if work.system.fields.get("network") else None, seed=work.system.seed
    )
    docs = [bare(doc) for doc in work.texts.train]
    return _labelled(work.texts, lambda: alternate(docs, student=_linear(work.system), how=how, dev=work.texts.stop))


def loops(work: Work) -> Found:
    """Alternate training as published, with one aggregator or another; gold documents choose the loop and the epochs.

    The student of phase I is one more way; it is read back from the run's checkpoints.
    """
    told = work.system.fields
    how = Published(
        told.get("loops", 10), told.get("patience", 5), told.get("continued", True), told.get("inside", True),
        _embedder(work.embeddings) if embeds(work.system) else None,
    )  # fmt: skip
    docs, steps = [bare(doc) for doc in work.texts.train], Path(tempfile.mkdtemp(dir=work.folder))
    chosen, watch = _joining(work.system), Watch(folder=steps)
    found = _labelled(
        work.texts, lambda: alternate(docs, chosen, _student(work.system), how=how, dev=work.texts.stop, watch=watch)
    )
    first = load(steps / (Step("student").file + MODEL))
    ways = {FIRST: list(first.annotate(_blind(work.texts.test), layer=FOUND))}
    if told.get("beside") == "linear":
        ways[PAIR], found.costs["beside CPU s"] = spent(lambda: _paired(work, how, first))
    return found._replace(ways={**found.ways, **ways})


def _paired(work: Work, how: Published, first: Tagger) -> list[Document]:
    """The votes joined once with two students of the same labels as one source: the first one and a linear one."""
    texts, chosen = work.texts, _joining(work.system)
    docs, stop = [bare(doc) for doc in texts.train], texts.stop
    labelled = fit_votes(docs, chosen, embedder=how.embedder, dev=stop)(docs, LAYER)
    students = Students(first.labels, first, cf.train(labelled, _linear(work.system), soft=LAYER, layer=GOLD, dev=stop))
    voted, judges = (add_student_votes(some, students) for some in (docs, stop))
    joined = fit_votes(voted, chosen, embedder=how.embedder, dev=judges)
    tagger = WeakTagger(joined, students, how="votes", names=sources_of(docs))
    return list(tagger.annotate(_blind(texts.test), layer=FOUND))


def consensual(work: Work) -> Found:
    """A student of labels without fault: of the spans of sources those that are right; gold chooses the epoch."""
    docs = consensus(work.texts.train, FOUND)
    student = _student(work.system)
    tagger, seconds = spent(lambda: cf.train(docs, student, layer=FOUND, dev=_as_found(work.texts.stop)))
    found, then = spent(lambda: list(tagger.annotate(_blind(work.texts.test), layer=FOUND)))
    return Found({TEXT: found}, {"fit CPU s": seconds, "apply CPU s": then})


def gold(work: Work) -> Found:
    """The recipe with some gold documents as one more source; the threshold stays, for so few choose none."""
    if not work.texts.known:
        return students(work)
    votes = with_gold_source(work.texts.votes, work.texts.known)
    texts = work.texts._replace(test=with_gold_source(work.texts.test, []))
    return _labelled(texts, lambda: alternate(votes, student=_linear(work.system), how=Recipe(seed=work.system.seed)))


def supervised(work: Work) -> Found:
    """A tagger trained on gold: the encoder on all of it, the linear student on the sample's gold documents."""
    config: Encoder | Cascade = replace(LINEAR, private=False)  # public news
    if work.system.fields["config"] == "Encoder":
        config = Encoder(seed=work.system.seed, **work.system.fields.get("with", {}))
    docs = work.texts.known or work.texts.train
    tagger, seconds = spent(lambda: cf.train(docs, config, layer="gold"))
    found, then = spent(lambda: list(tagger.annotate(_blind(work.texts.test), layer=FOUND)))
    return Found({TEXT: found}, {"fit CPU s": seconds, "apply CPU s": then})


def peer(work: Work) -> Found:
    """Another library's aggregator, on the same votes."""
    votes = peers.Votes(work.texts.votes, _blind(work.texts.test), work.system.seed)
    docs, costs = peers.PEERS[work.system.fields["name"]](votes)
    return Found({SOURCES: docs}, costs)


METHODS: Mapping[str, Method] = {
    one.__name__: one
    for one in (rule, hmm, conditional, embed, own, students, stopped, loops, consensual, gold, supervised, peer)
}


def chmm_fit(config: CHMM, read: Callable[[Sequence[Document]], Rows]) -> FitVotes:
    """A conditional HMM as alternate training wants its aggregators: from votes to a function of documents."""

    def fit(docs: Sequence[Document]) -> LabelVotes:
        sources, votes = sources_of(docs), collect_votes(docs)
        model = chmm.fit(votes, read(docs), config)

        def settle(others: Sequence[Document], layer: str) -> list[Document]:
            found = collect_votes(others, sources=sources, labels=votes.names)
            result = model.posterior(found, read(others))
            return with_labels(others, found, result.tags, result.chances, layer=layer)

        return settle

    return fit


def embeddings(folder: Path) -> Callable[[Sequence[Document]], Rows]:
    """A function that gives (T, D) the embeddings of all tokens of documents; they are kept in a folder."""
    made = _embedder(folder)
    return lambda docs: np.concatenate([made(doc) for doc in docs])


def _nothing(docs: Sequence[Document]) -> Rows:
    """(T, 1) of zeros, for a model without layers."""
    return np.zeros((sum(len(doc.tokens) for doc in docs), 1), np.float32)


@cache
def _embedder(folder: Path) -> Callable[[Document], Rows]:
    from chaffinch.features.embed import Embedder

    return Embedder.load(cache=folder / "embeddings")


def embeds(system: System) -> bool:
    """Whether a system needs the encoder."""
    told = system.fields
    if system.method == "conditional":
        return bool(told.get("weight", 1.0))
    return (
        system.method == "embed"
        or bool(told.get("network"))
        or "encoder" in told
        or told.get("config") == "Encoder"
        or told.get("aggregator") in ("iid", "CHMM")
    )


def _joining(system: System) -> Any:
    """The settings of an aggregator by its published name; of a conditional HMM with those of the field "chmm"."""
    name = system.fields["aggregator"]
    if name == "MV":
        return vote_rules.TokenVote()
    if name == "HMM":
        return MultiHMM()
    return _chmm(System("conditional", {"iid": name == "iid", **system.fields.get("chmm", {})}, system.seed))


def _labelled(texts: Texts, learn: Callable[[], Alternated]) -> Found:
    """What alternate training comes to, on the documents to label, with sources and on the text alone."""
    made, seconds = spent(learn)
    docs, then = spent(lambda: list(made.tagger.annotate(_blind(texts.test), layer=FOUND)))
    alone, last = spent(lambda: list(made.tagger.annotate(_blind(texts.test), layer=FOUND, text_alone=True)))
    costs = {"fit CPU s": seconds, "apply CPU s": then, "text alone CPU s": last, "threshold": made.tagger.threshold}
    turns = tuple((turn.loop, turn.aggregator, turn.student) for turn in made.turns)
    return Found({SOURCES: docs, TEXT: alone}, costs | ({"best loop": made.best} if turns else {}), turns)


def _student(system: System) -> Encoder | Cascade:
    """The student that the fields tell: an encoder with these settings, else the linear one."""
    if "encoder" in system.fields:
        return Encoder(seed=system.seed, **system.fields["encoder"])
    return _linear(system)


def _as_found(docs: Sequence[Document]) -> list[Document]:
    """The documents with their gold as the layer "found" too."""
    return [doc.with_layer(FOUND, doc.layer(GOLD)) for doc in docs]


def _linear(system: System) -> Cascade:
    return replace(LINEAR, seed=system.seed, private=False, **system.fields.get("student", {}))


def _chmm(system: System) -> CHMM:
    told = {name: own for name, own in system.fields.items() if name not in ("published", "stopped")}
    if "published" in system.fields:
        return replace(CHMM.published(**system.fields["published"], seed=system.seed), **told)
    return replace(CHMM(seed=system.seed), **told)


def _joint(texts: Texts) -> list[Document]:
    """The documents to learn from and those to label, each once, without gold."""
    known = {doc.id for doc in texts.votes}
    return [*texts.votes, *(bare(doc) for doc in texts.test if doc.id not in known)]


def _blind(docs: Sequence[Document]) -> list[Document]:
    """The same, but nobody can look at their gold."""
    return [bare(doc) for doc in docs]
