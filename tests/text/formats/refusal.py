"""Bad input: the error says where and what to do, and never a word of the document."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from chaffinch.errors import DataError
from chaffinch.text.formats import ReadOptions, read

CANARY = "Zebedee"


def assert_refused(
    content: str | bytes, form: str, says: str, *, line: int | None, name: str = "bad", how: ReadOptions | None = None
) -> None:
    """Reading the content fails with a DataError that has the path, the line and those words, but no canary."""
    raw = content if isinstance(content, bytes) else content.encode()
    assert CANARY.encode() in raw, "a test of a leak needs something that could leak"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        with pytest.raises(DataError) as caught:
            list(read(path, format=form, how=how))
    error = caught.value
    assert (str(error.path), error.line) == (str(path), line)
    assert says in error.message
    assert CANARY not in str(error)
    assert error.__suppress_context__ or error.__context__ is None
