"""What Spark says when a job fails, in our words: its own messages quote rows, paths and tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from chaffinch import errors
from chaffinch.errors import ChaffinchError, DataError

_OURS = re.compile(r"chaffinch\.errors\.(\w+): ([^\n]+)")  # at the end of the traceback of a Python worker
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")  # Spark's name of an error
_UNREADABLE = (
    "a file of the input cannot be read as Parquet with the columns of the others; mend it, or take it out of the "
    "folder"
)
_VANISHED = "a file of the input vanished while it was read; put it back, or run again without it"
_FULL = "a disk is full, of the output or of a worker; make room and run again"
_REASONS = {  # the first whose key is in the message
    "FILE_NOT_EXIST": _VANISHED,
    "FileNotFoundException": _VANISHED,
    "FAILED_READ_FILE": _UNREADABLE,
    "CANNOT_READ_FILE_FOOTER": _UNREADABLE,
    "CANNOT_MERGE_SCHEMAS": _UNREADABLE,
    "No space left on device": _FULL,
    "File too large": _FULL,
    "Python worker exited unexpectedly": (
        "the Python workers of a task ended each time; give them more memory, or Spark more attempts "
        "(spark.task.maxFailures, or local[N,4])"
    ),
}


@contextmanager
def explain_failures() -> Iterator[None]:
    """Raise a ChaffinchError in place of one that Spark raises within the block, whose message may quote rows.

    An error that a worker raised on purpose is raised again here.
    """
    try:
        yield
    except ChaffinchError:
        raise
    except Exception as error:  # Py4J, gRPC and Java each have errors of their own
        raise explain(error) from None


def explain(error: Exception) -> ChaffinchError:
    """Return the ChaffinchError for an error of Spark's: the one a worker raised, else by a known reason or a name."""
    message = str(error)
    ours = _OURS.findall(message)
    if ours:
        kind, text = ours[-1]
        raised = getattr(errors, kind, ChaffinchError)
        return raised(text) if raised in (errors.ConfigError, DataError) else ChaffinchError(text)
    for sign, reason in _REASONS.items():
        if sign in message:
            return DataError(f"{reason}; nothing was written")
    names = _CONDITION.findall(message)
    return ChaffinchError(
        f"Spark stopped the job ({names[-1] if names else type(error).__name__}); nothing was written"
    )
