"""Spark beside the pool: CPU seconds on the same notes, JVM and Python workers counted, both without their start.

A job counts if another one of the session went just before it, so that Python workers and compiled code are warm.

python -m benchmarks.scale.spark NOTES SECRET    # a session: releases to each path that it reads, and prints the cost
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks._folder import ROOT
from benchmarks.scale.measure import measure
from benchmarks.scale.pool import A_PATIENT, NOTES, bar, command, write_notes

MASTER = "local[2]"
ROUNDS = 2  # of pool and Spark, in turn, after a first job of the session
_FEW = 200  # notes of the run whose cost is the pool's start: enough that both workers start


def spark_rows(folder: Path, size: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the bar and rows of warm Spark jobs beside runs of the pool; the outputs are compared, too."""
    if shutil.which("java") is None:
        return [], [{"part": "spark", "what": "absent: Java, of which Debian's default-jre-headless is enough"}]
    number = size or NOTES
    notes, few = (
        write_notes(folder, patients=count // A_PATIENT, each=A_PATIENT, form="parquet") for count in (number, _FEW)
    )
    start = measure({"command": command(few, 2)}).cpu
    pool, warm = [], []
    with _Session(notes, folder / "secret") as session:
        first = session.release(folder / "first")
        for turn in range(ROUNDS):
            place = folder / f"pool-{turn}.parquet"
            pool.append(measure({"command": command(notes, 2, place)}).cpu)
            session.release(folder / f"again-{turn}")  # Spark ends workers that wait for a minute
            warm.append(session.release(folder / f"spark-{turn}"))
            _compare(place, folder / f"spark-{turn}")
    ratios = [mine / (theirs - start) for mine, theirs in zip(warm, pool, strict=True)]
    whole = {"low": round(min(ratios), 3), "high": round(max(ratios), 3)}
    costs = {
        "pool, 2 workers, start included": pool, "pool's start": [start], f"Spark {MASTER}, start of the session":
        [session.start], "Spark, first job": [first], "Spark, warm": warm,
    }  # fmt: skip
    rows = [
        {"part": "spark", "what": what, "notes": number, "cpu_s": round(statistics.median(cost), 2)}
        for what, cost in costs.items()
    ]
    return [bar("spark_to_pool_cpu", statistics.median(ratios), "ratio", 1.6, 1.25) | whole], rows


def _compare(pool: Path, spark: Path) -> None:
    """Raise ValueError if the two tables do not have the same texts by id."""
    texts = [
        {row["id"]: row["text"] for row in pq.read_table(place, columns=["id", "text"]).to_pylist()}
        for place in (pool, spark)
    ]
    if texts[0] != texts[1]:
        raise ValueError("Spark and the pool released different texts")


class _Session:
    """A Spark session in a process of its own, which releases the same notes again and again."""

    def __init__(self, notes: Path, secret: Path) -> None:
        """Start the process, and wait until its session is open; `start` is what that cost."""
        arguments = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale.spark", str(notes), str(secret)]
        self._process = subprocess.Popen(
            arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.start = self._read()

    def __enter__(self) -> _Session:
        """Return self; the end of the block ends the process."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the session and its process."""
        self._process.communicate()

    def release(self, output: Path) -> float:
        """Release the notes to a new folder; return the CPU seconds of the job."""
        if self._process.stdin is None:
            raise AssertionError  # it is a pipe
        self._process.stdin.write(f"{output}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> float:
        """Return the cost that the process prints; ValueError if it ended."""
        if self._process.stdout is None:
            raise AssertionError  # as above
        return float(self._process.stdout.readline())


class TreeClock:
    """The CPU seconds of this process and of all that it started, directly or not; also of those that have ended.

    Spark's daemon forgets what its workers took, so each process is looked at once a second.
    """

    def __init__(self) -> None:
        """Start to look at the processes, in a thread."""
        self._ticks: dict[tuple[str, str], int] = {}  # by process and the time of its start
        threading.Thread(target=self._look_again_and_again, daemon=True).start()

    def read(self) -> float:
        """Return the CPU seconds until now."""
        self._look()
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _look_again_and_again(self) -> None:
        """Look at the processes once a second, for ever."""
        while True:
            time.sleep(1)
            self._look()

    def _look(self) -> None:
        """Keep the time that each process has taken so far."""
        fields: dict[str, list[str]] = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has just ended
                fields[entry.parent.name] = entry.read_text().rpartition(")")[2].split()
        waiting = [str(os.getpid())]
        while waiting:
            process = waiting.pop()
            mine = fields[process]
            self._ticks[process, mine[19]] = int(mine[11]) + int(mine[12])  # user and system, without children
            waiting += [child for child, theirs in fields.items() if theirs[1] == process]


def main(notes: str, secret: str) -> None:
    """Open a session; release the notes to each path on stdin; print the CPU seconds of each step."""
    from chaffinch.deid.policy import Policy
    from chaffinch.jobs import spark
    from chaffinch.jobs.spark.parquet import TableRelease, release_table
    from chaffinch.jobs.spark.session import open_session
    from chaffinch.jobs.work import DetectorSpec
    from chaffinch.text.columns import ColumnChoice

    policy, file = Policy.read("i2b2-surrogate"), spark.SecretFile.of(secret)
    clock, before = TreeClock(), 0.0
    session = open_session(MASTER)
    for output in chain([""], sys.stdin):
        if output:
            before = clock.read()
            places = (Path(notes), Path(output.strip()), ColumnChoice())
            release_table(session, TableRelease(*places, policy, DetectorSpec(None), file, spark.Settings(spans=False)))
        sys.stdout.write(f"{clock.read() - before:.2f}\n")
        sys.stdout.flush()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
