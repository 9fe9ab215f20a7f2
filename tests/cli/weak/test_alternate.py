"""`chaffinch weak alternate` as a user meets it: one model file, which `tag` reads."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import frame, main
from chaffinch.cli.weak import alternate as weak_alternate
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.tagger import train
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text.formats import read, write
from chaffinch.weak.training import published as alternate_loops
from chaffinch.weak.training import students
from chaffinch.weak.training.alternate import alternate
from chaffinch.weak.training.checkpoints import Step
from tests.weak.training.made_notes import QUICK, notes

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
    assert "The source 'has': it found nothing in 12 documents" in said.err
    assert len(said.err.splitlines()) == 1
    assert main(["tag", str(model), str(plain), "-o", str(out), "-q"]) == 0
    assert any(doc.layers["weak"] for doc in read(out))
    assert main(["tag", str(model), str(plain), "-o", str(out), "--confidence"]) == 2
    assert "--confidence does not go with this model" in capsys.readouterr().err


@pytest.mark.parametrize("way", [[], ["--loops", "1"]])
def test_an_interrupted_run_goes_on(
    way: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, model, whole = (tmp_path / name for name in ("votes.jsonl", "m.cfm", "whole.cfm"))
    write(notes(0, 12), votes)
    assert main(["weak", "alternate", str(votes), "-o", str(whole), "-q", *way]) == 0
    module = alternate_loops if way else students
    usual: Any = train
    times, stop = 0, 2

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal times
        times += 1
        if times == stop:
            os.kill(os.getpid(), signal.SIGINT)
        return usual(*arguments, **options)

    monkeypatch.setattr(module, "train", counted)
    arguments = ["weak", "alternate", str(votes), "-o", str(model), "-q", *way]
    steps = tmp_path / "m.cfm.steps"
    assert main(arguments) == 130
    assert f"kept in {steps}: go on with --resume" in capsys.readouterr().err
    assert not model.exists()
    assert main([*arguments, "--resume", "--seed", "1"]) == 2
    assert "other documents or settings" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0
    assert model.read_bytes() == whole.read_bytes()
    assert times == (2 if way else 12) + 1, "the first student was kept"
    assert not steps.exists()
    times, stop = 0, 1
    assert main(arguments) == 130  # before anything is done
    assert "go on" not in capsys.readouterr().err
    assert not steps.exists()


def test_a_run_without_resume_begins_anew_and_touches_no_folder_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes, model, steps = (tmp_path / name for name in ("votes.jsonl", "m.cfm", "m.cfm.steps"))
    write(notes(0, 8), votes)
    steps.mkdir()
    (steps / "mine.txt").write_text("mine")
    arguments = ["weak", "alternate", str(votes), "-o", str(model), "--method", "longest-span", "--loops", "1"]
    assert main(arguments) == 2
    assert "other files" in capsys.readouterr().err
    assert (steps / "mine.txt").exists()
    shutil.rmtree(steps)
    steps.mkdir()
    (steps / "run.json").write_text('{"run": "another"}')
    assert main(arguments) == 0
    assert not steps.exists()
    assert main([*arguments, "--resume"]) == 0
    assert "starts from the beginning" in capsys.readouterr().err


def test_a_pair_of_students_and_a_conditional_aggregator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def noted(docs: Any, aggregator: Any, student: Any, **options: Any) -> Any:
        seen.append((aggregator, student))
        return alternate(docs, None, replace(QUICK, epochs=1), **options)

    monkeypatch.setattr(weak_alternate, "alternate", noted)
    votes, model = tmp_path / "votes.jsonl", tmp_path / "m.cfm"
    write(notes(0, 8), votes)
    arguments = ["weak", "alternate", str(votes), "-o", str(model), "--seed", "3"]
    assert main([*arguments, "--student", "cascade, encoder", "--method", "chmm"]) == 0
    assert seen == [(CHMM(seed=3), (Cascade(seed=3), Encoder(seed=3)))]
    assert "estimated F1 (upper end)" in capsys.readouterr().out


def test_embeddings_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def noted(docs: Any, aggregator: Any, student: Any, *, how: Any, **options: Any) -> Any:
        seen.append(how.embedder)
        return alternate(docs, None, replace(QUICK, epochs=1), how=replace(how, embedder=None), **options)

    monkeypatch.setattr(weak_alternate, "alternate", noted)
    monkeypatch.setattr(weak_alternate, "load_packaged_embedder", lambda: "an embedder")
    votes, model = tmp_path / "votes.jsonl", tmp_path / "m.cfm"
    write(notes(0, 8), votes)
    assert main(["weak", "alternate", str(votes), "-o", str(model), "-q", "--embeddings"]) == 0
    assert main(["weak", "alternate", str(votes), "-o", str(model), "-q"]) == 0
    assert seen == ["an embedder", None]


def test_a_terminal_shows_one_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with frame.live_line("votes", weak_alternate.step_line, quiet=False) as tell:
        assert tell is not None
        tell(Step("student fold", 2, 5))
    assert "student fold 2/5 done" in shown.getvalue()
    with frame.live_line("votes", weak_alternate.step_line, quiet=True) as tell:
        assert tell is None
    assert weak_alternate.step_line(Step("votes")) == "votes done"
    assert weak_alternate.step_line(Step("loop", 1, 2, 0.8514)) == "loop 1/2 done · dev F1 0.851"


def test_what_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare, model = tmp_path / "bare.jsonl", tmp_path / "m.cfm"
    bare.write_text('{"id": "1", "text": "Nothing."}\n')
    rules = tmp_path / "s.toml"
    rules.write_text(TOML)
    for arguments, code, words in (
        ([], 3, "give --sources"),
        (["--method", "chm"], 2, "did you mean 'chmm'?"),
        (["--student", "cascade,encoder,hmmdp"], 2, "one method or two"),
        (["--student", "cascad"], 2, "did you mean 'cascade'?"),
        (["--embeddings", "--loops", "2", "-s", str(rules)], 2, "--embeddings is for the recipe"),
    ):
        assert main(["weak", "alternate", str(bare), "-o", str(model), *arguments]) == code
        assert words in capsys.readouterr().err
