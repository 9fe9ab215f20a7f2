"""Makes the packaged model `deid-en`: identifiers in English clinical notes.

    python -m recipes.deid_en --data DIR

Taggers learn from the notes of the train writers of the notes of many hands, as they are and with other identifiers in
other styles, from visit notes with invented identifiers (aci-phi), clinical queries (asq-phi), our own generated notes
of six sites, and abstracts that hold no identifier. A second stage learns what taggers of the other writers say of each
train writer's notes; the contextual reader learns as `recipes.reader_en` says, the glance as `recipes.glance_en` does.
Both dials, with the reader and without it, are set on the dev writers, whom no voice has seen. About 40 CPU minutes.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import chaffinch
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import WEIGHT, Dial
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.deid.detect.voices.glance import GlanceVoice
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.synth.personas import Half
from chaffinch.deid.training.learn import DIAL, SOURCE, Calibration, DetectorLesson, train_taggers
from chaffinch.deid.training.rewrite.edits import Marked
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.deid.training.rewrite.restyle import restyle
from chaffinch.deid.training.stacking import fit_stack, stack_sample
from chaffinch.errors import ModelError
from chaffinch.models.reader.glance.model import Model as Glance
from chaffinch.models.reader.model import Model as Reader
from chaffinch.models.reader.model import load as load_reader
from chaffinch.text import Document, Span
from recipes.abstracts import abstracts
from recipes.corpora import READERS

NAME = "deid-en"
PATIENTS, NOTES_EACH = 240, 4  # of generated notes; fewer than before, so that written ones weigh more
COPIES = 6  # of every written note, with other identifiers, some in another style
# No level is lower, with the reader and without it. On dev writers .035 with the reader gains .002 of recall and costs
# .022 of precision. Without it a thousandth of recall costs about .005 of precision above .1, and .008 below.
SAFE_LOWEST, FAST_LOWEST = 0.055, 0.1
# Of recall in the balanced setting without the reader: 2 gains .007 of recall and costs .010 of precision.
FAST_WEIGHT = 1.5
REDRAWN, RESTYLED = 0.75, 0.35  # shares of the copies
FOLDS = 3  # of train writers, for the second stage; each trains the taggers once more
BY_RULE = "by rule"  # spans of the gold layer that a corpus does not mark and we add; no figure should count them
HIPAA_ONLY = ("asq-phi",)
CORPUS = "notes of many hands (train writers), aci-phi, asq-phi, generated notes, abstracts"
NOTES = (
    "Trained on notes of chaffinch's own invented writers, ACI-BENCH notes with invented identifiers (Yim et al. 2023, "
    "CC BY 4.0), synthetic clinical queries (J. Weatherhead, MIT), abstracts of BC5CDR and NCBI Disease without any "
    "labels, and notes invented by chaffinch synth. Nobody in them exists. Reader from the first layers of "
    "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0; Microsoft, MIT); glance from its word vectors."
)
_HOUSE = re.compile(r"(?i)hospital|clinic|center|centre|medical|health|infirmary|hospice|institute|campus|facility")
_TITLE = re.compile(r"(?i)(?:dr|drs|mr|mrs|ms|miss|prof|doctor|nurse|patient)\b\.?\s+(?=\S)")
_STREET = re.compile(r"(?i)^\d+\s.*\b(?:st|street|ave|avenue|rd|road|blvd|lane|ln|drive|dr|way|court|ct)\b")


def corpora(
    data: Path, *, names: Half = "all", seed: int = 0, left_out: Collection[str] = ()
) -> dict[str, list[Document]]:
    """The documents to learn from, by corpus; every span of the layer "gold" has a label of i2b2 2014.

    `meta["source"]` names the corpus, or for generated notes the site. `names` is the half that generated notes draw
    on; `left_out` are train writers that are not learnt from. Queries mark what HIPAA lists; their ages and lone years
    are added by rule, and stand in the layer "by rule" as well, so that no figure need count them. "plain" are
    abstracts without identifiers, as they are and in the layout of notes: the first of the training sets of BC5CDR and
    NCBI Disease.
    """
    notes = synth.notes(PATIENTS, NOTES_EACH, seed=seed, names=names, style="varied")
    return {
        "aci-phi": list(_labelled(chaffinch.read(data / "aci-phi" / "aci-phi-xml.tar.gz"), "aci-phi")),
        "asq-phi": list(_labelled(READERS["asq-phi"](data / "asq-phi"), "asq-phi")),
        "synth": [_undialled(doc, f"site-{doc.meta['site']}") for doc in notes],
        "plain": abstracts(data),
        "writers": list(written(seed=seed, left_out=left_out)),
    }


def written(seed: int = 0, left_out: Collection[str] = ()) -> Iterator[Document]:
    """The notes of the train writers, and copies with other identifiers; the dial is set on the notes themselves."""
    from benchmarks.deid.writers.corpus import read_notes  # the benchmark imports this module

    notes = [doc for doc in read_notes("train") if doc.meta["writer"] not in left_out]
    rng = np.random.default_rng(seed)
    redraw = Redrawer.of(notes)
    for doc in notes:
        source = str(doc.meta["writer"])
        yield replace(doc, meta={SOURCE: source}, group=doc.patient)
        for number in range(COPIES):
            marked = redraw(doc, rng) if rng.random() < REDRAWN else Marked.of(doc)
            copy = restyle(marked, rng, RESTYLED).document(f"{doc.id} copy {number}")
            yield replace(_undialled(copy, source), group=doc.patient)


def _undialled(doc: Document, source: str) -> Document:
    """The document of a source, on which no dial is set."""
    return replace(doc, meta={**doc.meta, SOURCE: source, DIAL: False})


def _labelled(docs: Iterable[Document], source: str) -> Iterator[Document]:
    for doc in docs:
        spans = [_mapped(doc.text, span) for span in doc.layer("gold")]
        more = [
            own
            for own in patterns.find(doc)
            if source in HIPAA_ONLY and _unmarked(own) and not any(map(own.overlaps, spans))
        ]
        layers = {"gold": [*spans, *more], BY_RULE: more} if source in HIPAA_ONLY else {"gold": spans}
        meta = {SOURCE: source, DIAL: False}
        yield Document.make(doc.text, id=f"{source}-{doc.id}", group=doc.group, meta=meta, layers=layers)


def _unmarked(span: Span) -> bool:
    """Whether guidelines after HIPAA leave out what i2b2 marks: ages, and years that stand alone."""
    return span.label == "AGE" or (span.label == "DATE" and span.source in ("date-year", "date-month-year"))


def _mapped(text: str, span: Span) -> Span:
    """The span as i2b2 marks it: with its label, and without a title."""
    title = _TITLE.match(text[span.start : span.end])
    start = span.start + (title.end() if title and span.label == "NAME" else 0)
    return replace(span, start=start, label=_label(text, replace(span, start=start)))


def _label(text: str, span: Span) -> str:
    """The label of i2b2 2014; for labels that say no more than the category, by what is written."""
    name, words = kind_of(span.label).name, text[span.start : span.end]
    if name == "NAME":
        return "DOCTOR" if re.search(r"(?i)\b(?:dr|doctor)\.?\s*$", text[: span.start]) else "PATIENT"
    if name == "LOCATION":
        if _STREET.search(words):
            return "STREET"
        if _HOUSE.search(words):
            return "HOSPITAL"
        return "STATE" if any(word_lists().rate(word, "state") == "hi" for word in words.split()) else "CITY"
    return name


def stacked(taggers: Model, folds: Iterable[tuple[Model, Sequence[Document]]]) -> Model:
    """Return taggers with a second stage, learnt on notes that each fold's taggers did not learn from."""
    labels = taggers.labels
    samples = [stack_sample(model, notes, labels) for model, notes in folds]
    return replace(taggers, stack=fit_stack(samples, labels, len(taggers.taggers)))


