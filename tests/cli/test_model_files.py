"""Model files: as open as the umask says, and without the names of the files that were learnt from."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.features import embed
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text import Document, Span
from chaffinch.text.formats import write
from chaffinch.weak.aggregate import Aggregator
from tests.relations.made import documents as related
from tests.weak.test_aggregate import embedder
from tests.weak.training.made_notes import notes as voted

CANARY = "SMITH_JOHN_19620511"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small embedder in place of the packaged one, and few epochs."""
    monkeypatch.setattr(embed.Embedder, "load", lambda: embedder)
    monkeypatch.setattr(
        Aggregator, "settings",
        lambda self, seed=0: CHMM(epochs=2, rate=0.05) if self.name == "chmm" else self.config(),
    )  # fmt: skip


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def marked() -> list[Document]:
    return [
        Document.make(f"Dr. {name} gave aspirin.", id=name, layers={"gold": [Span(4, 4 + len(name), "DOCTOR")]})
        for name in ("Penn", "Lowe", "Hart", "Ford", "Cole", "Nash", "Webb", "Dunn", "Pike", "Shaw")
    ]


VERBS: dict[str, tuple[Callable[[], list[Document]], list[str]]] = {
    "train": (marked, ["train", "IN", "-o", "OUT"]),
    "train hmmdp": (marked, ["train", "IN", "-o", "OUT", "--method", "hmmdp"]),
    "train classhmm": (marked, ["train", "IN", "-o", "OUT", "--method", "classhmm"]),
    "train with all": (
        marked,
        ["train", "IN", "-o", "OUT", "--dev", "IN", "--set", "clusters=IN", "--set", "align=recall",
         "--group-by", "(.*)"],
    ),
    "deid adapt": (marked, ["deid", "adapt", "IN", "-o", "OUT", "--model", "none", "--gold", "IN"]),
    "deid adapt a model": (
        marked, ["deid", "adapt", "IN", "-o", "OUT", "--model", "START", "--gold", "IN", "--no-check"]
    ),
    "weak aggregate": (lambda: voted(0, 12), ["weak", "aggregate", "IN", "-o", "DOCS", "--save", "OUT"]),
    "weak aggregate chmm": (
        lambda: voted(0, 12), ["weak", "aggregate", "IN", "-o", "DOCS", "--save", "OUT", "--method", "chmm"]
    ),
    "weak aggregate fit": (
        lambda: voted(0, 12), ["weak", "aggregate", "IN", "-o", "DOCS", "--save", "OUT", "--fit", "IN"]
    ),
    "weak alternate": (lambda: voted(0, 12), ["weak", "alternate", "IN", "-o", "OUT", "--loops", "1"]),
    "relate train": (
        lambda: related(12),
        ["relate", "train", "IN", "-o", "OUT", "--relation", "localises", "--role", "Protein", "--role", "Location"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_no_model_tells_the_names_of_files(verb: str, tmp_path: Path) -> None:
    make, words = VERBS[verb]
    place = tmp_path / CANARY
    place.mkdir()
    source, start = place / f"{CANARY}.jsonl", place / f"{CANARY}.cfm"
    write(make(), source)
    if "START" in words:
        assert main(["train", str(source), "-o", str(start), "-q"]) == 0
    paths = {"IN": source, "OUT": tmp_path / "m.cfm", "DOCS": tmp_path / "docs.jsonl", "START": start}
    given = [word.replace("=IN", f"={source}") if "=IN" in word else str(paths.get(word, word)) for word in words]
    assert main([*given, "-q"]) == 0
    content = (tmp_path / "m.cfm").read_bytes()
    assert CANARY.encode() not in content
    assert b"SMITH" not in content
    assert str(tmp_path).encode() not in content
    assert bundle.load(tmp_path / "m.cfm").manifest.documents >= 10


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002])
def test_model_files_respect_the_umask(mask: int, tmp_path: Path) -> None:
    path = tmp_path / "m.cfm"
    for existing in (False, True):
        os.umask(mask)
        bundle.save(path, bundle.Manifest("test"), {"w": np.arange(3.0)}, {})
        os.umask(0o022)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, existing
    assert [file.name for file in tmp_path.iterdir()] == ["m.cfm"]


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_releases_respect_the_umask_but_for_private_lists(mask: int, tmp_path: Path) -> None:
    write([Document.make("Seen by Dr. Penn on 12/05/1998.", id="1")], tmp_path / "notes.jsonl")
    for name in ("secret", "key"):
        assert main(["deid", "secret", "new", str(tmp_path / name), "-q"]) == 0
    out = tmp_path / "out.jsonl"
    os.umask(mask)
    words = ["deid", str(tmp_path / "notes.jsonl"), "-o", str(out), "--secret-file", str(tmp_path / "secret")]
    words += ["--vault", str(tmp_path / "v"), "--key-file", str(tmp_path / "key"), "--html", str(tmp_path / "p.html")]
    assert main([*words, "-q"]) == 0
    os.umask(0o022)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    ordinary = {name for name in modes if name not in {"notes.jsonl", "secret", "key", "v", "out.jsonl.private"}}
    assert ordinary == {"out.jsonl", "out.jsonl.manifest.json", "p.html"}
    assert {name: modes[name] for name in ordinary} == dict.fromkeys(ordinary, 0o666 & ~mask)
    assert {modes[name] for name in ("secret", "key", "v")} == {0o600}
    assert modes["out.jsonl.private"] == 0o700
