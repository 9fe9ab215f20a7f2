"""The command that starts the service."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from chaffinch.cli import main
from tests.web.process import WAIT, serving


def test_help_loads_no_engine() -> None:
    script = (
        "import sys; from chaffinch.cli import main; main(['serve', '--help'])\n"
        "print(sorted({'chaffinch.jobs', 'chaffinch.web.api', 'chaffinch.web.app', 'numba'}.intersection(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "--api-only" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_service_answers_and_ends_in_order(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path, "--workers", workers, "--model", "rules") as server:
        assert httpx.get(f"{server.url}/api/v1/health", timeout=WAIT).json()["status"] == "ok"
        assert httpx.get(f"{server.url}/api/v1/models", timeout=WAIT).status_code == 401
        (file,) = (tmp_path / "chaffinch").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert httpx.get(f"{server.url}/api/v1/models", headers=server.bearer, timeout=WAIT).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(WAIT) == 0
    printed = server.errors.read_text().splitlines()
    assert printed[1].startswith("token in ")
    assert "Traceback" not in server.errors.read_text()


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
