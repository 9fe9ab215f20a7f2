"""Small files and archives for the readers' tests."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def gz(path: Path, text: str, *, encoding: str = "utf-8") -> Path:
    """A gzip file with the text."""
    path.write_bytes(gzip.compress(text.encode(encoding)))
    return path


def tar_gz(path: Path, members: Mapping[str, str]) -> Path:
    """A compressed tar archive with the members."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def zipped(path: Path, members: Mapping[str, str]) -> Path:
    """A zip archive with the members."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path
