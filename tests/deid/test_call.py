"""The one call from Python: it releases as the command line does."""

from __future__ import annotations

from pathlib import Path

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.errors import ConfigError


def test_the_call_releases_as_the_command_does(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in (("p1-a", "Seen by Dr. Penn on 3/4/1998."), ("p1-b", "Dr. Penn called 555-0134.")):
        (notes / f"{name}.txt").write_text(text)
    secret = cf.deid.Secret.new()
    secret.write(tmp_path / "secret")
    find = cf.deid.detector(by_patient=True)
    told = cf.deid.run(notes, tmp_path / "a", find, policy="i2b2-surrogate", secret=secret, group_by=r"^(p\d)")
    assert told["documents"] == {"in": 2, "released": 2, "withheld": 0, "excluded": 0}
    assert told["patients"] == 1
    arguments = ["deid", str(notes), "-o", str(tmp_path / "b"), "--model", "rules", "--policy", "i2b2-surrogate"]
    assert main([*arguments, "--secret-file", str(tmp_path / "secret"), "--group-by", r"^(p\d)", "-q"]) == 0
    made = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in "ab"]
    assert made[0] == made[1]
    assert not any(b"Penn" in content for content in made[0].values())


def test_a_table_of_patients_and_a_place_inside_the_input(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("Seen by Dr. Penn.")
    told = cf.deid.run(tmp_path / "n.txt", tmp_path / "out", cf.deid.detector(by_patient=True), group_by={"n": "p1"})
    assert told["patients"] == 1
    with pytest.raises(ConfigError, match="inside it"):
        cf.deid.run(tmp_path, tmp_path / "clean", cf.deid.detector())
