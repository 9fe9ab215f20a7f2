"""The class HMM's benchmark: what is read, what is compared with what, and every part on a few made-up sentences."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.classhmm import benchmark as classhmm
from benchmarks.classhmm import data as _classhmm_data
from benchmarks.classhmm import rows as _classhmm_rows
from benchmarks.classhmm import runner as _classhmm_run
from benchmarks.classhmm import worker as _classhmm
from benchmarks.classhmm.data import Sample
from benchmarks.classhmm.worker import PEER, Job, System

from chaffinch import Cascade, ClassHMM, Document, Span
from chaffinch.errors import ConfigError
from tests.recipes.files import gz

BAR = {"id", "value", "low", "high", "unit", "floor", "goal", "better"}
NAMES = ("Ann", "Lee", "Kim", "Bo", "Penn", "Ford")


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None = None
    split: str = "dev"
    seeds: int = 1


def story(number: int) -> str:
    """Three sentences in the columns of CoNLL-2003."""
    name, other = NAMES[number % 6], NAMES[(number + 1) % 6]
    lines = [f"{name} NNP I-NP I-PER", "slept VBD I-VP O", "", "Rome NNP I-NP I-LOC", "and CC O O"]
    lines += [f"{other} NNP I-NP I-PER", f"{name} NNP I-NP I-PER", "", "Acme NNP I-NP I-ORG", "rests VBZ I-VP O"]
    return "-DOCSTART- -X- O O\n\n" + "\n".join(lines) + "\n\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with small corpora and no test set."""
    for name in ("conll2003", "jnlpba", "ieer"):
        (tmp_path / name).mkdir()
    gz(tmp_path / "conll2003/eng.train.gz", "".join(map(story, range(14))))
    gz(tmp_path / "conll2003/eng.testa.gz", "".join(map(story, range(3))))
    genia = "###MEDLINE:{}\n\nIL-{}\tB-DNA\ngene\tI-DNA\nin\tO\nB\tB-cell_type\ncells\tI-cell_type\n\n"
    gz(tmp_path / "jnlpba/Genia4ERtask2.iob2.gz", "".join(genia.format(9000 + n, n % 3) for n in range(20)))
    tags = '<b_enamex type="PERSON">{0}<e_enamex> ran <b_numex type="CARDINAL">two<e_numex> laps on '
    tags += '<b_timex type="DATE">Monday<e_timex>.'
    told = [f"<DOC><DOCNO> Z{n} </DOCNO><BODY><TEXT>{tags.format(NAMES[n % 6])}</TEXT></BODY></DOC>" for n in range(20)]
    gz(tmp_path / "ieer/ZZZ.gz", f"<IEER_DOC>{''.join(told)}</IEER_DOC>", encoding="latin-1")
    return tmp_path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Job]:
    """Jobs, which are done in this process with few steps; the drawing goes to a folder of the test."""
    done: list[Job] = []

    def launch(job: Job) -> None:
        done.append(job)
        own = job.system.but(**({"evaluations": 8} if job.system.method == "ClassHMM" else {"epochs": 1}))
        for sample in job.samples:
            _classhmm.ours(replace(job, system=own), sample)
            for file in Path(job.folder).glob(f"{_classhmm.key(own, sample)}*"):
                file.rename(file.with_name(file.name.replace(file.stem, _classhmm.key(job.system, sample))))

    monkeypatch.setattr(_classhmm_run, "launch", launch)
    monkeypatch.setattr(classhmm, "PLOTS", tmp_path / "docs")
    monkeypatch.setattr(classhmm, "KAPPAS", (0.25, 1.0))
    monkeypatch.setattr(classhmm, "KAPPA_SENTENCES", 20)
    monkeypatch.setattr(classhmm, "TAGGED", (6,))
    monkeypatch.setattr(classhmm, "UNTAGGED", (0, 4, 10_000))
    monkeypatch.setattr(_classhmm_data, "TAGGED", (6,))
    return done


def test_without_data_or_with_an_unknown_part_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data or CHAFFINCH_DATA"):
        classhmm.run(Options(None))
    with pytest.raises(ConfigError, match=r"unknown part 'grid'; choose one of published, .*speed"):
        classhmm.run(Options(tmp_path, "grid"))


@pytest.mark.parametrize("part", classhmm.PARTS)
def test_what_is_not_there_is_reported_and_nothing_is_guessed(part: str, tmp_path: Path, here: list[Job]) -> None:
    result = classhmm.run(Options(tmp_path / "none", part))
    assert result["bars"] == []
    assert here == []
    assert not classhmm.PLOTS.exists()
    assert result["rows"]
    for row in result["rows"]:
        assert set(row) == {"part", "system", "absent"}
        assert row["absent"].startswith("no ")
        assert str(tmp_path) not in row["absent"]


