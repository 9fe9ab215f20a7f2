"""What a method of tagging says of itself: one typed constant per method, read by everybody else.

A method is a folder whose module `method` holds that constant; `chaffinch.models.registry` lists them. Whatever needs
scipy, torch or compiled code is imported inside the functions of that module, so that listing methods is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from chaffinch.bundle import Bundle, State
from chaffinch.errors import ConfigError
from chaffinch.kernels.lattice import Floats
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.core.tasks import with_untagged
from chaffinch.models.core.training import Each, Watcher
from chaffinch.text import Document, Span
from chaffinch.text.document import Splitter

# What a tagger may be trained with: spans, soft labels, documents without labels, an earlier model to go on from,
# layers of other taggers, and lexicons or clusters of words.
Material: TypeAlias = Literal["spans", "soft", "untagged", "model", "layers", "resources"]

MERGED = "tagged or open"  # soft labels of documents that stand beside untagged ones


class Config(Protocol):
    """The settings of a method: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int: ...


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


class SpanExplanation(Protocol):
    """Why a span is read as it is; printed, it says so in words."""

    @property
    def span(self) -> Span: ...
    @property
    def runner_up(self) -> tuple[Span, ...]: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrainingSet:
    """Documents to learn from: `layer` holds the right spans, or soft labels called `soft` say what is known.

    `untagged` documents, of which nothing is known, are learnt from as well; `dev` documents decide when to stop.
    """

    documents: Sequence[Document]
    layer: str | None = None
    soft: str | None = None
    untagged: Sequence[Document] = ()
    dev: Sequence[Document] = ()

    def merge(self) -> TrainingSet:
        """Return the same with untagged documents among the others, all of them with soft labels."""
        if not self.untagged:
            return self
        documents = with_untagged(self.documents, self.untagged, layer=self.layer, name=MERGED)
        return TrainingSet(documents, self.layer, MERGED, dev=self.dev)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitContext:
    """What helps learning: lexicons and clusters, a model of the same method to go on from, threads, a listener."""

    resources: Resources | None = None
    start: Any = None
    each: Each = map
    watcher: Watcher = field(default_factory=Watcher)


def _no_reason(_: Any) -> Mapping[str, str]:
    return {}


def _no_words(_: Any) -> frozenset[str]:
    return frozenset()


def _no_facts(_: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method of tagging. `unused` says what has no effect with some settings, and why, in whole sentences.

    Its keys are materials or other settings. `learns_from` are the materials that the method learns from with the right
    settings. An operation that is None is one that the method does not have.
    """

    name: str  # which its models, their files and their layers bear
    title: str  # in a sentence, with its article
    config: type[Any]
    fit: Callable[[TrainingSet, Any, FitContext], Model] = field(repr=False)
    load: Callable[[State], Model] = field(repr=False)
    learns_from: frozenset[Material]
    unused: Callable[[Any], Mapping[str, str]] = field(default=_no_reason, repr=False)
    fixed: tuple[str, ...] = ()  # settings that an earlier model fixes when it goes on
    new_labels: bool = True  # going on, it may learn labels that the earlier model lacks
    slower: Callable[[Any], Any] | None = field(default=None, repr=False)  # the settings of a short, gentle going on
    split: Splitter = "prose"  # how it is best to cut text into sentences
    explain: Callable[[Any, Document, Span], SpanExplanation] | None = field(default=None, repr=False)
    parts: Callable[[Any, Document, Sequence[Span]], list[Span]] | None = field(default=None, repr=False)
    common_words: Callable[[Any], frozenset[str]] = field(default=_no_words, repr=False)  # of its language, lower case
    facts: Callable[[Any], Mapping[str, Any]] = field(default=_no_facts, repr=False)  # how large a model is
    describe: Callable[[Bundle], Mapping[str, Any]] | None = field(default=None, repr=False)  # a file, for people
    trim: Callable[[Any, float], Any] | None = field(default=None, repr=False)  # leave smaller weights out
    hide_words: Callable[[Any, frozenset[str]], Any] | None = field(default=None, repr=False)  # from its word lists
    rank: int = 100  # its place in lists of methods, the smallest first

    def has_setting(self, name: str) -> bool:
        """Return whether the settings have a field of that name."""
        return name in {own.name for own in fields(self.config)}

    def learns(self, material: Material, config: Config) -> bool:
        """Return whether it learns from the material with those settings."""
        return material in self.learns_from and material not in self.unused(config)

    def check(self, material: Material, config: Config, others: Sequence[Method]) -> None:
        """Raise ConfigError if it does not learn from the material with those settings."""
        if material in self.learns_from:
            reason = self.unused(config).get(material)
            if reason is not None:
                raise ConfigError(reason)
            return
        able = [other.title for other in others if material in other.learns_from]
        instead = f", or train {list_alternatives(able)}" if able else ""
        refusals = {
            "spans": f"{self.title} learns nothing from spans; leave them out",
            "soft": f"{self.title} learns nothing from soft labels; leave them out",
            "untagged": f"{self.name} learns nothing from untagged documents; leave them out",
            "model": f"{self.name} learns from the beginning; leave out the model to go on from",
            "layers": f"{self.name} uses no layers of other taggers; leave out `before`",
            "resources": f"{self.title} uses no lexicons and clusters; leave them out",
        }
        raise ConfigError(refusals[material] + instead)


def list_alternatives(names: Sequence[str]) -> str:
    """Return the names as a sentence lists alternatives.

    >>> list_alternatives(["a cascade", "a class HMM", "an HMM-DP"])
    'a cascade, a class HMM or an HMM-DP'
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
