"""Learn a glance: word vectors of a pretrained encoder, mapped and joined over a window, then rounded to 8 bits.

    documents of an epoch → what a glance sees of every word → cross-entropy of the words' labels → Adam → 8 bits

Every epoch may have other documents, which the caller chooses. N tokens of the notes of a step, the last row of whose
vectors stands for the edges of a document; E numbers of the encoder per piece, P of the glance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import DataError
from chaffinch.features import embed
from chaffinch.kernels import Floats
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import is_reachable, read_vocabulary
from chaffinch.models.reader.forward import Quantised
from chaffinch.models.reader.glance.config import Glance
from chaffinch.models.reader.glance.inputs import Pages, see, word_columns
from chaffinch.models.reader.glance.model import KIND, Model, piece_numbers
from chaffinch.models.reader.inputs import GAPS, LENGTHS, SHAPES
from chaffinch.models.reader.wordpieces import Ints, Vocabulary
from chaffinch.text import Document

SMALL = 0.1  # the spread of new tables before learning


class Cued(NamedTuple):
    """A document to learn from, and the same with layers of cues."""

    doc: Document
    cued: Document


Epochs = Callable[[int], Iterable[Cued]]  # the documents of an epoch, counted from 0


class TrainingDocument(NamedTuple):
    """One document to learn from."""

    words: Ints  # (T,) numbers of distinct words
    columns: Ints  # (3, T) shapes, lengths, gaps
    cues: Ints  # (T, C)
    labels: Ints  # (T,)
    counts: NDArray[np.bool_]  # (T,) whether a token has a letter or a digit, and is learnt from


@dataclass(slots=True)
class _Words:
    """The distinct words of all documents, and the mean of each one's vectors in the encoder."""

    vocabulary: Vocabulary
    pieces: Floats  # (V, E)
    numbers: dict[str, int] = field(default_factory=dict)
    vectors: list[Floats] = field(default_factory=list)

    def number(self, word: str) -> int:
        """Return the number of a word, which is added if it is new."""
        if word not in self.numbers:
            self.numbers[word] = len(self.vectors)
            found = piece_numbers(word, self.vocabulary)
            self.vectors.append(self.pieces[found].sum(axis=0) / max(len(found), 1))
        return self.numbers[word]


