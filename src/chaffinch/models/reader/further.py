"""Learn further: a finished reader learns some of its numbers from other notes. Torch is imported when it is used.

    weights in 8 bits → floats → the windows, loss and steps of `fit` → what may move, rounded as `fit` rounds it

Word vectors, positions and the matrices of all layers stay as they are, byte for byte; norms, biases, the tables beside
the pieces and the last layer move. A few notes are enough for these, and they have little room for what the notes say.
H numbers per piece, V word pieces, N positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.features import embed
from chaffinch.models.core.training import Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import BESIDE, IGNORED, Epochs, Lessons, build, export, train
from chaffinch.models.reader.forward import EPSILON, Quantised
from chaffinch.models.reader.model import KIND, Model

_MOVED = ("_bias", "_gain", "_shift")  # how the names of arrays end that learn further
_WHOLE = (*BESIDE, "head", "head_scale")  # arrays that learn further as well

Arrays = Mapping[str, NDArray[Any]]
Values = dict[Any, NDArray[Any]]  # parameters of a network, and what they are set to


def fit_further(
    model: Model, epochs: Epochs, config: Reader, *, layer: str = "gold", watcher: Watcher | None = None
) -> Model:
    """Return the reader after more epochs as `config` says; its own config stays; MissingExtraError, DataError.

    Labels are the reader's; tokens with another label are read and not learnt from. `config` says how to learn: its
    layers, length and overlap are the reader's. The same model, documents, config and versions give the same model.
    """
    embed.library()
    kept = replace(model.config, layers=_layers(model))
    plan = replace(config, folder=None, layers=kept.layers, length=kept.length, overlap=kept.overlap)
    lessons = Lessons(epochs, model.names, model.vocabulary, plan, layer, IGNORED)
    network = train(lambda: freeze(restore(model, plan)), lessons, watcher or Watcher())
    learnt, old = export(network, plan, model.vocabulary).arrays, model.weights
    arrays = {name: learnt[name] if moves(name) else array for name, array in old.arrays.items()}
    return Model.of(State(arrays, old.strings, KIND, asdict(model.config), model.names))


def moves(name: str) -> bool:
    """Tell whether the array of this name learns further.

    >>> moves("layer0.inner_bias"), moves("layer0.inner"), moves("words")
    (True, False, False)
    """
    return name.endswith(_MOVED) or name in _WHOLE


def freeze(network: Any) -> Any:
    """Freeze the encoder's word vectors, positions and matrices, in place; return the network."""
    for weights in network["encoder"].parameters():
        weights.requires_grad_(weights.ndim == 1)
    return network


def restore(model: Model, config: Reader) -> Any:
    """Return the network of a model in floats: the inverse of `fit.export`, from which it gives the same arrays."""
    import torch
    import transformers

    arrays = model.weights.arrays
    words = Quantised(arrays["words"], arrays["words_scale"]).rows(np.arange(len(arrays["words"])))
    (V, H), N = words.shape, len(arrays["positions"])
    plan = transformers.BertConfig(
        vocab_size=V, hidden_size=H, num_hidden_layers=len(_layers(model)), type_vocab_size=1,
        num_attention_heads=int(arrays["plan"][0]), intermediate_size=arrays["layer0.inner"].shape[1],
        max_position_embeddings=N, layer_norm_eps=EPSILON, pad_token_id=model.vocabulary.padding,
    )  # fmt: skip
    encoder = transformers.BertModel(plan, add_pooling_layer=False)
    network = build(encoder, replace(config, layers=_layers(model)), len(model.labels))
    tables = encoder.embeddings
    values: Values = {tables.word_embeddings.weight: words, tables.position_embeddings.weight: arrays["positions"]}
    values[tables.token_type_embeddings.weight] = np.zeros((1, H))  # it is part of the positions
    values |= {table.weight: arrays[name] for table, name in zip(network["beside"], BESIDE, strict=True)}
    values |= _norm(arrays, "embedded", tables.LayerNorm) | _linear(arrays, "head", network["head"])
    for number, layer in enumerate(encoder.encoder.layer):
        values |= _layer(model.weights.child(f"layer{number}").arrays, layer)
    with torch.no_grad():
        for parameter, array in values.items():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(array, np.float32)))
    return network


def _layers(model: Model) -> tuple[int, ...]:
    """Return the numbers of the layers that the model has, from 0."""
    return tuple(range(int(model.weights.arrays["plan"][1])))


def _layer(arrays: Arrays, layer: Any) -> Values:
    """Return the values of a torch transformer layer."""
    attention, last = layer.attention.self, layer.output
    values = _linear(arrays, "query", attention.query) | _linear(arrays, "key_value", attention.key, attention.value)
    values |= _linear(arrays, "out", layer.attention.output.dense)
    values |= _linear(arrays, "inner", layer.intermediate.dense) | _linear(arrays, "outer", last.dense)
    return values | _norm(arrays, "attended", layer.attention.output.LayerNorm) | _norm(arrays, "done", last.LayerNorm)


def _linear(arrays: Arrays, name: str, *modules: Any) -> Values:
    """Return the values of linear layers that are side by side in the arrays of this name."""
    whole = Quantised(arrays[name], arrays[f"{name}_scale"]).matrix().T
    weights, biases = np.split(whole, len(modules)), np.split(arrays[f"{name}_bias"], len(modules))
    values: Values = {module.weight: weight for module, weight in zip(modules, weights, strict=True)}
    return values | {module.bias: bias for module, bias in zip(modules, biases, strict=True)}


def _norm(arrays: Arrays, name: str, module: Any) -> Values:
    """Return the values of a torch layer norm."""
    return {module.weight: arrays[f"{name}_gain"], module.bias: arrays[f"{name}_shift"]}
