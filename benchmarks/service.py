"""The service under load: 50 clients with a note each, beside a batch run over the same notes.

The bar is the CPU seconds of the server per character divided by those of a batch run (models loaded, kernels compiled
in both). Latencies and refusals are rows. All traffic is on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.request import Request, urlopen

import msgspec

CLIENTS = 50
SECONDS = 20.0
PATIENTS = 400  # five notes each; every client walks over all of them
_START = 120.0  # seconds that a server may take to start
_LONGEST_WAIT = 5.0  # seconds that a refused client waits at most


class Options(Protocol):
    """What `chaffinch bench` hands over."""

    @property
    def only(self) -> str | None: ...


@dataclass(slots=True)
class Load:
    """What clients met: statuses, the seconds of answered requests, and the characters of their notes."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    characters: int = 0

    def percentile(self, share: float) -> float:
        """The seconds within which this share of requests was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    port: int
    process: subprocess.Popen[bytes]
    errors: Path

    def metric(self, name: str) -> float:
        """A figure of the server's metrics."""
        request = Request(f"http://127.0.0.1:{self.port}/api/v1/metrics")
        with urlopen(request, timeout=60) as answer:  # noqa: S310  (as above)
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"chaffinch_{name} "))

    def resident_bytes(self) -> int:
        """The memory that the server holds now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Server]:
    """Start a server without a token on a free port, and end it afterwards."""
    errors = folder / "stderr"
    command = [sys.executable, "-m", "chaffinch", "serve", "--api-only", "--no-token", "--port", "0", *arguments]
    with (
        errors.open("wb") as stream,
        subprocess.Popen(command, stderr=stream, start_new_session=True) as process,
    ):
        try:
            yield Server(_wait_for_port(errors, process), process, errors)
        finally:
            process.terminate()
            process.wait()


def _wait_for_port(errors: Path, process: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + _START
    while time.monotonic() < until and process.poll() is None:
        for line in errors.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("serving http") and line.endswith("\n"):
                return int(line.rpartition(":")[2])
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start: {errors.read_text(encoding='utf-8')}")


def put_load(port: int, texts: Sequence[str], *, clients: int, seconds: float) -> Load:
    """Let clients send one note after another for some seconds; who is refused waits as it is told."""
    load = Load()
    bodies = [msgspec.json.encode({"documents": [{"text": text}]}) for text in texts]

    async def client(first: int, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        number = first
        while time.monotonic() < until:
            body = bodies[number % len(bodies)]
            head = (
                f"POST /api/v1/deidentify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            started = time.monotonic()
            writer.write(head.encode() + body)
            status, wait = await _read_answer(reader)
            load.statuses[status] += 1
            if status == 200:
                load.seconds.append(time.monotonic() - started)
                load.characters += len(texts[number % len(texts)])
                number += clients
            elif wait:
                await asyncio.sleep(min(wait, _LONGEST_WAIT))
        writer.close()

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(n, until) for n in range(clients)))

    asyncio.run(run())
    return load


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, float]:
    """The status of an answer and the seconds of its Retry-After; its body is read and dropped."""
    status = int((await reader.readline()).split()[1])
    size, wait = 0, 0.0
    while (line := (await reader.readline()).lower()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        size = int(value) if name == b"content-length" else size
        wait = float(value) if name == b"retry-after" else wait
    await reader.readexactly(size)
    return status, wait


# The same notes as one batch; it prints the CPU seconds of the run alone, after one that loads and compiles.
_BATCH = """
import sys, time, chaffinch as cf
from pathlib import Path
find = cf.deid.detector("deid-en", by_patient=True)
folder = Path(sys.argv[1])
cf.deid.run(folder / "few.jsonl", folder / "few-clean.jsonl", find)
before = time.process_time()
cf.deid.run(folder / "notes.jsonl", folder / "clean.jsonl", find)
print(time.process_time() - before)
"""


def batch_seconds(folder: Path) -> float:
    """The CPU seconds of a batch run over notes.jsonl of a folder."""
    command = [sys.executable, "-c", _BATCH, str(folder)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True, env=environment)
    return float(done.stdout.split()[-1])


def run(_: Options) -> dict[str, Any]:
    """CPU seconds per character beside a batch run, and latencies."""
    import chaffinch as cf

    notes = list(cf.deid.notes(patients=PATIENTS, seed=11))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cf.write([_apart(doc, number) for number, doc in enumerate(notes)], folder / "notes.jsonl")
        cf.write([_apart(doc, number) for number, doc in enumerate(notes[:20])], folder / "few.jsonl")
        characters = sum(len(doc.text) for doc in notes)
        batch = [batch_seconds(folder) / characters]
        with serving(folder) as server:
            put_load(server.port, [doc.text for doc in notes[:100]], clients=CLIENTS, seconds=2)
            before, memory = server.metric("cpu_seconds_total"), server.resident_bytes()
            load = put_load(server.port, [doc.text for doc in notes], clients=CLIENTS, seconds=SECONDS)
            used = (server.metric("cpu_seconds_total") - before) / load.characters
            grown = server.resident_bytes() - memory
        for path in folder.glob("clean*"):
            _remove(path)
        batch.append(batch_seconds(folder) / characters)
    ratios = sorted(used / each for each in batch)
    bar = {
        "id": "service_cpu_per_character_over_batch", "value": round(sum(ratios) / 2, 3), "low": round(ratios[0], 3),
        "high": round(ratios[1], 3), "unit": "times", "floor": 1.4, "goal": 1.2, "better": "lower",
    }  # fmt: skip
    row = {
        "clients": CLIENTS, "seconds": SECONDS, "answered": load.statuses[200], "refused (429)": load.statuses[429],
        "other statuses": load.statuses.total() - load.statuses[200] - load.statuses[429],
        "p50 ms": round(1000 * load.percentile(0.5)), "p95 ms": round(1000 * load.percentile(0.95)),
        "server CPU µs/character": round(1e6 * used, 2), "batch CPU µs/character": round(1e6 * min(batch), 2),
        "memory grown MB": round(grown / 1e6, 1),
    }  # fmt: skip
    return {"bars": [bar], "rows": [row]}


def _apart(doc: Any, number: int) -> Any:
    """A note with its own patient, as the clients send it."""
    import chaffinch as cf

    return cf.Document.make(doc.text, id=str(number))


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path) if path.is_dir() else path.unlink()
