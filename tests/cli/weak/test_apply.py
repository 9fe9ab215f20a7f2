"""`chaffinch weak apply` as a user meets it: votes out, failures named, nothing leaked."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, NoReturn

import pytest

from chaffinch.cli import main
from chaffinch.cli.weak import apply as weak_apply
from chaffinch.text.formats import read
from chaffinch.weak.votes import collect_votes
from tests.canary import Canary

TOML = r"""
[[source]]
kind = "lexicon"
name = "drugs"
phrases = "drugs.txt"
label = "Chemical"

[[source]]
kind = "regex"
name = "dose"
pattern = '\d+ ?mg'
label = "Dose"
negative_reliable = true
"""
LINK = '\n[[source]]\nkind = "link"\nname = "caps"\nrule = "capitalised"\n'
PYTHON = """
import warnings
from chaffinch.weak.sources import Regex, source

dose = Regex("dose", r"\\d+ ?mg", label="Dose")

@source("telling", label="X")
def telling(doc):
    warnings.warn(doc.text)
    raise ValueError(doc.text)
"""


@pytest.fixture
def notes(tmp_path: Path, canary: Canary) -> Path:
    path = tmp_path / "notes.jsonl"
    texts = [f"😀 {canary.word} had\r\naspirin 20 mg.", "Nothing."]
    path.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
    (tmp_path / "drugs.txt").write_text("aspirin\n")
    (tmp_path / "sources.toml").write_text(TOML)
    (tmp_path / "rules.py").write_text(PYTHON)
    return path


@pytest.mark.parametrize("out", ["votes.jsonl", "votes.parquet", "votes.weak", "votes"])
def test_votes_are_written_in_formats_that_keep_them(
    notes: Path, tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / out
    assert main(["weak", "apply", str(notes), "-s", str(tmp_path / "sources.toml"), "-o", str(target), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["documents"], summary["votes"]) == (2, 2)
    drugs, dose = summary["sources"]
    assert (drugs["source"], drugs["kind"], drugs["spans"], drugs["errors"]) == ("drugs", "lexicon", 1, {})
    assert dose["negative_reliable"] is True
    docs = list(read(target))
    assert collect_votes(docs).sources == ("drugs", "dose")
    spans = [(doc.text[s.start : s.end], s.label) for doc in docs for own in doc.layers.values() for s in own]
    assert spans == [("aspirin", "Chemical"), ("20 mg", "Dose")]


def test_a_failing_source_is_named_and_leaks_nothing(notes: Path, tmp_path: Path, canary: Canary) -> None:
    out = tmp_path / "out" / "votes.jsonl"
    out.parent.mkdir()
    for workers in ("1", "2"):
        done = canary.run(
            "weak", "apply", notes, "-s", tmp_path / "rules.py", "-o", out, "--workers", workers, outputs=[out]
        )
        assert done.returncode == 0
        assert done.stderr == "The source 'telling' had errors: ValueError at line 10 (2).\n"
        assert "telling" in done.stdout
    out.unlink()
    done = canary.run("weak", "apply", notes, "-s", tmp_path / "rules.py", "-o", out, "--strict", outputs=[out])
    assert done.returncode == 3
    assert "'telling' failed on document 1 (ValueError at line 10)" in done.stderr
    assert not out.exists()


def test_processes_leak_nothing_and_give_the_same(notes: Path, tmp_path: Path, canary: Canary) -> None:
    outs = [tmp_path / "out" / name for name in ("one.jsonl", "two.jsonl")]
    outs[0].parent.mkdir()
    for out, workers in zip(outs, ("1", "2"), strict=True):
        sources = tmp_path / "sources.toml"
        done = canary.run("weak", "apply", notes, "-s", sources, "-o", out, "--workers", workers, outputs=[out])
        assert done.returncode == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


COUNTING = """
import os, signal
from pathlib import Path
from chaffinch.weak.sources import Regex, source

dose = Regex("dose", r"\\d+ ?mg", label="Dose")
calls = Path(__file__).with_name("calls.txt")

@source("slow", label="Drug", on=["dose"])
def slow(doc):
    times = int(calls.read_text()) + 1
    calls.write_text(str(times))
    if times == {stop}:
        os.kill(os.getpid(), signal.SIGINT)
    start = doc.text.find("aspirin")
    return [(start, start + 7)] if start >= 0 else []
