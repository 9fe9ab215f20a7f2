"""Makes the packaged model `deid-en`: identifiers in English clinical notes.

    python -m recipes.deid_en --data DIR

Learnt from visit notes with invented identifiers (aci-phi), clinical queries (asq-phi), sentences of other people's
letters (presidio-synth), our own generated notes of six sites, and abstracts that hold no identifier. The dial is set
on sources that the tagger at hand did not learn from.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

import chaffinch
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.synth.personas import Half
from chaffinch.deid.training.learn import DIAL, SOURCE, DetectorLesson, learn
from chaffinch.text import Document, Span
from recipes.corpora import READERS

NAME = "deid-en"
PATIENTS, NOTES_EACH = 720, 4  # of generated notes
ABSTRACTS = {"bc5cdr/CDR_TrainingSet.PubTator.txt.gz": 150, "ncbi-disease/NCBItrainset_corpus.txt.gz": 100}
BY_RULE = "by rule"  # spans of the gold layer that a corpus does not mark and we add; no figure should count them
HIPAA_ONLY = ("asq-phi",)
UNLISTED = ("TITLE", "PREFIX", "NRP")  # what presidio-synth marks and i2b2 does not
NOTES = (
    "Trained on ACI-BENCH notes with invented identifiers (Yim et al. 2023, CC BY 4.0), synthetic clinical queries "
    "(J. Weatherhead, MIT), synthetic sentences (presidio-research, Microsoft, MIT), abstracts of BC5CDR and NCBI "
    "Disease without any labels, and notes invented by chaffinch "
    "synth. Nobody in them exists."
)
TITLES = (
    "ASSESSMENT AND PLAN", "PHYSICAL EXAMINATION", "Review of Systems:", "RESULTS", "Impression", "HPI:", "VITALS",
    "PAST HISTORY", "Medical", "CHIEF COMPLAINT", "Plan:", "INSTRUCTIONS", "Findings", "Data Reviewed", "Medications:",
)  # fmt: skip
LEADS = (
    "Pain: ", "Inspection: ", "Palpation: ", "Neuro: ", "Medical Reasoning: ", "Normal. ", "Testing: ", "1. ",
    "Patient reports ", "The patient has ", "Positive for ", "General: ", "Phone: none. ", "Her ", "His ",
)  # fmt: skip
_HOUSE = re.compile(r"(?i)hospital|clinic|center|centre|medical|health|infirmary|hospice|institute|campus|facility")
_TITLE = re.compile(r"(?i)(?:dr|drs|mr|mrs|ms|miss|prof|doctor|nurse|patient)\b\.?\s+(?=\S)")
_STREET = re.compile(r"(?i)^\d+\s.*\b(?:st|street|ave|avenue|rd|road|blvd|lane|ln|drive|dr|way|court|ct)\b")


def corpora(data: Path, *, names: Half = "all", seed: int = 0) -> dict[str, list[Document]]:
    """The documents to learn from, by corpus; every span of the layer "gold" has a label of i2b2 2014.

    `meta["source"]` names the corpus, or for generated notes the site. `names` is the half that generated notes draw
    on. Queries mark what HIPAA lists; their ages and lone years are added by rule, and stand in the layer "by rule" as
    well, so that no figure need count them. "plain" are abstracts without identifiers, as they are and in the layout of
    notes: the first of the training sets of BC5CDR and NCBI Disease.
    """
    abstracts = [doc for place, number in ABSTRACTS.items() for doc in islice(plain(data / place), number)]
    notes = synth.notes(PATIENTS, NOTES_EACH, seed=seed, names=names, style="varied")
    return {
        "aci-phi": list(_labelled(chaffinch.read(data / "aci-phi" / "aci-phi-xml.tar.gz"), "aci-phi")),
        "asq-phi": list(_labelled(READERS["asq-phi"](data / "asq-phi"), "asq-phi")),
        "presidio-synth": list(_sentences(data / "presidio-synth")),
        "synth": [replace(doc, meta={**doc.meta, **_of_site(doc)}) for doc in notes],
        "plain": [*abstracts, *in_layout(abstracts)],
    }


def _sentences(path: Path) -> Iterator[Document]:
    """The sentences of presidio-synth whose templates are filled; no clinical notes, so the dial is not set on them."""
    for doc in READERS["presidio-synth"](path):
        if "{" not in doc.text:
            spans = [_mapped(doc.text, span) for span in doc.layer("gold") if span.label not in UNLISTED]
            meta = {SOURCE: "presidio-synth", DIAL: False}
            yield Document.make(
                doc.text, id=f"presidio-synth-{doc.id}", group=doc.group, meta=meta, layers={"gold": spans}
            )


def _of_site(doc: Document) -> dict[str, object]:
    """The source of a generated note; the dial is set on the first of each patient, or they would outweigh all else."""
    return {SOURCE: f"site-{doc.meta['site']}", DIAL: doc.id.endswith("-01")}


def plain(path: Path) -> Iterator[Document]:
    """Abstracts of a PubTator file, with an empty layer "gold"."""
    for number, doc in enumerate(chaffinch.read(path, format="pubtator")):
        source = {SOURCE: f"abstracts-{number % 3}"}
        yield Document.make(doc.text, id=f"{path.name}-{doc.id}", meta=source, layers={"gold": []})


def in_layout(docs: Iterable[Document]) -> Iterator[Document]:
    """The sentences of abstracts in the layout of notes: under titles, in lists, and cut so that any word begins one.

    So words that identify nobody stand where names often do, with a capital.
    """
    for doc in docs:
        rng = np.random.default_rng(int(hashlib.sha256(doc.id.encode()).hexdigest()[:12], 16))
        lines = [f"{rng.choice(TITLES)}\n"]
        bullet = str(rng.choice(["", "", "- ", "* ", "• ", "#. "]))
        for number, sentence in enumerate(re.split(r"(?<=[.?!]) +(?=[A-Z])", doc.text.replace("\n", " ")), 1):
            words = sentence.split()
            start = int(rng.integers(len(words))) if rng.integers(2) and words else 0
            clause = " ".join(words[start : start + int(rng.integers(2, 25))])
            lead = str(rng.choice(LEADS)) if rng.integers(4) == 0 else ""
            lines.append(bullet.replace("#", str(number)) + lead + clause[:1].upper() + clause[1:])
            lines += [f"\n{rng.choice(TITLES)}\n"] if rng.integers(5) == 0 else []
        text = "\n".join(lines) if rng.integers(3) else " ".join(lines)
        yield Document.make(text, id=f"{doc.id} in layout", meta=doc.meta, layers={"gold": []})


def _labelled(docs: Iterable[Document], source: str) -> Iterator[Document]:
    for doc in docs:
        spans = [_mapped(doc.text, span) for span in doc.layer("gold")]
        more = [
            own
            for own in patterns.find(doc)
            if source in HIPAA_ONLY and _unmarked(own) and not any(map(own.overlaps, spans))
        ]
        layers = {"gold": [*spans, *more], BY_RULE: more} if source in HIPAA_ONLY else {"gold": spans}
        meta = {SOURCE: source}
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


def main() -> None:
    """Reads the corpora, learns, writes the file into the package."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    place = Path(chaffinch.__file__).parent / "packaged" / f"{NAME}.cfm"
    arguments.add_argument("--output", type=Path, default=place)
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    documents = [doc for own in corpora(Path(chosen.data)).values() for doc in own]
    learn(documents, lesson=DetectorLesson.for_invented_notes()).save(
        chosen.output, corpus="aci-phi, asq-phi, presidio-synth, generated notes, abstracts", notes=NOTES
    )


if __name__ == "__main__":
    main()
