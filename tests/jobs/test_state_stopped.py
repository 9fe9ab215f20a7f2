"""A release with a state that is killed at any step leaves the old state whole, and finishes both or shows neither."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release import sealed_file
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.state import ReleaseState
from chaffinch.errors import ConfigError
from chaffinch.jobs.deid import plan
from chaffinch.jobs.job import NotesInput, Patients, ReleaseJob, SealedTargets, StateTarget
from chaffinch.jobs.release import run_release
from tests.attacks.sizes import sized
from tests.deid.releases import KEY, SECRET, detector, note

pytestmark = pytest.mark.drill

RELEASE = Release(Policy.read("i2b2-surrogate"), SECRET)
# Releases the notes of argv[1] to argv[2], and kills itself at the n-th call (argv[3]) that changes the file system.
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.jobs.test_state_stopped import cheap, job
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
cheap()
released = job(Path(sys.argv[1]), Path(sys.argv[2]))
sys.addaudithook(watch)
run_release(released)
"""


def cheap() -> None:
    """Make keys quickly."""
    sealed_file._COST, sealed_file._COSTS = 4, range(30)


def job(notes: Path, output: Path) -> ReleaseJob:
    target = StateTarget(output.with_name("state"), KEY)
    patients = Patients(r"^(p\d)-")
    return plan(NotesInput(notes), output, RELEASE, detector(), patients=patients, sealed=SealedTargets(state=target))


def write(folder: Path, *numbers: int) -> Path:
    folder.mkdir()
    for number in numbers:
        (folder / f"p{number % 2}-SMITH_{number:02d}.txt").write_bytes(note(number).encode())
    return folder


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "state"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_killed_at_any_step_leaves_a_whole_state_and_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_file, "_COST", 4)
    monkeypatch.setattr(sealed_file, "_COSTS", range(30))
    january, february = write(tmp_path / "jan", 0, 1, 2), write(tmp_path / "feb", 2, 3, 4, 5)
    base, whole = tmp_path / "base", tmp_path / "whole"
    base.mkdir()
    run_release(job(january, base / "one"))
    shutil.copytree(base, whole)
    run_release(job(february, whole / "out"))
    before, after = (list(ReleaseState.open(folder / "state", KEY)) for folder in (base, whole))
    assert (sum(len(one.notes) for one in before), sum(len(one.notes) for one in after)) == (3, 6)
    steps, seen = 0, set()
    for number in range(0, 200, sized(4, 1)):
        folder = tmp_path / f"killed{number}"
        shutil.copytree(base, folder)
        code = _run_child(february, folder / "out", number)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        steps += 1
        now = list(ReleaseState.open(folder / "state", KEY))
        assert now in (before, after), "whole, the old one or the new one"
        complete = (folder / "out").exists() and not (folder / "out.part" / "ledger").exists()
        seen.add((now == after, (folder / "out").exists()))
        assert now == before or (folder / "out").exists(), "the state never remembers notes that are not there"
        assert now == after or not complete, "an output that is finished is remembered"
        if complete:
            with pytest.raises(ConfigError, match="is complete, so nothing is left to resume"):
                run_release(job(february, folder / "out"), resume=True)
        else:
            if (folder / "state.part").exists():
                with pytest.raises(ConfigError, match="another run uses"):
                    run_release(job(february, folder / "other"))
                assert "other.part" not in names(folder)
            run_release(job(february, folder / "out"), resume=True)
        assert names(folder) == names(whole), number
        assert content(folder) == content(whole), number
        assert list(ReleaseState.open(folder / "state", KEY)) == after
    assert steps > sized(5, 30)
    assert seen >= {(False, False)} if sized(1, 2) == 1 else seen == {(False, False), (False, True), (True, True)}


def _run_child(notes: Path, output: Path, number: int) -> int:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    arguments = [sys.executable, "-c", KILLED, str(notes), str(output), str(number)]
    return subprocess.run(arguments, cwd=root, env=environment, check=False).returncode
