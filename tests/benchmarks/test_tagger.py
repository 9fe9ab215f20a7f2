"""The tagger's benchmark: the peer sees the published features, and the table says what was measured."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from benchmarks.tagger import benchmark as tagger
from benchmarks.tagger import peers as _tagger_peers
from benchmarks.tagger import worker as _tagger

from chaffinch import Document
from chaffinch.errors import DataError


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None
    split: str
    seeds: int


def test_the_peer_sees_the_published_features() -> None:
    first, second = _tagger_peers.features(["NF-kappa", "B"])
    assert {"w0=NF-kappa", "w1=B", "w-1=<s>", "w2=</s>", "w01=NF-kappa|B", "w-2-10=<s>|<s>|NF-kappa"} <= set(first)
    assert {"0c=AA_aaaaa", "0b=A_a", "0l=8", "0C1", "0S0", "p=NF-ka", "s=kappa", "1c=A", "1l=1"} <= set(first)
    assert "-1c=AA_aaaaa" in second
    assert len([name for name in second if name.startswith(("p=", "s="))]) == 2


def test_copies_of_an_abstract_are_known_by_their_letters() -> None:
    one, other = Document.make("IL-2 gene expression ."), Document.make("IL-2 gene  expression.")
    assert _tagger.same_text(one) == _tagger.same_text(other) != _tagger.same_text(Document.make("IL-4 gene."))


def test_a_row_shows_the_score_with_its_interval_and_without_the_leak() -> None:
    found = {"F1": 72.0, "low": 70.0, "high": 74.0}
    assert tagger._row(found)["interval"] == "70.0–74.0"
    leaked = {"F1 without leaked": 71.0, "low without leaked": 69.0, "high without leaked": 73.0}
    assert tagger._row({**found, **leaked})["without leaked"] == "71.0 (69.0–73.0)"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The jobs of processes that are not started: each has an F1 that its settings determine."""
    jobs: list[dict[str, Any]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        job = msgspec.json.decode(command[-1])
        jobs.append(job)
        if job["job"] != "ours":
            (Path(job["folder"]) / "test.jsonl").touch()
            return SimpleNamespace(stdout=b"{}", returncode=0)
        f1 = 70.0 + job["config"]["stages"] + (job["config"]["violator"] == "cost")
        found = {"F1": f1, "P": 69.0, "R": 75.0, "low": 70.0, "high": 74.0, "RSS MB": 640, "train CPU s": 9.0}
        if job["config"]["stages"] == 2:
            found |= {
                "segmentation P": 73.0,
                "segmentation R": 80.0,
                "segmentation F1": 76.0,
                "classification F1": 92.0,
            }
        return SimpleNamespace(stdout=msgspec.json.encode(found), returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    return jobs


def test_a_process_that_fails_ends_the_benchmark_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=b"", returncode=1))
    with pytest.raises(DataError, match=r"shallow parsing by folds: its process failed, .* is jnlpba in --data"):
        tagger.run(Options(tmp_path, "published", "test", 1))


def test_published_figures_are_beside_ours_row_by_row(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    result = tagger.run(Options(tmp_path, "published", "test", 1))
    shown = {row["system"]: (row["score"], row["published"]) for row in result["rows"]}
    assert shown["cascade, online"] == (72.0, 72.16)
    assert shown["single phase, online"] == (71.0, 71.17)
    assert shown["single phase, maximum likelihood"] == (71.0, 69.44)
    assert shown["cascade, online: segmentation R"] == (80.0, 80.13)
    assert shown["cascade, online: classification F1"] == (92.0, 92.76)
    assert shown["Zhou & Su: as published"] == ("-", 72.55)
    configs = [job["config"] for job in asked if job["job"] == "ours"]
    assert [(one["objective"], one["stages"], one["cutoff"]) for one in configs] == [
        ("lbfgs", 1, 21),
        ("pa", 1, 21),
        ("pa", 2, 6),
    ]
    assert all(job["extras"] == ["lexicon", "pos"] for job in asked if job["job"] == "ours")
    bars = {bar["id"]: bar["value"] for bar in result["bars"]}
    assert bars == {"published_cascade": 72.0, "cascade_segmentation": 76.0, "cascade_classification": 92.0}


def test_a_factor_is_one_change_and_its_row_a_difference(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    result = tagger.run(Options(tmp_path, "factors", "test", 1))
    shown = {row["system"]: row["score"] for row in result["rows"]}
    wanted = "F1 +1.00, segmentation F1 +0.00, classification F1 +0.00"
    assert shown["with the cost added to the violator: difference"] == wanted
    configs = [job["config"] for job in asked if job["job"] == "ours"]
    changed = [{key for key in one if one[key] != configs[0][key]} for one in configs[1:]]
    assert changed == [set(fields) for fields, _ in tagger.FACTORS.values()]


def test_the_abstracts_are_parsed_once_for_several_parts(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    for part in ("published", "factors", "unstated"):
        tagger.run(Options(tmp_path, part, "test", 1))
    assert [job["job"] for job in asked].count("chunks") == 1
    tagger.run(Options(tmp_path, "unstated", "dev", 1))
    assert [job["job"] for job in asked].count("chunks") == 2


def test_what_is_not_stated_is_changed_one_value_at_a_time(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    result = tagger.run(Options(tmp_path, "unstated", "test", 1))
    configs = [job["config"] for job in asked if job["job"] == "ours"]
    changed = [{key: one[key] for key in one if one[key] != configs[0][key]} for one in configs[1:]]
    assert changed == list(tagger.UNSTATED.values())
    assert sum(row["system"].endswith(": difference") for row in result["rows"]) == len(tagger.UNSTATED)