def cross_fitted(data: Path, lesson: DetectorLesson) -> Iterator[tuple[Model, list[Document]]]:
    """Yield by fold the taggers of all other train writers, and the notes of the fold's writers."""
    from benchmarks.deid.writers.corpus import read_notes  # the benchmark imports this module

    notes = read_notes("train")
    writers = sorted({str(doc.meta["writer"]) for doc in notes})
    for fold in range(FOLDS):
        left_out = writers[fold::FOLDS]
        documents = [doc for corpus in corpora(data, left_out=left_out).values() for doc in corpus]
        model = train_taggers(documents, lesson=lesson)
        yield model, [doc for doc in notes if doc.meta["writer"] in left_out]


def calibrated(taggers: Model, reader: Reader, glance: Glance, notes: Sequence[Document]) -> Model:
    """Return taggers with a reader and a glance, and with dials set on notes of writers that none of them has seen.

    One dial is of all voices, the other of those without the reader.
    """
    whole = replace(taggers, context=ContextVoice(reader), checksum="", overrules=True)
    dial = _dial(whole, notes, SAFE_LOWEST, WEIGHT)
    return with_glance(replace(whole, dial=dial), glance, notes)


def with_glance(model: Model, glance: Glance, notes: Sequence[Document]) -> Model:
    """Return a model with a glance and, for that, another dial without its reader; with the reader nothing changes."""
    if model.context is None:
        raise ModelError("has no reader; its glance would have no dial of its own")
    glanced = replace(model, glance=GlanceVoice(glance), checksum="")
    dial = _dial(glanced.fast(), notes, FAST_LOWEST, FAST_WEIGHT)
    return replace(glanced, context=replace(model.context, fast_dial=dial))


