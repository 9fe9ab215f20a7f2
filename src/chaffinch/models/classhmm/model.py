"""A trained class HMM: its tables or weights, and reading with them.

V types of the documents at hand, F features, Y states, C classes, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from chaffinch import languages
from chaffinch.bundle import State, check_counts, check_forms, check_numbers
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
from chaffinch.models.core.labels import MOST_STATES, Labels, Scheme
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources, columns_of, no_stops
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.layout import TagPosterior
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordEmissions:
    """The emissions of a locally normalised chain: its features and its tables."""

    vocabulary: Vocabulary
    tables: StateTables

    def log_emissions(self, seen: Observed) -> Floats:
        """Return (V, Y) the log-probabilities of all types of the documents."""
        matrix, known = feature_matrix(seen, self.vocabulary)
        return chain.log_emissions(matrix, known, self.tables)

    def batch(self, seen: Observed) -> Batch:
        """Return the sentences as a batch of lattices over states."""
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        emit = self.log_emissions(seen)[seen.types[seen.places]]
        return Batch(self.tables.start, self.tables.trans, emit, self.tables.end, bounds)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Portrait:
    """Facts from training: the number of tokens of each state, the objective after each step, held-out likelihood."""

    mass: Floats  # (Y,)
    trace: Floats
    held_out: Floats  # log-likelihood per token of held-out text: with these states, and with one per class; or empty


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained class HMM: word emissions if the chain is locally normalised, else a CRF over features in context."""

    config: ClassHMM
    names: tuple[str, ...]
    labels: Labels  # with sub-tags
    pack: Pack
    portrait: Portrait
    words: WordEmissions | None = None
    crf: Linear | None = None
    stops: NDArray[np.uint64] = field(default_factory=no_stops)  # sorted keys of words at which runs of words end
    resources: Resources = Resources()  # noqa: RUF009  (frozen)
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1
    pack_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # word lists that are not Chaffinch's
    substructure: Substructure | None = (
        None  # descriptions of its states; training text, see `describe.states.describe`
    )

    def batch(
        self, docs: Sequence[Document], bias: Bias = None, seen: Observed | None = None
    ) -> tuple[Observed, Batch]:
        """Return (observations, sentences as lattices over states), `bias` added by label; `seen` is used if given."""
        seen = seen or types.with_features(window.observe(docs), self.config.features, self.pack)
        if self.crf is not None:
            return seen, self.crf.batch(seen, columns_of(seen, docs, self.stops, (), self.resources), bias)
        batch = self.words.batch(seen)  # type: ignore[union-attr]
        if bias:
            offsets = np.array([bias.get(tag[2:] or "O", 0.0) for tag in self.labels.tags])[self.labels.tag_of]
            batch = replace(batch, emit=batch.emit + offsets)
        return seen, batch

    def reading(self, docs: Sequence[Document], bias: Bias = None) -> LatentReader:
        """Return a lazy reader of the documents, which decodes them when asked for runs or posteriors."""
        seen, batch = self.batch(docs, bias)
        return LatentReader(seen, [batch], self.labels, self.decode, self.calibration)

    def decode(self, batch: Batch, known: TagPosterior | None = None) -> Ints:
        """Return (N,) the tag of each token of a batch, by the configured decoder; `known` are its tag posteriors."""
        labels = self.labels
        return decoding.decode(batch, labels.tag_of, self.config.decode, follows=labels.follows, known=known).tags

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return for each document its runs (first token, end, label); `bias` is added to the scores of labels."""
        return self.reading(docs, bias).runs()

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """Return the runs of every document, and the calibrated probability that each is right (n,)."""
        return list(zip(*self.reading(docs, bias).runs_with_chances(), strict=True))

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """Return per document (T, 1 + L) each token's probability of O and of each label; O outside sentences."""
        return [rows for _, rows in self.read_with_posteriors(docs)]

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return (runs, posteriors) of each document, as `read` and `posteriors` do, in one pass."""
        columns = np.array([0] + [1 + self.names.index(tag[2:]) for tag in self.labels.tags[1:]])
        return list(zip(*self.reading(docs).runs_with_posteriors(columns, 1 + len(self.names)), strict=True))

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """Return up to n readings as runs, best first; a sentence with fewer repeats its last."""
        return [found[0] for found in self.reading([doc]).alternatives(n)]

    def state(self) -> State:
        """Return the arrays and strings of a model file: everything except the config."""
        out: dict[str, NDArray[Any]] = {
            "subs": np.array(self.labels.subs, np.int64),
            "mass": self.portrait.mass,
            "trace": self.portrait.trace,
            "held_out": self.portrait.held_out,
            "calibration": self.calibration.array(),
        }
        if self.words is not None:
            vocabulary, tables = self.words.vocabulary, self.words.tables
            out |= {"words.keys": vocabulary.keys, "words.kinds": vocabulary.kinds}
            out |= {f"tables.{name}": table.astype(np.float32) for name, table in tables._asdict().items()}
        strings = dict(self.pack_files)
        if self.substructure is not None:
            strings["substructure"] = (self.substructure.json(),)
        state = State(out, strings).merge(self.resources.state())
        if self.crf is None:
            return state
        return state.merge(State({"stops": self.stops})).with_child("crf", State(self.crf.arrays()))

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; raise ModelError if its parts cannot be read or do not fit together."""
        arrays, strings, names = state.arrays, state.strings, state.labels
        check_forms(state.arrays, stops="u8", calibration="f", subs="i")
        check_counts(state.arrays.get("subs", np.ones(1)), MOST_STATES)
        for name, array in state.arrays.items():
            if name.startswith("tables."):
                check_numbers(array)
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
                fits = [table.shape for table in tables] == [(F, Y), (Y,), (Y,), (Y, Y), (Y,)]
                if len(words.vocabulary) != F or not fits:
                    raise ModelError("its tables do not fit its labels; copy the file again, or retrain the model")
            return cls(
                config, names, labels, languages.from_bundle(config.language, strings), portrait, words, crf,
                arrays["stops"] if crf else no_stops(), Resources.of(state),
                Calibration.of(arrays["calibration"]), state.floor,
                {name: words for name, words in strings.items() if name.startswith("pack.")},
                next(map(Substructure.of, strings.get("substructure", ())), None),
            )  # fmt: skip
        except (KeyError, TypeError, IndexError, ValueError, msgspec.MsgspecError):
            raise ModelError("its settings cannot be read; it was made by another version, retrain it") from None


