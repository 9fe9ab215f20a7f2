"""How a kernel is compiled: decorators over numba, and the private folder where machine code is kept.

This module imports numba, so it is itself imported by the first kernel call and never by `import chaffinch`.
With `NUMBA_DISABLE_JIT=1` both decorators leave the plain Python function, slow and equal.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("chaffinch.kernels")

# What LLVM may do to floating point. `contract` fuses a product into a sum, the same way in every row; `reorder`
# also lets a sum run in several lanes. Neither supposes that values are finite.
CONTRACT = frozenset({"contract"})
REORDER = frozenset({"contract", "reassoc"})
# Kernels allocate nothing: without numba's counting of references a row of an array costs nothing to name.
# They touch no Python object, so threads run side by side.
OPTIONS = {"error_model": "numpy", "_nrt": False, "nogil": True}


def cache_folder() -> Path | None:
    """The folder of compiled kernels, ours alone (mode 0700), or None if there can be none.

    It is named after a digest of the kernels' sources, so that an upgrade never meets old machine code.
    """
    home = os.environ.get("CHAFFINCH_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = (Path(home) if home else Path(shared).expanduser() / "chaffinch") / "kernels"
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return None
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        inner = folder / _digest()
        inner.mkdir(mode=0o700, exist_ok=True)
    except (OSError, RuntimeError):  # read-only disk, no home
        return None
    return inner if os.access(inner, os.W_OK | os.X_OK) else None


def helper(flags: frozenset[str] = CONTRACT) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions that only kernels call: compiled into each caller."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        compiled: Callable[P, R] = numba.njit(fastmath=set(flags), **OPTIONS)(function)
        return compiled

    return decorate


def kernel(flags: frozenset[str] = CONTRACT) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions called from Python: compiled at the first call, then kept on disk."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(FOLDER or "")
        try:
            compiled: Callable[P, R] = numba.njit(fastmath=set(flags), cache=FOLDER is not None, **OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = before
        return compiled

    return decorate


def _digest() -> str:
    sources = sorted(Path(__file__).parents[1].rglob("_*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _announce(folder: Path | None) -> None:
    if not numba.config.DISABLE_JIT and (folder is None or next(folder.rglob("*.nbi"), None) is None):
        kept = "kept for the next run" if folder else "not kept: no private cache folder could be made"
        log.warning("compiling kernels, once, for some seconds (%s)", kept)


FOLDER = None if numba.config.DISABLE_JIT else cache_folder()
_announce(FOLDER)
