"""Every example of README and docs runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with the examples in it, where a reader of the page would stand."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_as_printed(expected: str, found: str) -> None:
    """Equal line by line; a line with just an ellipsis stands for any number of lines."""
    parts = [re.escape(part) for part in re.split(r"^…$\n", expected, flags=re.MULTILINE)]
    assert re.fullmatch(r"(?:.*\n)*?".join(parts), found), f"expected:\n{expected}\nfound:\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, workplace: Path) -> None:
    script = ""
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            script += body  # the blocks of a page go on from one another
            continue
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
            assert_as_printed(expected, run(["bash", "-c", command], workplace))
    if script:
        run([sys.executable, "-W", "error", "-c", script], workplace)


def test_the_pages_name_no_missing_file() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_demo_runs(workplace: Path) -> None:
    printed = run(["sh", "examples/demo.sh", "out"], workplace)
    assert "report.html" in printed
    made = {"chunks.jsonl", "i2b2", "notes.cfm", "notes.jsonl", "report.html", "tagged.jsonl", "clean", "summary.html"}
    assert made <= {path.name for path in (workplace / "out").iterdir()}
    assert len(list((workplace / "out" / "clean").iterdir())) == 100
