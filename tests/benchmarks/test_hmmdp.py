"""The HMM-DP benchmark: Tables 3 and 4 on a corpus in the layout of i2b2 2014, here of invented notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.hmmdp import benchmark, tables
from benchmarks.hmmdp.data import Sample
from benchmarks.hmmdp.runner import Runner
from benchmarks.hmmdp.scores import read_without_begins
from benchmarks.hmmdp.worker import ALIGNED, Job, System, key, ours
from benchmarks.papers import benchmark as papers

import chaffinch as cf
from chaffinch import HMMDP, Document, Span, deid
from chaffinch.errors import ConfigError

SMALL = {"outside": 3, "inside": 1, "passes": 2, "min_count": 2}


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None = None
    split: str = "test"
    seeds: int = 1
    corpus: Path | None = None


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Invented notes as NNN-MM.xml: two folders to learn from and one to tag, as the corpus has them."""
    root = tmp_path_factory.mktemp("layout")
    folders = ("training-Set1", 4), ("training-Set2", 2), ("testing-Set", 3)
    for seed, (name, patients) in enumerate(folders):
        cf.write(deid.notes(patients, 2, seed=seed, style="varied"), root / name, format="i2b2")
    return root


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small systems, trained in this process."""

    def fit(self: Runner, system: System, samples: Iterable[Sample], decoders: Sequence[str] = ()) -> None:
        new = [sample for sample in samples if not (self.folder / key(system, sample)).exists()]
        for sample in new:
            ours(Job(str(self.data), str(self.folder), system, new, list(decoders)), sample)

    monkeypatch.setattr(Runner, "fit", fit)
    monkeypatch.setattr(tables, "SUBMITTED", replace(tables.SUBMITTED, fields=SMALL))
    monkeypatch.setattr(tables, "UPDATED", replace(tables.UPDATED, fields=SMALL))


@pytest.mark.usefixtures("in_process")
def test_a_corpus_in_the_layout_of_i2b2_gives_both_tables_of_three_systems(layout: Path) -> None:
    result = papers.run(Options(None, "P0", corpus=layout))
    rows = [row for row in result["rows"] if row["table"].startswith("Table")]
    gold = [span for doc in tables.read_layout(layout)[1] for span in doc.layer("gold")]
    for system in ("submitted", "updated", "updated, aligned"):
        found = {(row["table"], row["label"]): row for row in rows if row["system"] == system}
        assert {label for table, label in found if table == "Table 3"} >= {"all", "NAME", "DATE", "LOCATION"}
        labels = {label for table, label in found if table == "Table 4"}
        assert labels >= {span.label for span in gold} | {"all", "NAME, its sub-categories"}
        assert found["Table 3", "all"]["R"] >= found["Table 4", "all"]["R"]  # a type cannot be right alone
        assert found["Table 3", "all"]["CPU s"] > 0
    known = {(row["system"], row["table"], row["label"]): row["published"] for row in rows if row["published"] != "-"}
    assert known[("submitted", "Table 3", "all")] == "F1 .910"
    by_system = {(row["system"]): row for row in rows if (row["table"], row["label"]) == ("Table 3", "all")}
    assert by_system["updated, aligned"]["R"] >= by_system["updated"]["R"]  # nothing is taken away
    assert any(row["table"] == "differences" for row in result["rows"])


def test_the_best_that_tags_without_b_and_i_can_say() -> None:
    """Neighbours of one label are joined, in a sentence of the settings; a span over two sentences is cut."""
    text = "Ann Lee saw Bob in Rome . Paris\nLeeds"
    spans = [(0, 3, "NAME"), (4, 7, "NAME"), (12, 15, "NAME"), (19, 31, "CITY"), (32, 37, "CITY")]
    gold = [Span(*span) for span in spans]
    doc = Document.make(text, layers={"gold": gold})

    def read(config: HMMDP) -> list[tuple[int, int, str]]:
        found = read_without_begins([doc], config)[0].layer("found")
        return [(span.start, span.end, span.label) for span in found]

    cut = read(HMMDP.published())
    assert cut == [(0, 7, "NAME"), (12, 15, "NAME"), (19, 25, "CITY"), (26, 31, "CITY"), (32, 37, "CITY")]
    whole = replace(doc, sentences=np.array([[0, len(text)]]))
    found = read_without_begins([whole], replace(HMMDP.published(), sentences="given"))[0].layer("found")
    assert [(span.start, span.end) for span in found] == [(0, 7), (12, 15), (19, 37)]


def test_the_learnt_alignment_is_kept_beside_the_plain_reading(layout: Path, tmp_path: Path) -> None:
    sample, system = Sample("i2b2", folder=str(layout)), System("HMMDP", "published", SMALL, align=True)
    ours(Job("", str(tmp_path), system, [sample]), sample)
    assert (tmp_path / key(system, sample)).exists()
    assert (tmp_path / key(replace(system, decode=ALIGNED), sample)).exists()
    assert cf.load(tmp_path / f"{key(system, sample)}.cfm").aligner is not None


def test_patients_and_usual_labels_come_with_the_layout(tmp_path: Path) -> None:
    doc = Document.make("At 10.0.0.1 today", id="110-02", layers={"gold": [Span(3, 11, "IPADDRESS")]})
    for side in ("train", "test"):
        cf.write([doc], tmp_path / side, format="i2b2")
    train, test = tables.read_layout(tmp_path)
    assert (train[0].patient, [span.label for span in test[0].layer("gold")]) == ("110", ["IPADDR"])


def test_a_folder_that_is_no_such_corpus_is_refused(tmp_path: Path, layout: Path) -> None:
    def refused(message: str, **options: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            benchmark.run(Options(None, **options))

    refused("--corpus must be a folder", corpus=tmp_path / "none")
    refused("no record in a folder whose name begins with train", corpus=tmp_path)
    refused("--corpus is for the part tables, not for align", corpus=layout, only="align")
    doc = Document.make("a b", id="1-01", layers={"gold": [Span(0, 1, "SHOE")]})
    for side in ("train", "test"):
        cf.write([doc], tmp_path / side, format="i2b2")
    with pytest.raises(ConfigError, match="--corpus has 1 labels that i2b2 2014 has not") as caught:
        benchmark.run(Options(None, corpus=tmp_path))
    assert "SHOE" not in str(caught.value)
    with pytest.raises(ConfigError, match="--corpus is for one publication, with --only: P0"):
        papers.run(Options(None, corpus=layout))