def test_a_peer_that_is_not_installed_is_reported_with_its_pip_line(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    with _classhmm_run.Runner(data) as runner:
        assert runner.absent(PEER, [Sample(split="dev")]) == "pip install 'chaffinch[bench]'"


def test_the_dev_split_reads_no_test_file() -> None:
    for corpus, test in (("conll2003", "testb"), ("jnlpba", "EReval")):
        held, tested = (Sample(corpus, split) for split in ("dev", "test"))  # type: ignore[arg-type]
        assert not any(test in name for name in _classhmm_data.files(held))
        assert any(test in name for name in _classhmm_data.files(tested))


def test_a_sentence_becomes_a_document_with_its_spans_moved() -> None:
    gold = [Span(0, 3, "PER"), Span(13, 17, "LOC"), Span(18, 24, "PER")]
    tokens = [(0, 3), (4, 8), (8, 9), (10, 12), (13, 17), (18, 20), (21, 24)]
    text, cuts = "Ann left.\nIn Rome Bo Lee came.", [(0, 9), (10, 30)]
    doc = Document.make(text, id="d", tokens=tokens, sentences=cuts, layers={"gold": gold})
    first, second = _classhmm_data.sentences([doc])
    assert (first.text, first.layer("gold")) == ("Ann left.", (Span(0, 3, "PER"),))
    assert (second.text, second.words()) == ("In Rome Bo Lee", ["In", "Rome", "Bo", "Lee"])
    assert second.layer("gold") == (Span(3, 7, "LOC"), Span(8, 14, "PER"))
    assert second.sentence_tokens().tolist() == [[0, 4]]
    assert len({first.id, second.id}) == 2


def test_untagged_sentences_are_others_and_say_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_classhmm_data, "TAGGED", (3, 8))
    few = _classhmm_data.documents(data, Sample(split="dev", tagged=3, untagged=5))
    more = _classhmm_data.documents(data, Sample(split="dev", tagged=8, untagged=5))
    other = _classhmm_data.documents(data, Sample(split="dev", tagged=3, draw=1))
    ids = [doc.id for doc in more.train]
    assert [doc.id for doc in few.train] == ids[:3] != [doc.id for doc in other.train]
    assert [doc.id for doc in few.untagged] == [doc.id for doc in more.untagged]
    assert not {doc.id for doc in few.untagged} & set(ids)
    assert len(few.untagged) == 5
    assert not any(doc.layers for doc in few.untagged)
    assert other.untagged == []


def test_stories_have_seven_types_and_every_one_is_tagged_once(data: Path) -> None:
    parts = [_classhmm_data.documents(data, Sample("ieer", fold=fold)) for fold in range(5)]
    tagged = [doc.id for part in parts for doc in part.test]
    assert sorted(tagged) == sorted(f"Z{n}" for n in range(20))
    for part in parts:
        assert not {doc.id for doc in part.train} & {doc.id for doc in part.test}
        assert len(part.train) + len(part.test) == 20
        assert {span.label for doc in part.train for span in doc.layer("gold")} == {"PERSON", "DATE"}


def test_the_published_figures_are_those_of_the_table() -> None:
    assert len(_classhmm_rows.PUBLISHED) == 9
    best = max(_classhmm_rows.PUBLISHED, key=lambda cell: _classhmm_rows.PUBLISHED[cell]["all"])
    assert best == ("capitalisation", 1)
    assert _classhmm_rows.PUBLISHED[best] == {
        "LOC": 0.8135,
        "MISC": 0.7386,
        "ORG": 0.6654,
        "PER": 0.8297,
        "all": 0.7744,
    }
    assert _classhmm_rows.PUBLISHED["shape", 2]["MISC"] == 0.7383
    assert _classhmm_rows.PUBLISHED["basic", 5]["ORG"] == 0.4664


def test_a_system_is_made_of_all_settings_and_back() -> None:
    for config in (ClassHMM.published(5, "muc"), ClassHMM(kappa=None), Cascade(stages=2)):
        assert System.of(config).config() == config
    one = System.of(ClassHMM())
    keys = {_classhmm.key(own, Sample()) for own in (one, one.but(seed=1), System.of(ClassHMM(), shown="PER"))}
    assert len(keys) == 3


