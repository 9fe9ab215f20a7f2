"""Reading plain text, tokenising and splitting sentences, beside spaCy's blank tokeniser and rule sentenciser.

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
        peer = _spacy(Path(folder))
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            ours.append(megabytes / _cpu_seconds(lambda: _read(Path(folder))))
            if peer is not None:
                theirs.append(megabytes / _cpu_seconds(peer))
    return {
        "set": name,
        "files": len(texts),
        "MB": round(megabytes, 2),
        "chaffinch MB/CPU s": round(statistics.median(ours), 2),
        "low": round(min(ours), 2),
        "high": round(max(ours), 2),
        "spaCy blank MB/CPU s": round(statistics.median(theirs), 2) if theirs else "absent: pip install spacy",
    }


def _repeated(texts: list[str], size: int) -> list[str]:
    """The notes over and over, until there are about `size` bytes."""
    once = sum(len(text.encode()) for text in texts)
    return texts * max(1, round(size / once))


def _read(folder: Path) -> None:
    for doc in read(folder, format="txt"):
        assert len(doc.tokens) >= len(doc.sentences)  # noqa: S101  (both were made)


def _spacy(folder: Path) -> Callable[[], None] | None:
    try:
        import spacy
    except ImportError:
        return None
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 20_000_000

    def work() -> None:
        for path in sorted(folder.iterdir()):
            pipeline(path.read_text(encoding="utf-8"))

    return work


def _cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
