"""The test suite that every tagger passes: reading, files, training material and refusals.

`tests/models/test_contract.py` runs all of it over every entry of `METHODS`, with small settings; the tests of a method
run the checks of a trained tagger over the settings of theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.lexicon import Lexicon
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.methods import Config, Material, Method
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.tasks import with_untagged
from chaffinch.models.registry import method_of
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Span
from tests.models.notes import EMPTY, TINY

# Settings that make any method quick enough for a test, where it has them.
SMALL: Mapping[str, Any] = {"epochs": 2, "passes": 3, "evaluations": 15, "min_count": 2, "rate": 0.02, "length": 48}
LEARNT = (  # next to nothing to learn from
    Document.make("Ann", id="one", layers={"gold": [Span(0, 3, "NAME")]}),
    Document.make("", id="none", layers={"gold": []}),
    Document.make("a b", id="bare", tokens=[(0, 1), (2, 3)], sentences=[], layers={"gold": [Span(0, 1, "NAME")]}),
    Document.make("a b", id="gap", tokens=[(0, 1), (2, 3)], sentences=[(0, 0), (0, 3)], layers={"gold": []}),
)
Scored = tuple[int, int, str, float, str]


def small_config(method: Method, folder: Path) -> Config:
    """Return settings of a method that train quickly; `folder` holds an encoder, for methods that need one."""
    chosen = {**SMALL, "folder": str(folder)}
    config: Config = method.config(**{name: value for name, value in chosen.items() if method.has_setting(name)})
    return config


def found(tagger: Tagger, docs: Sequence[Document], **options: Any) -> list[list[Scored]]:
    """Return the spans of each document with their scores and sources."""
    read = tagger.annotate(docs, confidence=True, **options)
    return [[(s.start, s.end, s.label, s.score, s.source) for s in doc.layer(tagger.layer)] for doc in read]


# A trained tagger


def check_tagger(tagger: Tagger, docs: Sequence[Document], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check everything that holds of a trained tagger, whatever its settings."""
    check_names(tagger, docs)
    check_reading(tagger, docs)
    check_posteriors(tagger, docs)
    check_neighbours(tagger, docs, monkeypatch)
    check_file(tagger, docs, folder)


def check_names(tagger: Tagger, docs: Sequence[Document]) -> None:
    """Check that the layer, the file's kind and the spans' source are the method's name."""
    name = method_of(tagger.model.config).name
    assert tagger.layer == tagger.manifest.kind == name
    assert {source for spans in found(tagger, docs) for *_, source in spans} <= {name}


def check_reading(tagger: Tagger, docs: Sequence[Document]) -> None:
    """Check that empty sentences, one token and unknown words are read; scores are probabilities; spans are tokens."""
    layer, docs = tagger.layer, [*docs, *TINY]
    read = list(tagger.annotate(docs))
    assert [doc.text for doc in read] == [doc.text for doc in docs]
    assert [doc.layer(layer) for doc in tagger.annotate(EMPTY)] == [()] * len(EMPTY)
    assert [[span[:3] for span in spans] for spans in found(tagger, docs)] == [
        [(s.start, s.end, s.label) for s in doc.layer(layer)] for doc in read
    ]
    assert list(tagger.annotate([])) == []
    for doc, spans in zip(docs, found(tagger, docs), strict=True):
        starts, ends = (set(column.tolist()) for column in doc.tokens.T)
        assert all(a in starts and b in ends and label in tagger.labels for a, b, label, *_ in spans)
        assert all(0 <= score <= 1 for *_, score, _ in spans)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
        readings = [reading.layer(layer) for reading in tagger.alternatives(doc, 3)]
        assert 1 <= len(readings) <= 3


