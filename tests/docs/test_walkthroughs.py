"""The walk-throughs of docs/contributing.md work: a copy of the source gets their files, and their checks hold."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(
        r"^### (An? [^\n]+)\n(.*?)(?=^### |^## |\Z)", PAGE.partition("## How to add …")[2], re.MULTILINE | re.DOTALL
    )
)
BLOCK = re.compile(r"^```\w+ (check|src/\S+?)(?: after \"([^\n]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def add(root: Path, name: str, after: str, body: str) -> None:
    """Write a new file of a walk-through, or put lines after a line of a file that is there."""
    path = root / name
    if not after:
        assert not path.exists(), f"{name} is there already"
        path.parent.mkdir(exist_ok=True)
        path.write_text(body, encoding="utf-8")
        return
    before, line, rest = path.read_text(encoding="utf-8").partition(f"{after}\n")
    assert line, f"{name} does not have the line {after!r}"
    assert f"{after}\n" not in rest, f"{name} has the line {after!r} twice"
    path.write_text(before + line + body + rest, encoding="utf-8")


def test_there_are_six() -> None:
    assert len(SECTIONS) == 6


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_a_walkthrough_works(section: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    blocks = BLOCK.findall(SECTIONS[section])
    assert [name for name, _, _ in blocks].count("check") == 1
    (tmp_path / "work").mkdir()
    # Kernels would be compiled again for a copy of their source; toys are small enough to do without.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "NUMBA_DISABLE_JIT": "1"}
    for name, after, body in blocks:
        if name != "check":
            add(tmp_path, name, after, body)
            continue
        done = subprocess.run(
            [sys.executable, "-c", body],
            cwd=tmp_path / "work",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("section", SECTIONS)
def test_a_walkthrough_names_every_file_it_touches(section: str) -> None:
    named = re.findall(r"^\| `([^`]+)` \|", SECTIONS[section], re.MULTILINE)
    for name, _, _ in BLOCK.findall(SECTIONS[section]):
        path = name.removeprefix("src/chaffinch/")
        assert name == "check" or any(
            re.fullmatch(re.escape(row).replace("NAME", r"\w+").replace("CODE", r"\w+") + ".*", path) for row in named
        ), f"{name} is in no row of the table"
