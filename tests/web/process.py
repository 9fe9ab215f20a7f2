"""A real server in a process of its own, on a free port of this computer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WAIT = 900  # seconds after which something hangs; models load and kernels compile, and a busy computer takes minutes


@dataclass(frozen=True)
class Server:
    """The address of a server, its process, what it shows as token, and the file of its stderr."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    errors: Path

    @property
    def bearer(self) -> dict[str, str]:
        """The header that shows the token."""
        (file,) = (self.folder / "chaffinch").iterdir()
        return {"authorization": f"Bearer {file.read_text().strip()}"}

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Server]:
    """Start `chaffinch serve` on a free port, and end it afterwards."""
    errors = folder / "stderr"
    command = [sys.executable, "-X", "dev", "-m", "chaffinch", "serve", "--api-only", "--port", "0"]
    command += [*arguments, *([] if "--timeout" in arguments else ["--timeout", str(WAIT)])]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "PYTHONWARNINGS": "default"}
    with errors.open("wb") as stream, subprocess.Popen(command, env=environment, stderr=stream) as process:
        try:
            yield Server(_wait_for(errors, process), process, folder, errors)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(WAIT)


def _wait_for(errors: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address that the server prints."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until and process.poll() is None:
        for line in errors.read_text().splitlines(keepends=True):
            if line.startswith("serving http") and line.endswith("\n"):
                return line.split()[-1]
        time.sleep(0.1)
    raise AssertionError(errors.read_text())
