"""The methods a tagger may be trained with: their settings, and the modules that learn and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from chaffinch.bundle import State
from chaffinch.errors import ConfigError, ModelError
from chaffinch.kernels.lattice import Floats
from chaffinch.models.cascade import fit as cascade
from chaffinch.models.cascade.fit import Bias, Cascade, Run
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.core import explain as explanation
from chaffinch.models.core.explain import Explanation
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.training import Each, Watcher
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.text import Document, Span

if TYPE_CHECKING:  # it needs scipy, which is loaded when it is used
    from chaffinch.models.hmmdp.describe import SubtagPath

Config: TypeAlias = Cascade | HMMDP | ClassHMM | Encoder

KINDS: dict[str, type[Config]] = {"cascade": Cascade, "hmmdp": HMMDP, "classhmm": ClassHMM, "encoder": Encoder}


class Model(Protocol):
    """What a tagger asks of a model."""

    @property
    def config(self) -> Config: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def floor(self) -> int: ...
    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]: ...
    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]: ...
    def posteriors(self, docs: Sequence[Document]) -> list[Floats]: ...
    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]: ...
    def alternatives(self, doc: Document, n: int) -> list[list[Run]]: ...
    def state(self) -> State: ...


def kind_of(config: Config) -> str:
    """The name of a method, which its models and their layers bear."""
    return next(kind for kind, own in KINDS.items() if isinstance(config, own))


def fit(
    docs: Sequence[Document], config: Config, *, layer: str | None, soft: str | None, dev: Sequence[Document],
    resources: Resources | None, start: Model | None, each: Each, watcher: Watcher,
) -> Model:  # fmt: skip
    """The model of the method that the settings are of."""
    if isinstance(config, Cascade):
        if start is not None and not isinstance(start, cascade.Model):
            raise ConfigError(f"a cascade goes on from a cascade, not from {kind_of(start.config)}")
        return cascade.fit(
            docs, config, layer=layer, soft=soft, dev=dev, resources=resources, start=start, each=each, watcher=watcher
        )
    if isinstance(config, Encoder):
        from chaffinch.models.encoder import model as encoder_model
        from chaffinch.models.encoder import network as encoder

        if start is not None and not isinstance(start, encoder_model.Model):
            raise ConfigError(f"an encoder goes on from an encoder, not from {kind_of(start.config)}")
        return encoder.fit(
            docs, config, layer=layer, soft=soft, dev=dev, resources=resources, start=start, watcher=watcher
        )
    if isinstance(config, ClassHMM):
        if start is not None:
            raise ConfigError(
                "classhmm learns from the beginning; leave out the model to go on from, or train a cascade"
            )
        from chaffinch.models.classhmm import fit as classhmm

        return classhmm.fit(docs, config, layer=layer, soft=soft, dev=dev, resources=resources, watcher=watcher)
    from chaffinch.models.hmmdp import fit as hmmdp
    from chaffinch.models.hmmdp import model as hmmdp_model

    if start is not None and not isinstance(start, hmmdp_model.Model):
        raise ConfigError(f"an HMM-DP goes on from an HMM-DP, not from {kind_of(start.config)}")
    return hmmdp.fit(docs, config, layer=layer, soft=soft, dev=dev, resources=resources, start=start, watcher=watcher)


def check_untagged(config: Config, soft: str | None) -> None:
    """Refuses documents without labels where nothing can be learnt from them."""
    if soft is not None:
        raise ConfigError("untagged documents stand beside tagged ones; with soft labels, give rows of zeros instead")
    given = isinstance(config, Cascade | Encoder)
    if given or (isinstance(config, ClassHMM) and config.objective not in ("joint", "mix")):
        what = f"objective {config.objective}" if isinstance(config, ClassHMM) else kind_of(config)
        raise ConfigError(
            f"{what} learns nothing from untagged documents; leave them out, or choose hmmdp, or classhmm with the "
            "objective joint or mix"
        )


def model_of(state: State) -> Model:
    """Return the model of a file, or of a part of one."""
    if state.kind == "cascade":
        return cascade.Model.of(state)
    if state.kind == "hmmdp":
        from chaffinch.models.hmmdp import model as hmmdp_model

        return hmmdp_model.Model.of(state)
    if state.kind == "classhmm":
        from chaffinch.models.classhmm import model as classhmm_model

        return classhmm_model.Model.of(state)
    if state.kind == "encoder":
        from chaffinch.models.encoder import network as encoder

        return encoder.model_of(state)
    raise ModelError(f"is a model of kind {state.kind!r}, not a tagger ({', '.join(KINDS)})")


def explain(model: Model, doc: Document, span: Span) -> Explanation | SubtagPath:
    """Why a model reads a span as it does."""
    if isinstance(model, cascade.Model):
        return explanation.explain(model, doc, span)
    if isinstance(model.config, Encoder):
        raise ConfigError("an encoder cannot say why it reads a span so; train a cascade, a class HMM or an HMM-DP")
    if isinstance(model.config, ClassHMM):
        from chaffinch.models.classhmm import model as classhmm_model
        from chaffinch.models.classhmm.describe import parts as substructure_parts

        return substructure_parts.explain(cast(classhmm_model.Model, model), doc, span)
    from chaffinch.models.hmmdp import describe as portrait
    from chaffinch.models.hmmdp import model as hmmdp_model

    return portrait.explain(cast(hmmdp_model.Model, model), doc, span)


def parts(model: Model, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """The parts of spans, by the states of a model that has several for a tag."""
    if isinstance(model, cascade.Model):
        raise ConfigError("a cascade knows no parts of spans: it has one state per tag; train a class HMM or an HMM-DP")
    if isinstance(model.config, Encoder):
        raise ConfigError("an encoder knows no parts of spans; train a class HMM or an HMM-DP")
    from chaffinch.models.classhmm.describe import parts as substructure_parts

    return substructure_parts.parts(cast(substructure_parts.Latent, model), doc, spans)


def common_words(model: Model) -> frozenset[str]:
    """The common words of the model's language, in lower case; none if it knows no language."""
    if isinstance(model, cascade.Model) or isinstance(model.config, Encoder):
        return frozenset()
    if isinstance(model.config, ClassHMM):
        from chaffinch.models.classhmm import model as classhmm_model

        return cast(classhmm_model.Model, model).pack.common
    from chaffinch.models.hmmdp import model as hmmdp_model

    return cast(hmmdp_model.Model, model).symbols.pack.common
