"""One thread for linear algebra, without leaving a trace in the environment.

The same numbers on any number of cores, and worker processes that do not compete for them: BLAS gets one thread, unless
the user says otherwise in the environment, or has loaded numpy before. BLAS reads the environment only when it is
loaded, so variables are set while numpy is imported, which may be long after Chaffinch, and removed again.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@contextmanager
def limit_blas() -> Iterator[None]:
    """Give BLAS libraries that are loaded in the block one thread, unless the user set a number of threads.

    The environment is as before after the block.
    """
    unset = [name for name in VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
        _load_blas_of_scipy()
    finally:
        for name in unset:
            os.environ.pop(name, None)


def limit_blas_with_numpy() -> None:
    """Limit BLAS to one thread when numpy is imported first; if it is imported already, that of scipy now."""
    if "numpy" in sys.modules:
        with limit_blas():
            return
    sys.meta_path.insert(0, _NumpyFinder())


class _NumpyFinder(MetaPathFinder):
    """A finder of numpy, as the other finders find it, that limits BLAS while numpy is executed; once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of numpy by the other finders, with a loader that limits BLAS; None for other modules."""
        if fullname != "numpy":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        loader = None if spec is None else spec.loader
        if loader is None:
            return spec
        execute = loader.exec_module

        def execute_limited(module: ModuleType) -> None:
            """Execute numpy with one BLAS thread; later imports are none of this finder's business."""
            del loader.exec_module  # the limited one, of this loader alone
            with suppress(ValueError):
                sys.meta_path.remove(self)
            with limit_blas():
                execute(module)

        loader.exec_module = execute_limited  # type: ignore[method-assign]
        return spec


_command = False  # whether this process is a command of ours, and no other program's


def limit_process() -> None:
    """Give libraries one thread in this process, a command of ours, and in those it starts, unless told otherwise."""
    global _command  # noqa: PLW0603  (a fact of the process)
    _command = True
    for name in VARIABLES:
        os.environ.setdefault(name, "1")


def is_command() -> bool:
    """Return whether this process is a command of ours; only there may parts of other libraries be left out."""
    return _command


@contextmanager
def leave_out(package: str, *, unless: bool = False) -> Iterator[None]:
    """Let imports of a package that others only look for fail in the block; only in a command that lacks it so far."""
    if unless or package in sys.modules or not _command:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # Python's way to make an import fail
    try:
        yield
    finally:
        del sys.modules[package]


def _load_blas_of_scipy() -> None:
    """Load the BLAS library that scipy brings, so that the limit of now holds for it; nothing without scipy."""
    spec = find_spec("scipy")
    if spec is not None and spec.origin is not None:
        for library in sorted(Path(spec.origin).parents[1].glob("scipy.libs/*openblas*")):
            with suppress(OSError):  # another build of scipy: it shares a library, or reads the environment later
                ctypes.CDLL(str(library))
