"""The weak-supervision benchmark: what is read, who sees what, what is compared, and its parts on made-up votes."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmarks.weak import benchmark as weak
from benchmarks.weak import data as _weak_data
from benchmarks.weak import made as _weak_made
from benchmarks.weak import peers as _weak_peers
from benchmarks.weak import published
from benchmarks.weak import rows as _weak_rows
from benchmarks.weak import runner as _weak_run
from benchmarks.weak import systems as _weak_systems
from benchmarks.weak import worker as _weak
from benchmarks.weak.data import Sample
from benchmarks.weak.published import Schedule
from benchmarks.weak.systems import System
from benchmarks.weak.worker import Job

from chaffinch import CHMM, Cascade, Document, Soft, Span
from chaffinch.errors import ConfigError
from chaffinch.weak.votes import collect_votes
from tests.recipes.files import gz

BAR = {"id", "value", "low", "high", "unit", "floor", "goal", "better"}
SICK = ("gout", "mumps", "liver cancer", "brain cancer", "rabies", "wilson disease")
FOLDERS = ("chmm-alt-weak/NCBI-Disease", "chmm-alt-weak/BC5CDR", "chmm-alt-weak/CoNLL", "mit-restaurants-weak")


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None = None
    split: str = "dev"
    seeds: int = 1


@dataclass(frozen=True)
class Budget(Options):
    corpus: Path | None = None
    minutes: float | None = None
    full: bool = False


def item(number: int) -> dict[str, Any]:
    """Two entities; one source misses the first of every fifth item, one knows cancers alone, one is wrong."""
    one, two = SICK[number % 6].split(), SICK[(number + 1) % 6].split()
    text = ["Some", "have", *one, "and", f"case{number % 4}", "had", *two, "."]
    second = 5 + len(one)
    spans: list[list[Any]] = [[2, 2 + len(one), "Disease"], [second, second + len(two), "Disease"]]
    first = spans[1:] if number % 5 == 0 else spans
    cancers = [span for span in spans if text[span[1] - 1] == "cancer"]
    return {"label": spans, "data": {"text": text}, "weak_labels": [first, cancers, [[0, 1, "Disease"]]]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with small corpora and no test set; the scores in meta.json cannot be read as what they should be."""
    for folder in FOLDERS:
        own = tmp_path / "data" / folder
        own.mkdir(parents=True)
        meta = {"lf": ["list", "cancer", "wrong"], "lf_rec": ["list", "cancer"], "lf_f1": "not to be read"}
        (own / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        parts = {"train": range(24), "valid": range(24, 36)}
        for part, numbers in parts.items():
            if part == "valid" or "NCBI" in folder or "BC5" in folder:
                gz(own / f"{part}.json.gz", json.dumps({str(k): item(n) for k, n in enumerate(numbers)}))
    return tmp_path / "data"


def embedded(doc: Document) -> Any:
    """(T, 4) numbers that depend on words."""
    marks = [hashlib.sha256(word.encode()).digest()[:4] for word in doc.words()]
    return np.array([list(mark) for mark in marks], np.float32).reshape(-1, 4) / 128 - 1


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Job]:
    """Jobs, which are done in this process with few steps and made-up embeddings; the drawing goes to the test."""
    done: list[Job] = []

    def launch(job: Job) -> None:
        done.append(job)
        less = {"loops": {"loops": 1}, "conditional": {"epochs": 1}}.get(job.system.method, {})
        own = (
            job.system
            if "published" in job.system.fields
            else replace(job.system, fields={**job.system.fields, **less})
        )
        _weak.work(replace(job, system=own))
        (Path(job.folder) / _weak.key(own, job.sample)).rename(Path(job.folder) / _weak.key(job.system, job.sample))

    monkeypatch.setattr(_weak_run, "launch", launch)
    monkeypatch.setattr(_weak, "COLD", tuple(_weak_systems.METHODS))
    monkeypatch.setattr(_weak_run, "_installed", lambda name: True)
    monkeypatch.setattr(_weak_systems, "_embedder", lambda folder: embedded)
    monkeypatch.setattr(_weak_peers, "absent", lambda name: "pip install 'chaffinch[bench]'")
    monkeypatch.setattr(weak, "PLOTS", tmp_path / "docs")
    monkeypatch.setattr(_weak_made, "SENTENCES", 10)
    return done


