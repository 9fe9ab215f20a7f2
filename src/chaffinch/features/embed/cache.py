"""A cache of embeddings in a folder that only its owner may open: text can be inferred from embeddings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError

Singles = NDArray[np.float32]


def private_folder(folder: str | Path) -> Path:
    """Return the folder, made if needed; raise ConfigError if others than its owner may open it."""
    path = Path(folder)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        raise ConfigError(
            f"{path} can be opened by other users, and text can be inferred from embeddings; chmod 700 it first"
        )
    return path


def read(path: Path, shape: tuple[int, int]) -> Singles | None:
    """Return the cached array; None if there is none, or not one of that shape."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return np.asarray(array) if array.shape == shape and array.dtype == np.float32 else None


def write(path: Path | None, array: Singles) -> None:
    """Write the array to a temporary file that only its owner may read, and rename it; do nothing without a path."""
    if path is None:
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as stream:
            np.save(stream, array)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
