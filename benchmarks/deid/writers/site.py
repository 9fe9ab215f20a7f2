"""What a contextual reader gains that learns from reviewed notes of a site; each dev writer is a site, or several are.

    python -m benchmarks.deid.writers.site [--writers w05,w37+w38]

The reader learns from the notes of every second patient of a writer, as `deid adapt --adapt-reader` lets it; the notes
of the others are read with it and without it. Taggers stay as they are. Needs the extra neural, and half a CPU minute
for a writer. Three rows: the packaged model; the same where patterns always count, as in adapted models; and that with
its reader adapted. Precision of tokens at equal recall; under it, the difference from the row before, with its standard
error by resampling patients.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from benchmarks.deid.writers.corpus import read_notes
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.training.learn import dial_samples
from chaffinch.deid.training.reader import adapt_reader
from chaffinch.errors import ModelError
from chaffinch.kernels.lattice import Floats
from chaffinch.text import Document

RECALLS: Final = (0.95, 0.97, 0.98, 0.99)
ROWS: Final = ("packaged", "patterns count", "reader adapted")
DRAWS: Final = 100  # of patients, for standard errors

Samples: TypeAlias = dict[str, list[DialSample]]  # by patient


def halves(docs: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Return the notes of every second patient, and those of the others."""
    first = set(sorted({doc.patient for doc in docs})[1::2])
    return [doc for doc in docs if doc.patient in first], [doc for doc in docs if doc.patient not in first]


def read_site(model: Model, docs: Sequence[Document]) -> Iterator[tuple[str, Samples]]:
    """Yield the name of each row and its samples of the second half of a site's notes."""
    learnt, scored = halves(docs)
    strict = replace(model, overrules=False)
    if model.context is None:
        raise ModelError("has no contextual reader; nothing of it can be adapted")
    adapted = replace(strict, context=adapt_reader(model.context, learnt))
    for name, each in zip(ROWS, (model, strict, adapted), strict=True):
        samples: Samples = {}
        found = dial_samples(each, scored, each.labels, word_lists())
        for doc, sample in zip(scored, found, strict=True):
            samples.setdefault(doc.patient, []).append(sample)
        yield name, samples


def precision_at(samples: Sequence[DialSample], recalls: Sequence[float] = RECALLS) -> Floats:
    """Return the precision of tokens at each recall, the surest first; what rules flag is surer than all others."""
    whole = DialSample.join(samples)
    order = np.argsort(-np.where(whole.ruled, 2.0, whole.chances), kind="stable")
    hits = np.cumsum(whole.gold[order])
    last = np.searchsorted(hits, np.array(recalls) * hits[-1] - 1e-9)
    return np.asarray(hits[last] / (1.0 + last))


def compare(rows: Mapping[str, Samples], before: str, after: str) -> tuple[Floats, Floats]:
    """Return by how much precision differs between two rows, and the standard errors of that."""
    patients, rng, gaps = sorted(rows[before]), np.random.default_rng(0), []
    for _ in range(DRAWS):
        drawn = [patients[place] for place in rng.integers(len(patients), size=len(patients)).tolist()]
        first, second = (precision_at(samples_of(rows[name], drawn)) for name in (before, after))
        gaps.append(second - first)
    whole = [precision_at(samples_of(rows[name], patients)) for name in (before, after)]
    return whole[1] - whole[0], np.std(gaps, axis=0)


def samples_of(samples: Samples, patients: Sequence[str]) -> list[DialSample]:
    """Return the samples of all notes of these patients."""
    return [sample for patient in patients for sample in samples[patient]]


def main() -> None:
    """Reads the dev notes, adapts and scores writer by writer, writes rows."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--writers", help="names of dev writers with commas, of one site with +; each by default")
    notes, asked = read_notes("dev"), arguments.parse_args().writers
    model, rows = load("deid-en"), {name: Samples() for name in ROWS}
    for writer in asked.split(",") if asked else sorted({str(doc.meta["writer"]) for doc in notes}):
        docs = [doc for doc in notes if doc.meta["writer"] in writer.split("+")]
        site = dict(read_site(model, docs))
        gain, _ = compare(site, *ROWS[1:])
        sys.stdout.write(f"{writer}, {len(halves(docs)[0])} notes learnt from: {np.round(gain, 4)}\n")
        sys.stdout.flush()
        for name, samples in site.items():
            rows[name] |= samples
    sys.stdout.write(f"precision at recall {RECALLS}\n")
    for number, name in enumerate(ROWS):
        values = precision_at(samples_of(rows[name], sorted(rows[name])))
        sys.stdout.write(f"{name:15} {'        '.join(f'{value:.4f}' for value in values)}\n")
        if number:
            pairs = zip(*compare(rows, ROWS[number - 1], name), strict=True)
            sys.stdout.write(f"{'':15}{' '.join(f'{gap:+.4f} ±{error:.4f}' for gap, error in pairs)}\n")


if __name__ == "__main__":
    main()
