"""`cf.load`: a file of any kind is opened by the kind in its manifest."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaffinch as cf
from chaffinch import bundle, loading
from chaffinch.cli import main
from chaffinch.deid.detect.class_doubt import class_layer
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.model import Model
from chaffinch.errors import ModelError
from chaffinch.features import embed
from chaffinch.relations.joint.extractor import JointExtractor
from chaffinch.weak.aggregate import LEARNING, FittedMultiHMM, fit, save
from chaffinch.weak.embedded import FittedCHMM
from chaffinch.weak.tagger import KIND, WeakTagger
from tests.relations.made import documents as related
from tests.weak.test_aggregate import BRIEF, document, embedder, weak_one

QUICK = cf.Cascade(objective="crf", documents=False, calibrate=False, epochs=1)
NOTE = cf.Document.make("Seen by Dr. Penn on 3/4/1998.")


def tagger() -> cf.Tagger:
    notes = [cf.Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    return cf.train([note.with_layer("gold", [cf.Span(4, 8, "DOCTOR")]) for note in notes], QUICK)


def voted() -> list[cf.Document]:
    return [document(number) for number in range(5)]


def relations(path: Path) -> None:
    schema = cf.relations.Schema("localises", roles=("Protein", "Location"))
    config = cf.relations.Extraction(mode="joint", hmm=cf.PhraseHMM(representation="token"), folds=2)
    cf.relations.save(cf.relations.train_joint(related(12), schema, config), path)


FILES: dict[str, tuple[Callable[[Path], object], type[Any]]] = {
    "cascade": (lambda path: tagger().save(path), cf.Tagger),
    "deid": (lambda path: Model((tagger(),)).save(path), HybridDetector),
    "weak": (lambda path: weak_one(voted()).save(path), WeakTagger),
    "multihmm": (lambda path: save(fit(voted()), path), FittedMultiHMM),
    "chmm": (lambda path: save(fit(voted(), BRIEF, embedder=embedder), path), FittedCHMM),
    "relations": (relations, JointExtractor),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a small embedder in place of the packaged one."""
    monkeypatch.setattr(embed.Embedder, "load", lambda: embedder)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_every_kind_is_opened(kind: str, tmp_path: Path) -> None:
    save, expected = FILES[kind]
    save(tmp_path / "m.cfm")
    assert bundle.read_manifest(tmp_path / "m.cfm").kind == kind
    assert type(cf.load(tmp_path / "m.cfm")) is expected


def test_every_loader_exists_and_every_kind_has_one() -> None:
    assert loading.LOADERS.keys() == {KIND, *LEARNING, "deid", "relations"}
    assert FILES.keys() == {*loading.LOADERS, "cascade"}
    for module, name in loading.LOADERS.values():
        assert callable(getattr(import_module(module), name))


def test_the_packaged_detector_annotates_as_a_tagger_does() -> None:
    detector = cf.load("deid-en")
    assert isinstance(detector, HybridDetector)
    found = next(iter(detector.annotate([NOTE], layer="mine")))
    assert [span.label for span in found.layer("mine")] == ["DOCTOR", "DATE"]
    assert not found.soft
    soft = next(iter(detector.annotate([NOTE], posteriors=True))).soft
    assert soft.keys() == {"deid", class_layer("deid")}


def test_a_file_of_no_kind_of_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.cfm"
    bundle.save(path, bundle.Manifest("crf"), {"w": np.zeros(1)})
    with pytest.raises(ModelError, match=r"m\.cfm: is a model of kind 'crf', not a tagger \(cascade, "):
        cf.load(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="copy it again"):
        cf.load(path)
    with pytest.raises(ModelError, match="no such file, and no packaged model"):
        cf.load(tmp_path / "absent")


@pytest.mark.parametrize(
    ("kind", "verb"),
    [("multihmm", "weak aggregate --model"), ("chmm", "weak aggregate --model"), ("relations", "relate")],
)
def test_tag_names_the_verb_of_a_model_that_tags_nothing(
    kind: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FILES[kind][0](tmp_path / "m.cfm")
    cf.write([NOTE], tmp_path / "in.jsonl")
    assert main(["tag", str(tmp_path / "m.cfm"), str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]) == 3
    assert f"tags nothing by itself; use it with chaffinch {verb}" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out.jsonl").exists()
