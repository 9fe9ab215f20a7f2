"""Extractors of every mode on disk and back, and files that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.errors import ModelError
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.relations import Extraction, save, train, train_documents, train_joint
from chaffinch.relations.storage import AnyExtractor, load
from chaffinch.text import Document, Relation
from tests.relations.made import SCHEMA, document, documents, with_concepts

MODES = ("entities", "documents", "joint", "bare")


@pytest.fixture(scope="module")
def extractors() -> Mapping[str, AnyExtractor]:
    hmm = PhraseHMM(representation="token")
    return {
        "entities": train(documents(8), SCHEMA, Extraction(views=("words", "contexts"), folds=2)),
        "documents": train_documents([with_concepts(doc) for doc in documents(12)], SCHEMA, Extraction(folds=2)),
        "joint": train_joint(documents(8), SCHEMA, Extraction(mode="joint", hmm=hmm, folds=2)),
        "bare": train_joint(
            documents(8), SCHEMA, Extraction(mode="joint", hmm=hmm, folds=2, mask=False, labels="path")
        ),
    }  # fmt: skip


def relations(extractor: AnyExtractor, docs: list[Document]) -> list[tuple[tuple[Relation, float], ...]]:
    return [tuple((own, own.score) for own in doc.relations) for doc in extractor.annotate(docs)]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_loaded_says_the_same_and_saves_the_same_bytes(
    mode: str, extractors: Mapping[str, AnyExtractor], tmp_path: Path
) -> None:
    first, second = tmp_path / "a.cfm", tmp_path / "b.cfm"
    extractor = extractors[mode]
    saved = save(extractor, first)
    again = load(first)
    held = [with_concepts(document(n, seed=3)) for n in range(4)]
    assert type(again) is type(extractor)
    assert again.report is None
    assert (again.schema, again.config, again.threshold) == (extractor.schema, extractor.config, extractor.threshold)
    assert relations(again, held) == relations(extractor, held)
    assert any(relations(again, held))
    assert again.manifest.checksum == saved.manifest.checksum != ""
    save(again, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_a_file_holds_no_name_of_a_single_document_above_the_floor(mode: str, tmp_path: Path) -> None:
    """Names of mentions are marks for features; where the text is bare, the floor keeps them out."""
    docs = [with_concepts(doc) for doc in documents(8)]
    odd = [replace(doc, text=doc.text.replace("yeast", f"cana{chr(97 + n)}")) for n, doc in enumerate(docs)]
    floor = Extraction(floor=2, folds=2)
    hmm = {"mode": "joint", "hmm": PhraseHMM(representation="token"), "mask": mode == "joint"}
    made: AnyExtractor
    if mode == "entities":
        made = train(odd, SCHEMA, floor)
    elif mode == "documents":
        made = train_documents(odd, SCHEMA, floor)
    else:
        made = train_joint(odd, SCHEMA, replace(floor, **hmm))  # type: ignore[arg-type]  # fields of different types
    save(made, tmp_path / "m.cfm")
    assert b"cana" not in (tmp_path / "m.cfm").read_bytes()


def damage(path: Path, changes: Mapping[str, Any], arrays: Mapping[str, Any] = {}) -> None:
    found = bundle.load(path)
    config = {**found.manifest.config, **changes}
    kept = {name: array for name, array in {**found.arrays, **arrays}.items() if array is not None}
    bundle.save(path, replace(found.manifest, config=config), kept, found.strings)


@pytest.mark.parametrize(
    ("mode", "changes", "arrays"),
    [
        ("entities", {"settings": {}}, {}),
        ("entities", {"settings": None}, {}),
        ("entities", {"schema": {"name": "x", "roles": ["one"]}}, {}),
        ("entities", {"calibration": {"incline": 1.0}}, {}),
        ("entities", {"threshold": "high"}, {}),
        ("entities", {}, {"weights": None}),
        ("entities", {}, {"weights": np.zeros(3, np.float32)}),
        ("entities", {}, {"held.right": None}),
        ("documents", {"merging": {}}, {}),
        ("documents", {}, {"merging.centre": None}),
        ("joint", {"hmm": {"representation": "word"}}, {}),
        ("joint", {"rule": {"lead": 1.0}}, {}),
        ("joint", {"across": "many"}, {}),
    ],
)
def test_damaged_files_are_refused(
    mode: str, changes: dict[str, Any], arrays: dict[str, Any], extractors: Mapping[str, AnyExtractor], tmp_path: Path
) -> None:
    path = tmp_path / "m.cfm"
    save(extractors[mode], path)
    damage(path, changes, arrays)
    with pytest.raises(ModelError, match=r"m\.cfm: its arrays, strings and settings do not fit together"):
        load(path)


def test_a_file_of_another_kind_is_refused(extractors: Mapping[str, AnyExtractor], tmp_path: Path) -> None:
    path = tmp_path / "m.cfm"
    save(extractors["entities"], path)
    found = bundle.load(path)
    bundle.save(path, replace(found.manifest, kind="cascade"), found.arrays, found.strings)
    with pytest.raises(ModelError, match="kind 'cascade', not an extractor of relations"):
        load(path)
