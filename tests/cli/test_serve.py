"""The command that starts the service."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from chaffinch.cli import main

WAIT = 120  # seconds; models load and kernels compile on a busy computer


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start `chaffinch serve` on a free port, and yield its address and process; end it afterwards."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "chaffinch", "serve", "--api-only", "--port", "0", *arguments]
    with subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert first.startswith("serving http"), first
            yield first.split()[-1], process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(WAIT)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_service_answers_and_ends_in_order(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path, "--workers", workers) as (address, process):
        assert httpx.get(f"{address}/api/v1/health", timeout=WAIT).json()["status"] == "ok"
        assert httpx.get(f"{address}/api/v1/metrics", timeout=WAIT).status_code == 401
        (file,) = (tmp_path / "chaffinch").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        shown = {"authorization": f"Bearer {file.read_text().strip()}"}
        assert httpx.get(f"{address}/api/v1/metrics", headers=shown, timeout=WAIT).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert process.stderr is not None
        rest = process.stderr.read()
    assert "Traceback" not in rest
    assert rest.startswith("token in ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--api-only"),
        (["--api-only", "--host", "0.0.0.0"], "--tls-cert"),
        (["--api-only", "--host", "0.0.0.0", "--no-token"], "--tls-cert"),
        (["--api-only", "--tls-cert", "x.pem"], "--tls-key"),
        (["--api-only", "--no-token", "--token-file", "t"], "has no effect"),
    ],
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["serve", *arguments]) == 2
    assert words in capsys.readouterr().err
