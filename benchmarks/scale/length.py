"""Length: CPU seconds per million characters of one note, from 10,000 to 5 million characters, by the fast voices.

python -m benchmarks.scale.length 100000        # one length, in this process, as JSON
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from benchmarks._folder import ROOT

LENGTHS = (10_000, 100_000, 1_000_000, 5_000_000)
_WARM = 20_000  # characters of the note that is read first, so that kernels are loaded
_LEAST = 200_000  # characters read at each length: short notes are read several times over, one after the other


def length_rows(_: Path, size: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the bar and rows of CPU seconds per million characters; `size` is the length of the longest note."""
    lengths = LENGTHS if size is None else (*(length for length in LENGTHS if length < size), size)
    rows = [_measure(length) for length in lengths]
    costs = [row["cpu_s_per_million_chars"] for row in rows]
    ratio = round(max(costs) / min(costs), 3)
    bar = {"id": "cpu_per_char_by_length", "value": ratio, "unit": "ratio", "floor": 1.5, "goal": 1.2}
    return [{**bar, "better": "lower"}], rows


def _measure(length: int) -> dict[str, Any]:
    """Return the row of a length, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.scale.length", str(length)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, check=True)
    row: dict[str, Any] = msgspec.json.decode(done.stdout.splitlines()[-1])
    return row


def read_notes(length: int) -> dict[str, Any]:
    """Return the cost of detection in notes of a length, made of invented notes one after the other."""
    from chaffinch.deid.detect.detector import detector
    from chaffinch.deid.synth.notes import notes
    from chaffinch.text import Document

    times = max(1, _LEAST // length)
    texts: list[str] = []
    for seed in count():
        texts += [doc.text for doc in notes(200, 5, seed=seed)]
        if sum(map(len, texts)) > times * length:
            break
    text = "\n".join(texts)
    find = detector("deid-en", by_patient=True, fast=True)
    cuts = [(0, _WARM), *((number * length, (number + 1) * length) for number in range(times))]
    warm, *docs = (Document.make(text[a:b], id=str(a), max_chars=length + _WARM) for a, b in cuts)
    list(find([warm]))
    began = time.process_time()
    for doc in docs:
        list(find([doc]))
    seconds = (time.process_time() - began) / (times * length) * 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "part": "length", "what": f"a note of {length:,} characters, --fast",
        "cpu_s_per_million_chars": round(seconds, 3), "peak_mb": round(peak),
    }  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(read_notes(int(sys.argv[1]))).decode() + "\n")
