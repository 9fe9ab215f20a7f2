"""A trained cascade: one or two readings of a document, and optionally a classifier of the segments they found.

N tokens with pads between sentences, T tokens of one document, L labels, n spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State, check_forms
from chaffinch.errors import ModelError
from chaffinch.features import observe as window
from chaffinch.features.bio_patterns import with_published_features
from chaffinch.features.observe import Column, Observed
from chaffinch.kernels import best_paths, group
from chaffinch.kernels.lattice import Batch, Floats
from chaffinch.kernels.linear import Places
from chaffinch.models.cascade import segments
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.token_stage import TokenClasses, labels_of
from chaffinch.models.core.confidence import Calibration, span_chances
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import Resources, columns_of, published_columns
from chaffinch.models.core.runs import Bias, Run, runs_by_document
from chaffinch.models.core.training import certainty, decode_with_certainty
from chaffinch.text import Document


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained cascade. The last part, a reading or the classifier, decides the labels of spans."""

    config: Cascade
    names: tuple[str, ...]
    stops: NDArray[np.uint64]  # sorted keys of words at which runs of words end
    readings: tuple[Linear, ...]
    classifier: Linear | None = None
    resources: Resources = Resources()  # noqa: RUF009  (frozen)
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1  # patients who showed each feature

    def observe(self, docs: Sequence[Document], *, reread: bool = False) -> tuple[Observed, list[Column]]:
        """Return observations and columns as the last reading sees them, or with `reread` as one more would."""
        seen = window.observe(docs)
        if self.config.features == "published":
            seen = with_published_features(seen)
        columns = columns_for(self.config, seen, docs, self.stops, self.resources)
        for reading in self.readings if reread else self.readings[:-1]:
            columns += window.elsewhere(seen, reading.decode(seen, columns), reading.labels.states.K)
        return seen, columns

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return for each document its runs (first token, end, label); `bias` is added to the scores of labels."""
        return self._read(*self.observe(docs), bias)

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """Return the runs of every document, and the calibrated probability that each is right (n,)."""
        return self._read_with_confidence(*self.observe(docs), bias)

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """Return per document (T, 1 + L) each token's probability of O and of each label; O outside sentences.

        With a classifier, a segment's tokens share its class probabilities; where no segment was found, the segmenter's
        probability of being inside is divided equally among all labels.
        """
        return self._posteriors(*self.observe(docs))

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return (runs, posteriors) of each document, as `read` and `posteriors` do, in one pass."""
        seen, columns = self.observe(docs)
        if self.classifier is not None:
            return list(zip(self._read(seen, columns, None), self._posteriors(seen, columns), strict=True))
        last = self.readings[-1]
        own = self.config.features == "rich"  # else types have other features than those of their word
        states, batches = last.decode_with_batches(seen, columns, scale=self.calibration.scale, by_word=own)
        rows = self._by_document(seen, _group_by_name(last.labels, batches))
        return list(zip(runs_by_document(seen, last.labels, states), rows, strict=True))

    def _read(self, seen: Observed, columns: Sequence[Column], bias: Bias) -> list[list[Run]]:
        """Return each document's labelled runs by the last reading; with two stages, labelled by the classifier."""
        last = self.readings[-1]
        if self.classifier is None:
            return runs_by_document(seen, last.labels, last.decode(seen, columns, bias))
        if self.config.classify == "tokens":
            return self._token_classes(seen, columns, last.decode(seen, columns, bias), bias).runs()
        found = segments.observe_reading(seen, last.labels, *decode_with_certainty(last, seen, columns))
        return found.label_runs(self.classifier, self.classifier.decode(found.seen, [], bias))

    def _read_with_confidence(
        self, seen: Observed, columns: Sequence[Column], bias: Bias
    ) -> list[tuple[list[Run], Floats]]:
        """Return each document's labelled runs with the chances of being right, calibrated but for token classes."""
        last, inner, inner_columns = self.readings[-1], seen, columns
        if self.config.classify == "tokens":
            return self._token_confidence(seen, columns, bias)
        if self.classifier is not None:
            found = segments.observe_reading(seen, last.labels, *decode_with_certainty(last, seen, columns))
            last, inner, inner_columns = self.classifier, found.seen, []
        states = last.decode(inner, inner_columns, bias)
        packed = states[inner.places]
        runs = last.labels.runs(packed)  # of all documents, one after another
        batch = last.batch(inner, inner_columns, bias, scale=self.calibration.scale)
        tags = last.labels.tag_of[packed]
        chances = self.calibration(span_chances(batch, last.labels, tags, [(a, b) for a, b, _ in runs]))
        runs_of_documents = (
            runs_by_document(seen, last.labels, states) if self.classifier is None else found.label_runs(last, states)
        )
        cuts = np.cumsum([len(part) for part in runs_of_documents])[:-1]
        return list(zip(runs_of_documents, np.split(chances, cuts), strict=True))

    def _token_classes(self, seen: Observed, columns: Sequence[Column], states: Places, bias: Bias) -> TokenClasses:
        """Return the second stage's chains inside the segments of these states; `columns` are context features."""
        classifier = cast(Linear, self.classifier)  # classify="tokens" has two stages
        return TokenClasses.of(classifier, seen, list(columns), (self.readings[-1].labels, states), bias)

    def _token_confidence(
        self, seen: Observed, columns: Sequence[Column], bias: Bias
    ) -> list[tuple[list[Run], Floats]]:
        """Return the labelled runs with the probability of the segment times that of its class."""
        last = self.readings[-1]
        states = last.decode(seen, columns, bias)
        found, packed = self._token_classes(seen, columns, states, bias), states[seen.places]
        edges = [(a, b) for a, b, _ in last.labels.runs(packed)]
        whole = span_chances(last.batch(seen, columns, bias), last.labels, last.labels.tag_of[packed], edges)
        runs = found.runs()
        number = [1 + self.names.index(name) for document in runs for _, _, name in document]
        chances = whole * found.chances()[found.starts(), number]
        return list(zip(runs, np.split(chances, np.cumsum([len(part) for part in runs])[:-1]), strict=True))

    def _posteriors(self, seen: Observed, columns: Sequence[Column]) -> list[Floats]:
        """Return (T, 1 + L) token probabilities of every document; with two stages, segments times classes."""
        last, scale = self.readings[-1], self.calibration.scale
        rows = _by_name(last, seen, columns, scale if self.classifier is None else 1.0)
        if self.config.classify == "tokens":
            inside, classes = rows[:, 1], self._token_classes(seen, columns, last.decode(seen, columns), None).chances()
            found = classes[:, 1:].sum(axis=1, keepdims=True) > 0.5
            share = np.where(found, classes[:, 1:], 1.0 / len(self.names))
            rows = np.concatenate([1.0 - inside[:, None], share * inside[:, None]], axis=1)
        elif self.classifier is not None:
            found = segments.observe_reading(seen, last.labels, *decode_with_certainty(last, seen, columns))
            classes = _by_name(self.classifier, found.seen, [], scale)
            share = np.full((len(rows), len(self.names)), 1.0 / len(self.names))
            reject = np.zeros(len(rows))
            for (first, end), chances in zip(
                np.searchsorted(seen.places, found.segments).tolist(), classes, strict=True
            ):
                share[first:end], reject[first:end] = chances[1:] / max(chances[1:].sum(), 1e-300), chances[0]
            inside = rows[:, 1] * (1.0 - reject)
            rows = np.concatenate([1.0 - inside[:, None], share * inside[:, None]], axis=1)
        return self._by_document(seen, [rows])

    def _by_document(self, seen: Observed, parts: Iterable[Floats]) -> list[Floats]:
        """Return (T, 1 + L) rows of every document, from those of tokens in sentences; O outside sentences."""
        out, first = np.zeros((int(seen.sizes.sum()), 1 + len(self.names))), 0
        out[:, 0] = 1.0
        for rows in parts:
            out[seen.sources[first : first + len(rows)]] = rows
            first += len(rows)
        return np.split(out, np.cumsum(seen.sizes)[:-1])

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """Return runs of up to n readings, best first, in two stages by segments; sentences with fewer repeat one."""
        seen, columns = self.observe([doc])
        last = self.readings[-1]
        batch = last.batch(seen, columns)
        paths = [best_paths(batch[sentence], n) for sentence in range(len(batch))]
        out = []
        for rank in range(min(n, max(map(len, paths), default=1))):
            states = np.zeros(len(seen.types), np.int32)
            chosen = [found[min(rank, len(found) - 1)].states for found in paths]
            states[seen.places] = np.concatenate([np.zeros(0, np.int64), *chosen])
            if self.classifier is None:
                out.append(last.labels.runs(seen.gather(states)[0]))
            elif self.config.classify == "tokens":
                out.append(self._token_classes(seen, columns, states, None).runs()[0])
            else:
                certain = certainty(*last.view(seen, columns), last.labels, states)
                found = segments.observe_reading(seen, last.labels, states, certain)
                out.append(found.label_runs(self.classifier, self.classifier.decode(found.seen, []))[0])
        return out

    def state(self) -> State:
        """Return the arrays and strings of a model file: everything except the config."""
        calibration = self.calibration.array()
        state = State({"stops": self.stops, "calibration": calibration}).merge(self.resources.state())
        for number, reading in enumerate(self.readings):
            state = state.with_child(f"reading{number}", State(reading.arrays()))
        return state if self.classifier is None else state.with_child("classifier", State(self.classifier.arrays()))

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; raise ModelError if its parts cannot be read or do not fit together."""
        check_forms(state.arrays, stops="u8", calibration="f")
        try:
            config = msgspec.convert(state.config, Cascade)
            calibration = Calibration.of(state.arrays["calibration"])
            stops, resources = state.arrays["stops"], Resources.of(state)
        except (KeyError, TypeError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, retrain it") from None
        names = state.labels
        labels = config.labels(("segment",) if config.stages == 2 else names)
        count = 1 + ("reading1.keys" in state.arrays)
        readings = tuple(Linear.of(labels, state.child(f"reading{number}").arrays) for number in range(count))
        classifier = None
        if config.stages == 2:
            classes = labels_of(names) if config.classify == "tokens" else Labels(names, "tokens")
            classifier = Linear.of(classes, state.child("classifier").arrays)
        return cls(config, names, stops, readings, classifier, resources, calibration, state.floor)


def columns_for(
    config: Cascade, seen: Observed, docs: Sequence[Document], stops: NDArray[np.uint64], resources: Resources
) -> list[Column]:
    """Return the columns that the settings ask for: all of ours, or those of the publication."""
    if config.features == "published":
        return published_columns(seen, docs, config.layers, resources)
    return columns_of(seen, docs, stops, config.layers, resources)


def _by_name(part: Linear, seen: Observed, columns: Sequence[Column], scale: float) -> Floats:
    """Return (M, 1 + L) the probability of O and of each label at each token, pads left out."""
    none = np.zeros((0, 1 + len(part.labels.names)))
    return np.concatenate([none, *_group_by_name(part.labels, part.batches(seen, columns, scale=scale))])


def _group_by_name(labels: Labels, batches: Iterable[Batch]) -> Iterator[Floats]:
    """Yield for each batch the probability of O and of each label at each of its tokens."""
    number = np.array([0] + [1 + labels.names.index(tag[2:]) for tag in labels.tags[1:]])
    for batch in batches:
        yield np.asarray(group(batch, number[labels.tag_of], pairs=False).states)
