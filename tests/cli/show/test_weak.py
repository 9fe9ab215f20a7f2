"""`chaffinch show` of models of weak supervision, and of encoders: text, JSON and one HTML page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.cli import main
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.model import Model as CascadeModel
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.tagger import Tagger, train
from chaffinch.models.votes.chmm.fit import CHMM
from chaffinch.text import Document, Span
from chaffinch.weak.aggregate import FittedAggregator, FittedMultiHMM, aggregate, fit, save
from chaffinch.weak.apply import apply
from chaffinch.weak.embedded import FittedCHMM
from chaffinch.weak.propagate import TextSources
from chaffinch.weak.sources import FromFunction, Lexicon, Regex
from chaffinch.weak.sources.base import Source
from chaffinch.weak.tagger import WeakTagger
from chaffinch.weak.training.aggregator import AggregatorChoice, fit_votes
from chaffinch.weak.training.students import Students, require_complete
from chaffinch.weak.vote_rules import LongestSpan
from tests.cli.show.test_subtags import lines_of, shown
from tests.features import tiny_encoder
from tests.models.notes import notes as tagged_notes
from tests.weak.test_aggregate import embedder
from tests.weak.training.made_notes import notes

CANARY = "zyxomitis"
QUICK = Cascade(objective="crf", documents=False, calibrate=False, epochs=1)


def linked(count: int) -> list[Document]:
    """Notes with votes, and a linking rule on the first words."""
    return [doc.with_layer("link:first", [Span(0, 11, "TOGETHER")]) for doc in notes(0, count)]


@pytest.fixture(scope="module")
def student() -> Tagger:
    return require_complete(train(aggregate(notes(0, 12)), QUICK, layer="aggregate"))


def saved(path: Path, student: Tagger, how: AggregatorChoice | None) -> Path:
    """A tagger with a list, a pattern and Python code among its sources."""
    code: Source = FromFunction("code", lambda doc: [], label="Disease")
    sources = (
        Lexicon("drugs", [CANARY, "aspirin"], label="Chemical"),
        Regex("renal", "renal failure", label="Disease"),
    )
    docs = list(apply([*sources, code], notes(0, 12)))
    fitted = fit_votes(docs, how, embedder=embedder)
    assert isinstance(fitted, FittedAggregator)
    text = TextSources(lexicon={(CANARY,): "Disease"})
    names = ("a", "b", "c", "code", "drugs", "renal")
    assert isinstance(student.model, CascadeModel)
    layers = replace(student.model.config, layers=("student0:own",))
    stacked = replace(student, model=replace(student.model, config=layers))
    WeakTagger(fitted, Students(student.labels, student, stacked), text, 0.7, "adds", (*sources, code), names).save(
        path
    )
    return path


@pytest.mark.parametrize("config", [None, CHMM(epochs=1), CHMM(constant=None, epochs=1)])
def test_an_aggregator_shows_its_sources(
    config: CHMM | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, path = linked(12), tmp_path / "m.cfm"
    model = fit(docs, config, embedder=embedder)
    save(model, path, docs=docs)
    assert isinstance(model, FittedMultiHMM | FittedCHMM)
    hmm = model.model if isinstance(model, FittedMultiHMM) else model.model.constant
    found = json.loads(shown(capsys, path, "--json"))
    assert found["kind"] == ("multihmm" if config is None else "chmm")
    assert (found["labels"], found["documents"]) == (["Chemical", "Disease"], 12)
    assert found["bytes"] == path.stat().st_size
    assert [own["source"] for own in found["sources"]] == list(model.sources)
    if hmm is None:
        assert {own["weight"] for own in found["sources"]} == {"-"}
    else:
        np.testing.assert_allclose([own["weight"] for own in found["sources"]], hmm.weights.sources, atol=1e-4)
        np.testing.assert_allclose([own["silence"] for own in found["sources"]], hmm.weights.silence, atol=1e-4)
        (rule,) = found["rules"]
        assert rule["linking_rule"] == "first"
        np.testing.assert_allclose([rule["together"], rule["apart"]], hmm.tables.links[0], atol=1e-4)
    printed = shown(capsys, path)
    assert [line.split()[0] for line in lines_of(printed, "source  weight")] == list(model.sources)
    assert ("embedder" in printed) == (config is not None)


@pytest.mark.filterwarnings("ignore:sources that never speak")
@pytest.mark.parametrize("how", [None, LongestSpan(), CHMM(epochs=1)], ids=["MultiHMM", "LongestSpan", "CHMM"])
def test_a_tagger_shows_its_parts_and_no_words(
    how: AggregatorChoice | None, student: Tagger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = saved(tmp_path / "w.cfm", student, how), tmp_path / "page.html"
    told = shown(capsys, path, "--json")
    found = json.loads(told)
    name = "MultiHMM" if how is None else type(how).__name__
    assert (found["aggregator"]["method"], found["threshold"]) == (name, 0.7)
    assert found["students"] == ["cascade", "cascade stacked on the others"]
    assert found["text_sources"] == {"names": 1, "heads": 0, "suffixes": 0}
    sources = {own["source"]: own for own in found["sources"]}
    assert (sources["drugs"]["kind"], sources["drugs"]["label"], sources["drugs"]["where"]) == (
        "lexicon", "Chemical", "in the file"
    )  # fmt: skip
    assert (sources["code"]["where"], sources["code"]["weight"]) == ("give it with --sources", "-")  # it never spoke
    assert sources["a"]["where"] == "votes come with documents"
    assert isinstance(sources["a"]["weight"], float) == (name != "LongestSpan")
    printed = shown(capsys, path, "--html", page)
    assert [line.split()[0] for line in lines_of(printed, "source  kind")] == list(sources)
    for line in ("aggregator", "students", "threshold", "bytes", "labels"):
        assert f"\n{line}  " in printed
    written = page.read_text(encoding="utf-8")
    assert "<h2>Sources</h2>" in written
    assert not any(CANARY in own or "renal failure" in own for own in (told, printed, written))


def test_an_encoder_shows_its_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, path = tiny_encoder.make(tmp_path / "bert"), tmp_path / "e.cfm"
    train(tagged_notes(4), Encoder(folder=str(folder), epochs=1)).save(path)
    network = json.loads(shown(capsys, path, "--json"))["network"]
    assert (network["layers"], network["width"]) == (tiny_encoder.LAYERS, tiny_encoder.SIZE)
    printed = shown(capsys, path)
    assert "network" in printed
    assert len(lines_of(printed + "\n", "part")) < 10


def test_damaged_settings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("weak", "multihmm", "chmm", "encoder"):
        path = tmp_path / f"{kind}.cfm"
        bundle.save(path, Manifest(kind, {"aggregator": 1}), {"x": np.zeros(1)})
        assert main(["show", str(path)]) == 3
        assert f"{kind}.cfm: its " in capsys.readouterr().err
