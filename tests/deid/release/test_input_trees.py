"""Every item of an input is released, withheld or excluded, and listed: generated folders against an own count."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.jobs.deid import plan
from chaffinch.jobs.job import NotesInput
from chaffinch.jobs.release import dry_run, run_release
from chaffinch.text.formats import ReadOptions, archives
from tests.attacks.sizes import sized
from tests.deid.release.input_trees import KINDS, LOCKED, MAX_CHARS, Tree, make_tree, new_tree
from tests.deid.releases import detector

pytestmark = pytest.mark.drill


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is called LOCKED cannot be read, as if somebody else owned it; also for root."""
    scan = os.scandir

    def deny(path: Any) -> None:
        if not isinstance(path, int) and Path(os.fsdecode(path)).name.startswith(LOCKED):
            raise PermissionError(13, "Permission denied", path)

    def scandir(path: Any) -> Any:
        deny(path)
        return scan(path)

    def open_(path: Any, *how: Any) -> Any:
        deny(path)
        return builtins.open(path, *how)  # noqa: PTH123  (what is patched)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(archives, "open", open_, raising=False)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_bytes().splitlines()) if path.exists() else iter(())


def check(tree: Tree, output: Path) -> None:
    source = NotesInput(tree.root, reading=ReadOptions(max_chars=MAX_CHARS), follow=tree.follow)
    job = plan(source, output, Release(Policy.read("safe-harbor")), detector())
    counts = {
        "in": tree.seen, "released": tree.released, "withheld": len(tree.withheld), "excluded": len(tree.excluded)
    }  # fmt: skip
    assert dry_run(job)["documents"] == counts
    manifest = run_release(job)
    assert manifest["documents"] == counts
    private = Path(f"{output}.private")
    assert sorted(row["file"] for row in rows(private / "withheld.jsonl")) == sorted(tree.withheld)
    assert sorted(row["file"] for row in rows(private / "excluded.jsonl")) == sorted(tree.excluded)
    released = [path for path in output.rglob("*") if path.is_file()]
    assert len(released) == tree.released
    assert all(b"Penn" not in path.read_bytes() for path in released)
    assert sum(manifest["withheld"].values()) == len(tree.withheld)
    assert sum(manifest["excluded"].values()) == len(tree.excluded)
    assert len(list(rows(private / "documents.jsonl"))) == tree.seen


@pytest.mark.parametrize("part", range(8))
def test_every_item_of_a_generated_tree_is_counted_once_and_listed(part: int, tmp_path: Path) -> None:
    for number in range(sized(5, 125)):
        seed = part * 1000 + number
        check(make_tree(tmp_path / f"in{seed}", tmp_path / f"outside{seed}", seed), tmp_path / f"out{seed}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("follow", [False, True])
def test_every_kind_of_item_is_counted_once_and_listed(kind: Any, follow: bool, tmp_path: Path) -> None:
    tree = new_tree(tmp_path / "in", tmp_path / "outside", 0, follow=follow)
    for _ in range(4):
        kind(tree)
    check(tree, tmp_path / "out")