class Scripted:
    """A runner whose systems find what was written down for their seeds, or methods."""

    def __init__(self, found: dict[Any, list[Document]]) -> None:
        self._found = found

    def absent(self, system: System, samples: Sequence[Sample]) -> str:
        return ""

    def found(self, system: System, samples: Sequence[Sample]) -> tuple[list[Document], dict[str, float]]:
        which = (system.method, system.fields.get("objective"), system.fields.get("seed", 0))
        return self._found[which], {"train CPU s": 1.26, "tokens per CPU s": 10.6}


def tagged(right: int) -> list[Document]:
    """Four documents with one name each, of which so many were found."""
    gold = Span(0, 3, "PER")
    docs = [Document.make("Ann slept", id=str(n), layers={"gold": [gold]}) for n in range(4)]
    return [doc.with_layer("found", [gold] if n < right else []) for n, doc in enumerate(docs)]


def test_a_difference_is_ours_less_theirs_and_bars_have_their_levels(tmp_path: Path) -> None:
    ours = {("ClassHMM", name, 0): tagged(4 - n) for n, name in enumerate(("crf", "krogh", "joint"))}
    runner: Any = Scripted({**ours, ("CRF", None, 0): tagged(2), ("Cascade", "pa", 0): tagged(4)})
    bench = classhmm.Bench(runner, Options(tmp_path))
    bench.rich()
    f1 = {row["system"]: row["F1"] for row in bench.rows if row["label"] == "all"}
    assert f1["python-crfsuite"] == round(2 / 3, 4)  # precision 1, recall a half
    assert f1["krogh less python-crfsuite"] == round(6 / 7 - 2 / 3, 4)
    assert f1["joint less cascade"] == round(2 / 3 - 1, 4)
    levels = {bar["id"]: (bar["value"], bar["floor"], bar["goal"]) for bar in bench.bars}
    assert levels == {
        "rich_joint": (0.6667, 0.78, 0.82), "rich_krogh": (0.8571, 0.80, 0.83), "rich_crf": (1.0, 0.835, 0.86)
    }  # fmt: skip
    assert all(set(bar) == BAR for bar in bench.bars)


def test_of_several_seeds_the_middle_one_counts(tmp_path: Path) -> None:
    found = {("ClassHMM", "crf", seed): tagged(right) for seed, right in enumerate((1, 4, 3))}
    runner: Any = Scripted(found)
    bench = classhmm.Bench(runner, Options(tmp_path, seeds=3))
    assert bench.ours("crf", System.of(ClassHMM()))[0].recall == 0.75
    assert bench.rows[0]["train CPU s"] == 1.3
    assert bench.rows[0]["tokens per CPU s"] == 11


def test_the_grid_shows_every_type_beside_what_was_published(data: Path, here: list[Job]) -> None:
    result = classhmm.run(Options(data, "published"))
    every = [row for row in result["rows"] if row["label"] == "all"]
    cells = [row for row in every if "summed out" not in row["system"]]
    assert len(every) - len(cells) == 6  # of two and five states
    assert {job.system.fields["decode"] for job in here} == {"joint", "kl+rerank"}
    assert [row["published, testb"] for row in cells] == [
        0.6276, 0.6105, 0.6342, 0.7744, 0.7197, 0.7228, 0.7607, 0.7584, 0.7277
    ]  # fmt: skip
    assert {row["label"] for row in result["rows"]} == {"all", "LOC", "ORG", "PER"}
    (bar,) = result["bars"]
    assert (bar["id"], bar["floor"], bar["goal"]) == ("published_best", 0.775, 0.80)
    assert bar["value"] == max(row["F1"] for row in cells) > 0
    assert {job.system.fields["objective"] for job in here} == {"joint"}
    assert all(one.split == "dev" for job in here for one in job.samples)


def test_ideas_are_measured_on_testa_as_well(data: Path, here: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classhmm, "IDEAS", dict(list(classhmm.IDEAS.items())[:2]))
    names = list(systems(classhmm.run(Options(data, "ideas", split="dev"))))
    assert names == ["as in published(), testa", "no rare word is read as unknown, testa"]
    assert [job.system.fields["replicas"] for job in here] == [ClassHMM.published().replicas, 0.0]


def test_a_fit_is_shared_by_decoders_and_by_the_texts_of_conll() -> None:
    one = System.of(ClassHMM.published(2))
    dev, test = Sample(split="dev"), Sample(split="test")
    assert _classhmm.fit_key(one, dev) == _classhmm.fit_key(one.but(decode="kl+rerank"), test)
    assert _classhmm.fit_key(one, dev) != _classhmm.fit_key(one.but(seed=1), dev)
    assert _classhmm.fit_key(one, Sample("jnlpba", "dev")) != _classhmm.fit_key(one, Sample("jnlpba", "test"))
    assert _classhmm.fit_key(one, Sample("ieer", fold=0)) != _classhmm.fit_key(one, Sample("ieer", fold=1))


