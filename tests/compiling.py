"""Each kernel is compiled by one process of a test run: another that needs it meanwhile waits, and loads it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_compile = Dispatcher.compile
_held: set[str] = set()  # by this process; a kernel may need another one while it is compiled


def take_turns() -> None:
    """Let this process compile a kernel, or load it, only while no other process of the run is compiling it."""

    def compile_in_turn(self: Any, sig: Any) -> Any:
        """Compile as always, in turn if the result is kept on disk."""
        if not isinstance(self._cache, FunctionCache):
            return _compile(self, sig)
        with global_compiler_lock, _turn(f"{self.py_func.__module__}.{self.py_func.__qualname__}"):
            return _compile(self, sig)

    Dispatcher.compile = compile_in_turn  # type: ignore[method-assign]


@contextmanager
def _turn(kernel: str) -> Iterator[None]:
    """Hold the lock of a kernel in the block."""
    if kernel in _held:
        yield
        return
    with lock_file(kernel).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(kernel)
        try:
            yield
        finally:
            _held.remove(kernel)


def lock_file(kernel: str) -> Path:
    """Return the file whose lock is held while a kernel is compiled."""
    folder = Path(os.environ["CHAFFINCH_CACHE"]) / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / kernel
