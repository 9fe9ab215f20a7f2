"""Read the notes of many hands: one file per writer, identifiers as {{TYPE|text}}, split by writer.

    python -m benchmarks.deid.writers.corpus      # checks marks and offsets of every note; prints counts, no text

Country comes from the writer's brief. A writer uses several styles and kinds of document, and nobody may open the test
notes to say which, so both are told from the note by rules that were written on train notes: `style_of` by shapes
(capitals, punctuation, columns, check boxes, small words), `kind_of_document` by words near the top.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from chaffinch import Document, Span
from chaffinch.errors import DataError

Split: TypeAlias = Literal["train", "dev", "test", "fresh"]

NOTES: Final = Path(__file__).parents[1] / "notes"
SPLITS: Final[tuple[Split, ...]] = ("train", "dev", "test", "fresh")
HELD_OUT: Final[frozenset[Split]] = frozenset({"test", "fresh"})  # nobody opens them; each scoring is logged
GUIDELINE_TYPES: Final = frozenset(
    "PATIENT DOCTOR USERNAME PROFESSION HOSPITAL ORGANIZATION STREET CITY STATE COUNTRY ZIP LOCATION-OTHER ROOM AGE"
    " DATE PHONE FAX EMAIL URL IPADDR SSN MEDICALRECORD HEALTHPLAN ACCOUNT LICENSE VEHICLE DEVICE BIOID IDNUM".split()
)
_HEADER = re.compile(r"^===== (w\d+-\d+)(?: (w\d+-p\d+))?\n", re.MULTILINE)
_MARK = re.compile(r"\{\{([A-Z-]+)\|([^{}|]+)\}\}")


@dataclass(frozen=True, slots=True)
class WriterBrief:
    """What a writer was asked for, as the table of BRIEFS.md has it."""

    writer: str
    country: str
    hospital: str
    specialities: str
    documents: str
    style: str
    printed_by: str


def read_notes(split: Split, folder: Path = NOTES) -> list[Document]:
    """Return the notes of a split with the layer "gold", the patient as group, and what is known of each as meta.

    The meta fields are writer, country, style and document.
    """
    briefs = read_briefs(folder)
    return [
        document
        for path in _files_of(folder / split)
        for name, patient, text in _split_notes(path)
        for document in [read_marks(text, name, patient, briefs[path.stem])]
    ]


def read_second_marks(split: Split, folder: Path = NOTES) -> dict[str, list[Span]]:
    """Return the spans that the second reader marked, by note, for the writers of a split."""
    writers = {path.stem for path in _files_of(folder / split)}
    return {
        name: _plain_and_spans(text)[1]
        for path in _files_of(folder / "second")
        if path.stem in writers
        for name, _, text in _split_notes(path)
    }


def read_marks(text: str, name: str, patient: str | None, brief: WriterBrief) -> Document:
    """Return the document of a text with marks.

    >>> brief = WriterBrief("w01", "Kenya", "", "", "", "", "paper")
    >>> note = read_marks("Dr {{DOCTOR|Penn}} came.", "w01-01", "w01-p1", brief)
    >>> note.text, note.layer("gold")[0].end, note.patient
    ('Dr Penn came.', 7, 'w01-p1')
    """
    plain, spans = _plain_and_spans(text)
    meta = {
        "writer": brief.writer,
        "country": brief.country,
        "style": style_of(plain, brief),
        "document": kind_of_document(plain),
    }
    return Document.make(plain, id=name, group=patient, meta=meta, layers={"gold": spans})


def read_briefs(folder: Path = NOTES) -> dict[str, WriterBrief]:
    """Return the briefs by writer; a country goes without its region."""
    lines = (folder / "BRIEFS.md").read_text(encoding="utf-8").splitlines()
    rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines if re.match(r"\| w\d+ \|", line))
    return {writer: WriterBrief(writer, place.partition(",")[0], *rest) for writer, place, *rest in rows}


def _files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("w*.txt"))


def _split_notes(path: Path) -> Iterator[tuple[str, str | None, str]]:
    """Yield the name, the patient and the marked text of every note of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        parts = _HEADER.split(file.read())
    if parts[0].strip():
        raise DataError(f"{path.name}: text before the first note; begin with a line '===== w01-01 w01-p1'")
    yield from zip(parts[1::3], parts[2::3], parts[3::3], strict=True)


def _plain_and_spans(text: str) -> tuple[str, list[Span]]:
    """Return the text without marks, and the spans of what was marked."""
    parts: list[str] = []
    spans: list[Span] = []
    size = last = 0
    for mark in _MARK.finditer(text):
        before, inside = text[last : mark.start()], mark[2]
        start = size + len(before)
        parts += [before, inside]
        spans.append(Span(start, start + len(inside), mark[1]))
        size, last = start + len(inside), mark.end()
    return "".join([*parts, text[last:]]), spans


# Styles. The limits were set on the notes of the train writers.

SMALL_WORDS = frozenset(
    "the a an of to in on at by for with from and or but that this which who is are was were be been has have had will"
    " would she he they it her his their our we i you your as not there when than".split()
)
_WORD = re.compile(r"[^\W\d_]+")
_BOX = re.compile(r"\[[ xX✓]\]|[☐☑☒]|\( \)|\([xX]\)")
_COLUMNS = re.compile(r"\S(?:\s*\||\t| {2,})\s*\S")
_MESSAGE = re.compile(
    r"(?mi)^\s*(?:from|to|sent|subject|cc|re)\s*:|^\s*\[?\d{1,2}[/.:]\d{2}\S* ?[^\n]{0,12}\]? ?[^\n:]{2,30}:"
)


