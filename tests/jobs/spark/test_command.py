"""`chaffinch deid --engine spark` writes the rows of the plain run, on this computer and by Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaffinch.cli import main
from chaffinch.deid.keys import Secret
from chaffinch.deid.synth.notes import notes as invent
from tests.jobs.spark.conftest import need_java


def chaffinch(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own: a Spark session belongs to one."""
    command = [sys.executable, "-m", "chaffinch", *map(str, arguments)]
    environment = {key: value for key, value in os.environ.items() if key != "CHAFFINCH_SECRET"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of forty notes in two files, a secret, and what the plain run makes of them."""
    folder = tmp_path_factory.mktemp("command")
    docs = list(invent(40, seed=8))
    (folder / "in").mkdir()
    for number, part in enumerate((docs[:25], docs[25:])):
        rows = {"note_id": [d.id for d in part], "patient_id": [d.group for d in part], "text": [d.text for d in part]}
        pq.write_table(pa.table(rows), folder / "in" / f"part-{number}.parquet")
    Secret.new().write(folder / "secret")
    plain = chaffinch("deid", folder / "in", "-o", folder / "plain.parquet", *options(folder), "--quiet")
    assert plain.returncode == 0, plain.stderr
    return folder


def options(folder: Path) -> list[object]:
    """The options of both engines."""
    secret = folder / "secret"
    return ["--model", "rules", "--policy", "i2b2-surrogate", "--secret-file", secret, "--id-column", "note_id"]


@pytest.mark.slow
@pytest.mark.parametrize("master", ["local[1]", "connect"])
def test_the_table_equals_that_of_the_plain_run(
    folder: Path, tmp_path: Path, master: str, request: pytest.FixtureRequest
) -> None:
    need_java()
    url = request.getfixturevalue("connect") if master == "connect" else master
    engine = ["--engine", "spark", "--master", url, "--json"]
    done = chaffinch("deid", folder / "in", "-o", tmp_path / "out", *options(folder), *engine)
    assert done.returncode == 0, done.stderr
    wanted = {
        row["note_id"]: (row["patient_id"], row["text"]) for row in pq.read_table(folder / "plain.parquet").to_pylist()
    }
    number = len(wanted)
    assert msgspec.json.decode(done.stdout)["documents"] == {"in": number, "released": number, "withheld": 0}
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert {row["id"]: (row["patient"], row["text"]) for row in rows} == wanted
    assert {row["spans"] is None for row in rows} == {True}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.manifest.json"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--engine", "spark", "--vault", "v", "--key-file", "k"], "--vault does not go with --engine spark"),
        (["--engine", "spark", "--workers", "2"], "--workers does not go with --engine spark"),
        (["--master", "local[1]"], "--master is of --engine spark"),
        (["--engine", "spark"], "--engine spark reads a Parquet file"),
    ],
)
def test_flags_without_effect_are_refused(
    tmp_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.jsonl").write_text('{"text": "Seen today."}\n')
    output = tmp_path / "out.jsonl"
    assert main(["deid", str(tmp_path / "notes.jsonl"), "-o", str(output), "--model", "rules", *more]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
