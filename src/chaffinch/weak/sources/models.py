"""Sources that are other systems: a Chaffinch tagger, a spaCy pipeline, a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from chaffinch.checks import check_flags, check_name, did_you_mean
from chaffinch.errors import ConfigError, MissingExtraError
from chaffinch.models.tagger import Tagger, load
from chaffinch.text import Document, Span
from chaffinch.weak.sources.base import Found, SourceKind, check_labels, relabel


@dataclass(frozen=True, slots=True)
class FromTagger(SourceKind):
    """Spans of a tagger: one in memory, a model file, or a packaged model by its name.

    `labels` is a table from its labels to ours; those not in it are left out. Without one all are kept as they are.
    """

    kind: ClassVar[str] = "tagger"
    beyond_data: ClassVar[str] = "a model of its own"
    slow: ClassVar[bool] = True
    place_fields: ClassVar[tuple[str, ...]] = ("model",)
    model_fields: ClassVar[tuple[str, ...]] = ("model",)

    name: str
    model: Tagger | str | Path = field(repr=False)
    _: KW_ONLY
    labels: Mapping[str, str] = field(default_factory=dict)
    negative_reliable: bool = False
    _tagger: Tagger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Load the tagger and check the settings; raise ConfigError for a label that it does not have."""
        check_name(self.name, "name")
        check_flags(self, "negative_reliable")
        object.__setattr__(self, "labels", check_labels(self.labels, "labels"))
        object.__setattr__(self, "_tagger", self.model if isinstance(self.model, Tagger) else load(self.model))
        unknown = [label for label in self.labels if label not in self._tagger.labels]
        if unknown:
            raise ConfigError(f"the model has no label {unknown[0]!r}; it has {', '.join(self._tagger.labels)}")

    def __call__(self, doc: Document) -> list[Span]:
        """Return the tagger's spans, labels mapped by `labels`, unlisted ones left out; all spans if it is empty."""
        return relabel(self._tagger(doc).layer(self._tagger.layer), self.labels)


@dataclass(frozen=True, slots=True)
class FromSpacy(SourceKind):
    """Entities of a spaCy pipeline: one in memory, an installed package's name, or a folder (extra `spacy`).

    `labels` is a table from its labels to ours; those not in it are left out. Without one all are kept as they are.
    """

    kind: ClassVar[str] = "spacy"
    beyond_data: ClassVar[str] = "a spaCy pipeline"
    slow: ClassVar[bool] = True
    place_fields: ClassVar[tuple[str, ...]] = ("pipeline",)

    name: str
    pipeline: Callable[[str], Any] | str | Path = field(repr=False)
    _: KW_ONLY
    labels: Mapping[str, str] = field(default_factory=dict)
    negative_reliable: bool = False
    _run: Callable[[str], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Load the spaCy pipeline and check the settings; raise ConfigError for a label that it does not have."""
        check_name(self.name, "name")
        check_flags(self, "negative_reliable")
        object.__setattr__(self, "labels", check_labels(self.labels, "labels"))
        run = _pipeline(self.pipeline) if isinstance(self.pipeline, str | Path) else self.pipeline
        object.__setattr__(self, "_run", run)
        known = {label for labels in getattr(run, "pipe_labels", {}).values() for label in labels}
        unknown = [label for label in self.labels if label not in known]
        if known and unknown:
            raise ConfigError(f"the pipeline has no label {unknown[0]!r}; {did_you_mean(unknown[0], sorted(known))}")

    def __call__(self, doc: Document) -> list[Span]:
        """Return the pipeline's entities as spans, labels mapped by `labels`, unlisted left out; all if it is empty."""
        found = self._run(doc.text).ents
        return relabel((Span(entity.start_char, entity.end_char, entity.label_) for entity in found), self.labels)


@dataclass(frozen=True, slots=True)
class FromFunction(SourceKind):
    """A user's function from a document to spans, or to bare offsets, which get the label. See `source`."""

    kind: ClassVar[str] = "python"
    in_files: ClassVar[bool] = False
    beyond_data: ClassVar[str] = "Python code"
    slow: ClassVar[bool] = True

    name: str
    function: Callable[[Document], Iterable[Found]] = field(repr=False)
    _: KW_ONLY
    label: str = ""
    on: tuple[str, ...] = ()
    negative_reliable: bool = False

    def __post_init__(self) -> None:
        """Check the settings; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_flags(self, "negative_reliable")
        if self.label:
            check_name(self.label, "label")

    def __call__(self, doc: Document) -> Iterable[Found]:
        """Return what the user's function finds in the document."""
        return self.function(doc)


def source(
    name: str, *, label: str = "", on: Iterable[str] = (), negative_reliable: bool = False
) -> Callable[[Callable[[Document], Iterable[Found]]], FromFunction]:
    """Return a decorator that makes a source of a function from a document to spans, or to pairs of offsets.

    `on` names the sources that must run before.

    >>> @source("shouting", label="LOUD")
    ... def shouting(doc):
    ...     return [(a, b) for a, b in doc.tokens.tolist() if doc.text[a:b].isupper()]
    >>> list(shouting(Document.make("Come HERE")))
    [(5, 9)]
    """

    def make(function: Callable[[Document], Iterable[Found]]) -> FromFunction:
        """Return a source that calls the function."""
        return FromFunction(name, function, label=label, on=tuple(on), negative_reliable=negative_reliable)

    return make


def _pipeline(place: str | Path) -> Callable[[str], Any]:
    """Load a spaCy pipeline; raise MissingExtraError without spaCy, ConfigError if there is no such pipeline."""
    try:
        import spacy
    except ImportError:
        raise MissingExtraError("spacy", "spacy") from None
    try:
        loaded: Callable[[str], Any] = spacy.load(place)
    except OSError:
        raise ConfigError(
            f"spaCy has no pipeline {str(place)!r}; install its package with pip, or name its folder"
        ) from None
    return loaded