def _dial(model: Model, notes: Sequence[Document], lowest: float, weight: float) -> Dial:
    """Return the dial of a model, set on notes of writers that it has not seen."""
    found = Calibration()
    found.add(model, [replace(doc, meta={SOURCE: doc.meta["writer"]}) for doc in notes], model.labels, word_lists())
    return found.dial(model.labels, lowest, weight)


def make_taggers(data: Path) -> Model:
    """Return the taggers of the packaged model and their second stage, without a dial."""
    lesson = DetectorLesson.for_invented_notes()
    documents = [doc for corpus in corpora(data).values() for doc in corpus]
    return stacked(train_taggers(documents, lesson=lesson), cross_fitted(data, lesson))


def main() -> None:
    """Reads the corpora, learns, writes the file into the package."""
    from benchmarks.deid.writers.corpus import read_notes  # the benchmark imports this module

    from recipes import glance_en, reader_en

    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    place = Path(chaffinch.__file__).parent / "packaged" / f"{NAME}.cfm"
    arguments.add_argument("--output", type=Path, default=place)
    arguments.add_argument("--reader", type=Path, help="take this reader in place of learning one")
    arguments.add_argument("--glance", type=Path, help="take this glance in place of learning one")
    arguments.add_argument("--taggers", type=Path, help="take the taggers of this model in place of learning them")
    arguments.add_argument(
        "--renew", type=Path, help="take this model, and change but its glance and the dial without reader"
    )
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    data = Path(chosen.data)
    glance = glance_en.load(chosen.glance) if chosen.glance else glance_en.make(data)
    if chosen.renew:
        model = with_glance(load(chosen.renew), glance, read_notes("dev"))
    else:
        taggers = load(chosen.taggers) if chosen.taggers else make_taggers(data)
        reader = load_reader(chosen.reader) if chosen.reader else reader_en.make(data)
        model = calibrated(taggers, reader, glance, read_notes("dev"))
    model.save(chosen.output, corpus=CORPUS, notes=NOTES)


if __name__ == "__main__":
    main()
