"""Pairs of gold and predicted documents, and the layer of each that is scored."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.text.document import count_layers
from chaffinch.text.identifiers import is_known, kind_of

_SIDES = ("gold", "predicted")
_VOTES = ("source:", "link:")  # layers of weak sources, which are no predictions


@dataclass(frozen=True, slots=True)
class Pair:
    """One gold document with its gold and predicted spans, both sorted and without repeats.

    `missing` is true if the document has no prediction: `predicted` is then empty.
    """

    document: Document = field(repr=False)
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every gold document, in order, with its predicted spans.

    `missing` gold documents have no prediction; `extra` predicted ones have no gold and are only counted. `layer` and
    `predicted_layer` are those that are scored; `several` tells whether the predicted one is the newest of several.
    """

    items: tuple[Pair, ...] = field(repr=False)
    missing: int = 0
    extra: int = 0
    layer: str | None = field(default=None, repr=False)
    predicted_layer: str | None = field(default=None, repr=False)
    several: bool = field(default=False, repr=False)

    @property
    def disjoint(self) -> bool:
        """Tell whether gold and predictions both have labels, but share none."""
        gold, predicted = ({span.label for item in self.items for span in getattr(item, side)} for side in _SIDES)
        return bool(gold) and bool(predicted) and gold.isdisjoint(predicted)

    def __len__(self) -> int:
        """Return the number of pairs, one per gold document."""
        return len(self.items)

    def __iter__(self) -> Iterator[Pair]:
        """Iterate over the pairs."""
        return iter(self.items)


