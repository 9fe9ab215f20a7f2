"""Columns of tables are named, or are sure by name and content; they keep their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import main
from chaffinch.errors import ConfigError
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import ReadOptions, read

pytest.importorskip("pyarrow")

Printed = pytest.CaptureFixture[str]
Row = dict[str, Any]

REPORT = "Seen by Dr. Penn on 03/04/1998. " + "She slept well and went home in the morning. " * 4
ROWS: list[Row] = [
    {"no": "a1", "subject": "p1", "note": "see below", "narrative": REPORT, "findings": "Dr. Lowe saw it.",
     "impression": "Nothing new, says Dr. Lowe.", "ward": "east", "seen": "1998-03-04"},
    {"no": "a2", "subject": "p2", "note": "none", "narrative": REPORT, "findings": "", "impression": "Dr. Penn came.",
     "ward": "west", "seen": "1999-01-02"},
]  # fmt: skip


def write_csv(rows: list[Row], path: Path) -> Path:
    import csv

    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(rows: list[Row], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_parquet(rows: list[Row], path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def rows_of(path: Path) -> list[Row]:
    """The rows of a file, read by another program."""
    import csv

    import pyarrow.parquet as pq

    if path.suffix == ".csv":
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    rows: list[Row] = pq.read_table(path).to_pylist()
    return rows


WRITERS: dict[str, Callable[[list[Row], Path], Path]] = {
    ".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet
}  # fmt: skip
kinds = pytest.mark.parametrize("kind", WRITERS)


def make(kind: str, folder: Path, rows: list[Row] = ROWS) -> Path:
    return WRITERS[kind](rows, folder / f"notes{kind}")


@kinds
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ROWS, "far shorter"),
        ([{"report": REPORT, "content": REPORT}], ""),
        ([{"letter": REPORT, "number": "1"}], "no column is called"),
    ],
)
def test_a_text_column_that_is_not_sure_is_refused_with_the_columns(
    rows: list[Row], words: str, kind: str, tmp_path: Path, capsys: Printed
) -> None:
    path, out = make(kind, tmp_path, rows), tmp_path / f"out{kind}"
    assert main(["deid", str(path), "-o", str(out), "--model", "rules"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "--text-column" in told
    assert "Penn" not in told
    assert "letter" not in rows[0] or kind == ".csv" or "'letter', 'number'" in told
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@kinds
def test_of_two_columns_that_are_called_like_a_text_the_report_is_taken_and_the_remark_is_not(
    kind: str, tmp_path: Path
) -> None:
    rows = [{"id": "1", "note": "see below", "report": REPORT}]
    docs = list(read(make(kind, tmp_path, rows)))
    assert [doc.text for doc in docs] == [REPORT]
    assert docs[0].meta == {"note": "see below"}


@kinds
def test_columns_are_named_and_keep_their_names(kind: str, tmp_path: Path) -> None:
    path, out = make(kind, tmp_path), tmp_path / f"out{kind}"
    named = ["--text-column", "findings", "--text-column", "impression", "--id-column", "no"]
    named += ["--patient-column", "subject", "--keep", "ward"]
    assert main(["deid", "secret", "new", str(tmp_path / "key"), "--quiet"]) == 0
    arguments = ["deid", str(path), "-o", str(out), "--model", "rules", *named]
    assert main([*arguments, "--secret-file", str(tmp_path / "key"), "--quiet"]) == 0
    rows = rows_of(out)
    assert [row["findings"] for row in rows] == ["Dr. [DOCTOR] saw it.", ""]
    assert [row["impression"] for row in rows] == ["Nothing new, says Dr. [DOCTOR].", "Dr. [DOCTOR] came."]
    assert [row["ward"] for row in rows] == ["east", "west"]
    assert len({row["no"] for row in rows} | {row["subject"] for row in rows}) == 4
    for absent in ('"a1"', '"p1"', "Penn", "Lowe", "1998", "narrative", '"text"', '"meta"', "group"):
        assert absent not in json.dumps(rows)


@kinds
def test_a_text_column_that_no_note_fills_is_told_beside_one_that_is(
    kind: str, tmp_path: Path, capsys: Printed
) -> None:
    rows = [{"id": number, "findings": "Dr. Penn came.", "impression": " "} for number in ("1", "2")]
    path, out = make(kind, tmp_path, rows), tmp_path / f"out{kind}"
    named = ["--text-column", "findings", "--text-column", "impression"]
    assert main(["deid", str(path), "-o", str(out), "--model", "rules", *named, "--strict"]) != 0
    assert "text-column: number 2 of 2 is empty in all 2 notes" in capsys.readouterr().err
    assert not out.exists()
    assert main(["deid", str(path), "-o", str(out), "--model", "rules", *named]) == 0
    assert "number 2 of 2 is empty" in "".join(capsys.readouterr())


@kinds
@pytest.mark.parametrize("option", ["--text-column", "--id-column", "--patient-column"])
def test_a_column_that_is_not_there_is_refused(option: str, kind: str, tmp_path: Path, capsys: Printed) -> None:
    rows = [{**row, "text": REPORT} for row in ROWS]
    path, out = make(kind, tmp_path, rows), tmp_path / f"out{kind}"
    assert main(["deid", str(path), "-o", str(out), "--model", "rules", option, "findigns"]) == 2
    told = capsys.readouterr().err
    assert f"{option} 'findigns': there is no such column; did you mean 'findings'?" in told
    assert main(["convert", str(path), "-o", str(tmp_path / "o.jsonl"), option, "findigns"]) == 2
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@kinds
def test_patients_that_differ_between_columns_are_refused_until_one_is_named(kind: str, tmp_path: Path) -> None:
    rows = [{"text": "Well.", "patient_id": "p1", "subject_id": "s1"}]
    path = make(kind, tmp_path, rows)
    with pytest.raises(ConfigError, match="--patient-column"):
        list(read(path))
    how = ReadOptions(columns=ColumnChoice(patient="subject_id"))
    assert [doc.group for doc in read(path, how=how)] == ["s1"]


@kinds
def test_kept_columns_stay_real_columns_with_their_types(kind: str, tmp_path: Path) -> None:
    rows = [{"note_id": "7", "note_text": "Seen by Dr. Penn.", "score": 3, "part": 0.5, "ward": "east"}]
    path, out = make(kind, tmp_path, rows), tmp_path / f"out{kind}"
    kept = ["--keep", "score", "--keep", "part", "--keep", "ward", "--text-column", "note_text"]
    assert main(["deid", str(path), "-o", str(out), "--model", "rules", "--quiet", *kept]) == 0
    (row,) = rows_of(out)
    row.pop("layers", None)
    number = "id" if kind == ".jsonl" else "note_id"
    expected = {number: "0000001", "note_text": "Seen by Dr. [DOCTOR].", "score": 3, "part": 0.5, "ward": "east"}
    assert row == ({key: str(value) for key, value in expected.items()} if kind == ".csv" else expected)


def test_columns_are_refused_where_a_format_has_none(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "a.txt").write_text("Seen by Dr. Penn.")
    for verb in (["deid", "--model", "rules"], ["convert", "--to", "brat"], ["tag", "genia"]):
        arguments = [*verb, str(tmp_path / "a.txt"), "-o", str(tmp_path / "out"), "--text-column", "text"]
        assert main(arguments) == 2
        assert "txt has no columns" in capsys.readouterr().err