"""


def test_an_interrupted_run_leaves_nothing_half_and_goes_on(
    tmp_path: Path, canary: Canary, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, rules, calls = tmp_path / "notes.jsonl", tmp_path / "rules.py", tmp_path / "calls.txt"
    texts = [f"{canary.word} {n} had aspirin {n} mg." for n in range(6)]
    notes.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
    rules.write_text(COUNTING.replace("{stop}", "4"))
    outs = [tmp_path / "out" / name for name in ("votes.jsonl", "whole.jsonl")]
    outs[0].parent.mkdir()
    calls.write_text("0")
    arguments = ["weak", "apply", str(notes), "-s", str(rules), "-o", str(outs[0])]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it
    try:
        assert main(arguments) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    journal = outs[0].with_name("votes.jsonl.journal")
    assert f"nothing was written, and what slow sources said is kept in {journal}" in capsys.readouterr().err
    assert list(outs[0].parent.iterdir()) == [journal]
    assert journal.stat().st_mode & 0o777 == 0o600
    assert canary.word not in journal.read_text()
    journal.write_bytes(journal.read_bytes() + b'["cut')  # as a crash would leave it
    assert main([*arguments, "--resume", "--json"]) == 0
    assert calls.read_text() == "7", "3 of 6 documents were done, the fourth was not"
    summary = json.loads(capsys.readouterr().out)
    assert [(own["kind"], own["spans"]) for own in summary["sources"]] == [("regex", 6), ("python", 6)]
    assert main([*arguments[:-1], str(outs[1])]) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert sorted(outs[0].parent.iterdir()) == outs


def test_what_a_failed_run_knows_is_kept_and_other_sources_are_not_believed(
    tmp_path: Path, notes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, calls, out = tmp_path / "counting.py", tmp_path / "calls.txt", tmp_path / "votes.jsonl"
    rules.write_text(COUNTING.replace("{stop}", "0"))
    calls.write_text("0")

    def full(*_: Any, **__: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(weak_apply, "write", full)
        arguments = ["weak", "apply", str(notes), "-s", str(rules), "-o", str(out)]
        assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "No space left" in said
    assert "go on with --resume" in said
    rules.write_text(rules.read_text() + "\n")
    assert main([*arguments, "--resume"]) == 2
    assert "other sources; leave --resume out" in capsys.readouterr().err
    assert main(arguments) == 0
    assert calls.read_text() == "4"
    assert not out.with_name("votes.jsonl.journal").exists()


def test_an_interrupt_among_quick_sources_says_so(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(weak_apply, "apply", stopped)
    out = tmp_path / "votes.jsonl"
    assert main(["weak", "apply", str(notes), "-s", str(tmp_path / "sources.toml"), "-o", str(out)]) == 130
    assert "outputs that were not finished were not written" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_a_terminal_shows_progress(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def noted(items: Any, what: str, *, quiet: bool) -> Any:
        for item in items:
            told.append(what)
            yield item

    monkeypatch.setattr("chaffinch.cli.frame.progress", noted)
    out = tmp_path / "votes.jsonl"
    assert main(["weak", "apply", str(notes), "-s", str(tmp_path / "sources.toml"), "-o", str(out), "-q"]) == 0
    assert told == ["documents"] * 2


def test_what_cannot_be_is_refused(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources, out = tmp_path / "sources.toml", tmp_path / "votes.jsonl"
    (tmp_path / "linked.toml").write_text(TOML + LINK)
    (tmp_path / "wrong.toml").write_text(TOML.replace("label", "lable", 1))
    cases = [
        (["-s", str(sources), "-o", str(tmp_path / "x.csv")], 2, "csv cannot hold the votes"),
        (["-s", str(sources), "-o", str(out), "--to", "brat"], 2, "write .jsonl or .parquet"),
        (["-s", str(tmp_path / "linked.toml"), "-o", str(tmp_path / "x")], 2, "the linking rule 'caps'"),
        (["-s", str(tmp_path / "wrong.toml"), "-o", str(out)], 2, "did you mean 'label'?"),
        (["-s", str(tmp_path / "none.toml"), "-o", str(out)], 2, "no such file"),
        (["-s", str(sources), "-o", str(notes)], 2, "the output is an input"),
        (["-s", str(sources), "-o", str(tmp_path / "no" / "x.jsonl")], 3, "does not exist"),
        (["-o", str(out)], 2, "--sources"),
    ]
    for arguments, code, words in cases:
        assert main(["weak", "apply", str(notes), *arguments]) == code
        assert words in capsys.readouterr().err
        assert not out.exists()
    assert main(["weak", "apply", str(notes), "-s", str(tmp_path / "linked.toml"), "-o", str(out), "--quiet"]) == 0
    assert "link:caps" in next(iter(read(out))).layers
    assert capsys.readouterr() == ("", "")


def test_the_group_shows_its_commands_and_the_first_line_of_help_is_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["weak"]) == 0
    assert "apply" in capsys.readouterr().out
    assert main(["weak", "apply", "--help"]) == 0
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert said[1].startswith("chaffinch weak apply notes/")