def systems(result: dict[str, Any], corpus: str = "NCBI-Disease") -> Iterator[dict[str, Any]]:
    return (row for row in result["rows"] if row["corpus"] == corpus)


def test_without_data_or_with_an_unknown_part_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data or CHAFFINCH_DATA"):
        weak.run(Options(None))
    with pytest.raises(ConfigError, match=r"unknown part 'all'; choose one of published, .*speed"):
        weak.run(Options(tmp_path, "all"))


@pytest.mark.parametrize("part", [part for part in weak.PARTS if part not in ("links", "chmm")])
def test_what_is_not_there_is_reported_and_nothing_is_guessed(part: str, tmp_path: Path, here: list[Job]) -> None:
    result = weak.run(Options(tmp_path / "none", part))
    assert (result["bars"], here) == ([], [])
    assert result["rows"]
    for row in result["rows"]:
        assert row["absent"].startswith("no ")
        assert str(tmp_path) not in row["absent"]


def test_the_dev_split_reads_no_test_file_and_of_the_meta_file_names_alone(data: Path) -> None:
    for corpus in _weak_data.CORPORA:
        assert not any("test" in name for name in _weak_data.files(Sample(corpus, "dev")))
        assert any("test.json" in name for name in _weak_data.files(Sample(corpus)))
    some = _weak_data.documents(data, Sample(split="dev"))
    every = _weak_data.documents(data, Sample(split="dev", sources="all"))
    assert [list(doc.layers) for doc in some.votes[:1]] == [["source:list", "source:cancer"]]
    assert "source:wrong" in every.votes[0].layers
    assert _weak_data.Names.__struct_fields__ == ("lf", "lf_rec")


def test_who_may_see_gold(data: Path) -> None:
    for split in ("dev", "test"):
        if split == "test":  # a made-up one
            folder = data / FOLDERS[0]
            (folder / "test.json.gz").write_bytes((folder / "valid.json.gz").read_bytes())
        texts = _weak_data.documents(data, Sample(split=split, gold=3, draw=1))
        ids = {name: {doc.id for doc in docs} for name, docs in texts._asdict().items()}
        assert not any("gold" in doc.layers for doc in texts.votes)
        assert all("gold" in doc.layers for doc in (*texts.train, *texts.stop, *texts.test, *texts.known))
        assert not ids["test"] & (ids["votes"] | ids["train"] | ids["stop"])
        assert not ids["train"] & ids["stop"]
        assert ids["known"] < ids["votes"]
        assert len(ids["known"]) == 3
        assert {name.partition("-")[0] for name in ids["stop"]} == {"train" if split == "dev" else "valid"}
        assert len(ids["votes"]) == (24 if split == "dev" else 36)
    only = _weak_data.documents(data, Sample("CoNLL", "dev"))
    assert [doc.id for doc in only.votes] == [doc.id for doc in only.test]


def test_no_method_is_shown_the_gold_of_what_it_labels(data: Path, here: list[Job]) -> None:
    texts = _weak_data.documents(data, Sample(split="dev"))
    wrong = texts._replace(test=[doc.with_layer("gold", [Span(0, 4, "Disease")]) for doc in texts.test])
    told: dict[str, dict[str, Any]] = {
        "rule": {"rule": "SpanVote"},
        "loops": {"aggregator": "HMM", "loops": 1},
        "supervised": {"config": "Cascade"},
    }
    for name in ("rule", "hmm", "own", "students", "stopped", "loops", "consensual", "supervised"):
        found = [
            _weak_systems.METHODS[name](_weak_systems.Work(own, System(name, told.get(name, {})), data, data)).ways
            for own in (texts, wrong)
        ]
        for way, docs in found[0].items():
            assert [doc.layer("found") for doc in docs] == [doc.layer("found") for doc in found[1][way]]


def test_the_best_consensus_is_what_is_right_of_any_source() -> None:
    spans = {"gold": [Span(0, 3, "A"), Span(4, 8, "A")], "source:x": [Span(0, 3, "A")], "source:y": [Span(4, 8, "B")]}
    (doc,) = _weak_data.consensus([Document.make("Ann came", layers=spans)], "found")
    assert doc.layer("found") == (Span(0, 3, "A"),)


