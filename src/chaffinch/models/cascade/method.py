"""What a cascade says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.explain import explain
from chaffinch.models.cascade.fit import fit
from chaffinch.models.cascade.model import Model
from chaffinch.models.core.linear import lighten
from chaffinch.models.core.methods import FitContext, Method, TrainingSet

_TWO_STAGES = "two stages learn from spans, from the beginning; use stages=1 for soft labels or to go on"


def _fit(data: TrainingSet, config: Cascade, context: FitContext) -> Model:
    return fit(
        data, config, resources=context.resources, start=context.start, each=context.each, watcher=context.watcher
    )


def _unused(config: Cascade) -> dict[str, str]:
    return dict.fromkeys(("soft", "model"), _TWO_STAGES) if config.stages == 2 else {}


def _slower(config: Cascade) -> Cascade:
    """Return the settings with half the epochs at half the rate."""
    epochs = max(1, config.epochs // 2)
    return replace(config, epochs=epochs, rate=config.rate / 2, aggressiveness=config.aggressiveness / 2)


def _facts(model: Model) -> Mapping[str, Any]:
    parts = [*model.readings, *([] if model.classifier is None else [model.classifier])]
    return {"features": sum(len(part.vocabulary) for part in parts)}


def _trim(model: Model, least: float) -> Model:
    """Return the model without weights below `least`."""
    return replace(model, readings=tuple(lighten(part, least) for part in model.readings))


def _hide_words(model: Model, hidden: frozenset[str]) -> Model:
    """Return the model with word lists that lack the hidden words."""
    return replace(model, resources=model.resources.hiding(hidden))


METHOD = Method(
    "cascade",
    "a cascade",
    Cascade,
    _fit,
    Model.of,
    frozenset({"spans", "soft", "model", "layers", "resources"}),
    unused=_unused,
    fixed=("stages", "scheme", "layers"),
    slower=_slower,
    explain=explain,
    facts=_facts,
    trim=_trim,
    hide_words=_hide_words,
    rank=0,
)
