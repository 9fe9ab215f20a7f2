"""Learn a contextual reader: a pretrained encoder is fine-tuned, then rounded to 8 bits. Torch is imported here alone.

    documents of an epoch → random windows → cross-entropy of the labels of first pieces → AdamW → 8 bits

Every epoch may have other documents, which the caller chooses, so that names and styles can be drawn again.
n pieces of a window, B windows of a batch, H numbers per piece, L labels with O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import DataError, ModelError
from chaffinch.features import embed
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.forward import Quantised
from chaffinch.models.reader.inputs import GAPS, LENGTHS, SHAPES, Inputs
from chaffinch.models.reader.model import KIND, SPECIALS, Model
from chaffinch.models.reader.wordpieces import BEGIN, END, PADDING, UNKNOWN, Ints, Vocabulary, fold
from chaffinch.text import Document

Epochs = Callable[[int], Iterable[Document]]  # the documents of an epoch, counted from 0

WINDOWS = (48, 96, 128, 128, 192, 254)  # pieces of a window to learn from; drawn anew for each
SHORTEST = 16  # pieces that are worth a window of their own
POOL = 256  # windows among which those of like length are put together
CLIP = 1.0  # the longest a gradient may be
SMALL = 0.01  # the spread of new tables before learning
BESIDE = ("shapes", "gaps", "lengths")  # the tables beside the pieces, in the order of the rows of their numbers
IGNORED = -1  # the label number of a token that is read, and neither learnt as a label nor as O
_STEP = 16  # batches are padded to a multiple


class TrainingWindow(NamedTuple):
    """One window to learn from."""

    columns: Ints  # (4, n) pieces, shapes, gaps, lengths
    firsts: Ints  # (m,) places of the first pieces of tokens, counted with the special piece before all
    labels: Ints  # (m,)

    @property
    def size(self) -> int:
        """Return the number of pieces."""
        return len(self.columns[0])


def fit(
    epochs: Epochs, labels: Sequence[str], config: Reader, *, layer: str = "gold", watcher: Watcher | None = None
) -> Model:
    """Return a reader of these labels learnt from a layer, others as O; ModelError: unfit encoder, DataError: no notes.

    `epochs(number)` gives the documents of an epoch. The same documents, config and versions give the same model.
    """
    embed.library()
    names = tuple(sorted(set(labels) - {"O"}))
    encoder, vocabulary = embed.load_encoder(config.folder), read_vocabulary(config)
    _check(encoder.network.config, config)
    lessons = Lessons(epochs, names, vocabulary, config, layer)
    network = train(lambda: build(encoder.network, config, 1 + len(names)), lessons, watcher or Watcher())
    weights = export(network, config, vocabulary)
    return Model.of(State(weights.arrays, weights.strings, KIND, asdict(config), names))


class Lessons:
    """A function from the number of an epoch to its windows in shuffled batches; drawn from the config's seed."""

    def __init__(
        self, epochs: Epochs, names: Sequence[str], vocabulary: Vocabulary, config: Reader, layer: str, other: int = 0
    ) -> None:
        """Learn the labels `names` of a layer; `other` is the number of all other labels: 0, or `IGNORED`."""
        self.epochs, self.layer, self.other = epochs, layer, other
        self.number = {name: place for place, name in enumerate(("O", *names))}
        self.vocabulary, self.config = vocabulary, config
        self.rng = np.random.default_rng(config.seed)

    def __call__(self, epoch: int) -> list[list[TrainingWindow]]:
        """Return an epoch's windows of word pieces in shuffled batches; DataError if there are no notes."""
        found = [
            lesson for doc in self.epochs(epoch) for lesson in lessons_of(self._see(doc), self.config.length, self.rng)
        ]
        if not found:
            raise DataError("there are no notes to learn from; give notes with a gold layer")
        return _batches(found, self.config.pieces, self.rng)

    def _see(self, doc: Document) -> tuple[Inputs, Ints]:
        """Return what the reader sees of a document, and the label number of each token."""
        labels, spans = np.zeros(len(doc.tokens), np.int64), list(doc.layer(self.layer))
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            labels[first:end] = self.number.get(span.label, self.other)
        return Inputs.of(doc, self.vocabulary), labels