def fit(
    epochs: Epochs, labels: Sequence[str], config: Glance, *, layer: str = "gold", watcher: Watcher | None = None
) -> Model:
    """Return a glance, a small tagger of these labels learnt from `layer`, others as O; DataError without documents.

    `epochs(number)` gives the documents of an epoch; cues that the first has not are never known.
    """
    torch = embed.library()
    names, watcher = tuple(sorted(set(labels) - {"O"})), watcher or Watcher()
    encoder, vocabulary = embed.load_encoder(config.folder), read_vocabulary(Reader(folder=config.folder))
    vectors = encoder.network.embeddings.word_embeddings.weight.detach().numpy().astype(np.float64)
    vectors = (vectors - vectors.mean(axis=0)) / vectors.std()
    words = _Words(vocabulary, vectors)
    first = list(epochs(0))
    if not first:
        raise DataError("there are no notes to learn from; give notes with a gold layer")
    cues = number_cues(first, config.layers)
    number = {name: place for place, name in enumerate(("O", *names))}
    rng = np.random.default_rng(config.seed)

    def lessons(epoch: int) -> Iterator[list[TrainingDocument]]:
        """Yield an epoch's documents in shuffled groups."""
        docs = first if epoch == 0 else list(epochs(epoch))
        order = rng.permutation(len(docs)).tolist()
        for at in range(0, len(order), config.notes):
            chosen = [docs[place] for place in order[at : at + config.notes]]
            yield [_lesson(doc, layer, number, config, cues, words) for doc in chosen if len(doc.doc.tokens)]

    with torch.random.fork_rng(devices=[]), embed.on_threads(config.threads):
        torch.manual_seed(config.seed)
        network = build(config, len(cues), len(number), vectors.shape[1])
        _learn(network, lessons, config, words, -(-len(first) // config.notes), watcher)
    weights = export(network, vocabulary, vectors, cues)
    return Model.of(State(weights.arrays, weights.strings, KIND, asdict(config), names))


def number_cues(docs: Iterable[Cued], layers: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return the number of every label of every layer of cues, from 1, in order of their names."""
    found = {(name, span.label) for each in docs for name in layers for span in each.cued.layers.get(name, ())}
    return {cue: number for number, cue in enumerate(sorted(found), 1)}


def _lesson(
    each: Cued,
    layer: str,
    number: Mapping[str, int],
    config: Glance,
    cues: Mapping[tuple[str, str], int],
    words: _Words,
) -> TrainingDocument:
    """Return what a glance sees of a document, and the label number of each token, 0 for other labels."""
    doc, T = each.doc, len(each.doc.tokens)
    labels, spans = np.zeros(T, np.int64), list(doc.layer(layer))
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        labels[first:end] = number.get(span.label, 0)
    seen = see(Pages.of([doc], [each.cued]), config.layers, cues, np.arange(T))
    numbers = np.array([words.number(word) for word in seen.words], np.int64)
    counts = np.array([any(map(str.isalnum, word)) for word in seen.words], np.bool_)
    columns = np.array([word_columns(word) for word in seen.words], np.int64).reshape(-1, 2)
    return TrainingDocument(numbers, np.concatenate([columns.T, seen.gaps[None]]), seen.cues, labels, counts)


def build(config: Glance, cues: int, labels: int, size: int) -> Any:
    """Return the network to train: a map of word vectors, tables, and two layers."""
    import torch

    tables = [torch.nn.Embedding(rows, config.width) for rows in (SHAPES, LENGTHS, GAPS, 1 + cues)]
    for table in tables:
        torch.nn.init.normal_(table.weight, std=SMALL)
    edge = torch.nn.Embedding(1, config.width)
    torch.nn.init.zeros_(edge.weight)
    with torch.no_grad():
        tables[-1].weight[0] = 0.0
    tables[-1].padding_idx = 0
    inner = torch.nn.Linear((2 * config.reach + 1) * config.width, config.hidden)
    parts = {"map": torch.nn.Linear(size, config.width), "edge": edge, "tables": torch.nn.ModuleList(tables)}
    return torch.nn.ModuleDict(parts | {"inner": inner, "outer": torch.nn.Linear(config.hidden, labels)})


def scores(network: Any, lessons: Sequence[TrainingDocument], config: Glance, words: _Words) -> Any:
    """Return scores of labels (learnt tokens of all documents, L), as a tensor with gradients."""
    import torch

    distinct, word = np.unique(np.concatenate([lesson.words for lesson in lessons]), return_inverse=True)
    vectors = torch.from_numpy(np.stack([words.vectors[place] for place in distinct.tolist()]).astype(np.float32))
    rows = network["map"](vectors)[torch.from_numpy(word)]
    training = network.training
    if training and config.hide:
        rows = rows * (torch.rand(len(rows), 1) >= config.hide)
    columns = np.concatenate([lesson.columns for lesson in lessons], axis=1)
    for table, column in zip(network["tables"], columns, strict=False):
        rows = rows + table(torch.from_numpy(column))
    cues = torch.from_numpy(np.concatenate([lesson.cues for lesson in lessons]))
    rows = torch.relu(rows + network["tables"][-1](cues).sum(dim=1))
    joined = torch.cat([rows, network["edge"].weight])
    place = torch.from_numpy(_windows(lessons, config.reach))
    dropped = torch.nn.functional.dropout
    inputs = dropped(joined[place].reshape(len(place), -1), config.dropout, training)
    return network["outer"](dropped(torch.relu(network["inner"](inputs)), config.dropout, training))


def _windows(lessons: Sequence[TrainingDocument], reach: int) -> Ints:
    """Return (learnt tokens, 2 R + 1) the rows of each token's window; the row after the last is that of an edge."""
    total, out, first = sum(len(lesson.words) for lesson in lessons), list[Ints](), 0
    for lesson in lessons:
        T = len(lesson.words)
        window = np.flatnonzero(lesson.counts)[:, None] + np.arange(-reach, reach + 1)
        out.append(np.where((window >= 0) & (window < T), first + window, total))
        first += T
    return np.concatenate(out)


def _learn(
    network: Any,
    lessons: Callable[[int], Iterator[list[TrainingDocument]]],
    config: Glance,
    words: _Words,
    steps: int,
    watcher: Watcher,
) -> None:
    """Train the network in place for all epochs; an interrupt ends it early and is noted in the watcher."""
    import torch

    optimiser, step = torch.optim.Adam(network.parameters(), lr=config.rate), 0
    try:
        for epoch in range(config.epochs):
            network.train()
            total = 0.0
            for batch in lessons(epoch):
                right = np.concatenate([lesson.labels[lesson.counts] for lesson in batch]) if batch else np.zeros(0)
                if not len(right):
                    continue
                optimiser.param_groups[0]["lr"] = config.rate * max(1.0 - step / (steps * config.epochs), 0.02)
                loss = torch.nn.functional.cross_entropy(scores(network, batch, config, words), torch.from_numpy(right))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                step, total = step + 1, total + loss.item()
            if watcher.tell is not None:
                watcher.tell(Progress(KIND, epoch + 1, config.epochs, total / max(steps, 1), None))
    except KeyboardInterrupt:
        watcher.interrupted = True
    finally:
        network.eval()


def export(network: Any, vocabulary: Vocabulary, vectors: Floats, cues: Mapping[tuple[str, str], int]) -> State:
    """Return the weights as a model reads them: word pieces that text can reach, mapped; matrices in 8 bits."""
    kept = [place for place, piece in enumerate(vocabulary.pieces) if is_reachable(piece)]
    mapped = vectors[kept] @ _array(network["map"].weight).T.astype(np.float64)
    words = Quantised.of(mapped, axis=1)
    arrays: dict[str, NDArray[Any]] = {"words": words.values, "words_scale": words.scales}
    for name, table in zip(("shapes", "lengths", "gaps", "cues"), network["tables"], strict=True):
        arrays[name] = _array(table.weight)
    arrays["shapes"] = arrays["shapes"] + _array(network["map"].bias)
    arrays["edge"] = _array(network["edge"].weight)[0]
    for name in ("inner", "outer"):
        matrix = Quantised.of(_array(network[name].weight).T, axis=0)
        arrays[name], arrays[f"{name}_scale"] = matrix.values, matrix.scales
        arrays[f"{name}_bias"] = _array(network[name].bias)
    strings = {
        "pieces": tuple(vocabulary.pieces[place] for place in kept),
        "cues": tuple(f"{layer} {label}" for layer, label in cues),
    }
    return State(arrays, strings)


def _array(tensor: Any) -> NDArray[np.float32]:
    """Return a torch tensor as a float32 array."""
    array: NDArray[np.float32] = tensor.detach().numpy().astype(np.float32)
    return array