def test_a_gold_source_says_all_of_some_documents_and_nothing_of_others() -> None:
    docs = [Document.make("Ann came", id=name, layers={"gold": [Span(0, 3, "P")]}) for name in "ab"]
    first, second = _weak_data.with_gold_source([_weak_data.bare(doc) for doc in docs], docs[:1])
    assert collect_votes([first]).codes.T.tolist() == [[1, 0]]
    assert second.layer("source:gold") == ()


def test_squared_errors_by_hand() -> None:
    doc = Document.make("Ann Lee came", layers={"gold": [Span(0, 7, "P")]})
    soft = Soft(("O", "B-P", "I-P"), np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]))
    assert _weak.squared([doc], [doc.with_soft("found", soft)]) == [1.0]
    gap = _weak_rows.error_change([1.0, 3.0], [0.0, 1.0], [5, 10])
    assert gap.value == pytest.approx(-0.2)
    assert gap.low == gap.high == pytest.approx(-0.2)  # each document gained a fifth per token


def test_a_peer_that_is_not_installed_is_reported_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snorkel", None)
    assert _weak_peers.absent("snorkel LabelModel") == "pip install 'chaffinch[bench]'"


def test_snorkel_is_given_silence_as_abstention_and_tags_become_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class LabelModel:
        def __init__(self, cardinality: int, verbose: bool) -> None:
            self.size = cardinality

        def fit(self, L: Any, **_: Any) -> None:
            shown.append(L)

        def predict_proba(self, L: Any) -> Any:
            return np.eye(self.size)[L.max(axis=1)]

    module = ModuleType("snorkel.labeling.model")
    module.LabelModel = LabelModel  # type: ignore[attr-defined]
    for name in ("snorkel", "snorkel.labeling"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "snorkel.labeling.model", module)
    spans = {"source:x": [Span(0, 7, "A"), Span(8, 12, "O")], "source:y": [Span(4, 7, "B")]}
    doc = Document.make("Ann Lee came", layers=spans)
    (found,), costs = _weak_peers.snorkel(_weak_peers.Votes([doc], [doc], 0))
    assert shown[0].tolist() == [[0, -1], [1, 2]]  # B-A; I-A and B-B; nobody calls the last token an entity
    assert found.layer("found") == (Span(0, 3, "A"), Span(4, 7, "B"))
    assert set(costs) == {"fit CPU s", "apply CPU s"}


def test_a_tag_inside_that_goes_on_with_nothing_begins_a_span() -> None:
    doc = Document.make("a b c d")
    votes = collect_votes([doc], sources=(), labels=("A", "B"))
    (found,) = _weak_peers._tagged([doc], votes, np.array([0, 1, 3]), np.array([2, 4, 2]))
    assert found.layer("found") == (Span(0, 1, "A"), Span(2, 3, "B"), Span(6, 7, "A"))


def test_generated_votes_are_what_they_say() -> None:
    made = _weak_made.linked(0, 50)
    begins, ends = (made.tags == 1), np.append(made.tags[1:] != 2, True)
    assert (made.votes.codes[made.tags == 2] != 2).all()  # no source votes for a whole entity of several tokens
    assert (made.votes.links[made.tags == 2, 0] == 1).mean() > 0.9
    assert (made.votes.links[made.tags == 0, 0] == 1).mean() < 0.05
    assert begins.sum() == (ends & (made.tags > 0)).sum() > 50
    exact = _weak_made.by_context(1, 200, 0.0)
    kind = exact.rows[:, 0] > 0
    right = exact.votes.codes[:, 1] == exact.tags  # the second source is good in the second kind of sentence
    inside = exact.tags > 0
    assert right[inside & kind].mean() > 0.85
    assert right[inside & ~kind].mean() < 0.7
    assert _weak_made.context(0, sentences=8).keys() == {"MultiHMM", "i.i.d. CHMM", "CHMM", "SpanVote"}


def test_linking_rules_recover_what_votes_alone_cannot() -> None:
    found = _weak_made.links(0, 100)
    assert found["MultiHMM with linking rules"] > 0.5 > found["MultiHMM, votes alone"]


def test_the_published_figures_are_those_of_the_table() -> None:
    assert _weak_rows.PUBLISHED["CHMM-ALT", "NCBI-Disease"] == 0.8502
    assert _weak_rows.PUBLISHED["MV", "CoNLL"] == 0.5840
    assert _weak_rows.PUBLISHED["CHMM-ALT, restarted", "BC5CDR"] == 0.8471
    assert ("CHMM-ALT, restarted", "CoNLL") not in _weak_rows.PUBLISHED
    assert len(_weak_rows.PUBLISHED) == 38


