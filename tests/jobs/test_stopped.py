"""Runs that were killed, met one another or found links in their places end in a message whose advice works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.deid.vault import Vault
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob, VaultTarget
from chaffinch.jobs.ledger import open_ledger
from chaffinch.jobs.release import run_release
from chaffinch.text import Document
from chaffinch.text.grouping import Grouping
from tests.attacks.sizes import sized
from tests.deid.releases import KEY, SECRET, detector, find, note

pytestmark = pytest.mark.drill

RELEASE = Release(Policy.read("i2b2-surrogate"), SECRET)
# Runs a release of argv[1] to argv[2], and kills itself at the n-th call (argv[3]) that changes the file system.
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.jobs.test_stopped import job
from chaffinch.jobs.release import run_release
left = int(sys.argv[3])
CALLS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"}
def watch(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[0], str) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if event in CALLS or (writes and "part" in arguments[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
released = job(Path(sys.argv[1]), Path(sys.argv[2]))
sys.addaudithook(watch)
run_release(released, resume=len(sys.argv) > 4)
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(6):
        (folder / f"p{number // 3}-SMITH_{number:02d}.txt").write_bytes(note(number).encode())
    return folder


def job(notes: Path, output: Path, **more: Any) -> ReleaseJob:
    source = open_source(notes, grouping=Grouping(r"^(p\d)-"))
    vault = VaultTarget(output.with_name("vault"), KEY)
    return ReleaseJob(source, output, RELEASE, detector(), **{"vault": vault, **more})


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "vault"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_killed_at_any_step_is_finished_or_complete_and_leaves_nothing(notes: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    run_release(job(notes, tmp_path / "whole" / "out"))
    whole = ["out", "out.manifest.json", "out.private", "vault"]
    assert names(tmp_path / "whole") == whole
    steps = 0
    for number in range(0, 200, sized(4, 1)):
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        child = _run_child(notes, folder / "out", number)
        if child == 0:
            break
        assert child == -signal.SIGKILL
        steps += 1
        left = folder / "out.part"
        if left.exists():
            assert all(b"SMITH" not in path.read_bytes() for path in left.rglob("*") if path.is_file()), number
        if (left / "ledger").exists() or not (folder / "out").exists():
            run_release(job(notes, folder / "out"), resume=True)
        else:  # it was killed when all was done
            with pytest.raises(ConfigError, match="is complete, so nothing is left to resume"):
                run_release(job(notes, folder / "out"), resume=True)
        assert names(folder) == whole, number
        assert content(folder) == content(tmp_path / "whole"), number
        assert len(Vault.open(folder / "vault", KEY)) == 6
    assert steps > sized(5, 30)


def _run_child(notes: Path, output: Path, number: int) -> int:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    arguments = [sys.executable, "-c", KILLED, str(notes), str(output), str(number)]
    return subprocess.run(arguments, cwd=root, env=environment, check=False).returncode


@pytest.mark.parametrize("name", ["out", "out.part", "out.manifest.json", "out.private.part", "vault", "vault.part"])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_the_place_of_an_output_is_refused_before_any_work(
    name: str, dangling: bool, notes: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / ("nowhere" if dangling else "elsewhere"))
    with pytest.raises(ConfigError, match=f"{name} is a symbolic link"):
        run_release(job(notes, tmp_path / "out"))
    assert names(tmp_path) == sorted(["elsewhere", name, "notes"])
    assert not list((tmp_path / "elsewhere").iterdir())
    (tmp_path / name).unlink()
    run_release(job(notes, tmp_path / "out"))


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_on_one_output_is_told_to_wait(resume: bool, notes: Path, tmp_path: Path) -> None:
    def meet(docs: Sequence[Document]) -> Any:
        with pytest.raises(ConfigError, match=r"another run is working in .*out.part; wait for it"):
            run_release(job(notes, tmp_path / "out"), resume=resume)
        return find(docs)

    first = job(notes, tmp_path / "out")
    run_release(ReleaseJob(first.source, first.output, RELEASE, detector(meet), vault=first.vault))
    assert names(tmp_path) == ["notes", "out", "out.manifest.json", "out.private", "vault"]


def test_a_run_that_began_before_another_ended_does_not_touch_its_output(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "chaffinch.jobs.release.open_ledger"

    def late(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(place, open_ledger)
        run_release(job(notes, tmp_path / "out"))
        return open_ledger(*arguments, **more)

    monkeypatch.setattr(place, late)
    with pytest.raises(Exception, match=r"not empty; choose another output|never overwritten"):
        run_release(job(notes, tmp_path / "out"))
    assert names(tmp_path) == ["notes", "out", "out.manifest.json", "out.private", "vault"]


def test_a_mark_is_believed_when_the_results_are_gone(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "job", "s") as ledger:
        ledger.put(1, "aa" * 20, b"result")
        ledger.mark("placing")
    (tmp_path / "job" / "results").unlink()
    for _ in range(2):
        with open_ledger(tmp_path / "job", "s", resume=True) as ledger:
            assert ledger.is_marked("placing")
