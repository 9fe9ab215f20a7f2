"""Whatever happens to a run with workers, every document is there once, with the bytes of a run that was left alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.attacks.sizes import sized
from tests.deid.releases import CANARY, note
from tests.jobs.copies import copied_workers
from tests.jobs.drill_job import release, small_batches
from tests.jobs.pool_detectors import POISON

__all__ = ["copied_workers"]

pytestmark = [pytest.mark.drill, pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")]

ROOT = Path(__file__).parents[2]
KINDS = ("worker", "parent", "disk", "poison", "vanished")


def write_notes(folder: Path, kind: str, draw: random.Random) -> None:
    folder.mkdir()
    for number in range(24):
        (folder / f"{number:02d}-p{number % 6}.txt").write_bytes(note(number).encode())
    if kind == "poison":
        (folder / f"{draw.randrange(24):02d}-p{draw.randrange(6)}-x-p3.txt").write_text(f"{CANARY} {POISON}")
    if kind == "vanished":  # a link whose file is gone when it is read
        (folder / "50-p3.txt").symlink_to(folder / "gone.txt")


def start(notes: Path, output: Path, *more: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.jobs.drill_job", str(notes), str(output), *more]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)


def children(parent: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def disturb(run: subprocess.Popen[bytes], kind: str, draw: random.Random) -> None:
    """Kill a worker or the parent, some time after the workers began, unless the run ends before."""
    while run.poll() is None and len(children(run.pid)) < 2:
        time.sleep(0.01)
    time.sleep(draw.random() * 1.5)
    victims = [run.pid] if kind == "parent" else children(run.pid)
    if run.poll() is None and victims:
        try:
            os.kill(draw.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.usefixtures("copied_workers")  # for the run that is left alone; the others are processes of their own
@pytest.mark.parametrize("number", range(sized(len(KINDS), 50)))
def test_a_disturbed_run_ends_with_the_bytes_of_an_undisturbed_one(number: int, tmp_path: Path) -> None:
    draw, kind = random.Random(number), KINDS[number % len(KINDS)]
    notes, whole, part = (tmp_path / name for name in ("notes", "whole", "part"))
    write_notes(notes, kind, draw)
    whole.mkdir()
    part.mkdir()
    run = start(notes, part / "out", *([str(draw.randrange(600, 6_000))] if kind == "disk" else []))
    if kind in ("worker", "parent"):
        disturb(run, kind, draw)
    code = run.wait(300)
    assert (code == 0) == (part / "out").exists(), "it is complete, or it is not there"
    left = b"".join(content(part).values())
    assert CANARY.encode() not in left
    assert POISON.encode() not in left
    if code:
        assert start(notes, part / "out").wait(300) == 0
    with small_batches():
        release(notes, whole / "out", resume=False)
    assert content(part) == content(whole)
    rows = [json.loads(line) for line in (part / "out.private" / "ids.jsonl").read_bytes().splitlines()]
    assert sorted(row["file"] for row in rows) == sorted(path.name for path in notes.iterdir()), "each once"
    lost = (part / "out.private" / "withheld.jsonl").exists()
    assert lost == (kind in ("poison", "vanished"))
