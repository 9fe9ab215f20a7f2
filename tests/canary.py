"""The canary: a word planted in every document, which must turn up in outputs and nowhere else.

A verb adds itself by running its command through `Canary.run`. The command runs in a process of its own with
its home, temporary folder and caches inside a folder we search afterwards; a hook in that process notes every
file it opens for writing, so that a temporary file cannot hide by being removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_HOOK = """
import os, sys

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        os.write(3, os.fsencode(os.path.abspath(arguments[0])) + b"\\n")

sys.addaudithook(note)
"""


@dataclass(frozen=True)
class Canary:
    """A planted word and the folder in which commands run."""

    folder: Path
    word: str = "Quillfeather"

    def run(self, *arguments: str | Path, outputs: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
        """Runs `chaffinch` and checks that the word is in no stream, no message and no file but the outputs."""
        private = self.folder / "private"
        hook = private / "hook"
        hook.mkdir(parents=True, exist_ok=True)
        (hook / "sitecustomize.py").write_text(_HOOK)
        places = {name: str(private / name.lower()) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "CHAFFINCH_CACHE")}
        for place in places.values():
            Path(place).mkdir(exist_ok=True)
        _copy_kernels(Path(places["CHAFFINCH_CACHE"]))
        written = private / "written"
        with written.open("wb") as record:
            fd = record.fileno()
            done = subprocess.run(
                ["bash", "-c", f'exec "$@" 3>&{fd}', "run", sys.executable, "-m", "chaffinch", *map(str, arguments)],
                env={
                    **os.environ,
                    **places,
                    "PYTHONPATH": os.pathsep.join([str(hook), os.environ.get("PYTHONPATH", "")]),
                },
                capture_output=True,
                text=True,
                pass_fds=[fd],
                check=False,
            )
        _keep_kernels(Path(places["CHAFFINCH_CACHE"]))
        self._check_streams(done)
        self._check_files(private, written.read_text().splitlines(), outputs)
        return done

    def _check_streams(self, done: subprocess.CompletedProcess[str]) -> None:
        for name, stream in (("stdout", done.stdout), ("stderr", done.stderr)):
            assert self.word not in stream, f"the canary is on {name}"
            assert "Traceback" not in stream, stream

    def _check_files(self, private: Path, written: Sequence[str], outputs: Sequence[Path]) -> None:
        allowed = [*(output.parent.resolve() for output in outputs), (private / "chaffinch_cache").resolve()]
        for name in written:
            path = Path(name)
            harmless = name.startswith("/dev/") or path.suffix == ".pyc" or "__pycache__" in path.parts
            assert harmless or any(path.is_relative_to(place) for place in allowed), f"wrote {name}"
        for path in private.rglob("*"):
            if path.is_file() and path.parent.name != "hook":
                assert self.word.encode() not in path.read_bytes(), f"the canary is in {path}"
        for output in outputs:
            beside = [path for path in output.parent.iterdir() if path.name.startswith(".chaffinch-")]
            assert not beside, f"left behind: {beside}"


def _copy_kernels(cache: Path) -> None:
    """Copies what this test run has compiled to a new cache, so that a command need not compile it again."""
    warm = Path(os.environ["CHAFFINCH_CACHE"])
    for path in warm.rglob("*.nb?"):  # indexes and code; other tests may be adding some at this moment
        target = cache / path.relative_to(warm)
        if not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                shutil.copy2(path, target)


def _keep_kernels(cache: Path) -> None:
    """Adds kernels that a command compiled and this test run had not, so that no later command compiles them again."""
    warm = Path(os.environ["CHAFFINCH_CACHE"])
    for index in cache.rglob("*.nbi"):
        place = warm / index.relative_to(cache).parent
        if any(place.glob(f"{index.stem}.*")):
            continue  # the run has this kernel, perhaps with other code: numbers of code files are those of its index
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in [*index.parent.glob(f"{index.stem}.*.nbc"), index]:  # the index last: it says what is there
            part = place / f"{path.name}.part"
            shutil.copy2(path, part)
            part.replace(place / path.name)
