"""Core dumps are off in `deid`: the memory of the process holds notes and keys, and a dump would write them to disk."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


def turn_off_core_dumps() -> None:
    """Forbid core dumps of this process and its children, where the system allows it.

    The limit stops files; a program that the kernel pipes dumps to is stopped by `prctl` only.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