def train(start: Callable[[], Any], lessons: Lessons, watcher: Watcher) -> Any:
    """Return the network that `start` gives, fine-tuned; random numbers of the caller stay as they are."""
    import torch

    config = lessons.config
    with torch.random.fork_rng(devices=[]), embed.on_threads(config.threads):
        torch.manual_seed(config.seed)
        network = start()
        _learn(network, lessons, watcher)
    return network


def lessons_of(seen: tuple[Inputs, Ints], most: int, rng: np.random.Generator) -> Iterator[TrainingWindow]:
    """Yield a document's windows of random lengths up to `most` pieces, with the labels of tokens begun there.

    Tokens whose label is `IGNORED` are read, not learnt from.
    """
    inputs, labels = seen
    at, size = 0, len(inputs)
    while at < size:
        length = min(int(rng.choice(WINDOWS)), most)
        if size - at - length < SHORTEST:
            length = min(most, size - at)
        tokens = np.flatnonzero((inputs.firsts >= at) & (inputs.firsts < at + length) & (labels != IGNORED))
        if len(tokens):
            yield TrainingWindow(inputs.columns[:, at : at + length], inputs.firsts[tokens] - at + 1, labels[tokens])
        at += length


def build(encoder: Any, config: Reader, labels: int) -> Any:
    """Return the network to fine-tune: the encoder cut to chosen layers, new tables and head; changes the encoder.

    The tables are of shape, gap and length; the head is a linear layer.
    """
    import torch

    H = int(encoder.config.hidden_size)
    stack = encoder.encoder.layer
    encoder.encoder.layer = torch.nn.ModuleList([stack[place] for place in config.layers])
    encoder.pooler = None
    encoder.config._attn_implementation = "eager"  # with short numbers a third faster than the fused kernel
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = config.dropout
        if hasattr(module, "intermediate_act_fn"):
            module.intermediate_act_fn = torch.nn.GELU(approximate="tanh")  # as kernels.bytes_product.apply_gelu
    for layer in encoder.encoder.layer:
        layer.attention.self.dropout.p = 0.0  # it costs a tenth of the time
    encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    tables = [torch.nn.Embedding(size, H) for size in (SHAPES, GAPS, LENGTHS)]
    for table in tables:
        torch.nn.init.normal_(table.weight, std=SMALL)
    return torch.nn.ModuleDict(
        {"encoder": encoder, "beside": torch.nn.ModuleList(tables), "head": torch.nn.Linear(H, labels)}
    )


def scores(network: Any, lessons: Sequence[TrainingWindow], vocabulary: Vocabulary) -> Any:
    """Return (n, L) label scores of the first pieces of all windows' tokens, in order, as a tensor with gradients."""
    import torch

    columns, mask = _pad(lessons, vocabulary)
    x = network["encoder"].embeddings.word_embeddings(torch.from_numpy(columns[0]))
    for table, column in zip(network["beside"], columns[1:], strict=True):
        x = x + table(torch.from_numpy(column))
    states = network["encoder"](inputs_embeds=x, attention_mask=torch.from_numpy(mask)).last_hidden_state
    rows = np.repeat(np.arange(len(lessons)), [len(lesson.firsts) for lesson in lessons])
    places = np.concatenate([lesson.firsts for lesson in lessons])
    return network["head"](states[torch.from_numpy(rows), torch.from_numpy(places)])


