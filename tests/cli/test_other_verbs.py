"""`evaluate`, `compare`, `show`, `doctor`, `bench` and the frame around them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import doctor, main
from chaffinch.text import Document, Span
from chaffinch.text.formats import write
from tests.canary import Canary


@pytest.fixture
def scored(tmp_path: Path, canary: Canary) -> tuple[Path, Path]:
    """Three gold notes with the canary in them, and predictions that are right in two."""
    text = f"Seen by {canary.word} on Monday"
    notes = [Document.make(text, id=str(n), layers={"gold": [Span(8, 8 + len(canary.word), "NAME")]}) for n in range(3)]
    predicted = [note.with_layer("gold", note.layer() if n else [Span(0, 4, "NAME")]) for n, note in enumerate(notes)]
    gold, other = tmp_path / "gold", tmp_path / "predicted.jsonl"
    write(notes, gold, format="brat")
    write(predicted, other)
    return gold, other


def test_evaluate_two_formats_as_json(scored: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *map(str, scored), "--json", "--scheme", "strict", "--scheme", "token"]) == 0
    result = json.loads(capsys.readouterr().out)
    strict = result["strict"]
    assert strict["micro"]["f1"] == pytest.approx(2 / 3)
    assert strict["labels"]["NAME"]["tp"] == 2
    low, high = strict["micro"]["f1_interval"]
    assert low <= 2 / 3 <= high
    assert {"micro", "macro", "labels"} <= set(result["token"])


def test_reports_hold_no_text_unless_asked(scored: tuple[Path, Path], tmp_path: Path, canary: Canary) -> None:
    page = tmp_path / "pages" / "report.html"
    page.parent.mkdir()
    assert canary.run("evaluate", *scored, "--html", page, outputs=[page]).returncode == 0
    assert canary.word not in page.read_text()
    assert canary.run("evaluate", *scored, "--html", page, "--with-text", outputs=[page]).returncode == 0
    assert canary.word in page.read_text()


def test_a_gate_that_is_not_met(scored: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *map(str, scored), "--fail-under", "0.9"]) == 4
    assert "micro F1 0.6667 is below --fail-under 0.9" in capsys.readouterr().err
    assert main(["evaluate", *map(str, scored), "--fail-under", "0.5"]) == 0


def test_texts_that_differ_are_refused_without_showing_them(scored: tuple[Path, Path], canary: Canary) -> None:
    gold, other = scored
    for file in gold.glob("*.ann"):
        file.write_text("")
    (gold / "0.txt").write_text(f"{canary.word} moved")
    done = canary.run("evaluate", gold, other)
    assert done.returncode == 3
    assert "text" in done.stderr


def test_compare_says_who_is_better(scored: tuple[Path, Path], canary: Canary) -> None:
    gold, other = scored
    done = canary.run("compare", gold, gold, other, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["difference"] == pytest.approx(1 / 3)
    assert result["only_first"] == 1


def test_an_unknown_scheme_is_named(scored: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *map(str, scored), "--scheme", "strickt"]) == 2
    assert "strickt" in capsys.readouterr().err


def test_show_prints_the_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.cfm"
    facts = bundle.Manifest("cascade", labels=("NAME", "DATE"), patients=12, vocabulary_floor=2, metrics={"f1": 0.9})
    bundle.save(path, facts, {"w": np.zeros((2, 3), np.float32)}, {"words": ["a"]})
    assert main(["show", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["kind"], shown["vocabulary_floor"], shown["patients"]) == ("cascade", 2, 12)
    assert main(["show", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "NAME, DATE" in printed
    assert "2×3" in printed
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["show", str(path)]) == 3
    assert "checksum does not match" in capsys.readouterr().err


def test_doctor_finds_a_sound_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["kernels"] == "agree with listing every path"
    assert result["packages"]["numpy"] == np.__version__
    assert {row["extra"] for row in result["extras"]} >= {"neural", "web", "parquet"}


def test_doctor_finds_broken_kernels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(lattice: object) -> object:
        raise FloatingPointError

    monkeypatch.setattr(doctor, "forward_backward", wrong)
    assert main(["doctor"]) == 1
    assert "raised FloatingPointError" in capsys.readouterr().err


def test_bench_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nothing"]) == 2
    listed = capsys.readouterr().err.partition("choose one of ")[2].strip().split(", ")
    assert {"deid", "kernels", "papers", "scale", "service", "web"} <= set(listed)
    assert listed == sorted(listed)


def test_bench_says_that_the_data_folder_is_absent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHAFFINCH_DATA", raising=False)
    assert main(["bench", "corpora"]) == 2
    assert "CHAFFINCH_DATA" in capsys.readouterr().err


def test_bench_refuses_a_budget_that_has_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--minutes", "5"], ["--full"]):
        assert main(["bench", "corpora", *option]) == 2
        assert "takes neither --minutes nor --full" in capsys.readouterr().err
    assert main(["bench", "corpora", "--split", "fresh"]) == 2
    assert "has no split fresh" in capsys.readouterr().err
    assert main(["bench", "papers", "--only", "P1", "--full", "--minutes", "5"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_help_begins_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("convert", "evaluate", "compare", "show", "doctor", "bench"):
        assert main([verb, "--help"]) == 0
        lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
        assert lines[1].startswith(f"chaffinch {verb}")


def test_failures_inside_show_no_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def burst() -> str:
        raise ValueError("Quillfeather")

    monkeypatch.setattr(doctor, "kernel_fault", burst)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().err
    assert "internal error ValueError at test_other_verbs.py" in printed
    assert "Quillfeather" not in printed


def test_ctrl_c_has_its_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "kernel_fault", interrupt)
    assert main(["doctor"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_short_run_hardly_looks_for_cycles(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Seen by Dr. Penn on 3/4/1998.\n", encoding="utf-8")
    run = (
        "import gc, sys; from chaffinch.cli import main; count = lambda: sum(x['collections'] for x in gc.get_stats())"
    )
    tell = "; before = count(); code = main(sys.argv[1:]); print(code, count() - before)"
    arguments = ["deid", "note.txt", "-o", "out.txt", "--model", "rules", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", run + tell, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    code, searches = map(int, done.stdout.split()[-2:])
    assert code == 0
    assert searches < 20  # 190 by Python's own threshold
