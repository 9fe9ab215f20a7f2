"""The cascade as a method of the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.explain import explain
from chaffinch.models.cascade.fit import fit
from chaffinch.models.cascade.model import Model
from chaffinch.models.core.linear import drop_small_weights
from chaffinch.models.core.methods import FitContext, Method, TrainingSet

_TWO_STAGES = "two stages learn from spans only, and cannot continue from a model; use stages=1 for either"

_AT_ONCE = "objective lbfgs learns from spans only, and cannot continue from a model; use objective=crf for either"


def _fit(data: TrainingSet, config: Cascade, context: FitContext) -> Model:
    """Train a cascade with the resources, earlier model and watcher of the context."""
    return fit(
        data, config, resources=context.resources, start=context.start, each=context.each, watcher=context.watcher
    )


def _reasons_unused(config: Cascade) -> dict[str, str]:
    """Return {training material: why these settings make no use of it}."""
    if config.objective == "lbfgs":
        return dict.fromkeys(("soft", "model"), _AT_ONCE)
    return dict.fromkeys(("soft", "model"), _TWO_STAGES) if config.stages == 2 else {}


def _slower(config: Cascade) -> Cascade:
    """Return the settings with half the epochs, at half the rate and aggressiveness, for training further."""
    epochs = max(1, config.epochs // 2)
    return replace(config, epochs=epochs, rate=config.rate / 2, aggressiveness=config.aggressiveness / 2)


def _facts(model: Model) -> Mapping[str, Any]:
    """Return the number of features of all readings and the classifier, under the key "features"."""
    parts = [*model.readings, *([] if model.classifier is None else [model.classifier])]
    return {"features": sum(len(part.vocabulary) for part in parts)}


def _trim(model: Model, least: float) -> Model:
    """Return the model without weights of readings that are smaller than `least`; the classifier stays as it is."""
    return replace(model, readings=tuple(drop_small_weights(part, least) for part in model.readings))


def _hide_words(model: Model, hidden: frozenset[str]) -> Model:
    """Return the model whose word lists lack the words `hidden`, in place of those hidden before."""
    return replace(model, resources=model.resources.hide_words(hidden))


METHOD = Method(
    "cascade",
    "a cascade",
    Cascade,
    _fit,
    Model.of,
    frozenset({"spans", "soft", "model", "layers", "resources"}),
    unused=_reasons_unused,
    fixed=("stages", "scheme", "layers"),
    slower=_slower,
    explain=explain,
    facts=_facts,
    trim=_trim,
    hide_words=_hide_words,
    rank=0,
)
