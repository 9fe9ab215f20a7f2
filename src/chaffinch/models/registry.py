"""The methods a tagger may be trained with. A new one is a folder with a module `method` whose constant is `METHOD`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from chaffinch.bundle import State
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.core.methods import (
    Config,
    FitContext,
    Material,
    Method,
    Model,
    SpanExplanation,
    TrainingSet,
    list_alternatives,
)
from chaffinch.text import Document, Span

__all__ = ["METHODS", "Config", "Method", "Model", "TrainingSet", "explain", "fit", "method_of", "model_of", "parts"]


def _discover() -> dict[str, Method]:
    """Return the methods of the folders beside this module by name, the first of lists first."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/method.py"))
    methods: list[Method] = [import_module(f"chaffinch.models.{folder}.method").METHOD for folder in folders]
    return {method.name: method for method in sorted(methods, key=lambda method: method.rank)}


METHODS: dict[str, Method] = _discover()


def method_of(config: Config) -> Method:
    """Return the method whose settings these are."""
    for method in METHODS.values():
        if type(config) is method.config:
            return method
    raise ConfigError(f"{type(config).__name__} is none of the settings of a tagger ({', '.join(METHODS)})")


def fit(data: TrainingSet, config: Config, context: FitContext) -> Model:
    """Return the model that the method of the settings learns; ConfigError if it cannot learn from what is given."""
    method = method_of(config)
    for material in _materials(data, context):
        method.check(material, config, _sorted())
    start = context.start
    if start is not None and method_of(start.config) is not method:
        raise ConfigError(f"{method.title} goes on from {method.title}, not from {method_of(start.config).name}")
    return method.fit(data.merge(), config, context)


def model_of(state: State) -> Model:
    """Return the model of a file, or of a part of one."""
    method = METHODS.get(state.kind)
    if method is None:
        raise ModelError(f"is a model of kind {state.kind!r}, not a tagger ({', '.join(METHODS)})")
    return method.load(state)


def explain(model: Model, doc: Document, span: Span) -> SpanExplanation:
    """Return why a model reads a span as it does; ConfigError if its method cannot say so."""
    method = method_of(model.config)
    if method.explain is None:
        able = list_alternatives([other.title for other in _sorted() if other.explain is not None])
        raise ConfigError(f"{method.title} cannot say why it reads a span so; train {able}")
    return method.explain(model, doc, span)


def parts(model: Model, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """Return the parts of spans, by the states of a model that has several for a tag; ConfigError if it has one."""
    method = method_of(model.config)
    if method.parts is None:
        able = list_alternatives([other.title for other in _sorted() if other.parts is not None])
        raise ConfigError(f"{method.title} knows no parts of spans; train {able}")
    return method.parts(model, doc, spans)


def _materials(data: TrainingSet, context: FitContext) -> Iterator[Material]:
    """Yield what a model is to be learnt from."""
    if data.soft is None:
        yield "spans"
    else:
        yield "soft"
        if data.untagged:
            raise ConfigError(
                "untagged documents stand beside tagged ones; with soft labels, give rows of zeros instead"
            )
    if data.untagged:
        yield "untagged"
    if context.start is not None:
        yield "model"
    lists = context.resources
    if lists is not None and (lists.clusters is not None or lists.lexicon is not None):
        yield "resources"


def _sorted() -> list[Method]:
    """Return all methods by name."""
    return sorted(METHODS.values(), key=lambda method: method.name)
