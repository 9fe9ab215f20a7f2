"""`chaffinch weak analyse` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.text.formats import write
from tests.canary import Canary
from tests.weak.training.made_notes import note


@pytest.fixture
def votes(tmp_path: Path, canary: Canary) -> Path:
    path = tmp_path / "votes.jsonl"
    write([note(number, gold=number < 4, canary=canary.word) for number in range(8)], path)
    return path


def test_the_account_as_text_json_and_page_leaks_nothing(votes: Path, tmp_path: Path, canary: Canary) -> None:
    page = tmp_path / "out" / "sources.html"
    page.parent.mkdir()
    done = canary.run("weak", "analyse", votes, "--html", page, "--json", "--only", "a,b", outputs=[page])
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert [own["name"] for own in told["sources"]] == ["a", "b"]
    assert told["outlook"]["checked"]["documents"] == 4
    assert canary.word not in page.read_text()
    assert "<script" not in page.read_text()


def test_what_cannot_be_is_refused(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"id": "1", "text": "Nothing."}\n')
    for arguments, words in (
        ([str(bare)], "run chaffinch weak apply first"),
        ([str(votes), "--only", "a,q"], "no document has votes of a source 'q'"),
        ([str(votes), "--layer", "golden"], "no document has the layer 'golden'"),
    ):
        assert main(["weak", "analyse", *arguments]) == 3
        assert words in capsys.readouterr().err
    assert main(["weak", "analyse", str(votes), "--tokens"]) == 0
    assert "true prec." in capsys.readouterr().out
