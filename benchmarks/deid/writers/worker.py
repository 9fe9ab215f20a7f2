"""One process of the part "writers": `python -m benchmarks.deid.writers.worker JOB` reads a job as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from benchmarks.deid.writers.systems import SystemJob, run_system

if __name__ == "__main__":
    job = msgspec.json.decode(sys.argv[1], type=SystemJob)
    Path(job.out).write_bytes(msgspec.json.encode(run_system(job)))
