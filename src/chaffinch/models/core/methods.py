"""The interface of a tagging method: one typed constant per method that describes what it can do.

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
from chaffinch.text.explanation import Explanation

# What a tagger may be trained with: spans, soft labels, documents without labels, an earlier model to go on from,
# layers of other taggers, and lexicons or clusters of words.
Material: TypeAlias = Literal["spans", "soft", "untagged", "model", "layers", "resources"]

MERGED = "tagged or open"  # the name of the soft layer that holds tagged and untagged documents together


class Config(Protocol):
    """The settings of a method: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int:
        """Return the seed of all random choices."""


class Model(Protocol):
    """The operations that a tagger needs of a model."""

    @property
    def config(self) -> Config:
        """Return the settings that the model was trained with."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels of spans, without O."""

    @property
    def floor(self) -> int:
        """Return the least number of patients that a word of the vocabulary was seen with."""

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return the labelled runs of tokens of each document; `bias` is added to the scores by label."""

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """Return each document's runs with the calibrated probability of each; `bias` is added to the scores."""

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """Return (T, 1 + L) probabilities of O and of each label for each document's tokens."""

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return each document's labelled runs, with the (T, 1 + L) probabilities of its tokens."""

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """Return the runs of the n best readings of a document, best first; fewer if there are fewer."""

    def state(self) -> State:
        """Return the arrays and strings of a model file: everything except the config."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrainingSet:
    """Documents to learn from: `layer` holds the right spans, or `soft` names their soft labels.

    `untagged` documents have no labels and are learnt from as well; `dev` documents decide when to stop.
    """

    documents: Sequence[Document]
    layer: str | None = None
    soft: str | None = None
    untagged: Sequence[Document] = ()
    dev: Sequence[Document] = ()

    def merge(self) -> TrainingSet:
        """Return itself, or with untagged documents a set of all documents with soft labels; DataError: overlaps."""
        if not self.untagged:
            return self
        documents = with_untagged(self.documents, self.untagged, layer=self.layer, name=MERGED)
        return TrainingSet(documents, self.layer, MERGED, dev=self.dev)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitContext:
    """Context of a fit: lexicons and clusters, an earlier model to continue from, a map for threads, a watcher."""

    resources: Resources | None = None
    start: Any = None
    each: Each = map
    watcher: Watcher = field(default_factory=Watcher)


def _no_reason(_: Any) -> Mapping[str, str]:
    """Return {}: all training material has an effect."""
    return {}


def _no_words(_: Any) -> frozenset[str]:
    """Return an empty set of words."""
    return frozenset()


def _no_facts(_: Any) -> Mapping[str, Any]:
    """Return {}: there is nothing to tell of a model."""
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A tagging method. `unused` returns, for given settings, what has no effect and why, in whole sentences.

    Its keys are materials or other settings. `learns_from` are the materials that the method can learn from with
    suitable settings. An operation that is None is not available, unless its comment says otherwise.
    """

    name: str  # the name of its models, their files and their layers
    title: str  # in a sentence, with its article
    config: type[Any]
    fit: Callable[[TrainingSet, Any, FitContext], Model] = field(repr=False)
    load: Callable[[State], Model] = field(repr=False)
    learns_from: frozenset[Material]
    unused: Callable[[Any], Mapping[str, str]] = field(default=_no_reason, repr=False)
    fixed: tuple[str, ...] = ()  # settings that cannot change when training continues from an earlier model
    new_labels: bool = True  # continued training may add labels that the earlier model does not have
    slower: Callable[[Any], Any] | None = field(default=None, repr=False)  # settings for short, gentle further training
    split: Splitter = "prose"  # the sentence splitter that suits it best
    # Left out, a span is explained by what its chance loses when the words around it are blank.
    explain: Callable[[Any, Document, Span], Explanation] | None = field(default=None, repr=False)
    parts: Callable[[Any, Document, Sequence[Span]], list[Span]] | None = field(default=None, repr=False)
    common_words: Callable[[Any], frozenset[str]] = field(default=_no_words, repr=False)  # of its language, lower case
    facts: Callable[[Any], Mapping[str, Any]] = field(default=_no_facts, repr=False)  # the size of a model
    describe: Callable[[Bundle], Mapping[str, Any]] | None = field(default=None, repr=False)  # a file, for display
    trim: Callable[[Any, float], Any] | None = field(default=None, repr=False)  # drop smaller weights
    hide_words: Callable[[Any, frozenset[str]], Any] | None = field(default=None, repr=False)  # from its word lists
    rank: int = 100  # its position in lists of methods, the smallest first

    def has_setting(self, name: str) -> bool:
        """Tell whether the config of the method has a field of that name."""
        return name in {setting.name for setting in fields(self.config)}

    def learns(self, material: Material, config: Config) -> bool:
        """Tell whether the method learns from the material with those settings."""
        return material in self.learns_from and material not in self.unused(config)

    def check(self, material: Material, config: Config, others: Sequence[Method]) -> None:
        """Raise ConfigError if the method cannot learn from the material with these settings; suggest `others`."""
        if material in self.learns_from:
            reason = self.unused(config).get(material)
            if reason is not None:
                raise ConfigError(reason)
            return
        able = [other.title for other in others if material in other.learns_from]
        instead = f", or train {list_alternatives(able)}" if able else ""
        refusals = {
            "spans": f"{self.title} cannot learn from spans; leave them out",
            "soft": f"{self.title} cannot learn from soft labels; leave them out",
            "untagged": f"{self.name} cannot learn from untagged documents; leave them out",
            "model": f"{self.name} cannot continue from an earlier model; leave it out",
            "layers": f"{self.name} cannot use layers of other taggers; leave out `before`",
            "resources": f"{self.title} cannot use lexicons or clusters; leave them out",
        }
        raise ConfigError(refusals[material] + instead)


def list_alternatives(names: Sequence[str]) -> str:
    """Return names as text for a sentence: "a, b or c"; "" for none.

    >>> list_alternatives(["a cascade", "a class HMM", "an HMM-DP"])
    'a cascade, a class HMM or an HMM-DP'
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
