"""Embeddings kept on disk, in a folder that its owner alone may open: they tell what a text says."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError

Singles = NDArray[np.float32]


def private(folder: str | Path) -> Path:
    """The folder, made if need be, closed to all but its owner."""
    path = Path(folder)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"{path} can be opened by others, and embeddings tell what a text says; chmod 700 it first")
    return path


def kept(path: Path, shape: tuple[int, int]) -> Singles | None:
    """What is kept there, if it is whole."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return np.asarray(found) if found.shape == shape and found.dtype == np.float32 else None


def keep(path: Path | None, found: Singles) -> None:
    """Writes beside the place and renames, readable by its owner alone."""
    if path is None:
        return
    handle, beside = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as stream:
            np.save(stream, found)
        Path(beside).replace(path)
    finally:
        Path(beside).unlink(missing_ok=True)
