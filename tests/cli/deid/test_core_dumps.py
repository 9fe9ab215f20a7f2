"""Core dumps are off in `deid`."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

import pytest

from chaffinch.cli import main


def test_a_process_of_deid_writes_no_core_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda what, limit: limits.append((what, limit)))
    assert main(["deid", "secret", "new", str(tmp_path / "key"), "--quiet"]) == 0
    assert limits == [(resource.RLIMIT_CORE, (0, 0))]
    if sys.platform == "linux":
        assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
