"""The methods a tagger can be trained with. A folder with a module `method` that defines `METHOD` adds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from chaffinch.bundle import State
from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.models.core.methods import (
    Config,
    FitContext,
    Material,
    Method,
    Model,
    TrainingSet,
    list_alternatives,
)
from chaffinch.text import Document, Span
from chaffinch.text.explanation import Explanation, explain_by_occlusion

__all__ = [
    "METHODS", "Config", "Method", "Model", "TrainingSet", "explain", "fit", "method_of", "model_of", "parts",
    "settings_of",
]  # fmt: skip


def _discover() -> dict[str, Method]:
    """Import the `method` modules of the folders next to this file; return {name: method}, sorted by rank."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/method.py"))
    methods: list[Method] = [import_module(f"chaffinch.models.{folder}.method").METHOD for folder in folders]
    return {method.name: method for method in sorted(methods, key=lambda method: method.rank)}


METHODS: dict[str, Method] = _discover()


def method_of(config: Config) -> Method:
    """Return the method whose settings these are; ConfigError if they are no method's."""
    for method in METHODS.values():
        if type(config) is method.config:
            return method
    raise ConfigError(f"{type(config).__name__} is not the settings class of a tagger ({', '.join(METHODS)})")


def settings_of(config: Config | str) -> Config:
    """Return settings as they are, or the default ones of the method named; ConfigError for anything else."""
    if isinstance(config, str):
        if config not in METHODS:
            raise ConfigError(f"there is no method {config!r}; {did_you_mean(config, METHODS)}")
        default: Config = METHODS[config].config()
        return default
    if type(config) not in {method.config for method in METHODS.values()}:
        names = ", ".join(f"cf.{method.config.__name__}()" for method in METHODS.values())
        what = config.__name__ if isinstance(config, type) else type(config).__name__
        raise ConfigError(f"{what} is not the settings of a tagger; pass {names}, or a name: {', '.join(METHODS)}")
    return config


def fit(data: TrainingSet, config: Config, context: FitContext) -> Model:
    """Return a model trained by the method of the settings; ConfigError if it cannot learn from this material."""
    method = method_of(config)
    for material in _materials(data, context):
        method.check(material, config, _methods_by_name())
    start = context.start
    if start is not None and method_of(start.config) is not method:
        raise ConfigError(
            f"{method.title} can continue only from {method.title}, not from {method_of(start.config).name}"
        )
    return method.fit(data.merge(), config, context)


def model_of(state: State) -> Model:
    """Return the model of a file, or of a part of one; ModelError if its kind is no tagging method."""
    method = METHODS.get(state.kind)
    if method is None:
        raise ModelError(f"is a model of kind {state.kind!r}, not a tagger ({', '.join(METHODS)})")
    return method.load(state)


def explain(model: Model, doc: Document, span: Span) -> Explanation:
    """Return why a model reads a span as it does; DataError for an unknown label, or a span that cuts tokens."""
    method = method_of(model.config)
    if method.explain is not None:
        return method.explain(model, doc, span)
    if span.label not in model.names:
        raise DataError(f"the model has no label {span.label!r}; it has {', '.join(model.names)}")
    return explain_by_occlusion(doc, span, model.posteriors, ("O", *model.names), name=method.name)


def parts(model: Model, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """Return the parts of spans in one state of the model each; ConfigError if its method has no such parts."""
    method = method_of(model.config)
    if method.parts is None:
        able = list_alternatives([other.title for other in _methods_by_name() if other.parts is not None])
        raise ConfigError(f"{method.title} cannot divide spans into parts; train {able}")
    return method.parts(model, doc, spans)


def _materials(data: TrainingSet, context: FitContext) -> Iterator[Material]:
    """Yield the kinds of material in the training set and context; ConfigError for untagged and soft together."""
    if data.soft is None:
        yield "spans"
    else:
        yield "soft"
        if data.untagged:
            raise ConfigError(
                "untagged documents cannot be combined with soft labels; give them soft labels that are rows of zeros"
            )
    if data.untagged:
        yield "untagged"
    if context.start is not None:
        yield "model"
    lists = context.resources
    if lists is not None and (lists.clusters is not None or lists.lexicon is not None):
        yield "resources"


def _methods_by_name() -> list[Method]:
    """Return all methods, sorted by name."""
    return sorted(METHODS.values(), key=lambda method: method.name)
