"""Configuration files: tables and keys that nobody knows are refused, those of other commands are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.text import Document, Span
from chaffinch.text.formats import read, write

NOTE = Document.make("Dr. Penn came.", id="p1-1", layers={"gold": [Span(4, 8, "DOCTOR")]})


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    write([NOTE], tmp_path / "notes.jsonl")
    return tmp_path / "notes.jsonl"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[trian]\nlayer = 'gold'\n", "unknown table [trian]; did you mean 'train'?"),
        ("[convert]\nlayr = 'gold'\n", "unknown key 'layr'; did you mean 'layer'?"),
        ("layr = 'gold'\n", "unknown key 'layr'; did you mean 'layer'?"),
    ],
)
def test_unknown_tables_and_keys_are_refused(
    content: str, words: str, notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(content)
    out = tmp_path / "out.jsonl"
    assert main(["convert", str(notes), "-o", str(out), "--config", str(tmp_path / "c.toml")]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[train.hmdp]\nepochs = 2\n", "unknown table [train.hmdp]; did you mean 'hmmdp'?"),
        ("[train.cascade]\nepoch = 2\n", "cascade has no setting 'epoch'; did you mean 'epochs'?"),
        ("[train.cascade]\nepochs = 'x'\n", "epochs must be a whole number, at least 1, got 'x'"),
        ("[train]\nepochs = 2\n", "unknown key 'epochs'"),
    ],
)
def test_settings_of_a_method_are_checked(
    content: str, words: str, notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(content)
    assert main(["train", str(notes), "-o", str(tmp_path / "m.cfm"), "--config", str(tmp_path / "c.toml")]) == 2
    assert words in capsys.readouterr().err


def test_a_value_that_cannot_be_right_is_refused_also_where_a_flag_wins(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text("[convert]\nmax-chars = 'many'\n")
    out = tmp_path / "out.jsonl"
    run = ["convert", str(notes), "-o", str(out), "--config", str(tmp_path / "c.toml"), "--max-chars", "1000"]
    assert main(run) == 2
    assert "max_chars: " in capsys.readouterr().err
    assert not out.exists()
    (tmp_path / "c.toml").write_text("[convert]\nmax-chars = 10\n")
    assert main(run) == 0


def test_tables_of_groups(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, out = tmp_path / "c.toml", tmp_path / "out.jsonl"
    run = ["deid", str(notes), "-o", str(out), "--config", str(config), "--model", "rules", "--quiet"]
    for content, words in (
        ("[deid.rnu]\nids = 'keep'\n", "unknown table [deid.rnu]; did you mean 'run'?"),
        ("[deid]\nid = 'keep'\n", "unknown key 'id'"),
        ("[deid.run]\nid = 'keep'\n", "unknown key 'id'"),
    ):
        config.write_text(content)
        assert main(run) == 2
        assert words in capsys.readouterr().err
    for content in (
        "[deid]\nids = 'keep'\n",
        "[deid.run]\nids = 'keep'\n[train]\nlayer = 'x'\n[weak.apply]\nresume = true\n",
    ):
        config.write_text(content)
        assert main([*run, "--overwrite"]) == 0
        assert [doc.id for doc in read(out)] == ["p1-1"]
    config.write_text("[weak]\nlayer = 'x'\n")
    assert main(["weak", "analyse", str(notes), "--config", str(config)]) == 2
    assert "unknown key 'layer' in [weak]; put it under [weak.analyse]" in capsys.readouterr().err


def test_a_file_of_patients_that_does_not_exist_is_no_pattern(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in (["convert"], ["deid", "--model", "rules"]):
        out = tmp_path / "out.jsonl"
        assert main([*verb, str(notes), "-o", str(out), "--group-by", str(tmp_path / "nosuch.tsv")]) == 2
        assert "no such file" in capsys.readouterr().err
        assert not out.exists()
    assert main(["convert", str(notes), "-o", str(out), "--group-by", r"^(p\d)-", "--quiet"]) == 0
    assert [doc.group for doc in read(out)] == ["p1"]