def test_a_system_is_kept_under_its_settings_seed_and_sample() -> None:
    one, two = System("hmm"), System("hmm", {"joint": True})
    pairs = [(one, Sample()), (two, Sample()), (replace(one, seed=1), Sample()), (one, Sample(draw=1))]
    assert len({_weak.key(*pair) for pair in pairs}) == 4
    assert _weak_systems._chmm(System("conditional", {"iid": True}, 3)) == CHMM(iid=True, seed=3)
    told = {"published": {"rate": 1e-3, "batch": 64}}
    assert _weak_systems._chmm(System("conditional", told, 2)) == CHMM.published(rate=1e-3, batch=64, seed=2)
    assert _weak_systems.embeds(System("loops", {"aggregator": "CHMM"}))
    assert not _weak_systems.embeds(System("loops", {"aggregator": "HMM"}))
    assert not _weak_systems.embeds(System("conditional", {"weight": 0.0}))


def test_aggregators_stand_beside_rules_peers_and_what_was_published(data: Path, here: list[Job]) -> None:
    result = weak.run(Options(data, "aggregators"))
    rows = [row for row in systems(result) if row["sources"] == "recommended"]
    f1 = {row["system"]: row["F1"] for row in rows}
    assert f1["best consensus"] == f1["Union"] == round(42 / 45, 4)  # items 25, 30 and 35 lack one of two; no cancers
    assert {"Union", "TokenVote", "SpanVote", "LongestSpan", "MultiHMM", "i.i.d. MultiHMM"} < set(f1)
    assert sum(name.endswith("the best rule on valid") for name in f1) == 1
    assert {row["system"]: row["published"] for row in rows}["MultiHMM"] == 0.7306
    absent = {row["system"]: row["absent"] for row in rows if row["absent"] != "-"}
    assert absent == dict.fromkeys(_weak_peers.PEERS, "pip install 'chaffinch[bench]'")
    levels = {bar["id"]: (bar["floor"], bar["goal"]) for bar in result["bars"]}
    wanted = {"aggregator_ncbi": (0.788, 0.80), "aggregator_bc5cdr": (0.837, 0.85), "aggregator_conll": (0.665, 0.70)}
    assert levels == wanted | {f"{name}_all_sources": own for name, own in wanted.items()}
    assert all(set(bar) == BAR for bar in result["bars"])
    assert {row["sources"] for row in systems(result, "MIT-Restaurants")} == {"recommended"}
    assert all(job.sample.split == "dev" for job in here)


