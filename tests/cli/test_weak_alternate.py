"""`chaffinch weak alternate` as a user meets it: one model file, which `tag` reads."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import main
from chaffinch.text.formats import read, write
from chaffinch.weak import alternate_loops
from tests.weak.alternate_notes import notes

TOML = """
[[source]]
kind = "lexicon"
name = "diseases"
phrases = ["asthma", "gout", "renal failure", "measles"]
label = "Disease"

[[source]]
kind = "context"
name = "has"
triggers = ["has", "severe", "history of"]
label = "Disease"
reach = 1
"""


def test_notes_and_rules_become_a_tagger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, rules, model, out = (tmp_path / name for name in ("n.jsonl", "s.toml", "m.cfm", "out.jsonl"))
    write([doc.__class__.make(doc.text, id=doc.id) for doc in notes(0, 12)], plain)
    rules.write_text(TOML)
    assert main(["weak", "alternate", str(plain), "-s", str(rules), "-o", str(model), "--loops", "1", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["labels"] == ["Disease"]
    assert said.err == ""
    assert main(["tag", str(model), str(plain), "-o", str(out), "-q"]) == 0
    assert any(doc.layers["weak"] for doc in read(out))
    assert main(["tag", str(model), str(plain), "-o", str(out), "--confidence"]) == 2
    assert "--confidence does not go with this model" in capsys.readouterr().err


def test_an_interrupted_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, model = tmp_path / "votes.jsonl", tmp_path / "m.cfm"
    write(notes(0, 12), votes)
    usual: Any = alternate_loops._taught
    times = 0

    def taught(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        if times == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return usual(*arguments)

    monkeypatch.setattr(alternate_loops, "_taught", taught)
    arguments = ["weak", "alternate", str(votes), "-o", str(model), "--loops", "1", "-q"]
    assert main(arguments) == 130
    assert "go on with --resume" in capsys.readouterr().err
    assert not model.exists()
    assert main([*arguments, "--resume"]) == 0
    assert times == 3, "the first loop was kept"
    assert model.exists()
    assert not (tmp_path / "m.cfm.loops").exists()


def test_what_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare, model = tmp_path / "bare.jsonl", tmp_path / "m.cfm"
    bare.write_text('{"id": "1", "text": "Nothing."}\n')
    for arguments, code, words in (
        ([], 3, "give --sources"),
        (["--resume"], 2, "give --loops"),
        (["--method", "chmm"], 2, "choose one of these"),
        (["--student", "cascad"], 2, "did you mean 'cascade'?"),
    ):
        assert main(["weak", "alternate", str(bare), "-o", str(model), *arguments]) == code
        assert words in capsys.readouterr().err
