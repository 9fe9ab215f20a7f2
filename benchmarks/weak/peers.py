"""Other libraries' aggregators on the same votes: skweak's HMM, snorkel's label model, crowd-kit's Dawid–Skene.

The time to bring votes into a library's own types is not counted; the time from its spans or tags to documents is not
either. A token that no source calls an entity is outside everywhere.

T tokens, S sources, L tags.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.hmmdp.peers import PIP
from benchmarks.hmmdp.worker import FOUND, spent
from chaffinch import Document, Span
from chaffinch.kernels import Ints
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.weak.votes import SOURCE, collect_votes, sources_of, with_labels

Costs: TypeAlias = dict[str, float]

PASSES = 4  # of skweak's EM, its own default
EPOCHS = 500  # of snorkel's label model
ROUNDS = 100  # of Dawid and Skene's EM, crowd-kit's own default


class Votes(NamedTuple):
    """Documents with votes to learn from, documents with votes to label, and a seed."""

    learn: list[Document]
    test: list[Document]
    seed: int


Peer: TypeAlias = Callable[[Votes], tuple[list[Document], Costs]]


def absent(name: str) -> str:
    """The pip line of a peer that is not installed, or nothing."""
    try:
        there = importlib.util.find_spec(MODULES[name]) is not None
    except ValueError:  # switched off
        there = False
    return "" if there else PIP


def skweak(votes: Votes) -> tuple[list[Document], Costs]:
    """The HMM of skweak, BIO; a document without any vote has no spans."""
    with _quiet():
        library: Any = importlib.import_module("skweak.generative")

        names, sources = collect_votes(votes.learn).names, sources_of(votes.learn)
        learnt, asked = _as_spacy(votes.learn, sources), _as_spacy(votes.test, sources)
        model = library.HMM("hmm", list(names))
        _, seconds = spent(lambda: model.fit(learnt, n_iter=PASSES))
        found, then = spent(lambda: [model(doc) for doc in asked])
    out = []
    for doc, own in zip(votes.test, found, strict=True):
        spans = [Span(int(doc.tokens[s.start, 0]), int(doc.tokens[s.end - 1, 1]), s.label_) for s in own.spans["hmm"]]
        out.append(doc.with_layer(FOUND, spans))
    return out, {"fit CPU s": seconds, "apply CPU s": then}


def snorkel(votes: Votes) -> tuple[list[Document], Costs]:
    """The label model of snorkel on tokens that some source speaks of; silence and O are abstentions."""
    with _quiet():
        library: Any = importlib.import_module("snorkel.labeling.model")

        learnt, asked = _both(votes)
        model = library.LabelModel(cardinality=2 * len(learnt.names), verbose=False)
        _, seconds = spent(
            lambda: model.fit(_spoken(learnt)[1] - 1, n_epochs=EPOCHS, seed=votes.seed, progress_bar=False)
        )
        places, said = _spoken(asked)
        chances, then = spent(lambda: model.predict_proba(said - 1))
    return _tagged(votes.test, asked, places, 1 + chances.argmax(axis=1)), {"fit CPU s": seconds, "apply CPU s": then}


def crowdkit(votes: Votes) -> tuple[list[Document], Costs]:
    """Dawid and Skene's model of crowd-kit on tokens that some source speaks of; it learns on those it labels as well.

    A source that is silent there says O, as crowd workers have no silence.
    """
    with _quiet():
        pandas: Any = importlib.import_module("pandas")
        library: Any = importlib.import_module("crowdkit.aggregation")

        learnt, asked = _both(votes)
        parts, (places, said) = _spoken(learnt)[1], _spoken(asked)
        table = np.concatenate([parts, said])
        task, worker = np.indices(table.shape)
        frame = pandas.DataFrame(
            {"task": task.ravel(), "worker": worker.ravel(), "label": np.maximum(table, 0).ravel()}
        )
        found, seconds = spent(lambda: library.DawidSkene(n_iter=ROUNDS).fit_predict(frame))
    tags = found.loc[np.arange(len(parts), len(table))].to_numpy().astype(np.int64)
    return _tagged(votes.test, asked, places, tags), {"fit CPU s": seconds}


PEERS: Mapping[str, Peer] = {"skweak HMM": skweak, "snorkel LabelModel": snorkel, "crowd-kit Dawid–Skene": crowdkit}
MODULES = {"skweak HMM": "skweak", "snorkel LabelModel": "snorkel", "crowd-kit Dawid–Skene": "crowdkit"}


def _both(votes: Votes) -> tuple[VoteMatrix, VoteMatrix]:
    """The votes on both kinds of documents, with the same sources and labels."""
    learnt = collect_votes(votes.learn)
    return learnt, collect_votes(votes.test, sources=learnt.sources, labels=learnt.names)


def _spoken(found: VoteMatrix) -> tuple[Ints, Ints]:
    """The tokens that some source calls an entity, and (m, S) what is said of them; 0 is silence or O."""
    places = np.flatnonzero((found.codes > 0).any(axis=1))
    return places, np.maximum(found.codes[places], 0).astype(np.int64)


def _tagged(docs: Sequence[Document], found: VoteMatrix, places: Ints, said: Ints) -> list[Document]:
    """The documents with the spans of tags at some places; an I after another label begins a span."""
    tags = np.zeros(len(found), np.int64)
    tags[places] = said
    before = np.append(0, tags[:-1])
    before[found.bounds[:-1]] = 0
    inside = (tags > 0) & (tags % 2 == 0)
    tags[inside & (before != tags) & (before != tags - 1)] -= 1
    return with_labels(docs, found, tags, None, layer=FOUND)


def _as_spacy(docs: Sequence[Document], sources: Sequence[str]) -> list[Any]:
    """The documents as spaCy's, with a group of spans for each source."""
    from spacy.tokens import Doc
    from spacy.tokens import Span as Piece
    from spacy.vocab import Vocab

    vocab, out = Vocab(), []
    for doc in docs:
        own = Doc(vocab, words=[word or " " for word in doc.words()])
        for name in sources:
            pieces = []
            for span in doc.layers.get(SOURCE + name, ()):
                first = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
                end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
                if span.label != "O" and first < end:
                    pieces.append(Piece(own, first, end, label=span.label))
            own.spans[name] = pieces
        out.append(own)
    return out


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What peers print and warn of goes nowhere."""
    logging.getLogger("snorkel").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