def _pad(lessons: Sequence[TrainingWindow], vocabulary: Vocabulary) -> tuple[NDArray[np.int64], Ints]:
    """Return ((4, B, n) pieces, shapes, gaps, lengths, padded to a multiple of `_STEP`; (B, n) mask, 1 for pieces)."""
    longest = max(lesson.size for lesson in lessons) + SPECIALS
    longest = -(-longest // _STEP) * _STEP
    columns, mask = np.zeros((4, len(lessons), longest), np.int64), np.zeros((len(lessons), longest), np.int64)
    columns[0] = vocabulary.padding
    for row, lesson in enumerate(lessons):
        end = lesson.size + 1
        columns[:, row, 1:end], mask[row, : end + 1] = lesson.columns, 1
        columns[0, row, 0], columns[0, row, end] = vocabulary.begin, vocabulary.end
    return columns, mask


def _batches(lessons: Sequence[TrainingWindow], pieces: int, rng: np.random.Generator) -> list[list[TrainingWindow]]:
    """Return the windows in shuffled batches of at most `pieces` padded pieces; those in one have similar lengths."""
    order, out = rng.permutation(len(lessons)).tolist(), list[list[TrainingWindow]]()
    for at in range(0, len(order), POOL):
        held: list[TrainingWindow] = []
        for place in sorted(order[at : at + POOL], key=lambda number: lessons[number].size):
            lesson = lessons[place]
            if held and (len(held) + 1) * (lesson.size + SPECIALS) > pieces:
                out.append(held)
                held = []
            held.append(lesson)
        out.append(held)
    return [out[place] for place in rng.permutation(len(out)).tolist()]


def _learn(network: Any, lessons: Lessons, watcher: Watcher) -> None:
    """Fine-tune the network in place; an interrupt ends it and is noted in the watcher; DataError without notes."""
    import torch

    config, batches = lessons.config, lessons(0)
    optimiser, schedule = _optimiser(network, config, len(batches) * config.epochs)
    try:
        for epoch in range(config.epochs):
            network.train()
            batches, total = batches if epoch == 0 else lessons(epoch), 0.0
            for batch in batches:
                right = torch.from_numpy(np.concatenate([lesson.labels for lesson in batch]))
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=config.short):
                    told = scores(network, batch, lessons.vocabulary)
                loss = torch.nn.functional.cross_entropy(told.float(), right)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
                optimiser.step()
                schedule.step()
                total += loss.item()
            if watcher.tell is not None:
                watcher.tell(Progress(KIND, epoch + 1, config.epochs, total / len(batches), None))
    except KeyboardInterrupt:
        watcher.interrupted = True
    finally:
        network.eval()


def _optimiser(network: Any, config: Reader, steps: int) -> tuple[Any, Any]:
    """Return (AdamW, a rate schedule that rises, then falls linearly); new parts learn `head` times as fast."""
    import torch

    old = [weights for weights in network["encoder"].parameters() if weights.requires_grad]
    new = [*network["beside"].parameters(), *network["head"].parameters()]
    groups = [
        {"params": [weights for weights in old if weights.ndim > 1], "lr": config.rate, "weight_decay": config.decay},
        {"params": [weights for weights in old if weights.ndim == 1], "lr": config.rate, "weight_decay": 0.0},
        {"params": new, "lr": config.rate * config.head, "weight_decay": 0.0},
    ]
    optimiser, rise = torch.optim.AdamW(groups), max(config.warmup * steps, 1.0)

    def share(step: int) -> float:
        """Return the share of the highest learning rate at a step: linear rise, then linear fall to 2 %."""
        # An epoch whose documents were drawn anew may have some more windows; the rate then stays at its lowest.
        return min((step + 1) / rise, max((steps - step) / max(steps - rise, 1.0), 0.02))

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, share)


