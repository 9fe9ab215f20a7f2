"""Reading plain text, tokenising and splitting, beside spaCy's blank tokeniser with and without its sentenciser.

The notes are those of `examples/`, joined to the size of a usual note and repeated to two megabytes of files; with
a data folder, notes and abstracts of real corpora as well. The bar is the slowest of them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from chaffinch.text.formats import read

ROUNDS = 7
_CORPORA = {
    "aci-phi (English notes)": ("aci-phi/aci-phi-xml.tar.gz", "i2b2"),
    "MEDDOCAN (Spanish notes)": ("meddocan/meddocan-dev.tar.gz", "brat"),
    "BC5CDR (abstracts)": ("bc5cdr/CDR_TestSet.PubTator.txt.gz", "pubtator"),
}


class Options(Protocol):
    """What `chaffinch bench` hands over."""

    @property
    def data(self) -> Path | None: ...


def run(options: Options) -> dict[str, Any]:
    """Megabytes per CPU second, one row per set of notes."""
    rows = [_measure(name, texts) for name, texts in _sets(options.data)]
    slowest = min(rows, key=lambda row: row["chaffinch MB/CPU s"])
    bar = {
        "id": "text_mb_per_cpu_second",
        "value": slowest["chaffinch MB/CPU s"],
        "low": slowest["low"],
        "high": slowest["high"],
        "unit": "MB/CPU s",
        "floor": 5.0,
        "goal": 8.0,
        "better": "higher",
    }
    return {"bars": [bar], "rows": rows}


def _sets(data: Path | None) -> Iterator[tuple[str, list[str]]]:
    examples = Path(__file__).resolve().parents[1] / "examples" / "notes"
    yield "example notes, joined", ["\n".join(doc.text for doc in read(examples, format="brat"))]
    for name, (path, form) in _CORPORA.items():
        if data is not None and (data / path).exists():
            yield name, [doc.text for doc in read(data / path, format=form)]


def _measure(name: str, texts: list[str]) -> dict[str, Any]:
    """Alternating rounds of both on the same files; the median of each, and the spread of ours."""
    texts = _repeated(texts, 2_000_000)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            (Path(folder) / f"{number:05}.txt").write_bytes(text.encode())
        contestants = {"chaffinch": lambda: _read(Path(folder)), **_spacy(Path(folder))}
        rates: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(ROUNDS):
            for contestant, work in contestants.items():
                rates[contestant].append(megabytes / _cpu_seconds(work))
    ours = rates.pop("chaffinch")
    return {
        "set": name,
        "files": len(texts),
        "MB": round(megabytes, 2),
        "chaffinch MB/CPU s": round(statistics.median(ours), 2),
        "low": round(min(ours), 2),
        "high": round(max(ours), 2),
        **{f"{name} MB/CPU s": round(statistics.median(found), 2) for name, found in rates.items()},
        **({} if rates else {"spaCy": "absent: pip install spacy"}),
    }


def _repeated(texts: list[str], size: int) -> list[str]:
    """The notes over and over, until there are about `size` bytes."""
    once = sum(len(text.encode()) for text in texts)
    return texts * max(1, round(size / once))


def _read(folder: Path) -> None:
    for doc in read(folder, format="txt"):
        assert len(doc.tokens) >= len(doc.sentences)  # noqa: S101  (both were made)


def _spacy(folder: Path) -> dict[str, Callable[[], None]]:
    """spaCy's blank English pipeline on the same files: its tokeniser alone, and with its rule sentenciser."""
    try:
        import spacy
    except ImportError:
        return {}
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")

    def work(step: Callable[[str], object]) -> Callable[[], None]:
        def walk() -> None:
            for path in sorted(folder.iterdir()):
                step(path.read_text(encoding="utf-8"))

        return walk

    return {"spaCy tokeniser": work(pipeline.make_doc), "spaCy with sentences": work(pipeline)}


def _cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
