"""Reading plain text, tokenising and splitting, beside spaCy's blank tokeniser with and without its sentenciser.

The notes are those of `examples/`, joined to the size of a usual note and repeated to two megabytes of files; with
a data folder, notes and abstracts of real corpora as well. The bar is the rate over all of them together.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
    """Megabytes per CPU second: one row per set of notes, and a bar over all of them together."""
    with tempfile.TemporaryDirectory() as folder:
        sets = [NoteSet.lay_out(name, texts, Path(folder)) for name, texts in _sets(options.data)]
        ours = [[one.seconds(_read) for one in sets] for _ in range(ROUNDS)]
        # The peer comes second, so that what it loads cannot slow us down.
        peers = {name: [[one.seconds(work) for one in sets] for _ in range(ROUNDS)] for name, work in _spacy().items()}
    megabytes = sum(one.megabytes for one in sets)
    rates = [megabytes / sum(seconds) for seconds in ours]
    bar = {
        "id": "text_mb_per_cpu_second",
        "value": round(statistics.median(rates), 2),
        "low": round(min(rates), 2),
        "high": round(max(rates), 2),
        "unit": "MB/CPU s",
        "floor": 5.0,
        "goal": 8.0,
        "better": "higher",
    }
    return {"bars": [bar], "rows": [one.row(n, {"chaffinch": ours, **peers}) for n, one in enumerate(sets)]}


@dataclass(frozen=True, slots=True)
class NoteSet:
    """A folder of plain text files."""

    name: str
    folder: Path
    files: int
    megabytes: float

    @classmethod
    def lay_out(cls, name: str, texts: list[str], above: Path) -> NoteSet:
        """The notes over and over as files, until there are about two megabytes."""
        folder = above / str(len(list(above.iterdir())))
        folder.mkdir()
        notes = [text.encode() for text in texts]
        notes *= max(1, round(2_000_000 / sum(map(len, notes))))
        for number, note in enumerate(notes):
            (folder / f"{number:05}.txt").write_bytes(note)
        return cls(name, folder, len(notes), sum(map(len, notes)) / 1e6)

    def seconds(self, work: Callable[[Path], None]) -> float:
        """CPU seconds of the work on this folder."""
        start = time.process_time()
        work(self.folder)
        return time.process_time() - start

    def row(self, number: int, measured: Mapping[str, list[list[float]]]) -> dict[str, Any]:
        """The median rate of each contestant on this set, which is the one of that number in every round."""
        rates = {who: [self.megabytes / seconds[number] for seconds in rounds] for who, rounds in measured.items()}
        spread = {"low": round(min(rates["chaffinch"]), 2), "high": round(max(rates["chaffinch"]), 2)}
        medians = {f"{who} MB/CPU s": round(statistics.median(found), 2) for who, found in rates.items()}
        absent = {} if len(rates) > 1 else {"spaCy": "absent: pip install spacy"}
        return {"set": self.name, "files": self.files, "MB": round(self.megabytes, 2), **spread, **medians, **absent}


def _sets(data: Path | None) -> Iterator[tuple[str, list[str]]]:
    examples = Path(__file__).resolve().parents[1] / "examples" / "notes"
    yield "example notes, joined", ["\n".join(doc.text for doc in read(examples, format="brat"))]
    for name, (path, form) in _CORPORA.items():
        if data is not None and (data / path).exists():
            yield name, [doc.text for doc in read(data / path, format=form)]


def _read(folder: Path) -> None:
    for doc in read(folder, format="txt"):
        assert len(doc.tokens) >= len(doc.sentences)  # noqa: S101  (both were made)


def _spacy() -> dict[str, Callable[[Path], None]]:
    """spaCy's blank English pipeline on the same files: its tokeniser alone, and with its rule sentenciser."""
    try:
        import spacy
    except ImportError:
        return {}
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")

    def work(step: Callable[[str], object]) -> Callable[[Path], None]:
        def walk(folder: Path) -> None:
            for path in sorted(folder.iterdir()):
                step(path.read_text(encoding="utf-8"))

        return walk

    return {"spaCy tokeniser": work(pipeline.make_doc), "spaCy with sentences": work(pipeline)}
