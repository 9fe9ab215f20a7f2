"""The two commands over files: sample, form, estimate; and what they say of files that cannot be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import typer

from chaffinch.cli.deid.estimate import estimate_command
from chaffinch.cli.deid.sample import sample_command
from chaffinch.deid.leakage import Sample
from chaffinch.deid.leakage import files as leakage_files
from chaffinch.errors import ConfigError, DataError, GateError

CANARY = "Quillfeather"  # a name as an id: errors never repeat it

app = typer.Typer()
app.command("sample")(sample_command)
app.command("estimate")(estimate_command)


def run(*arguments: object) -> None:
    app(args=[str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def risks(tmp_path: Path) -> Path:
    path = tmp_path / "risks.jsonl"
    rows = [{"id": f"n{i:03}", "tokens": 100 + i, "expected": 0.01 * i, "other": 1} for i in range(120)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def fill(path: Path, leaks: dict[int, dict[str, str]]) -> None:
    """Fills in a CSV form: nothing found, but in some rows."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row["leaks"] = "0"
        row.update(leaks.get(number, {}))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_from_risks_to_the_sentence(risks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, form = tmp_path / "sample.json", tmp_path / "sample.csv"
    run("sample", risks, "-o", out, "-n", 40, "--category", "NAME", "--category", "DATE", "--seed", 3, "--json")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["notes"], printed["read"]) == (120, 40)
    assert [row["notes"] for row in printed["strata"]] == [60, 36, 18, 6]
    drawn = Sample.from_json(out.read_bytes())
    with form.open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["id", "tokens", "leaks", "NAME", "DATE"]
    assert [row["id"] for row in rows] == drawn.reading_order()
    assert all(int(row["tokens"]) == 100 + int(row["id"][1:]) for row in rows)
    fill(form, {2: {"leaks": "3", "NAME": "2", "DATE": "1"}, 5: {"leaks": "", "NAME": "1"}})
    run("estimate", out, form, "--recall", "0.95", "--planted", "200", "--json")
    result = json.loads(capsys.readouterr().out)
    assert (result["total"]["found"], result["total"]["leaking_found"]) == (4, 2)
    assert {name: row["found"] for name, row in result["categories"].items()} == {"NAME": 3, "DATE": 1}
    assert result["tokens"] == sum(100 + i for i in range(120))
    assert result["tokens_read"] == sum(int(row["tokens"]) for row in rows)
    assert result["total"]["notes"]["estimate"] < result["total"]["notes"]["upper"] <= 120
    run("estimate", out, form, "--recall", "1")
    shown = capsys.readouterr().out
    assert shown.startswith("Of 120 notes, with 95 % confidence at most ")
    assert "NAME" in shown
    with pytest.raises(GateError, match="--fail-over"):
        run("estimate", out, form, "--fail-over", "0.01")


def test_the_same_seed_gives_the_same_bytes(risks: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("sample", risks, "-o", tmp_path / f"{name}.json", "-n", 10, "--seed", 5, "--strata", "2", "-q")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_form_of_json_lines(risks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, form = tmp_path / "sample.json", tmp_path / "form.jsonl"
    run("sample", risks, "-o", out, "-n", 5, "--form", form, "--strata", "1", "-q")
    rows = [json.loads(line) for line in form.read_text().splitlines()]
    assert all(row["leaks"] is None for row in rows)
    with pytest.raises(DataError, match=r"form\.jsonl:1: leaks is empty; read the note"):
        run("estimate", out, form)
    form.write_text("".join(json.dumps(row | {"leaks": 1}) + "\n" for row in rows))
    capsys.readouterr()
    run("estimate", out, form, "--json")
    assert json.loads(capsys.readouterr().out)["total"]["found"] == 5


def test_a_form_that_may_be_filled_in_is_not_overwritten(risks: Path, tmp_path: Path) -> None:
    out = tmp_path / "sample.json"
    run("sample", risks, "-o", out, "-n", 5, "-q")
    before = out.read_bytes()
    with pytest.raises(DataError, match="perhaps filled in"):
        run("sample", risks, "-o", out, "-n", 5, "--seed", 9, "-q")
    assert out.read_bytes() == before
    for form in ("sample.json", "form.txt"):
        with pytest.raises(ConfigError, match="--form"):
            run("sample", risks, "-o", out, "--form", tmp_path / form)
    with pytest.raises(ConfigError, match="--strata"):
        run("sample", risks, "-o", tmp_path / "new.json", "--strata", "many")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f'{{"id": "{CANARY}"}}', "is not a row such as"),
        (f'{{"id": "{CANARY}", "tokens": -1, "expected": 0}}', "at least 0"),
        (f'{{"id": "{CANARY}", "tokens": 3, "expected": -0.1}}', "at least 0"),
        (f"{CANARY}", "is not a row such as"),
        ('{"id": "n1", "tokens": 3, "expected": 0.5}', "earlier row"),
    ],
)
def test_bad_rows_of_risks_are_named(row: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        leakage_files.parse_risks('{"id": "n1", "tokens": 3, "expected": 0.5}\n\n' + row + "\n")
    assert caught.value.line == 3
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"{CANARY},3,,,", "leaks is empty"),
        (f"{CANARY},3,two,,", "column 3 is no whole number"),
        (f"{CANARY},3,-2,,", "column 3 is no whole number"),
        (f"{CANARY},3,2,1,", "2 leaks, but 1 by category"),
        (f"{CANARY},3,2,,", "2 leaks, but 0 by category"),
        (f"{CANARY},3,2", "has 3 cells, the first row 5"),
        ("n1,3,0,,", "earlier row"),
    ],
)
def test_bad_rows_of_a_form_are_named(row: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        leakage_files.parse_form("id,tokens,leaks,NAME,DATE\nn1,5,0,,\n" + row + "\n")
    assert caught.value.line == 3
    assert CANARY not in str(caught.value)


def test_forms_as_spreadsheets_save_them() -> None:
    rows = leakage_files.parse_form("\ufeffid;leaks;tokens;NAME\r\nn1;2;40;2\r\n\r\nn2;0;;\r\n")
    assert [(row.id, row.leaks, row.tokens, dict(row.categories)) for row in rows] == [
        ("n1", 2, 40, {"NAME": 2}),
        ("n2", 0, None, {"NAME": 0}),
    ]
    for content in ("", "id,leaks\n", "name,leaks\na,1\n", "id,leaks,leaks\na,1,1\n", 'id,leaks\n"a,1\n'):
        with pytest.raises(DataError):
            leakage_files.parse_form(content)


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path, risks: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        run("sample", tmp_path / "none.jsonl", "-o", tmp_path / "s.json")
    with pytest.raises(DataError, match=r"risks\.jsonl: is not a sample file"):
        run("estimate", risks, risks)


def test_an_id_that_is_a_formula_is_escaped_in_the_form_and_comes_back(tmp_path: Path) -> None:
    ids = ["=HYPERLINK(1)", "+1", "-2", "@x", "\tz", "'=y", "plain"]
    (tmp_path / "risks.jsonl").write_text(
        "".join(json.dumps({"id": name, "tokens": 10, "expected": 0.1}) + "\n" for name in ids)
    )
    run("sample", tmp_path / "risks.jsonl", "-o", tmp_path / "s.json", "--notes", 7, "--strata", 1)
    with (tmp_path / "s.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)
    filled = "".join(f"{name},10,0\n" for name in (row[0] for row in rows[1:]))
    reviewed = leakage_files.parse_form("id,tokens,leaks\n" + filled)
    assert sorted(row.id for row in reviewed) == sorted(ids)
