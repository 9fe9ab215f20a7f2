"""Fifty clients at once: nothing but answers and 429, and flat memory. `make drill` does it for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.service import CLIENTS, put_load, serving

import chaffinch as cf
from tests.attacks.sizes import sized

pytestmark = pytest.mark.drill

SECONDS = sized(5.0, 60.0)
CANARY = "Quillfeather"
GROWTH = 40_000_000  # bytes: buffers of fifty connections, and Python's own pools


def test_fifty_clients_are_answered_or_told_to_come_back(tmp_path: Path) -> None:
    texts = [doc.text for doc in cf.deid.notes(patients=40, seed=3)]
    texts += [f"Seen by Dr. {CANARY}."]
    with serving(tmp_path) as server:
        put_load(server.port, texts, clients=CLIENTS, seconds=SECONDS / 2)
        memory = server.resident_bytes()
        load = put_load(server.port, texts, clients=CLIENTS, seconds=SECONDS)
        grown = server.resident_bytes() - memory
        print(f"\n{load.statuses[200]} answered, {load.statuses[429]} refused, p95 {load.percentile(0.95):.3f} s")  # noqa: T201  (the figure of the drill)
        errors = server.errors.read_text(encoding="utf-8")
    assert set(load.statuses) <= {200, 429}
    assert load.statuses[200] > CLIENTS
    assert grown < GROWTH
    assert CANARY not in errors
    assert errors.endswith("\nno token is asked\n")


def test_more_clients_than_may_wait_are_told_when_to_come_back(tmp_path: Path) -> None:
    texts = [doc.text for doc in cf.deid.notes(patients=10, seed=3)]
    with serving(tmp_path, "--model", "rules", "--max-waiting", "1") as server:
        load = put_load(server.port, texts, clients=CLIENTS, seconds=3)
    assert set(load.statuses) == {200, 429}
