"""The index of readers, and the command that converts a corpus to JSONL."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import READERS, gene_disease, ppi
from recipes.corpora.__main__ import main

from chaffinch.text.formats import read
from tests.recipes.files import gz
from tests.recipes.test_ppi import XML
from tests.text.formats.roundtrip import exact

GAD = "index\tsentence\tlabel\n0\t@GENE$ in @DISEASE$. No dose.\t1\n"


def test_what_is_written_is_what_the_reader_gave(tmp_path: Path) -> None:
    (tmp_path / "gad").mkdir()
    gz(tmp_path / "gad" / "fold_1.tsv.gz", GAD)
    out = tmp_path / "gad.jsonl"
    assert main(["gad", "--data", str(tmp_path), "-o", str(out)]) == 0
    given = [exact(doc) for doc in gene_disease.read_gad(tmp_path / "gad")]
    assert [exact(doc) for doc in read(out, format="jsonl")] == given
    assert len(given) == 1


def test_one_split_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ppi-5corpora").mkdir()
    gz(tmp_path / "ppi-5corpora" / "a.xml.gz", XML)
    gz(tmp_path / "ppi-5corpora" / "b.xml.gz", XML.replace('set="train"', 'set="test"'))
    monkeypatch.setenv("CHAFFINCH_DATA", str(tmp_path))
    assert main(["ppi-5corpora", "--split", "test", "-o", str(tmp_path / "out.jsonl")]) == 0
    (doc,) = read(tmp_path / "out.jsonl")
    assert exact(doc) == exact(list(ppi.read(tmp_path / "ppi-5corpora"))[1])


def test_without_a_folder_the_message_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CHAFFINCH_DATA", raising=False)
    assert main(["gad", "-o", str(tmp_path / "out.jsonl")]) == 2
    assert "--data DIR or set CHAFFINCH_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_missing_corpus_is_bad_data_and_leaves_no_output(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--data", str(tmp_path), "-o", str(tmp_path / "out.jsonl")]) == 3
    assert name in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
