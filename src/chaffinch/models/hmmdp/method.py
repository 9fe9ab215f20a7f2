"""The registry entry of HMM-DP: what it learns from and what its models can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chaffinch import languages
from chaffinch.bundle import State
from chaffinch.models.core.linear import drop_small_weights
from chaffinch.models.core.methods import FitContext, Method, TrainingSet
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.text import Document, Span
from chaffinch.text.explanation import Explanation

if TYPE_CHECKING:  # they need scipy, which is loaded when it is used
    from chaffinch.models.hmmdp.model import Model

_SECOND_STAGE = "for the discriminative stage, which these settings turn off; leave them out"
_RULES = "rules name sub-categories of spans; with soft labels leave them out"
# Settings of the generative stage, which cannot change when training continues from a model.
_GENERATIVE = (
    "outside", "inside", "emissions", "language", "tags", "sentences", "word_classes", "min_count", "alpha_emission",
    "alpha_tags", "alpha_subtags",
    "alpha_sticks", "learn_priors", "temper", "form", "states", "sticks", "start", "passes", "batches", "stochastic",
    "parameters", "rules",
)  # fmt: skip


def _fit(data: TrainingSet, config: HMMDP, context: FitContext) -> Model:
    """Train an HMM-DP with the resources, earlier model and watcher of the context."""
    from chaffinch.models.hmmdp.fit import fit

    return fit(data, config, resources=context.resources, start=context.start, watcher=context.watcher)


def _load(state: State) -> Model:
    """Rebuild an HMM-DP from a file's state; ModelError if its parts do not fit."""
    from chaffinch.models.hmmdp.model import Model

    return Model.of(state)


def _find_unused(config: HMMDP) -> dict[str, str]:
    """Return {setting or training material: why these settings make no use of it}."""
    unused: dict[str, str] = {}
    if not config.discriminative:
        unused["model"] = "an HMM-DP goes on with the discriminative stage; leave out the model to go on from"
        unused["resources"] = f"lexicons and clusters are {_SECOND_STAGE}"
        unused["epochs"] = f"epochs are {_SECOND_STAGE}"
    if config.rules is not None:
        unused |= {"soft": _RULES, "untagged": _RULES}
    return unused


def _explain(model: Model, doc: Document, span: Span) -> Explanation:
    """Explain a span by its best path through the sub-tags, as an Explanation."""
    from chaffinch.models.hmmdp.describe import explain

    return explain(model, doc, span).explanation("hmmdp")


def _parts(model: Model, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """Return the parts of spans, runs of tokens in one sub-tag, as sorted spans labelled PER/1, PER/2."""
    from chaffinch.models.latent.parts import parts

    rules = model.config.rules
    return parts(model, doc, spans, source="hmmdp", category=str if rules is None else rules.category)


def _common_words(model: Model) -> frozenset[str]:
    """Return the common words of the model's language pack."""
    return model.symbols.pack.common


def _facts(model: Model) -> Mapping[str, Any]:
    """Return the numbers of symbols, of sub-tags (set, in all, in use) and of features (0 if generative)."""
    from chaffinch.models.hmmdp.describe import use

    known, rows = model.symbols, use(model)
    return {
        "symbols": {"words": len(known.words), "signatures": len(known.signatures)},
        "subtags": {
            "O": model.config.outside, "others": model.config.inside, "total": sum(row.subtags for row in rows),
            "in_use": sum(row.effective for row in rows),
        },
        "features": 0 if model.latent is None else len(model.latent.vocabulary),
    }  # fmt: skip


def _trim(model: Model, least: float) -> Model:
    """Return the model without CRF weights smaller than `least`; unchanged if it has no discriminative stage."""
    return replace(model, latent=model.latent and drop_small_weights(model.latent, least))


def _hide_words(model: Model, hidden: frozenset[str]) -> Model:
    """Return the model whose word lists and language pack lack the words `hidden`, in place of those hidden before."""
    if model.resources.hidden == hidden:
        return model
    symbols = replace(model.symbols, pack=languages.pack(model.config.language, hidden))
    return replace(model, resources=model.resources.hide_words(hidden), symbols=symbols)


METHOD = Method(
    "hmmdp",
    "an HMM-DP",
    HMMDP,
    _fit,
    _load,
    frozenset({"spans", "soft", "untagged", "model", "resources"}),
    unused=_find_unused,
    fixed=_GENERATIVE,
    new_labels=False,
    split="lines",
    explain=_explain,
    parts=_parts,
    common_words=_common_words,
    facts=_facts,
    trim=_trim,
    hide_words=_hide_words,
    rank=1,
)