def style_of(text: str, brief: WriterBrief) -> str:
    """Return how a note is written.

    >>> style_of("PATIENT ADMITTED WITH FEVER.", WriterBrief("w01", "Kenya", "", "", "", "", "paper"))
    'capitals'
    """
    words = _WORD.findall(text)
    letters = [sign for sign in text if sign.isalpha()]
    lines = [line for line in text.splitlines() if line.strip()]
    capitals = sum(map(str.isupper, letters)) / max(len(letters), 1)
    stops = len(re.findall(r"[.,;:!?](?=\s|$)", text)) / max(len(words), 1)
    if "scanned" in brief.printed_by or re.search(r"(?i)\bscan(?:ned)?\b.{0,60}quality", text[:200]):
        return "scanned"
    if stops < 0.02 and len(words) > 20:
        return "dictated"
    if capitals > 0.6:
        return "capitals"
    if capitals < 0.02:
        return "lower case"
    if len(_BOX.findall(text)) >= 4:
        return "check boxes"
    if len(_MESSAGE.findall(text)) >= 4:
        return "messages"
    if sum(len(_COLUMNS.findall(line)) >= 2 for line in lines) > 0.35 * len(lines):
        return "table"
    small = sum(word.lower() in SMALL_WORDS for word in words) / max(len(words), 1)
    return "prose" if small > 0.17 else "telegraphic"


# The first that is named near the top, then anywhere; more telling ones first.
_DOCUMENTS = {
    "discharge": r"discharge (?:summary|letter|note|notification)|\btto\b|discharge",
    "ambulance": r"ambulance|prehospital|paramedic|retrieval|medevac|transfer",
    "triage": r"triage",
    "anaesthesia": r"anaesthe|anesthe",
    "operation": r"operati(?:on|ve)|theatre|\bsurgical note|procedure note|dictation",
    "radiology": r"radiolog|\bct\b|\bmri\b|ultraso|x-?ray|imaging",
    "pathology and laboratory": r"patholog|histolog|cytolog|specimen|laborator|molecular",
    "cardiology": r"echocardio|\becho\b|cath(?:eter)? ?(?:lab|report)|angiogra|cardiolog",
    "genetics": r"genetic|pedigree",
    "psychiatry": r"psychiat|mental health|camhs|addiction|therapy progress|behaviou?ral",
    "social work": r"social work|safeguarding|\bmsw\b|social serv",
    "therapy": r"physio|occupational therap|speech|rehab|\bpt\b (?:visit|eval)",
    "dentistry": r"dental|tooth|oral surg|dentist",
    "maternity": r"labou?r|birth|antenatal|prenatal|newborn|obstet|midwi|lactation",
    "palliative care": r"hospice|palliative",
    "legal and insurance": r"insur|claim|court|police|solicitor|compensation|employer|disability|medico-?legal",
    "medication list": r"medication (?:list|chart|reconciliation)|chemotherapy|med rec",
    "message": r"telephone|phone call|portal|secure mess|whatsapp|e-?mail|subject:|call record",
    "nursing": r"nurs",
    "admission": r"admission|clerking|history (?:and|&) physical|\bh ?& ?p\b|intake",
    "letter": r"\bdear\b|letter|our ref|consult|referral",
    "progress": r"progress|ward round|clinic|visit|soap|review|follow",
}
_TOP = 400  # characters in which a document says what it is


@cache
def _document_patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _DOCUMENTS.items()]


def kind_of_document(text: str) -> str:
    """Return what sort of document a note is.

    >>> kind_of_document("ED TRIAGE NOTE\\nseen 0510")
    'triage'
    """
    for part in (text[:_TOP], text):
        for kind, pattern in _document_patterns():
            if pattern.search(part):
                return kind
    return "other"


def check_notes(folder: Path = NOTES) -> list[str]:
    """Return what is wrong with marks and offsets, by note and without a word of it; nothing if all is well."""
    faults: list[str] = []
    briefs, seen = read_briefs(folder), set[str]()
    for split in SPLITS:
        for path in _files_of(folder / split):
            for name, patient, text in _split_notes(path):
                faults += [f"{split} {name}: {fault}" for fault in _faults_of(text)]
                if name in seen or not name.startswith(path.stem) or path.stem not in briefs:
                    faults.append(f"{split} {name}: named twice, in another writer's file, or without a brief")
                if not patient or not patient.startswith(path.stem):
                    faults.append(f"{split} {name}: no patient of this writer")
                seen.add(name)
    return faults


def _faults_of(text: str) -> Iterator[str]:
    plain, spans = _plain_and_spans(text)
    if "{{" in plain or "}}" in plain:
        yield "a mark that is not closed, is nested or is empty"
    parts, last = [], 0
    for span in spans:
        inside = plain[span.start : span.end]
        parts += [plain[last : span.start], f"{{{{{span.label}|{inside}}}}}"]
        last = span.end
        if span.label not in GUIDELINE_TYPES:
            yield f"[{span.start}, {span.end}) has a type that the guideline lacks"
        if inside != inside.strip() or not any(map(str.isalnum, inside)):
            yield f"[{span.start}, {span.end}) has blanks at an edge, or neither letter nor digit"
    if "".join([*parts, plain[last:]]) != text:
        yield "marks put back at their offsets do not give the file again"


if __name__ == "__main__":
    problems = check_notes()
    for each in SPLITS:
        notes = read_notes(each)
        marks = sum(len(note.layer("gold")) for note in notes)
        writers = {note.meta["writer"] for note in notes}
        sys.stdout.write(f"{each}: {len(writers)} writers, {len(notes)} notes, {marks} marks\n")
    sys.stdout.write("\n".join([*problems, f"{len(problems)} faults\n"]))
    sys.exit(bool(problems))
