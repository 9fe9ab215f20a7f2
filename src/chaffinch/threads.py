"""One thread for linear algebra, without leaving a trace in the environment.

The same numbers on any number of cores, and worker processes that do not compete for them: BLAS gets one thread, unless
the user says otherwise in the environment, or has loaded numpy before. BLAS reads the environment only when it is
loaded, so variables are set while that happens and removed again.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@contextmanager
def limit_blas() -> Iterator[None]:
    """Give BLAS libraries that are loaded in the block one thread; then restore the environment."""
    unset = [name for name in VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
        _load_blas_of_scipy()
    finally:
        for name in unset:
            os.environ.pop(name, None)


def limit_process() -> None:
    """Give all libraries of this process, and of those it starts, one thread, unless the user says otherwise."""
    for name in VARIABLES:
        os.environ.setdefault(name, "1")


def _load_blas_of_scipy() -> None:
    """Load the BLAS library that scipy brings, which would otherwise be loaded later, without the limit."""
    spec = importlib.util.find_spec("scipy")
    if spec is not None and spec.origin is not None:
        for library in sorted(Path(spec.origin).parents[1].glob("scipy.libs/*openblas*")):
            with suppress(OSError):  # another build of scipy: it shares a library, or reads the environment later
                ctypes.CDLL(str(library))
