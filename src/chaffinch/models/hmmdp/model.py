"""A trained HMM with sub-tags: tables, optional weights of the discriminative stage, inference, and storage.

S tags, Z states, T tokens of one document, L labels, n spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State, check_counts, check_forms, check_numbers
from chaffinch.errors import ConfigError, ModelError
from chaffinch.features import observe as window
from chaffinch.features.observe import Column, Observed
from chaffinch.features.symbols import SIGNATURE, WORD, Symbols
from chaffinch.kernels import Batch, Floats, Ints
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import MOST_STATES, Labels, Scheme
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources, columns_of, no_stops
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.emissions import BackOff, Emissions, Known
from chaffinch.models.hmmdp.rules import REACH
from chaffinch.models.hmmdp.variational import LogTables
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent import layout as decoding_parts
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document
from chaffinch.text.sentences import stop_offsets

TILE = 8_000  # tokens whose potentials are in memory at once; larger needs more memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Portrait:
    """Training statistics of the states: expected tokens of each, and the bound after each pass."""

    mass: Floats  # (Z,)
    trace: Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained model: the tables of the generative chain, and the CRF weights of the discriminative stage, if any."""

    config: HMMDP
    names: tuple[str, ...]
    labels: Labels  # with sub-tags
    symbols: Symbols
    emissions: Emissions
    tables: LogTables
    portrait: Portrait
    latent: Linear | None = None
    stops: NDArray[np.uint64] = field(default_factory=no_stops)  # sorted keys of words at which runs of words end
    resources: Resources = Resources()  # noqa: RUF009  (frozen)
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1

    def observe(self, docs: Sequence[Document]) -> tuple[Observed, Known, list[Column]]:
        """Return the observed documents, their symbols, and feature columns, none without a discriminative stage."""
        docs = cut_sentences(docs, self.config)
        seen = window.observe(docs)
        known = select_symbols(self.symbols, self.symbols(seen), self.config.emissions)
        if self.latent is None:
            return seen, known, []
        columns = columns_of(seen, docs, self.stops, (), self.resources)
        return seen, known, columns + symbol_columns(seen, known)

    def batches(self, docs: Sequence[Document], bias: Bias = None) -> tuple[Observed, Iterator[tuple[Batch, Known]]]:
        """Return (observations, lazy pairs of lattices and symbols), `bias` added; ConfigError if rules forbid it."""
        if bias and self.config.rules is not None and set(bias) != {"O"}:
            raise ConfigError("with rules, bias can only name O: the chain knows categories, not their labels")
        seen, known, columns = self.observe(docs)
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        if self.latent is not None:
            return seen, _with_symbols(self.latent.batches(seen, columns, bias, by_word=True), known)
        state_bias = np.zeros(len(self.tables.start))
        if bias:
            state_bias += np.array([bias.get(tag[2:] or "O", 0.0) for tag in self.labels.tags])[self.labels.tag_of]

        def tiles() -> Iterator[tuple[Batch, Known]]:
            """Yield (batch, symbols) of whole sentences of about `TILE` tokens, with the bias added."""
            cuts = np.unique(np.searchsorted(bounds, np.arange(0, bounds[-1] + TILE, TILE)))
            for first, end in pairwise(np.minimum(cuts, len(bounds) - 1).tolist()):
                symbols = known[bounds[first] : bounds[end]]
                emit = self.emissions.dense(self.tables.emit, symbols) + state_bias
                start, trans, ends = self.tables[:3]
                yield Batch(start, trans, emit, ends, bounds[first : end + 1] - bounds[first]), symbols

        return seen, tiles()

    def reading(self, docs: Sequence[Document], bias: Bias = None) -> LatentReader:
        """Return a lazy reader of the documents, to be used once; it decodes batch by batch."""
        seen, parts = self.batches(docs, bias)
        pooled: list[Ints] = []  # the words of the batch that is being read

        def batches() -> Iterator[Batch]:
            """Yield the batches, and keep the words of the current one for pooling."""
            for batch, known in parts:
                pooled[:] = [known[:, WORD]]
                yield batch

        def decode(batch: Batch, known: decoding_parts.TagPosterior | None = None) -> Ints:
            """Return the tags of a batch by the configured decoder; "kl-pooled" pools by the current words."""
            config, words = self.config, pooled[0] if self.config.decode == "kl-pooled" else None
            result = decoding.decode(
                batch, self.labels.tag_of, config.decode, follows=self.labels.follows, cost_ratio=config.cost_ratio,
                words=words, known=known,
            )  # fmt: skip
            return result.tags

        return LatentReader(seen, batches(), self.labels, decode, self.calibration)

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return for each document its runs (first token, end, label); `bias` is added to the scores of labels."""
        return self.name_categories(docs, self.categories(docs, bias))

    def categories(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return the runs of every document labelled by category, before rules choose sub-categories."""
        return self.reading(docs, bias).runs()

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """Return the runs of every document, and the calibrated probability that each is right (n,)."""
        runs, chances = self.reading(docs, bias).runs_with_chances()
        return list(zip(self.name_categories(docs, runs), chances, strict=True))

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """Return, per document, the probability of O and each label at each token (T, 1 + L); O outside sentences."""
        return [rows for _, rows in self.read_with_posteriors(docs)]

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return (runs, posteriors) of each document, as `read` and `posteriors` do, in one pass."""
        columns = np.array([0] + [1 + self._column(tag[2:]) for tag in self.labels.tags[1:]])
        categories, rows = self.reading(docs).runs_with_posteriors(columns, 1 + len(self.names))
        named = self.name_categories(docs, categories)
        if self.config.rules is not None:  # move the mass of a span from the default label of its category to its label
            for chances, runs in zip(rows, named, strict=True):
                for first, end, label in runs:
                    default = self._column(self.config.rules.category(label)) + 1
                    column = self.names.index(label) + 1
                    if column != default:
                        chances[first:end, column] += chances[first:end, default]
                        chances[first:end, default] = 0.0
        return list(zip(named, rows, strict=True))

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """Return up to n readings as runs, best first; a sentence with fewer repeats its last."""
        readings = self.reading([doc]).alternatives(n)
        return [runs for reading in readings for runs in self.name_categories([doc], reading)]

    def name_categories(self, docs: Sequence[Document], categories: list[list[Run]]) -> list[list[Run]]:
        """Return the runs labelled by sub-category where the settings have rules, else unchanged."""
        rules = self.config.rules
        if rules is None:
            return categories
        out = []
        for doc, runs in zip(docs, categories, strict=True):
            words = [word.lower() for word in doc.words()] if runs else []
            named = []
            for first, end, category in runs:
                text = doc.text[doc.tokens[first, 0] : doc.tokens[end - 1, 1]]
                around = words[max(first - REACH, 0) : first] + words[end : end + REACH]
                named.append((first, end, rules.label(category, text, words[first:end], around)))
            out.append(named)
        return out

    def _column(self, name: str) -> int:
        """Return the number of a label; with rules, of the default label of a category."""
        return self.names.index(name if self.config.rules is None else self.config.rules.default(name))

    def state(self) -> State:
        """Return everything except the config, for a model file."""
        out: dict[str, NDArray[Any]] = {
            "tables.start": self.tables.start.astype(np.float32),
            "tables.trans": self.tables.trans.astype(np.float32),
            "tables.end": self.tables.end.astype(np.float32),
            "subs": np.array(self.labels.subs, np.int64),
            "mass": self.portrait.mass,
            "trace": self.portrait.trace,
            "calibration": self.calibration.array(),
        }
        out |= {f"tables.emit{kind}": table.astype(_precision(self)) for kind, table in enumerate(self.tables.emit)}
        if isinstance(self.emissions, BackOff):
            out["types"] = self.emissions.types
        state = State(out, {"categories": self.labels.names})
        state = state.merge(State(*self.symbols.arrays())).merge(self.resources.state())
        if self.latent is None:
            return state
        return state.merge(State({"stops": self.stops})).with_child("latent", State(self.latent.arrays()))

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file; raise ModelError if its parts do not fit together."""
        arrays = state.arrays
        symbols_forms = {name: "u8" for name in state.arrays if name.startswith("symbols")}
        check_forms(state.arrays, stops="u8", calibration="f", subs="i", **symbols_forms)
        check_counts(state.arrays.get("subs", np.ones(1)), MOST_STATES)
        for name, array in state.arrays.items():
            if name.startswith("tables."):
                check_numbers(array)
        try:
            config = msgspec.convert(state.config, HMMDP)
            labels = Labels(state.strings["categories"], scheme_of(config), subs=tuple(arrays["subs"].tolist()))
            weights = state.child("latent").arrays  # empty without a discriminative stage
            emit = [arrays[f"tables.emit{kind}"] for kind in range(_table_count(arrays))]
            if not weights:  # else they are for portraits only, and stay as small as in the file
                emit = [table.astype(float) for table in emit]
            start, trans, end = (arrays[f"tables.{name}"].astype(float) for name in ("start", "trans", "end"))
            tables = LogTables(start, trans, end, tuple(emit))
            sizes, Z = tuple(len(table) for table in emit), labels.states.K
            symbols = Symbols.of(config.language, arrays, state.strings, config.word_classes)
            fits = tables.trans.shape == (Z, Z) and sizes == table_sizes(symbols, config.emissions)
            if not fits or any(table.shape[1] != Z for table in emit):
                raise ModelError("its tables do not fit its labels; copy the file again, or train the model again")
            emissions = emissions_for(config, sizes, arrays.get("types"))
            latent = Linear.of(labels, weights) if weights else None
            stops = arrays["stops"] if latent else no_stops()
            return cls(
                config, state.labels, labels, symbols, emissions, tables,
                Portrait(arrays["mass"], arrays["trace"]), latent, stops, Resources.of(state),
                Calibration.of(arrays["calibration"]), state.floor,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, train it again") from None


def scheme_of(config: HMMDP) -> Scheme:
    """Return the tag scheme of the settings: "runs" where a label is one tag, else "IOB2"."""
    return "runs" if config.tags == "types" else "IOB2"


def cut_sentences(docs: Sequence[Document], config: HMMDP) -> Sequence[Document]:
    """Return the documents with their sentences cut as the settings ask: unchanged, or at every full stop and line."""
    if config.sentences == "given":
        return docs
    return [replace(doc, sentences=stop_offsets(doc.text, doc.tokens, doc.sentences)) for doc in docs]


def _with_symbols(batches: Iterable[Batch], known: Known) -> Iterator[tuple[Batch, Known]]:
    """Yield each batch with the symbols (N, kinds) of its tokens."""
    first = 0
    for batch in batches:
        yield batch, known[first : first + len(batch.emit)]
        first += len(batch.emit)


def _table_count(arrays: Any) -> int:
    """Return the number of emission tables among the arrays of a file."""
    return sum(name.startswith("tables.emit") for name in arrays)


def emissions_for(config: HMMDP, sizes: tuple[int, ...], types: Ints | None, alpha: float = 1.0) -> Emissions:
    """Return the emissions that the settings ask for; `alpha` only matters during training."""
    if config.emissions == "backoff":
        return BackOff(sizes, alpha, types=types)  # type: ignore[arg-type]
    return Emissions(sizes, alpha, config.temper if config.emissions == "factored" else 1.0)


def table_sizes(symbols: Symbols, emissions: str) -> tuple[int, ...]:
    """Return the number of symbols of each table; the third of back-off has a row for words and one for signatures."""
    words, signatures = symbols.sizes[WORD], symbols.sizes[SIGNATURE]
    if emissions == "categorical":
        return (words + signatures,)
    return symbols.sizes if emissions == "factored" else (words, signatures, 2)


def select_symbols(symbols: Symbols, known: Ints, emissions: str) -> Known:
    """Return (N, kinds) the symbols that emissions use: all kinds, word or else signature, or word and signature."""
    if emissions == "categorical":
        word, signature = known[:, WORD], known[:, SIGNATURE]
        return np.where(word > 0, word, symbols.sizes[WORD] + signature)[:, None]
    return known if emissions == "factored" else known[:, : SIGNATURE + 1]


def symbol_columns(seen: Observed, known: Known) -> list[Column]:
    """Return one column of feature keys per kind of symbol; 0 at the pads."""
    columns = []
    for kind in range(known.shape[1]):
        keys = np.zeros(len(seen.types), np.uint64)
        keys[seen.places] = known[:, kind] + 1
        columns.append(Column(window.SYMBOLS + kind, keys))
    return columns


def round_to_stored(model: Model) -> Model:
    """Return the model with its tables rounded to the precision of a file, so that saving changes nothing."""
    start, trans, end = (table.astype(np.float32).astype(float) for table in model.tables[:3])
    emit = tuple(table.astype(_precision(model)).astype(float) for table in model.tables.emit)
    return replace(model, tables=LogTables(start, trans, end, emit))


def _precision(model: Model) -> type[np.floating[Any]]:
    """Return the stored type of emission tables: half precision if CRF weights replace them in decoding."""
    return np.float32 if model.latent is None else np.float16