def test_kappa_is_drawn_on_testa_whatever_the_split(data: Path, here: list[Job]) -> None:
    result = classhmm.run(Options(data, "kappa", split="test"))
    assert all(one == Sample(split="dev", tagged=20) for job in here for one in job.samples)
    assert [row["system"] for row in result["rows"]][-2:] == [
        "published, 5 states, shape, kappa 0.25, testa",
        "published, 5 states, shape, kappa 1, testa",
    ]
    for features in _classhmm_rows.SETS:
        svg = (classhmm.PLOTS / f"classhmm-kappa-{features}.svg").read_text(encoding="utf-8")
        assert svg.count("<polyline") == 3
        assert f"CoNLL-2003 testa (development set), features: {features} by kappa</title>" in svg
        assert ">0.25</text>" in svg


def systems(result: dict[str, Any]) -> Iterator[str]:
    return (row["system"] for row in result["rows"] if row.get("label", "all") == "all")


def test_stories_are_scored_over_all_folds(data: Path, here: list[Job]) -> None:
    result = classhmm.run(Options(data, "ieer"))
    names = list(systems(result))
    assert names[8:] == [
        "the 13 features, 1 state", "the 13 features, 2 states", "2 states less 1 state", "the 13 features, 5 states",
        "5 states less 1 state",
    ]  # fmt: skip
    assert len(here) == 8
    assert all([one.fold for one in job.samples] == list(range(5)) for job in here)
    assert {row["label"] for row in result["rows"]} == {"all", "DATE", "PERSON"}
    features = [job.system.fields["features"] for job in here]
    assert features == ["basic", "muc"] * 3 + ["rich"] * 2


def test_the_curve_has_a_row_with_and_without_untagged_sentences(data: Path, here: list[Job]) -> None:
    result = classhmm.run(Options(data, "semi", seeds=2))
    names = list(systems(result))
    assert names[:3] == [f"joint, 6 tagged, {more} untagged sentences" for more in (0, 4, 36)]
    assert names[3:5] == [f"{more} untagged, 6 tagged: difference" for more in ("4", "10,000")]
    assert len(names) == 10
    assert [job.samples[0].draw for job in here] == [0] * 3 + [1] * 3


def test_abstracts_and_speed_and_substructure_run(data: Path, here: list[Job]) -> None:
    names = list(systems(classhmm.run(Options(data, "jnlpba"))))
    assert names == ["cascade", "crf, 3 states", "crf less cascade"]
    speed = classhmm.run(Options(data, "speed"))
    assert len(speed["rows"]) == 2
    assert {"train CPU s", "tokens per CPU s", "objective"} <= set(speed["rows"][0])
    (bar,) = speed["bars"]
    assert (bar["id"], bar["floor"], bar["goal"], bar["unit"], bar["better"]) == ("fit_crf", 90, 20, "CPU s", "lower")
    told = classhmm.run(Options(data, "substructure"))
    assert told["bars"] == []  # so few mentions have no measure, and a row says why
    assert [row["system"] for row in told["rows"] if row["absent"] != "-"] == [
        "joint, spelling",
        "joint, rich, which has the lists",
    ]
    assert {"held out", "held out, one state"} <= set(told["rows"][0])


def test_the_bar_on_roles_has_chance_as_its_floor() -> None:
    from chaffinch.models.classhmm.describe.report import Measure, Roles

    one = Measure(90, 0.41234, 0.02, 0.05)
    found = list(_classhmm_rows.measured("joint", "PER", Roles(100, {}, one, one)))
    assert [row["system"] for row in found] == ["joint: one-token mentions", "joint: each word once"]
    assert (found[0]["NMI"], found[0]["by chance"], found[0]["95 % of chance"]) == (0.4123, 0.02, 0.05)


def test_a_system_is_run_in_a_process_of_its_own(data: Path) -> None:
    system, samples = System.of(ClassHMM.published(1, "basic")), [Sample(split="dev")]
    with _classhmm_run.Runner(data) as runner:
        docs, costs = runner.found(system, samples)
        assert runner.found(system, samples)[1] == costs  # fitted once
    assert not runner.folder.exists()
    assert [doc.layer("found") for doc in docs] == [doc.layer("gold") for doc in docs]
    assert costs["train CPU s"] > 0
    assert costs["steps"] > 1
