"""Compilation of kernels: decorators over numba, and the private cache folder of machine code.

This module imports numba, so it is itself imported by the first kernel call and never by `import chaffinch`.
With `NUMBA_DISABLE_JIT=1` both decorators return the plain Python function: slow, with equal results.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import ParamSpec, TypeVar

from chaffinch.threads import is_command, leave_out

# numba reads a file of settings, which hardly anybody has, with a package that takes 0.03 CPU seconds to load.
with leave_out("yaml", unless="numba" in sys.modules or Path(".numba_config.yaml").exists()):
    import numba

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("chaffinch.kernels")

# What LLVM may do to floating point. `contract` fuses a product and a sum, the same way in every row; `reassoc`
# also lets a sum run in several lanes. Neither assumes that values are finite.
CONTRACT = frozenset({"contract"})
REORDER = frozenset({"contract", "reassoc"})
# Kernels allocate nothing: without numba's reference counting, a slice of an array is free.
# They touch no Python object, so they release the GIL and threads run in parallel.
OPTIONS = {"error_model": "numpy", "_nrt": False, "nogil": True}

# Modules of numba, and packages that they look for: all of scipy.linalg, to learn whether there is a BLAS, and cffi.
_NOT_NEEDED = {"numba.np.arraymath": "scipy.linalg.cython_blas", "numba.core.typing.cffi_utils": "cffi"}


def cache_folder() -> Path | None:
    """Return the cache folder of compiled kernels, made with mode 0700; None unless it is private and writable.

    Its name is a digest of the kernels' sources, so that an upgrade never loads old machine code.
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
    """Return a decorator that compiles a function for calls from kernels only, with fast-math flags, not cached."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """Compile the function with numba, for calls from other kernels; without a cache on disk."""
        compiled: Callable[P, R] = numba.njit(fastmath=set(flags), **OPTIONS)(function)
        return compiled

    return decorate


def kernel(flags: frozenset[str] = CONTRACT) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that compiles a function, with these fast-math flags, at its first call; cached on disk."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """Compile the function with numba, cached on disk in the project's cache folder if there is one."""
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(FOLDER or "")
        try:
            compiled: Callable[P, R] = numba.njit(fastmath=set(flags), cache=FOLDER is not None, **OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = before
        return compiled

    return decorate


def _digest() -> str:
    """Return 16 hex digits of a hash of all kernel sources, files whose names begin with one underscore."""
    sources = sorted(Path(__file__).parents[1].rglob("_[!_]*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _announce(folder: Path | None) -> None:
    """Log a warning that kernels are about to be compiled, unless the folder has some or compilation is off."""
    if not numba.config.DISABLE_JIT and (folder is None or next(folder.rglob("*.nbi"), None) is None):
        outcome = "kept for the next run" if folder else "not kept: no private cache folder could be made"
        log.warning("compiling kernels, once, for some seconds (%s)", outcome)


def _import_lean() -> None:
    """Import modules of numba, hiding from each the optional package that it looks for, which makes the start faster.

    Each costs a short run some hundredths of a second.
    """
    for module, looked_for in _NOT_NEEDED.items():
        with leave_out(looked_for, unless=looked_for in sys.modules):
            import_module(module)


FOLDER = None if numba.config.DISABLE_JIT else cache_folder()
_announce(FOLDER)
if is_command() and not numba.config.DISABLE_JIT:
    _import_lean()
