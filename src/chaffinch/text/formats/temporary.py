"""Temporary files and folders beside an output: held by a lock while a process writes them.

A process that was killed cannot remove its own. Whoever writes beside them next does: what no living process holds is
left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".chaffinch-"  # how their names begin
_YOUNG = 60.0  # seconds: a younger one may belong to a process that has not locked it yet


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder in a folder, and remove it at the end; remove also what killed processes left there."""
    remove_left_overs(parent)
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def hold(handle: int) -> None:
    """Lock an open temporary file until it is closed, so that no process removes it as a left-over."""
    _lock(handle)


def remove_left_overs(folder: Path) -> None:
    """Remove old temporary items that no process holds any more from a folder; errors of the system are ignored."""
    with suppress(OSError):
        for path in folder.glob(f"{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > _YOUNG and _is_left(path):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _is_left(path: Path) -> bool:
    """Tell whether no process holds a temporary file or folder; False without locks; OSError if it cannot be opened."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    try:
        return _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file, and tell whether that worked; not if another holds it, or the system has no locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
