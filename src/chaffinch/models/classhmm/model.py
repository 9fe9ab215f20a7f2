"""A learnt class HMM: its tables or weights, and reading with them.

V types of the documents at hand, F features, Y states, C classes, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from chaffinch import languages
from chaffinch.bundle import State
from chaffinch.errors import ModelError
from chaffinch.features import observe as window
from chaffinch.features import word_types as types
from chaffinch.features.observe import UNKNOWN, WORD, Observed
from chaffinch.features.signatures import Pack
from chaffinch.features.vocabulary import Vocabulary
from chaffinch.kernels import Batch, Floats, Ints
from chaffinch.models.classhmm import generative as chain
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.describe.report import Substructure
from chaffinch.models.classhmm.generative import StateTables
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import Labels, Scheme
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources, columns_of
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.layout import KnownTags
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordEmissions:
    """What a locally normalised chain knows of words: which features count, and its tables."""

    vocabulary: Vocabulary
    tables: StateTables

    def log_emissions(self, seen: Observed) -> Floats:
        """(V, Y) of all types of the documents."""
        matrix, known = feature_matrix(seen, self.vocabulary)
        return chain.log_emissions(matrix, known, self.tables)

    def batch(self, seen: Observed) -> Batch:
        """The sentences as lattices."""
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        emit = self.log_emissions(seen)[seen.types[seen.places]]
        return Batch(self.tables.start, self.tables.trans, emit, self.tables.end, bounds)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Portrait:
    """What learning left besides: how many tokens each state has, and the objective after each step."""

    mass: Floats  # (Y,)
    trace: Floats
    held_out: Floats  # log-likelihood per token of held-out text: with these states, and with one per class; or empty


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt: words, if the chain is locally normalised, else a field over features around each word."""

    config: ClassHMM
    names: tuple[str, ...]
    labels: Labels  # with sub-tags
    pack: Pack
    portrait: Portrait
    words: WordEmissions | None = None
    crf: Linear | None = None
    stops: NDArray[np.uint64] = None  # type: ignore[assignment]  # sorted keys of words at which runs of words end
    resources: Resources = Resources()  # noqa: RUF009  (frozen)
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1
    luggage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # word lists that do not come with Chaffinch
    substructure: Substructure | None = None  # what its states stand for; training text, see `substructure.describe`

    def batch(
        self, docs: Sequence[Document], bias: Bias = None, seen: Observed | None = None
    ) -> tuple[Observed, Batch]:
        """The documents, and their sentences as lattices over states; `seen` if they were observed before."""
        seen = seen or types.with_features(window.observe(docs), self.config.features, self.pack)
        if self.crf is not None:
            return seen, self.crf.batch(seen, columns_of(seen, docs, self.stops, (), self.resources), bias)
        batch = self.words.batch(seen)  # type: ignore[union-attr]
        if bias:
            leaning = np.array([bias.get(tag[2:] or "O", 0.0) for tag in self.labels.tags])[self.labels.tag_of]
            batch = replace(batch, emit=batch.emit + leaning)
        return seen, batch

    def reading(self, docs: Sequence[Document], bias: Bias = None) -> LatentReader:
        """The documents, ready to be read."""
        seen, batch = self.batch(docs, bias)
        return LatentReader(seen, [batch], self.labels, self.decoded, self.calibration)

    def decoded(self, batch: Batch, known: KnownTags | None = None) -> Ints:
        """The tags of a batch's tokens, as the settings say."""
        labels = self.labels
        return decoding.decode(batch, labels.tag_of, self.config.decode, follows=labels.follows, known=known).tags

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """The labelled runs of tokens of every document."""
        return self.reading(docs, bias).runs()

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """The runs of every document, and the calibrated probability that each is right (n,)."""
        return list(zip(*self.reading(docs, bias).runs_with_chances(), strict=True))

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """(T, 1 + L) per document: at every token the probability of O and of each label; O in no sentence."""
        return [rows for _, rows in self.read_with_posteriors(docs)]

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """What `read` and `posteriors` give, of documents that are looked at once for both."""
        columns = np.array([0] + [1 + self.names.index(tag[2:]) for tag in self.labels.tags[1:]])
        return list(zip(*self.reading(docs).runs_with_posteriors(columns, 1 + len(self.names)), strict=True))

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """The n best readings of the projected chain; a sentence with fewer repeats its last."""
        return [found[0] for found in self.reading([doc]).alternatives(n)]

    def state(self) -> State:
        """Return everything but the config, for a model file."""
        out: dict[str, NDArray[Any]] = {
            "subs": np.array(self.labels.subs, np.int64),
            "mass": self.portrait.mass,
            "trace": self.portrait.trace,
            "held_out": self.portrait.held_out,
            "calibration": np.array([*asdict(self.calibration).values()]),
        }
        if self.words is not None:
            vocabulary, tables = self.words.vocabulary, self.words.tables
            out |= {"words.keys": vocabulary.keys, "words.kinds": vocabulary.kinds}
            out |= {f"tables.{name}": own.astype(np.float32) for name, own in tables._asdict().items()}
        strings = dict(self.luggage)
        if self.substructure is not None:
            strings["substructure"] = (self.substructure.json(),)
        state = State(out, strings).merged(self.resources.state())
        if self.crf is None:
            return state
        return state.merged(State({"stops": self.stops})).with_child("crf", State(self.crf.arrays()))

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file; ModelError if its pieces do not fit together."""
        arrays, strings, names = state.arrays, state.strings, state.labels
        try:
            config = msgspec.convert(state.config, ClassHMM)
            labels = Labels(names, scheme_of(config), subs=tuple(arrays["subs"].tolist()))
            portrait = Portrait(arrays["mass"], arrays["trace"], arrays["held_out"])
            words = crf = None
            if config.objective == "crf":
                crf = Linear.of(labels, state.child("crf").arrays)
            else:
                tables = StateTables(*(arrays[f"tables.{name}"].astype(float) for name in StateTables._fields))
                words = WordEmissions(Vocabulary(arrays["words.keys"], arrays["words.kinds"]), tables)
                F, Y = len(words.vocabulary.kinds), labels.states.K
                fits = [own.shape for own in tables] == [(F, Y), (Y,), (Y,), (Y, Y), (Y,)]
                if len(words.vocabulary) != F or not fits:
                    raise ModelError("its tables do not fit its labels; copy the file again, or train the model anew")
            return cls(
                config, names, labels, languages.unpacked(config.language, strings), portrait, words, crf,
                arrays.get("stops"), Resources.of(state),  # type: ignore[arg-type]
                Calibration(*arrays["calibration"].tolist()), state.floor,
                {name: words for name, words in strings.items() if name.startswith("pack.")},
                next(map(Substructure.of, strings.get("substructure", ())), None),
            )  # fmt: skip
        except (KeyError, TypeError, IndexError, ValueError, msgspec.MsgspecError):
            raise ModelError("its settings cannot be read; it was made by another version, train it anew") from None


def scheme_of(config: ClassHMM) -> Scheme:
    """How classes are written on tokens."""
    return "runs" if config.classes == "types" else "IOB2"


def feature_sets(seen: Observed, vocabulary: Vocabulary, *, unknown: bool = False) -> list[tuple[int, ...]]:
    """(V,) the known features of every type, sorted: either its name, or what stands in for it.

    With `unknown`, every type is read as if its name were not known.
    """
    named = np.zeros(len(seen.lists) - 1, np.bool_)
    numbers, owners = vocabulary.find(seen.keys), np.repeat(np.arange(len(named)), np.diff(seen.lists))
    if not unknown:
        named[owners[(numbers >= 0) & (seen.kinds == WORD)]] = True
    left_out = np.where(named[owners], seen.kinds == UNKNOWN, np.isin(seen.kinds, types.IDENTITY) & unknown)
    found = np.where(left_out, -1, numbers).tolist()
    cuts = pairwise(seen.lists.tolist())
    return [tuple(sorted({number for number in found[begin:end] if number >= 0})) for begin, end in cuts]


def matrix_of(sets: Sequence[tuple[int, ...]], F: int) -> csr_array:
    """The sets of features as rows of ones."""
    bounds = np.concatenate([[0], np.cumsum([len(own) for own in sets])]).astype(np.int64)
    columns = np.array([number for own in sets for number in own], np.int64)
    return csr_array((np.ones(len(columns)), columns, bounds), shape=(len(sets), F))


def feature_matrix(seen: Observed, vocabulary: Vocabulary) -> tuple[csr_array, NDArray[np.bool_]]:
    """(V, F) the features of every type, and which types are known by name."""
    matrix = matrix_of(feature_sets(seen, vocabulary), len(vocabulary))
    names = np.asarray(vocabulary.kinds == WORD, np.float64)
    return matrix, np.asarray(matrix @ names > 0) if len(names) else np.zeros(matrix.shape[0], np.bool_)


def single(tables: StateTables) -> StateTables:
    """The tables with their numbers as a file holds them, so that saving changes nothing."""
    return StateTables(*(own.astype(np.float32).astype(float) for own in tables))