def export(network: Any, config: Reader, vocabulary: Vocabulary) -> State:
    """Return the weights as `forward.prepare` reads them, in 8 bits, and the word pieces that text can reach."""
    encoder = network["encoder"]
    tables, kept = encoder.embeddings, [n for n, piece in enumerate(vocabulary.pieces) if is_reachable(piece)]
    positions = _array(tables.position_embeddings.weight)[: config.length + SPECIALS]
    words = Quantised.of(_array(tables.word_embeddings.weight)[kept], axis=1)
    arrays: dict[str, NDArray[Any]] = {
        "plan": np.array([encoder.config.num_attention_heads, len(config.layers)], np.int64),
        "words": words.values,
        "words_scale": words.scales,
        "positions": (positions + _array(tables.token_type_embeddings.weight)[0]).astype(np.float16),
    }
    for name, table in zip(BESIDE, network["beside"], strict=True):
        arrays[name] = _array(table.weight)
    arrays |= _norm("embedded", tables.LayerNorm) | _linear("head", network["head"])
    state = State(arrays, {"pieces": tuple(vocabulary.pieces[place] for place in kept)})
    for number, layer in enumerate(encoder.encoder.layer):
        attention, last = layer.attention.self, layer.output
        parts = _linear("query", attention.query) | _linear("key_value", attention.key, attention.value)
        parts |= _linear("out", layer.attention.output.dense) | _norm("attended", layer.attention.output.LayerNorm)
        parts |= _linear("inner", layer.intermediate.dense) | _linear("outer", last.dense)
        state = state.with_child(f"layer{number}", State(parts | _norm("done", last.LayerNorm)))
    return state


def is_reachable(piece: str) -> bool:
    """Tell whether text can be cut into a piece, or it is one of the four special ones.

    >>> is_reachable("[CLS]"), is_reachable("[unused7]"), is_reachable("##ing")
    (True, False, True)
    """
    bare = piece.removeprefix("##") or piece
    folded = [pair for sign in bare for pair in fold(sign)]
    same = "".join(sign for _, sign in folded) == bare
    return piece in (UNKNOWN, BEGIN, END, PADDING) or (same and (len(bare) == 1 or not any(map(_stands_alone, bare))))


def _stands_alone(sign: str) -> bool:
    """Tell whether a sign is no letter or digit, and is split from words by the tokenizer."""
    return not sign.isalnum() and any(char != sign or role != 2 for role, char in fold(sign))


def _linear(name: str, *modules: Any) -> dict[str, NDArray[Any]]:
    """Return linear layers side by side as one map of arrays: 8-bit matrix, scales, bias, named after `name`."""
    whole = Quantised.of(np.concatenate([_array(module.weight).T for module in modules], axis=1), axis=0)
    bias = np.concatenate([_array(module.bias) for module in modules])
    return {name: whole.values, f"{name}_scale": whole.scales, f"{name}_bias": bias}


def _norm(name: str, module: Any) -> dict[str, NDArray[Any]]:
    """Return the gain and shift of a torch layer norm as arrays named after `name`."""
    return {f"{name}_gain": _array(module.weight), f"{name}_shift": _array(module.bias)}


def _array(tensor: Any) -> NDArray[np.float32]:
    """Return a torch tensor as a float32 array."""
    array: NDArray[np.float32] = tensor.detach().numpy().astype(np.float32)
    return array


def read_vocabulary(config: Reader) -> Vocabulary:
    """Return the word pieces of the encoder's folder; ModelError if there is no vocab.txt or it is unfit."""
    path = embed.find(config.folder) / "vocab.txt"
    try:
        return Vocabulary.of(path.read_text(encoding="utf-8").rstrip("\n").split("\n"))
    except OSError:
        raise ModelError("cannot be read; a reader needs BERT's uncased word pieces", path=path) from None


def _check(plan: Any, config: Reader) -> None:
    """Raise ModelError unless the encoder is a BERT with GELU and enough layers and positions."""
    fits = getattr(plan, "model_type", "") == "bert" and getattr(plan, "hidden_act", "") == "gelu"
    if (
        not fits
        or config.layers[-1] >= plan.num_hidden_layers
        or config.length + SPECIALS > plan.max_position_embeddings
    ):
        raise ModelError("is no BERT with that many layers and positions; choose another folder, layers or length")