def scheme_of(config: ClassHMM) -> Scheme:
    """Return the tag scheme of the classes: "runs" for types, else "IOB2"."""
    return "runs" if config.classes == "types" else "IOB2"


def feature_sets(seen: Observed, vocabulary: Vocabulary, *, unknown: bool = False) -> list[tuple[int, ...]]:
    """Return for each type its known features, sorted; with `unknown`, those it has as an unknown word.

    With `unknown`, every type is treated as an unknown word.
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
    """Return the sets of features as a sparse matrix of ones, one row each."""
    bounds = np.concatenate([[0], np.cumsum([len(numbers) for numbers in sets])]).astype(np.int64)
    columns = np.array([number for numbers in sets for number in numbers], np.int64)
    return csr_array((np.ones(len(columns)), columns, bounds), shape=(len(sets), F))


def feature_matrix(seen: Observed, vocabulary: Vocabulary) -> tuple[csr_array, NDArray[np.bool_]]:
    """Return (V, F) sparse ones for the features of every type, and (V,) which types are known by name."""
    matrix = matrix_of(feature_sets(seen, vocabulary), len(vocabulary))
    names = np.asarray(vocabulary.kinds == WORD, np.float64)
    return matrix, np.asarray(matrix @ names > 0) if len(names) else np.zeros(matrix.shape[0], np.bool_)


def round_to_float32(tables: StateTables) -> StateTables:
    """Return the tables rounded as a file stores them, so that saving changes nothing."""
    return StateTables(*(table.astype(np.float32).astype(float) for table in tables))
