"""Every example of README and docs runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pytest

from chaffinch.cli import _VERBS, main

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)  # a command, and what it prints
QUOTED = re.compile(r"'[^']*'")
OF_A_SHELL = re.compile(r"[^\w\s./,:=@+-]")


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


def call_of(line: str) -> list[str]:
    """Return the arguments of a line that only calls `chaffinch`; none if a shell has to read it."""
    if not line.startswith("chaffinch ") or OF_A_SHELL.search(QUOTED.sub("", line)):
        return []
    return shlex.split(line)[1:]


def verb_of(call: list[str]) -> str:
    """Return the verb of a call, with its sub-verb if it is a group."""
    return " ".join(call[: 2 if call and _VERBS[call[0]].group else 1])


@cache
def warm_up() -> None:
    """Release a note once in this process: its copies have modules, patterns and word lists at hand."""
    with TemporaryDirectory() as folder:
        note = Path(folder) / "note.txt"
        note.write_text("Seen by Dr. Penn in Boston on 3/4/1998.\n", encoding="utf-8")
        assert main(["deid", str(note), "-o", str(note.with_name("out.txt")), "--quiet"]) == 0


def run_copy(arguments: list[str], folder: Path) -> str:
    """Call the command in a copy of this process, which has loaded what it needs already."""
    warm_up()
    with TemporaryFile("w+", encoding="utf-8") as out, TemporaryFile("w+", encoding="utf-8") as err:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a copy has one thread; a command needs no other
            pid = os.fork()
        if not pid:
            code = 70
            try:
                os.chdir(folder)
                sys.stdout, sys.stderr = out, err
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                code = main(arguments)
            except BaseException:
                traceback.print_exc()
            finally:
                out.flush()
                err.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for stream in (out, err):
            stream.seek(0)
        assert code == 0, err.read()
        return out.read()


def run_line(line: str, folder: Path, known: set[str]) -> str:
    """Run a line of a page: as its reader does, or in a copy of this process if its verb has run like this before."""
    call = call_of(line)
    if call and verb_of(call) in known and hasattr(os, "fork"):
        return run_copy(call, folder)
    known.add(verb_of(call))
    return run(["bash", "-c", line], folder)


def assert_as_printed(expected: str, found: str) -> None:
    """Equal line by line; a line with just an ellipsis stands for any number of lines."""
    parts = [re.escape(part) for part in re.split(r"^…$\n", expected, flags=re.MULTILINE)]
    assert re.fullmatch(r"(?:.*\n)*?".join(parts), found), f"expected:\n{expected}\nfound:\n{found}"


# What README.md says runs as its reader runs it, each line in a process of its own.
VERBS_OF_README = {verb_of(call_of(line)) for line, _ in LINE.findall(README.read_text(encoding="utf-8"))} - {""}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, workplace: Path) -> None:
    script = ""
    known = set[str]() if page == README else VERBS_OF_README.copy()
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            script += body  # the blocks of a page go on from one another
            continue
        for line, expected in LINE.findall(body):
            assert_as_printed(expected, run_line(line, workplace, known))
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
