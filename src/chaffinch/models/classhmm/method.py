"""The class HMM as a method of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chaffinch.bundle import State
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.core.methods import FitContext, Method, TrainingSet
from chaffinch.text import Document, Span
from chaffinch.text.explanation import Explanation

if TYPE_CHECKING:  # they need scipy, which is loaded when it is used
    from chaffinch.models.classhmm.model import Model


def _fit(data: TrainingSet, config: ClassHMM, context: FitContext) -> Model:
    """Train a class HMM with the resources and watcher of the context."""
    from chaffinch.models.classhmm.fit import fit

    return fit(data, config, resources=context.resources, watcher=context.watcher)


def _load(state: State) -> Model:
    """Rebuild a class HMM from a file's state; ModelError if its parts do not fit."""
    from chaffinch.models.classhmm.model import Model

    return Model.of(state)


def _reasons_unused(config: ClassHMM) -> dict[str, str]:
    """Return {training material: why these settings make no use of it}."""
    unused: dict[str, str] = {}
    if config.objective != "crf":
        unused["resources"] = "lexicons and clusters are features of the objective crf only; leave them out"
    if config.objective not in ("joint", "mix"):
        unused["untagged"] = (
            f"objective {config.objective} cannot learn from untagged documents; leave them out, or choose the "
            "objective joint or mix"
        )
    return unused


def _explain(model: Model, doc: Document, span: Span) -> Explanation:
    """Explain a span by its best path through the states, as an Explanation."""
    from chaffinch.models.classhmm.describe.explain import explain

    return explain(model, doc, span).explanation("classhmm")


def _parts(model: Model, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """Return the parts of spans, runs of tokens in one state, as sorted spans labelled PER/1, PER/2."""
    from chaffinch.models.latent.parts import parts

    return parts(model, doc, spans, source="classhmm")


def _common_words(model: Model) -> frozenset[str]:
    """Return the common words of the model's language pack."""
    return model.pack.common


def _facts(model: Model) -> Mapping[str, Any]:
    """Return the numbers of states and features, and, if measured, the held-out log-likelihoods."""
    known = model.words if model.words is not None else model.crf
    subs, held = model.labels.subs, model.portrait.held_out.round(4).tolist()
    facts: dict[str, Any] = {
        "states": {"O": subs[0], "others": subs[-1], "total": sum(subs)},
        "features": 0 if known is None else len(known.vocabulary),
    }
    if held:
        names = ("with_these_states", "with_one_per_class")
        facts["held_out_log_likelihood"] = dict(zip(names, held, strict=False))
    return facts


METHOD = Method(
    "classhmm",
    "a class HMM",
    ClassHMM,
    _fit,
    _load,
    frozenset({"spans", "soft", "untagged", "resources"}),
    unused=_reasons_unused,
    explain=_explain,
    parts=_parts,
    common_words=_common_words,
    facts=_facts,
    rank=2,
)
