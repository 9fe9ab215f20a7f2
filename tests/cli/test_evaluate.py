"""What `evaluate`, `compare`, `train` and `tag` say about documents, layers, labels and confidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.text import Document, Span

WORDS = "Ada Ben Cid Dan Eve Fay Gus Hal Ida Jon Kit Lou Mia Ned Oda Pam Ray Sue Tom Una".split()


def columns(path: Path, sentences: int, *, tags: bool = True, every: int = 0) -> Path:
    """Write sentences "Dr. NAME came" as columns, without any mark."""
    rows = []
    for number in range(sentences):
        right = tags and not (every and number % every == 0)
        tag = "B-NAME" if right else "O"
        rows.append(f"Dr.\tO\n{WORDS[number % len(WORDS)]}{number // len(WORDS)}\t{tag}\ncame\tO\n\n")
    path.write_text("".join(rows))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[Any, str]:
    """Return the JSON result and stderr of a command."""
    assert main([*map(str, arguments), "--json"]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out) if printed.out else None, printed.err


def test_one_document_cannot_be_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, a = columns(tmp_path / "gold.conll", 8), columns(tmp_path / "a.conll", 8, every=2)
    b = columns(tmp_path / "b.conll", 8, every=3)
    result, said = run(capsys, "compare", gold, a, b, "--documents", "file")
    assert (result["documents"], result["p"], result["difference_interval"]) == (1, None, None)
    assert "--documents" in said
    assert main(["compare", str(gold), str(a), str(b), "--documents", "file"]) == 0
    printed = capsys.readouterr().out
    assert "p = " not in printed
    assert "one document" in printed
    result, said = run(capsys, "evaluate", gold, a, "--documents", "file")
    assert result["intervals"] is None
    assert "--documents" in said
    assert main(["evaluate", str(gold), str(a), "--documents", "file"]) == 0
    assert "intervals: none" in capsys.readouterr().out


def test_column_files_without_marks_are_cut_and_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, a = columns(tmp_path / "gold.conll", 95), columns(tmp_path / "a.conll", 95, every=2)
    b = columns(tmp_path / "b.conll", 95, every=3)
    result, said = run(capsys, "evaluate", gold, a)
    assert result["documents"] == 10
    assert result["intervals"] is not None
    assert "every 10 sentences" in said
    assert "--documents" in said
    result, _ = run(capsys, "compare", gold, a, b)
    assert result["documents"] == 10
    assert result["p"] < 0.05
    result, said = run(capsys, "evaluate", gold, a, "--documents", "sentence")
    assert result["documents"] == 95
    assert "every" not in said  # it was asked for
    assert run(capsys, "evaluate", gold, a, "--documents", "block:5")[0]["documents"] == 19


@pytest.mark.parametrize("wrong", ["block:0", "block", "blocks:3", "sentences", "block:x"])
def test_another_way_to_cut_is_refused(tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    gold = columns(tmp_path / "gold.conll", 9)
    assert "block:N" in run(capsys, "evaluate", gold, gold, "--documents", wrong, code=2)[1]


def test_documents_that_cannot_be_cut_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = columns(tmp_path / "gold.conll", 9)
    marked = tmp_path / "marked.conll"
    marked.write_text("-DOCSTART-\tO\n\n" + plain.read_text())
    cf.write(cf.read(plain), tmp_path / "gold.jsonl")
    for path in (marked, tmp_path / "gold.jsonl"):
        said = run(capsys, "evaluate", path, path, "--documents", "block:3", code=2)[1]
        assert "--documents" in said
    out = tmp_path / "out.jsonl"
    assert main(["convert", str(tmp_path / "gold.jsonl"), "-o", str(out), "--documents", "block:3"]) == 2
    assert not out.exists()


def test_a_side_that_is_not_cut_still_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = columns(tmp_path / "gold.conll", 95)
    cf.write(cf.read(gold), tmp_path / "whole.jsonl")  # one document
    result, said = run(capsys, "evaluate", gold, tmp_path / "whole.jsonl")
    assert (result["documents"], result["strict"]["micro"]["f1"]) == (1, 1.0)
    assert "one document" in said


def test_training_on_a_bare_column_file_calibrates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = columns(tmp_path / "train.conll", 200, every=7), tmp_path / "m.cfm"
    result, said = run(capsys, "train", data, "-o", model, "--set", "epochs=2")
    assert result["documents"] == 20
    assert result["calibrated"] is True
    assert "every 10 sentences" in said
    result, said = run(capsys, "tag", model, data, "-o", tmp_path / "out.jsonl", "--confidence")
    assert (result["documents"], result["confidence"]) == (20, "calibrated")
    assert "alibrated" not in said
    result, said = run(capsys, "evaluate", data, tmp_path / "out.jsonl")
    assert result["documents"] == 20


def test_uncalibrated_confidence_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = columns(tmp_path / "train.conll", 40), tmp_path / "m.cfm"
    result, said = run(capsys, "train", data, "-o", model, "--set", "epochs=2", "--documents", "file")
    assert result["calibrated"] is False
    assert "not calibrated" in said
    result, said = run(capsys, "tag", model, data, "-o", tmp_path / "out.jsonl", "--confidence")
    assert result["confidence"] == "uncalibrated"
    assert "not calibrated" in said
    result, _ = run(capsys, "tag", model, data, "-o", tmp_path / "out.jsonl")
    assert result["confidence"] is None
    assert cf.load(model).calibrated is False


@pytest.fixture
def other_labels(tmp_path: Path) -> tuple[Path, Path]:
    notes = [Document.make("Ann met Bob", id=str(n), layers={"gold": [Span(0, 3, "NAME")]}) for n in range(3)]
    cf.write(notes, tmp_path / "gold.jsonl")
    other = [Span(0, 3, "PER"), Span(8, 11, "MISC")]
    cf.write([note.with_layer("gold", other) for note in notes], tmp_path / "p.jsonl")
    return tmp_path / "gold.jsonl", tmp_path / "p.jsonl"


def test_disjoint_labels_are_told_and_mapped(
    other_labels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    result, said = run(capsys, "evaluate", *other_labels)
    assert result["disjoint_labels"] is True
    assert "--map" in said
    assert "PER" not in said
    assert main(["evaluate", *map(str, other_labels)]) == 0
    assert "share no label" in capsys.readouterr().out
    result, said = run(capsys, "evaluate", *other_labels, "--map", "PER=NAME")
    assert result["disjoint_labels"] is False
    assert result["strict"]["micro"]["precision"] == 0.5
    result, said = run(capsys, "evaluate", *other_labels, "--map", "PER=NAME", "--map", "MISC=O")
    assert result["strict"]["micro"]["precision"] == 1.0
    result, said = run(capsys, "evaluate", *other_labels, "--scheme", "exact")
    assert "--map" not in said  # labels do not count there


@pytest.mark.parametrize("wrong", ["PERS=NAME", "PER=NAMES", "PER", "=NAME", "PER="])
def test_a_map_of_labels_that_do_not_exist_is_refused(
    other_labels: tuple[Path, Path], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--map" in run(capsys, "evaluate", *other_labels, "--map", wrong, code=2)[1]


def test_the_newest_layer_is_scored_and_the_flag_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [Document.make("Ann came", id=str(n), layers={"gold": [Span(0, 3, "NAME")]}) for n in range(3)]
    votes = [
        doc.with_layer("source:a", []).with_layer("older", []).with_layer("source:b", [Span(4, 8, "NAME")])
        for doc in gold
    ]
    cf.write(gold, tmp_path / "gold.jsonl")
    cf.write([doc.with_layer("newest", doc.layer("gold")) for doc in votes], tmp_path / "p.jsonl")
    result, said = run(capsys, "evaluate", tmp_path / "gold.jsonl", tmp_path / "p.jsonl")
    assert result["strict"]["micro"]["f1"] == 1.0
    assert (result["layer"], result["predicted_layer"]) == ("gold", "newest")
    assert "--pred-layer" in said
    result, said = run(capsys, "evaluate", tmp_path / "gold.jsonl", tmp_path / "p.jsonl", "--pred-layer", "older")
    assert result["strict"]["micro"]["f1"] == 0.0
    assert "--pred-layer" not in said
    result, said = run(capsys, "compare", tmp_path / "gold.jsonl", tmp_path / "p.jsonl", tmp_path / "p.jsonl")
    assert "--a-layer" in said
    cf.write([doc.with_layer("older", []) for doc in gold], tmp_path / "only.jsonl")
    assert "--pred-layer" not in run(capsys, "evaluate", tmp_path / "gold.jsonl", tmp_path / "only.jsonl")[1]


def test_votes_alone_are_no_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [Document.make("Ann came", id="1", layers={"gold": [Span(0, 3, "NAME")]})]
    cf.write(gold, tmp_path / "gold.jsonl")
    cf.write([doc.with_layer("source:a", []).with_layer("source:b", []) for doc in gold], tmp_path / "p.jsonl")
    said = run(capsys, "evaluate", tmp_path / "gold.jsonl", tmp_path / "p.jsonl", code=3)[1]
    assert "--pred-layer" in said


def test_integer_tags_work_in_train_tag_and_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model, out = tmp_path / "train.json", tmp_path / "m.cfm", tmp_path / "out.jsonl"
    records = [{"id": str(n), "tokens": ["Dr.", name, "came"], "ner_tags": [0, 1, 0]} for n, name in enumerate(WORDS)]
    data.write_text("\n".join(map(json.dumps, records)))
    assert "--set tag_names" in run(capsys, "train", data, "-o", model, code=3)[1]
    names = ("--tag-names", "O,B-NAME,I-NAME")
    setting = ("--set", "tag_names=O,B-NAME,I-NAME")
    result, _ = run(capsys, "train", data, "-o", model, "--set", "epochs=2", *setting)
    assert result["labels"] == ["NAME"]
    run(capsys, "tag", model, data, "-o", out, *names)
    result, _ = run(capsys, "evaluate", data, out, *names)
    assert result["documents"] == len(WORDS)
    cf.write(cf.read(out), tmp_path / "native.jsonl", format="jsonl")
    said = run(capsys, "train", tmp_path / "native.jsonl", "-o", model, *setting, code=2)[1]
    assert "--tag-names" in said  # there are no such tags in it


def test_categories_are_scored_in_place_of_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [
        Document.make("Ann of Rome", id=str(n), layers={"gold": [Span(0, 3, "DOCTOR"), Span(7, 11, "CITY")]})
        for n in range(3)
    ]
    cf.write(gold, tmp_path / "gold.jsonl")
    found = [doc.with_layer("gold", [Span(0, 3, "PATIENT"), Span(7, 11, "NAME")]) for doc in gold]
    cf.write(found, tmp_path / "p.jsonl")
    both = tmp_path / "gold.jsonl", tmp_path / "p.jsonl"
    result, _ = run(capsys, "evaluate", *both, "--scheme", "token", "--categories")
    assert set(result["token"]["labels"]) == {"NAME", "LOCATION"}
    assert result["token"]["labels"]["NAME"]["recall"] == 1.0
    assert result["token"]["micro"]["precision"] == 0.5
    result, _ = run(capsys, "evaluate", *both, "--scheme", "token")
    assert result["token"]["micro"]["precision"] == 0.0
    assert (
        "official schemes score types" in run(capsys, "evaluate", *both, "--scheme", "i2b2", "--categories", code=2)[1]
    )
    assert "unknown scheme" in run(capsys, "evaluate", *both, "--scheme", "i2b", "--categories", code=2)[1]


def test_labels_without_a_category_are_refused_and_not_repeated(
    other_labels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    said = run(capsys, "evaluate", *other_labels, "--categories", code=2)[1]
    assert "1 of 3 labels" in said
    assert "MISC" not in said