def pair(
    gold: Iterable[Document],
    predicted: Iterable[Document],
    *,
    layer: str | None = None,
    predicted_layer: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Pairs:
    """Return a pair per gold document: predictions by id, else text, empty if missing; DataError, ConfigError.

    DataError if documents, texts or layers do not fit, ConfigError for a map `labels` that names labels not there.

    A gold document without a prediction counts as predicted empty: leaving a document out must not raise a score.
    Without names, the gold layer is "gold", else the only one; the predicted layer is the only one, or the newest one
    beside "gold" and votes. A layer is chosen once for all documents, so a document without it has no spans. `labels`
    maps predicted labels to gold ones; those mapped to "O" are left out, those not in it stay as they are.

    >>> note = Document.make("Dr. Penn", id="1", layers={"gold": [Span(4, 8, "DOCTOR")]})
    >>> pair([note], [])
    Pairs(missing=1, extra=0)
    """
    golds, others = list(gold), list(predicted)
    if not golds:
        raise DataError("there are no gold documents; nothing can be scored")
    gold_name = _choose_gold_layer(golds, layer)
    predicted_name, several = _choose_predicted_layer(others, predicted_layer)
    if labels:
        _check_map(labels, *(_labels_of(docs, name) for docs, name in ((golds, gold_name), (others, predicted_name))))
        others = [_map_labels(doc, predicted_name, labels) for doc in others]
    partners, extra = _match_predictions(golds, others)
    _check_texts(golds, partners)
    items = tuple(
        Pair(doc, _spans(doc, gold_name), () if other is None else _spans(other, predicted_name), other is None)
        for doc, other in zip(golds, partners, strict=True)
    )
    return Pairs(items, sum(item.missing for item in items), extra, gold_name, predicted_name, several)


def to_categories(pairs: Pairs) -> Pairs:
    """Return the pairs with each label's category; spans then equal count once; ConfigError for unknown labels.

    >>> note = Document.make("Dr. Penn", id="1", layers={"gold": [Span(4, 8, "DOCTOR")]})
    >>> [span.label for item in to_categories(pair([note], [])) for span in item.gold]
    ['NAME']
    """
    labels = {span.label for item in pairs for side in _SIDES for span in getattr(item, side)}
    unknown = sum(not is_known(label) for label in labels)
    if unknown:
        raise ConfigError(
            f"{unknown} of {len(labels)} labels are of no guideline we know, so they have no category; rename them "
            "(--map renames predicted ones), or leave out --categories"
        )

    def rename(spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Return the spans under their categories; spans that become equal count once."""
        return tuple(dict.fromkeys(replace(span, label=kind_of(span.label).category) for span in spans))

    items = tuple(replace(item, gold=rename(item.gold), predicted=rename(item.predicted)) for item in pairs)
    return replace(pairs, items=items)


def _labels_of(docs: Iterable[Document], name: str | None) -> set[str]:
    """Return all labels in a layer of the documents."""
    return {span.label for doc in docs for span in _spans(doc, name)}


def _check_map(labels: Mapping[str, str], gold: set[str], predicted: set[str]) -> None:
    """Raise ConfigError if the map has labels that no predicted span has, or targets (but O) that no gold span has."""
    for label, ours in labels.items():
        for wanted, known, side in ((label, predicted, "predicted"), (ours, gold | {"O"}, "gold")):
            if wanted not in known:
                raise ConfigError(f"the map of labels (--map) names {wanted!r}, which no {side} span has; correct it")


def _map_labels(doc: Document, name: str | None, labels: Mapping[str, str]) -> Document:
    """Return the document with a layer's labels renamed by the map; spans mapped to O are left out."""
    if name is None or name not in doc.layers:
        return doc
    spans = (replace(span, label=labels.get(span.label, span.label)) for span in doc.layers[name])
    return doc.with_layer(name, [span for span in spans if span.label != "O" or "O" not in labels.values()])


def _match_predictions(golds: Sequence[Document], others: Sequence[Document]) -> tuple[list[Document | None], int]:
    """Return each gold document's prediction or None, and how many were left over; DataError if ids do not fit."""
    by_id = {doc.id: doc for doc in others}
    ids = {doc.id for doc in golds}
    repeated = len(golds) - len(ids) + len(others) - len(by_id)
    if repeated or (others and ids.isdisjoint(by_id)):
        matched = _by_text(golds, others)
        if matched is not None:
            return matched, 0
        if repeated:
            raise DataError(f"{repeated} documents share an id with another; give every document an id of its own")
        raise DataError(
            f"none of the {len(golds)} gold ids is among the {len(others)} predicted ones, and the texts differ too; "
            "predict on the gold files, or keep their ids (--ids keep)"
        )
    return [by_id.get(doc.id) for doc in golds], len(by_id.keys() - ids)


def _by_text(golds: Sequence[Document], others: Sequence[Document]) -> list[Document | None] | None:
    """Return each gold document's prediction of equal text, in order; None unless all match on both sides."""
    if Counter(doc.text for doc in golds) != Counter(doc.text for doc in others):
        return None
    waiting: dict[str, deque[Document]] = {}
    for doc in others:
        waiting.setdefault(doc.text, deque()).append(doc)
    return [waiting[doc.text].popleft() for doc in golds]


def _check_texts(golds: Sequence[Document], partners: Sequence[Document | None]) -> None:
    """Raise DataError if any prediction has another text than its gold document; None is skipped."""
    differing = sum(b is not None and a.text != b.text for a, b in zip(golds, partners, strict=True))
    if differing:
        raise DataError(
            f"{differing} of {len(golds)} documents have other text in the predictions than in gold, so offsets cannot "
            "be compared; predict on the gold files as they are, line ends and blanks included"
        )


def _choose_gold_layer(docs: Sequence[Document], name: str | None) -> str | None:
    """Return the gold layer's name: as given, else "gold", else the only one; DataError if absent or undecided."""
    names = _layer_names(docs)
    if name is not None:
        return _require_layer(names, name, "gold")
    if not names:
        raise DataError(f"none of the {len(docs)} gold documents has a layer of spans; is this the annotated side?")
    if "gold" in names or len(names) == 1:
        return "gold" if "gold" in names else names[0]
    raise DataError(f"gold has several layers and none is called gold ({', '.join(names)}); name one")


def _choose_predicted_layer(docs: Sequence[Document], name: str | None) -> tuple[str | None, bool]:
    """Return (layer to score, None without any; whether others were passed over); or DataError.

    It is the one named, else the only one, else the last that was added beside "gold" and the layers of votes.
    """
    names = _layer_names(docs)
    if name is not None:
        return (_require_layer(names, name, "predicted") if docs else name), False
    if len(names) <= 1:
        return (names[0] if names else None), False
    rest = [other for other in names if other != "gold" and not other.startswith(_VOTES)]
    if not rest:
        raise DataError(
            f"the predictions have {len(names)} layers, of gold and of votes, and no other; name the one to score "
            "(--pred-layer, --a-layer, --b-layer; predicted_layer in Python)"
        )
    return rest[-1], len(rest) > 1


def _require_layer(names: Sequence[str], name: str, side: str) -> str:
    """Return the layer's name; raise DataError if it is not among the names of that side."""
    if name not in names:
        raise DataError(f"no {side} document has a layer {name!r}; there is {count_layers(names)}")
    return name


def _layer_names(docs: Iterable[Document]) -> list[str]:
    """Return the names of all layers in the documents, each once, in order of first appearance."""
    return list(dict.fromkeys(name for doc in docs for name in doc.layers))


def _spans(doc: Document, name: str | None) -> tuple[Span, ...]:
    """Return the spans of a layer (() if absent), equal ones once, with the highest score."""
    spans = () if name is None else doc.layers.get(name, ())
    best: dict[Span, Span] = {}
    for span in spans:
        if span not in best or span.score > best[span].score:
            best[span] = span
    return tuple(best.values())
