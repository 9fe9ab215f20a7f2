"""One run of `chaffinch`, or of a plain loop, in a process of its own: CPU seconds and peak memory, as JSON.

python -m benchmarks.scale.measure '{"command": ["deid", "notes.jsonl", …]}'
python -m benchmarks.scale.measure '{"loop": ["notes.jsonl", "out.jsonl", "rules", "secret"]}'
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from benchmarks._folder import ROOT


class Cost(msgspec.Struct, frozen=True):
    """CPU seconds of the parent and of its workers, seconds by the clock, and the peak memory of each, in MB."""

    parent: float
    workers: float
    wall: float
    parent_mb: float
    worker_mb: float

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of all processes."""
        return self.parent + self.workers


def measure(job: dict[str, Any]) -> Cost:
    """Return the cost of a job that runs in a new process."""
    command = [sys.executable, "-m", "benchmarks.scale.measure", msgspec.json.encode(job).decode()]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Cost)


def loop(notes: str, output: str, model: str, secret: str) -> None:
    """Release notes with as little around the work as can be: all in memory, one process, no ledger, no account."""
    from chaffinch.deid.detect.detector import detector
    from chaffinch.deid.keys import Secret
    from chaffinch.deid.policy import Policy
    from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
    from chaffinch.text.formats import read

    find = detector(None if model == "rules" else model, by_patient=True)
    settings = Release(Policy.read("i2b2-surrogate"), Secret.read(secret), counted_order="mdy")
    patients: dict[str, list[NumberedDocument]] = {}
    for number, doc in enumerate(read(notes), start=1):
        patients.setdefault(doc.patient, []).append(NumberedDocument(number, doc))
    batch: list[NumberedDocument] = []
    results: dict[int, bytes] = {}
    for documents in [*patients.values(), []]:
        batch += documents
        if len(batch) >= 64 or not documents:
            for numbered, result in zip(batch, release(batch, settings, find), strict=True):
                if isinstance(result, Released):
                    results[numbered.number] = msgspec.json.encode({"id": result.id, "text": result.text})
            batch = []
    Path(output).write_bytes(b"\n".join(results[number] for number in sorted(results)))


def write_notes(place: str, patients: int, each: int) -> None:
    """Write invented notes without their labels; the notes of patients are interleaved, as in a hospital's export."""
    from chaffinch.deid.synth.notes import notes
    from chaffinch.text.formats import write

    invented = [replace(doc, layers={}) for doc in notes(patients, each, seed=7)]
    write((doc for start in range(each) for doc in invented[start::each]), place)


def main(job: dict[str, Any]) -> None:
    """Run a job in this process, and print its cost."""
    began = time.monotonic()
    if "loop" in job:
        loop(*job["loop"])
    elif "write" in job:
        write_notes(*job["write"])
    else:
        _run_command(job["command"])
    wall = time.monotonic() - began
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = [round(use.ru_utime + use.ru_stime, 3) for use in (mine, theirs)]
    peak = [round(use.ru_maxrss / 1024, 1) for use in (mine, theirs)]
    sys.stdout.write(msgspec.json.encode(Cost(cpu[0], cpu[1], round(wall, 3), peak[0], peak[1])).decode() + "\n")


def _run_command(arguments: Sequence[str]) -> None:
    from chaffinch.cli import main as chaffinch

    code = chaffinch(list(arguments))
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1]))
