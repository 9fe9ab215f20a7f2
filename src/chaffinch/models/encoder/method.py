"""The encoder as a method of the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chaffinch.bundle import Bundle, State
from chaffinch.errors import ModelError
from chaffinch.models.core.methods import FitContext, Method, TrainingSet
from chaffinch.models.encoder.config import Encoder

if TYPE_CHECKING:  # it needs scipy, which is loaded when it is used
    from chaffinch.models.encoder.model import Model

_PLAN = {"model_type": "type", "num_hidden_layers": "layers", "hidden_size": "width", "vocab_size": "word pieces"}


def _fit(data: TrainingSet, config: Encoder, context: FitContext) -> Model:
    """Fine-tune an encoder with the earlier model and watcher of the context."""
    from chaffinch.models.encoder.network import fit

    return fit(data, config, start=context.start, watcher=context.watcher)


def _load(state: State) -> Model:
    """Return the encoder model of a file's state; ModelError if it cannot be read."""
    from chaffinch.models.encoder.network import model_of

    return model_of(state)


def _slower(config: Encoder) -> Encoder:
    """Return the settings with half the epochs; continuing from a model halves the rate as well."""
    return replace(config, epochs=max(1, config.epochs // 2))


def _facts(model: Model) -> Mapping[str, Any]:
    """Return {"weights": number of weights of the network}."""
    return {"weights": sum(array.size for array in model.state().arrays.values())}


def _describe(file: Bundle) -> Mapping[str, Any]:
    """Return the type, layers, width, word pieces and parameters of a file's network; ModelError if unreadable."""
    try:
        plan: dict[str, Any] = json.loads(file.strings["plan"][0])
    except (KeyError, IndexError, ValueError):
        raise ModelError("its network cannot be read; copy the file again, or retrain the model") from None
    network = {what: plan[key] for key, what in _PLAN.items() if key in plan}
    weights = [array for key, array in file.arrays.items() if key.startswith(("encoder.", "head."))]
    network["parameters"] = sum(array.size for array in weights)
    return {"network": network}


METHOD = Method(
    "encoder",
    "an encoder",
    Encoder,
    _fit,
    _load,
    frozenset({"spans", "soft", "model"}),
    fixed=("folder",),
    slower=_slower,
    facts=_facts,
    describe=_describe,
    rank=3,
)