def check_posteriors(tagger: Tagger, docs: Sequence[Document]) -> None:
    """Check that every token has a distribution over O and the labels; outside of sentences it is all O."""
    bare = Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[(2, 3)])
    for doc in tagger.posteriors([*docs, *TINY, bare]):
        soft = doc.soft[tagger.layer]
        assert soft.labels == ("O", *tagger.labels)
        assert soft.values.shape == (len(doc.tokens), len(soft.labels))
        assert (soft.values >= 0).all()
        np.testing.assert_allclose(soft.values.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert soft.values[0].tolist() == [1, *[0] * len(tagger.labels)]


def check_neighbours(tagger: Tagger, docs: Sequence[Document], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a document's reading does not depend on other documents, their order, batches or threads."""
    together, rows = found(tagger, docs), tagger.model.posteriors(docs)
    for doc, spans, posterior in zip(docs, together, rows, strict=True):
        (alone,) = found(tagger, [doc])
        assert [s[:3] for s in alone] == [s[:3] for s in spans]
        np.testing.assert_allclose([s[3] for s in alone], [s[3] for s in spans], rtol=0, atol=1e-9)
        np.testing.assert_allclose(tagger.model.posteriors([doc])[0], posterior, rtol=0, atol=1e-9)
    backwards = found(tagger, docs[::-1])[::-1]
    assert [[s[:3] for s in spans] for spans in backwards] == [[s[:3] for s in spans] for spans in together]
    with monkeypatch.context() as patch:
        patch.setattr("chaffinch.models.tagger.BATCH_TOKENS", 40)
        assert found(tagger, docs, workers=2) == found(tagger, docs, workers=1)


def check_file(tagger: Tagger, docs: Sequence[Document], folder: Path) -> None:
    """Check that a model is the same after saving and loading, and saves as the same bytes."""
    docs = [*docs, *TINY]
    tagger.save(folder / "model.cfm")
    again = load(folder / "model.cfm")
    assert (again.labels, again.layer, again.model.config) == (tagger.labels, tagger.layer, tagger.model.config)
    assert found(again, docs) == found(tagger, docs)
    for one, other in zip(again.model.posteriors(docs), tagger.model.posteriors(docs), strict=True):
        assert np.array_equal(one, other)
    for doc in docs[:3]:
        readings = [[d.layer(tagger.layer) for d in each.alternatives(doc, 4)] for each in (again, tagger)]
        assert readings[0] == readings[1]
    again.save(folder / "again.cfm")
    assert (folder / "model.cfm").read_bytes() == (folder / "again.cfm").read_bytes()


def check_explaining(tagger: Tagger, docs: Sequence[Document], folder: Path) -> None:
    """Check that the model explains, divides and describes, or that its method refuses."""
    method = method_of(tagger.model.config)
    doc, span = next((doc, span) for doc in docs for span in doc.layer("gold") if span.label in tagger.labels)
    explanation = tagger.explain(doc, span)
    assert explanation.span == span
    assert span.label in str(explanation)
    assert span not in explanation.runner_up
    (voice,) = explanation.voices
    assert (voice.kind, voice.name) == ("tagger", method.name)
    assert voice.features or voice.path
    quoted = [*(each.quote for each in voice.features if each.quote), *(each.quote for each in voice.path)]
    assert quoted
    assert not any(f"{mark}{quote}" in str(explanation) for quote in quoted for mark in (" ", "/") if len(quote) > 4)
    with pytest.raises(DataError, match="no label 'NONE OF ITS LABELS'"):
        tagger.explain(doc, Span(span.start, span.end, "NONE OF ITS LABELS"))
    if method.parts is None:
        with pytest.raises(ConfigError, match=f"^{method.title} cannot divide spans into parts"):
            tagger.substructure(doc, "gold")
    else:
        parts = tagger.substructure(doc, "gold")
        assert {part.source for part in parts} == {method.name}
        inside = [any(s.start <= part.start and part.end <= s.end for s in doc.layer("gold")) for part in parts]
        assert parts
        assert all(inside)
    assert all(word == word.lower() for word in method.common_words(tagger.model))
    assert all(isinstance(name, str) for name in method.facts(tagger.model))
    if method.describe is not None:
        tagger.save(folder / "described.cfm")
        assert method.describe(bundle.load(folder / "described.cfm"))
    if method.trim is not None:
        least = method.trim(tagger.model, 0.0)
        assert type(least) is type(tagger.model)
        assert [doc.layer(tagger.layer) for doc in replace(tagger, model=least).annotate(docs)] == [
            doc.layer(tagger.layer) for doc in tagger.annotate(docs)
        ]


# Learning


def check_tiny(config: Config) -> None:
    """Check that nearly empty documents can be learnt from: empty ones, one token, a token in no sentence."""
    for docs in (LEARNT, LEARNT[:1]):
        tagger = train(docs, config)
        assert "NAME" in tagger.labels
        assert len(found(tagger, TINY)) == len(TINY)


def check_absent_label(config: Config, docs: Sequence[Document]) -> None:
    """Check that a label that most documents do not have is learnt with the others."""
    towns = [doc for doc in docs if any(s.label == "TOWN" for s in doc.layer("gold"))]
    few = [doc for doc in docs if doc not in towns][:6] + towns[:1]
    tagger = train(few, config)
    assert tagger.labels == tuple(sorted({s.label for doc in few for s in doc.layer("gold")}))
    assert "TOWN" in tagger.labels
    assert len(found(tagger, docs)) == len(docs)


def check_same_bytes(config: Config, docs: Sequence[Document], folder: Path, first: Tagger | None = None) -> None:
    """Check that documents and seed determine the bytes, with any number of workers; `first` used one."""
    (first or train(docs, config)).save(folder / "1.cfm")
    train(docs, config, workers=2).save(folder / "2.cfm")
    assert (folder / "1.cfm").read_bytes() == (folder / "2.cfm").read_bytes()


def check_materials(config: Config, docs: Sequence[Document]) -> None:
    """Check that soft labels, untagged documents, models, layers and lexicons are used or refused as declared."""
    method, base = method_of(config), train(docs, config)
    half = len(docs) // 2
    soft = with_untagged(docs[:-3], docs[-3:], layer="gold", name="known")  # of three documents nothing is known
    bare = [replace(doc, layers={}) for doc in docs[half:]]
    ways: Mapping[Material, Callable[[], Tagger]] = {
        "spans": lambda: base,
        "soft": lambda: train([replace(doc, layers={}) for doc in soft], config, soft="known"),
        "untagged": lambda: train(docs[:half], config, untagged=bare),
        "model": lambda: train(docs, config, start=base),
        "layers": lambda: train(docs, config, before=train(docs, Cascade(epochs=1), name="other")),
        "resources": lambda: train(docs, config, resources=Resources(lexicon=Lexicon.make({"DRUG": ["aspirin"]}))),
    }
    assert set(ways) == set(get_args(Material))
    for material, way in ways.items():
        if method.learns(material, config):
            taught = way()
            assert taught.labels == base.labels, material
            assert taught.manifest.documents == len(docs) * (2 if material == "model" else 1), material
            assert material == "spans" or not _equal(taught, base), material  # it made a difference
        else:
            with pytest.raises(ConfigError):
                way()
    _check_earlier_model(method, config, base, docs)


def _check_earlier_model(method: Method, config: Config, base: Tagger, docs: Sequence[Document]) -> None:
    """Check that a model continues only from its method's; new labels are learnt or refused as declared."""
    if not method.learns("model", config):
        return
    other = Cascade(epochs=1) if method.name != "cascade" else _another()
    with pytest.raises(ConfigError, match=f"^{method.title} can continue only from {method.title}, not from"):
        train(docs, config, start=train(docs, other))
    new = [
        replace(doc, layers={"gold": (Span(int(doc.tokens[0, 0]), int(doc.tokens[0, 1]), "NEW"),)})
        for doc in docs
        if len(doc.tokens)
    ]
    if method.new_labels:
        assert train(new, config, start=base).labels == (*base.labels, "NEW")
    else:
        with pytest.raises(ConfigError, match="NEW is new"):
            train(new, config, start=base)


def _another() -> Config:
    from chaffinch.models.classhmm.config import ClassHMM

    return ClassHMM(evaluations=2, calibrate=False)


def _equal(one: Tagger, other: Tagger) -> bool:
    """Tell whether two models hold the same arrays and strings, and name the same layers."""
    first, second = one.model.state(), other.model.state()
    same = first.arrays.keys() == second.arrays.keys() and first.strings == second.strings
    same = same and all(np.array_equal(array, second.arrays[key]) for key, array in first.arrays.items())
    return same and one.model.config == other.model.config


# What a method says of itself


def check_statement(method: Method, config: Config) -> None:
    """Check that a method's constants name existing settings and materials."""
    known = {*get_args(Material), *config.__dataclass_fields__}
    assert "spans" in method.learns_from
    assert method.learns_from <= set(get_args(Material))
    assert set(method.unused(config)) <= known
    assert set(method.fixed) <= set(config.__dataclass_fields__)
    assert method.split in ("prose", "lines")
    assert method.title.split()[0] in ("a", "an")
    if method.slower is not None:
        assert "model" in method.learns_from
        assert type(method.slower(config)) is method.config
    assert ("layers" in method.learns_from) == method.has_setting("layers")
    assert method_of(config) is method
