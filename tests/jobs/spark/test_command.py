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

from chaffinch.deid.keys import Secret
from chaffinch.deid.synth.notes import notes as invent
from tests.jobs.spark.conftest import need_java


def chaffinch(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own: a Spark session belongs to one."""
    command = [sys.executable, "-m", "chaffinch", *map(str, arguments)]
    environment = {key: value for key, value in os.environ.items() if key != "CHAFFINCH_SECRET"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("master", ["local[1]", "connect"])
def test_the_table_equals_that_of_the_plain_run(tmp_path: Path, master: str, request: pytest.FixtureRequest) -> None:
    need_java()
    url = request.getfixturevalue("connect") if master == "connect" else master
    docs = list(invent(40, seed=8))
    (tmp_path / "in").mkdir()
    for number, part in enumerate((docs[:25], docs[25:])):
        rows = {"note_id": [d.id for d in part], "patient_id": [d.group for d in part], "text": [d.text for d in part]}
        pq.write_table(pa.table(rows), tmp_path / "in" / f"part-{number}.parquet")
    Secret.new().write(tmp_path / "secret")
    shared = [
        "--model",
        "rules",
        "--policy",
        "i2b2-surrogate",
        "--secret-file",
        tmp_path / "secret",
        "--id-column",
        "note_id",
    ]
    plain = chaffinch("deid", tmp_path / "in", "-o", tmp_path / "plain.parquet", *shared, "--quiet")
    assert plain.returncode == 0, plain.stderr
    done = chaffinch(
        "deid", tmp_path / "in", "-o", tmp_path / "out", *shared, "--engine", "spark", "--master", url, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["documents"] == {"in": len(docs), "released": len(docs), "withheld": 0}
    wanted = {
        row["note_id"]: (row["patient_id"], row["text"])
        for row in pq.read_table(tmp_path / "plain.parquet").to_pylist()
    }
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert {row["id"]: (row["patient"], row["text"]) for row in rows} == wanted
    assert {row["spans"] is None for row in rows} == {True}
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("out")) == [
        "out",
        "out.manifest.json",
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--engine", "spark", "--vault", "v", "--key-file", "k"], "--vault does not go with --engine spark"),
        (["--engine", "spark", "--workers", "2"], "--workers does not go with --engine spark"),
        (["--master", "local[1]"], "--master is of --engine spark"),
        (["--engine", "spark"], "--engine spark reads a Parquet file"),
    ],
)
def test_flags_without_effect_are_refused(tmp_path: Path, more: list[str], message: str) -> None:
    (tmp_path / "notes.jsonl").write_text('{"text": "Seen today."}\n')
    done = chaffinch("deid", tmp_path / "notes.jsonl", "-o", tmp_path / "out.jsonl", "--model", "rules", *more)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