def test_the_bar_on_speed_is_the_quotient_of_all_seconds(
    data: Path, here: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(votes: _weak_peers.Votes) -> tuple[list[Document], dict[str, float]]:
        return [doc.with_layer("found", []) for doc in votes.test], {"fit CPU s": 3.0, "apply CPU s": 1.0}

    def quick(work: _weak_systems.Work) -> _weak_systems.Found:
        docs = [_weak_data.bare(doc).with_layer("found", []) for doc in work.texts.test]
        return _weak_systems.Found({"sources": docs}, {"fit CPU s": 0.03, "apply CPU s": 0.01})

    monkeypatch.setattr(_weak_peers, "absent", lambda name: "" if name == "skweak HMM" else "pip")
    monkeypatch.setattr(_weak_peers, "PEERS", {**_weak_peers.PEERS, "skweak HMM": slow})
    monkeypatch.setattr(_weak, "METHODS", {**_weak_systems.METHODS, "hmm": quick})
    result = weak.run(Options(data, "aggregators"))
    (bar,) = (bar for bar in result["bars"] if bar["id"] == "aggregator_speed")
    assert (bar["value"], bar["floor"], bar["goal"], bar["better"]) == (100.0, 50, 200, "higher")


def test_own_sources_and_students_have_their_bars(data: Path, here: list[Job]) -> None:
    own = weak.run(Options(data, "own"))
    assert {bar["id"]: bar["floor"] for bar in own["bars"]} == {
        "own_ncbi": 0.82, "own_bc5cdr": 0.866, "own_ncbi_all_sources": 0.82, "own_bc5cdr_all_sources": 0.866
    }  # fmt: skip
    result = weak.run(Options(data, "students", seeds=2))
    bars = {bar["id"]: (bar["floor"], bar["goal"], bar["better"]) for bar in result["bars"]}
    assert bars == {
        "student_ncbi": (0.84, 0.865, "higher"), "text_alone_ncbi": (0.75, 0.80, "higher"),
        "recipe_ncbi": (300, 60, "lower"),
        "student_bc5cdr": (0.87, 0.885, "higher"), "text_alone_bc5cdr": (0.785, 0.83, "higher"),
    }  # fmt: skip
    rows = {row["system"]: row for row in systems(result)}
    assert rows["recipe"]["seeds"] == rows["recipe without embeddings, text alone"]["seeds"] == 2
    assert rows["MultiHMM with own sources"]["seeds"] == "-"
    seeds = [job.system.seed for job in here if job.system.method == "students" and job.sample.corpus == "BC5CDR"]
    assert seeds == [0, 1, 0, 1]


def test_the_recipe_with_dev_labels_has_its_bars(data: Path, here: list[Job]) -> None:
    found = weak.run(Options(data, "stopped"))
    assert {bar["id"]: bar["floor"] for bar in found["bars"]} == {"alternate_ncbi": 0.848, "alternate_bc5cdr": 0.874}


def test_alternate_training_is_drawn_by_loop(data: Path, here: list[Job]) -> None:
    for folder in FOLDERS[:2]:
        (data / folder / "test.json.gz").write_bytes((data / folder / "valid.json.gz").read_bytes())
    weak.run(Options(data, "alternate"))
    assert not weak.PLOTS.exists()
    result = weak.run(Options(data, "alternate", split="test"))
    plots = sorted(weak.PLOTS.iterdir())
    assert [plot.name for plot in plots] == ["weak-loops-bc5cdr.svg", "weak-loops-ncbi.svg"]
    assert [plot.read_text(encoding="utf-8").count("<polyline") for plot in plots] == [7, 7]
    rows = list(systems(result))
    published = {row["system"]: row["published"] for row in rows if row["published"] != "-"}
    assert published["iid-ALT"] == 0.8315
    assert published["CHMM-ALT, restarted"] == 0.8430
    assert published["best consensus"] == 0.8160
    loops = [row["loop"] for row in rows if row["system"] == "HMM-ALT, dev documents"]
    assert loops == [0, 1]


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of the encoders that were asked for; a linear student of few epochs takes their place."""
    asked: list[dict[str, Any]] = []

    def student(system: System) -> Cascade:
        if "encoder" in system.fields:
            asked.append(system.fields["encoder"])
        return Cascade(objective="crf", documents=False, calibrate=False, epochs=2)

    monkeypatch.setattr(_weak_systems, "_student", student)
    return asked


def test_the_published_system_stands_beside_what_was_published(
    data: Path, here: list[Job], linear: list[dict[str, Any]]
) -> None:
    result = weak.run(Options(data, "published"))
    rows = {row["system"]: row for row in systems(result)}
    alternated = next(name for name in rows if name.startswith("CHMM-ALT, of at most"))
    assert {"best consensus", "CHMM", "phase I: its first student, text alone"} < set(rows)
    assert (rows["CHMM"]["published"], rows[alternated]["published"]) == (0.7888, 0.8502)
    assert rows["phase I: its first student, text alone"]["published"] == 0.8287
    assert {bar["id"]: bar["floor"] for bar in result["bars"]} == {"published_ncbi": 0.81, "published_bc5cdr": 0.856}
    ran = [job.system for job in here if job.system.method == "loops"]
    assert [system.fields["chmm"]["published"]["rate"] for system in ran] == [5e-4, 1e-3]  # each run once
    student = {"epochs": published.MOST[0], "patience": 3, "bfloat16": published.multiplies_bfloat16()}
    assert all(one == student for one in linear)  # of few tokens
    loops = [row for row in systems(result) if row["system"] == "CHMM-ALT, dev documents"]
    assert [row["loop"] for row in loops] == list(range(len(loops)))


def test_minutes_become_epochs_and_a_full_run_has_all(
    data: Path, here: list[Job], linear: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "TOKEN", 10.0)
    monkeypatch.setattr(published, "QUICK_TOKEN", 10.0)
    weak.run(Budget(data, "published", minutes=60.0))
    brief = [job.system.fields for job in here if job.system.method == "loops"]
    tokens = [sum(len(item(number)["data"]["text"]) for number in range(12, 24)) for _ in brief]
    assert [(told["encoder"]["epochs"], told["loops"]) for told in brief] == [Schedule.of(n, 60, 10.0) for n in tokens]
    here.clear()
    weak.run(Budget(data, "published", full=True))
    full = [job.system.fields for job in here if job.system.method == "loops"]
    assert [(told["encoder"]["epochs"], told["loops"]) for told in full] == [(100, 10)] * 2


@pytest.mark.parametrize("token", [published.TOKEN, published.QUICK_TOKEN])
@pytest.mark.parametrize(("tokens", "minutes"), [(128_280, 60), (128_280, 15), (107_480, 30), (500, 1), (10**7, 1)])
def test_a_schedule_fits_its_minutes_if_one_epoch_of_each_does(tokens: int, minutes: float, token: float) -> None:
    plan = Schedule.of(tokens, minutes, token)
    epochs = plan.epochs + plan.loops * max(plan.epochs // 2, 1)
    assert epochs * tokens * token <= 60 * minutes or epochs == 1
    assert 1 <= plan.epochs <= 100
    assert 0 <= plan.loops <= 10


@pytest.mark.parametrize(
    ("flags", "expected"), [("avx2 avx512_bf16 sse", True), ("avx2 avx512f", False), ("fp bf16", True)]
)
def test_a_processor_says_whether_it_multiplies_bfloat16(flags: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"model name : any\nflags : {flags}\n", encoding="utf-8")
    assert published.multiplies_bfloat16(tmp_path / "cpuinfo") is expected
    assert not published.multiplies_bfloat16(tmp_path / "none")


def test_ideas_have_rows_for_the_encoder_and_for_a_linear_student_beside_it(
    data: Path, here: list[Job], linear: list[dict[str, Any]]
) -> None:
    _, *found = systems(weak.run(Options(data, "ideas")))
    name = "three layers frozen"
    wanted = ["", ", its first student, text alone", ", a linear student beside it", ", dev documents"]
    assert list(dict.fromkeys(row["system"] for row in found)) == [f"{name}{what}" for what in wanted]
    assert found[2]["F1"] > 0
    assert [job.system.fields["loops"] for job in here if job.system.method == "loops"] == [0, 0]
    assert {one["frozen"] for one in linear} == {3}


def test_one_factor_at_a_time_is_beside_the_published_system(
    data: Path, here: list[Job], linear: list[dict[str, Any]]
) -> None:
    result = weak.run(Options(data, "gap"))
    names = [row["system"] for row in systems(result)]
    for what, changed in published.factors(Sample()).items():
        assert len(changed) == 1, what
        assert {what, f"{what}: difference"} < set(names)
    assert names.index("CHMM-ALT as published, linear student") < names.index("batches of 32")
    base = next(job.system for job in here if job.system.method == "loops")
    others = [job for job in here if job.system.method == "loops"][1:]
    for job in others[: len(published.factors(Sample()))]:
        same = job.system.fields == base.fields
        assert same == (job.sample.sources == "all")


def test_sources_are_shown_one_by_one_with_what_is_right_and_what_is_believed(data: Path, here: list[Job]) -> None:
    rows = {row["system"]: row for row in systems(weak.run(Options(data, "sources")))}
    assert [rows[name]["recommended"] for name in ("list", "cancer", "wrong")] == ["yes", "yes", "no"]
    texts = [item(number) for number in range(24, 36)]
    spans = [one["weak_labels"][0] for one in texts]
    said, gold = sum(map(len, spans)), sum(len(one["label"]) for one in texts)
    assert (rows["list"]["spans"], rows["list"]["P"]) == (said, 1.0)
    assert rows["list"]["R"] == pytest.approx(said / gold, abs=1e-4)
    assert rows["list"]["F1"] == pytest.approx(2 * said / (said + gold), abs=1e-4)
    assert (rows["wrong"]["P"], rows["wrong"]["R"]) == (0, 0)
    assert not here


def test_a_folder_of_the_users_in_the_published_layout_is_a_corpus(
    data: Path, here: list[Job], linear: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Plain files, all sources if none are recommended; its embeddings go with the run."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"lf": ["list", "cancer", "wrong"]}), encoding="utf-8")
    for part, numbers in {"train": range(24), "valid": range(24, 36), "test": range(36, 40)}.items():
        (folder / f"{part}.json").write_text(json.dumps({str(n): item(n) for n in numbers}), encoding="utf-8")
    result = weak.run(Budget(None, "sources", "test", corpus=folder))
    assert {row["corpus"] for row in result["rows"]} == {"own"}
    assert {row["recommended"] for row in result["rows"]} == {"yes"}
    made = weak.run(Budget(None, "published", "test", corpus=folder))
    assert "published" not in made["rows"][0]
    assert made["bars"] == []
    assert any(row["system"].startswith("CHMM-ALT") for row in made["rows"])
    (folder / "valid.json").unlink()
    missing = weak.run(Budget(None, "published", "test", corpus=folder))["rows"]
    assert [row["absent"] for row in missing] == ["no valid.json.gz in the folder of the corpora"]


def test_the_conditional_hmm_is_compared_on_real_and_generated_votes(
    data: Path, here: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    f1 = {"MultiHMM": 0.5, "i.i.d. CHMM": 0.75, "CHMM": 0.625, "SpanVote": 0.25}
    monkeypatch.setattr(_weak_made, "context", lambda seed, ends=0.0: f1)
    result = weak.run(Options(data, "chmm"))
    bars = {bar["id"]: bar for bar in result["bars"]}
    assert bars["chmm_generated_less_multihmm"]["value"] == 0.125
    assert bars["chmm_generated_less_iid_chmm"]["value"] == -0.125
    assert bars["chmm_less_multihmm_ncbi"]["value"] == bars["chmm_less_multihmm_ncbi"]["high"]
    names = [row["system"] for row in systems(result, "CoNLL")]
    assert {"embeddings", "CHMM, published settings", "CHMM less i.i.d. CHMM, soft labels"} < set(names)


def test_gold_documents_are_a_curve_of_draws(data: Path, here: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak, "KNOWN", (0, 4))
    result = weak.run(Options(data, "gold20", seeds=2))
    names = [row["system"] for row in systems(result)]
    assert names == ["votes and 0 gold documents", "votes and 4 gold documents", "4 gold documents alone"]
    drawn = [(job.sample.gold, job.sample.draw) for job in here if job.sample.corpus == "BC5CDR"]
    assert drawn == [(0, 0), (4, 0), (4, 1), (4, 0), (4, 1)]


def test_the_rest_runs(data: Path, here: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    links = weak.run(Options(data, "links"))
    assert [bar["id"] for bar in links["bars"]] == ["links_gain"]
    speed = weak.run(Options(data, "speed"))
    assert {row["system"] for row in systems(speed)} == {"MultiHMM", "MultiHMM with own sources", "recipe"}
    assert all(row["tokens per CPU s"] > 0 for row in speed["rows"])
    monkeypatch.setattr(_weak_run, "_installed", lambda name: name != "torch")
    rows = {row["system"]: row["absent"] for row in weak.run(Options(data, "encoder"))["rows"]}
    assert rows == {"linear student, all gold": "-", "encoder, all gold": "pip install 'chaffinch[neural,minilm]'"}


def test_means_over_seeds_have_a_spread_and_the_interval_of_the_middle_seed() -> None:
    def found(right: int) -> Sequence[Document]:
        docs = [Document.make("Ann", id=str(n), layers={"gold": [Span(0, 3, "P")]}) for n in range(4)]
        return [doc.with_layer("found", doc.layer("gold") if n < right else []) for n, doc in enumerate(docs)]

    scores = [_weak_rows.score(found(right)) for right in (1, 4, 2)]  # F1 .4, 1 and 2/3
    assert _weak_rows.middle(scores) == 2
    row = _weak_rows.scored("x", scores)
    assert row["F1"] == pytest.approx((0.4 + 1 + 2 / 3) / 3, abs=1e-4)
    assert row["R"] == pytest.approx(7 / 12, abs=1e-4)
    assert row["spread"] == pytest.approx(0.3010, abs=2e-3)
    assert row["seeds"] == 3


def test_a_system_is_run_in_a_process_of_its_own(data: Path) -> None:
    with _weak_run.Runner(data) as runner:
        found = runner.labelled(System("hmm"), Sample(split="dev"))
        assert runner.labelled(System("hmm"), Sample(split="dev")).result == found.result  # run once
    assert not runner.folder.exists()
    assert len(found.docs) == len(found.errors) == 12
    assert found.result.costs["fit CPU s"] > 0
