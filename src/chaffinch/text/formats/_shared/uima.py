"""UIMA CAS as INCEpTION writes it, shared by its JSON and its XML form: annotations with types and features.

Spans of a document are annotations of DKPro's NamedEntity, `value` the label, `identifier` the concept; annotations of
span layers that users made (`webanno.custom.…`) are read as well. Tokens, sentences and descriptions of the document,
which INCEpTION makes itself for every text, are not taken. Offsets count UTF-16 units; they are converted here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import check_offsets, note_no_layer
from chaffinch.text.formats.base import ReadOptions, WriteOptions
from chaffinch.text.span import Span

ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
VIEW = "_InitialView"
# What INCEpTION and DKPro add to every text, which is no annotation of a person.
_STRUCTURE = frozenset(
    {
        "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token",
        "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence",
        "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData",
        "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.TagsetDescription",
        "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.TagDescription",
        "de.tudarmstadt.ukp.clarin.webanno.api.type.CASMetadata",
        "de.tudarmstadt.ukp.clarin.webanno.api.type.FeatureDefinition",
        "de.tudarmstadt.ukp.clarin.webanno.api.type.LayerDefinition",
        "uima.tcas.DocumentAnnotation",
    }
)
_BUILT_IN = ("de.tudarmstadt.", "org.dkpro.", "uima.")  # layers that INCEpTION has from the start
_LABELS = ("value", "label", "kind", "type", "class", "category")  # features that name what a layer marks


@dataclass(frozen=True, slots=True)
class Annotation:
    """A typed annotation of a view: UTF-16 offsets, features that are text, and whether it refers to others."""

    type: str
    begin: int
    end: int
    features: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_relation: bool = False


class Utf16:
    """UTF-16 units of a text and its code points."""

    def __init__(self, text: str) -> None:
        """Note the places of the characters that take two UTF-16 units."""
        self._length = len(text)
        self._wide = [place for place, char in enumerate(text) if char > "\uffff"]
        self._units = [place + index for index, place in enumerate(self._wide)]  # where each of them begins

    def unit(self, point: int) -> int:
        """Return the unit at which a code point begins.

        >>> Utf16("a😀b").unit(2)
        3
        """
        return point + bisect_left(self._wide, point)

    def point(self, unit: int) -> int:
        """Return the code point that begins at a unit; raise DataError if the unit is inside one.

        >>> Utf16("a😀b").point(3)
        2
        """
        before = bisect_left(self._units, unit)
        if before and self._units[before - 1] == unit - 1:
            raise DataError("an offset is inside a character of two UTF-16 units; the offsets may count something else")
        return unit - before


def document_of(text: str, annotations: Iterable[Annotation], name: str, options: ReadOptions) -> Document:
    """Return the document of a view; count what is neither a span nor structure; DataError if an offset is wrong."""
    return Document.make(
        text,
        id=name,
        layers={options.layer: list(_spans(text, annotations, options))},
        split=options.split,
        max_chars=options.max_chars,
    )


def _spans(text: str, annotations: Iterable[Annotation], options: ReadOptions) -> Iterator[Span]:
    """Yield the annotations that are spans; count others, but not structure, as lost; DataError for bad offsets."""
    units = Utf16(text)
    for one in annotations:
        if one.type in _STRUCTURE:
            continue
        if one.is_relation:
            options.losses.add("relations")
        elif one.type != ENTITY and one.type.startswith(_BUILT_IN):
            options.losses.add("annotations of other layers")
        elif one.begin == one.end:
            options.losses.add("annotations without a character")
        else:
            start, end = units.point(one.begin), units.point(one.end)
            check_offsets(start, end, text)
            label, used = _label(one)
            if not label:
                options.losses.add("spans without a label")
                continue
            concept = one.features.get("identifier", "") if one.type == ENTITY else ""
            options.losses.add("features of annotations", len(one.features.keys() - {used, "identifier"}))
            yield Span(start, end, label, concept=concept)


def _label(one: Annotation) -> tuple[str, str]:
    """Return (label, name of the feature it comes from); without one, (name of the layer, ""); "" if it is empty."""
    if one.type == ENTITY:
        return one.features.get("value", ""), "value"
    named = next((name for name in _LABELS if one.features.get(name)), "")
    if not named and len(one.features) == 1:
        named = next(iter(one.features))
    return (one.features[named], named) if named else (one.type.rpartition(".")[2], "")


def annotations_of(doc: Document, options: WriteOptions) -> list[Annotation]:
    """Return the annotations to write, one per labelled span; count what a CAS of INCEpTION cannot hold."""
    options.drop(doc, "group", "meta", "soft", "relations", "given")
    note_no_layer(doc, options)
    spans: Sequence[Span] = options.spans(doc) if doc.layers else ()
    options.drop_from_spans(spans, "score", "source")
    units = Utf16(doc.text)
    found = []
    for span in spans:
        if not span.label:
            options.losses.add("spans without a label")
            continue
        features = {"value": span.label} | ({"identifier": span.concept} if span.concept else {})
        found.append(Annotation(ENTITY, units.unit(span.start), units.unit(span.end), features))
    return found


def text_units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return Utf16(text).unit(len(text))
