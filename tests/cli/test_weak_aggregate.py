"""`chaffinch weak aggregate` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.text.formats import read, write
from tests.weak.alternate_notes import notes


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.jsonl"
    write(notes(0, 12), path)
    return path


@pytest.mark.parametrize("method", ["multihmm", "union", "token-vote", "span-vote", "longest-span"])
def test_every_method_adds_a_layer(
    votes: Path, tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    arguments = ["weak", "aggregate", str(votes), "-o", str(out), "--method", method, "--layer", "joint", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    docs = list(read(out))
    assert told["spans"] == sum(len(doc.layers["joint"]) for doc in docs) > 0
    assert told["soft labels"] == (method in ("multihmm", "token-vote")) == ("joint" in docs[0].soft)
    assert "source:a" in docs[0].layers


def test_a_saved_model_does_the_same(votes: Path, tmp_path: Path) -> None:
    one, two, model = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "m.cfm"
    assert main(["weak", "aggregate", str(votes), "-o", str(one), "--save", str(model), "-q"]) == 0
    assert main(["weak", "aggregate", str(votes), "-o", str(two), "--fit", str(model), "-q"]) == 0
    assert one.read_bytes() == two.read_bytes()
    assert main(["weak", "aggregate", str(votes), "-o", str(two), "--fit", str(votes), "-q"]) == 0
    assert one.read_bytes() == two.read_bytes()


def test_what_cannot_be_is_refused(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    for arguments, words in (
        (["-o", str(out), "--method", "multihm"], "did you mean 'multihmm'?"),
        (["-o", str(votes)], "the output is an input"),
        (["-o", str(out), "--method", "union", "--save", str(tmp_path / "m.cfm")], "leave one of them out"),
    ):
        assert main(["weak", "aggregate", str(votes), *arguments]) == 2
        assert words in capsys.readouterr().err
        assert not out.exists()
