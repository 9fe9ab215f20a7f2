"""Counts and times of requests, in Prometheus' text format: paths of routes and statuses, nothing of a request."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0)  # seconds; an answer to one note takes 5 to 25 ms
_KILOBYTE = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS


@dataclass(slots=True)
class Metrics:
    """What one process has answered since it started."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by route and status
    seconds: Counter[float] = field(default_factory=Counter)  # requests by the upper bound of their time
    total_seconds: float = 0.0
    documents: int = 0
    characters: int = 0

    def note_request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request by route and status, and its seconds in a histogram and a total."""
        self.requests[route, status] += 1
        self.seconds[next((bound for bound in _BOUNDS if seconds <= bound), float("inf"))] += 1
        self.total_seconds += seconds

    def note_documents(self, documents: int, characters: int) -> None:
        """Count processed documents and their characters."""
        self.documents += documents
        self.characters += characters

    def text(self) -> str:
        """Return requests, seconds, documents, characters, CPU and memory in Prometheus' text format."""
        lines = ["# TYPE chaffinch_requests_total counter"]
        for (route, status), times in sorted(self.requests.items()):
            lines.append(f'chaffinch_requests_total{{route="{route}",status="{status}"}} {times}')
        lines.append("# TYPE chaffinch_request_seconds histogram")
        sum_so_far = 0
        for bound in (*_BOUNDS, float("inf")):
            sum_so_far += self.seconds[bound]
            name = "+Inf" if bound == float("inf") else str(bound)
            lines.append(f'chaffinch_request_seconds_bucket{{le="{name}"}} {sum_so_far}')
        lines += [
            f"chaffinch_request_seconds_sum {self.total_seconds:.6f}",
            f"chaffinch_request_seconds_count {sum_so_far}",
        ]
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTE
        for name, kind, value in (
            ("documents_total", "counter", self.documents),
            ("characters_total", "counter", self.characters),
            ("cpu_seconds_total", "counter", round(time.process_time(), 3)),
            ("memory_peak_bytes", "gauge", most),
            ("process_id", "gauge", os.getpid()),
        ):
            lines += [f"# TYPE chaffinch_{name} {kind}", f"chaffinch_{name} {value}"]
        return "\n".join(lines) + "\n"
