"""Say what a word that identifies nobody is: drug, eponym, measurement, label or another of the clinical classes.

The first class that fits is taken, in that order:

- drug: on the shipped list of drugs and brands (single words), or ending as drug names do;
- eponym: with a capital, on the shipped lists of eponyms, no frequent word; what is unmarked is nobody's name;
- anatomy: on `ANATOMY` below, or a vertebra ("L4", "C5"): nothing is shipped for it;
- measurement: with a digit, on the shipped list of units, or a unit of `UNITS` below; doses, scores, times, settings;
- label or title: before a colon within the first words of a line or column, a section word with a capital or a
  credential of the shipped lists, or a title of a person;
- abbreviation: two to six capitals, letters with inner periods, no vowel, or on the list of acronyms in recipes/words,
  unless it is a frequent word (which "BP" is, and still counts in capitals);
- ordinary: everything else.

The detector protects words of the same lists: that it flags next to no listed drug says little about drugs on no list,
which count as ordinary words. The order and the shapes were chosen on dev notes.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.deid.writers.corpus import SMALL_WORDS
from chaffinch import Document, languages
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.languages import fold

CLASSES: Final = ("drug", "eponym", "anatomy", "measurement", "label or title", "abbreviation", "ordinary")
ANATOMY: Final = frozenset(
    "abdomen abdominal ankle anterior aorta aortic arm arms artery arteries atrial atrium axilla axillary back bile"
    " bladder bone bones bowel brachial brain breast breasts bronchus calf cardiac carotid cecum caecum cerebellum"
    " cerebral cervical cervix chest clavicle coccyx colon cornea coronary cranial disc distal duct ear ears elbow"
    " eye eyes face facial femoral femur fibula finger fingers foot feet forearm forehead frontal fundus gallbladder"
    " gastric groin hand hands head heart heel hepatic hip hips humerus iliac inferior inguinal intestine jaw joint"
    " kidney kidneys knee knees larynx lateral leg legs limb lip lips liver lobe lumbar lung lungs lymph mandible"
    " maxilla medial membrane mitral mouth muscle nail neck nerve node nodes nose occipital oral ovary pancreas"
    " parietal patella pelvic pelvis pericardium perineum peritoneum pharynx placenta posterior prostate proximal"
    " pulmonary pupil pupils radial radius rectum renal retina rib ribs sacral sacrum scalp scapula shoulder"
    " shoulders sigmoid sinus skin skull spinal spine spleen sternum stomach superior tarsal temporal tendon testis"
    " thigh thoracic thorax throat thumb thyroid tibia tibial toe toes tongue tonsil tooth teeth trachea tricuspid"
    " trunk ulna ulnar umbilical umbilicus ureter urethra uterus vagina valve vein ventricle ventricular vertebra"
    " vocal wrist".split()
)
UNITS: Final = frozenset(
    "g mg mcg ug kg ml l dl mm cm m mmhg mmol umol meq iu hz bpm kpa cmh2o hr hrs h min mins sec wk wks mo mos yr"
    " yrs tab tabs cap caps puff puffs drop drops unit units stat prn po iv im sc bd bid tds tid qid qds od nocte"
    " mane".split()
)
_TITLES: Final = frozenset("dr mr mrs ms miss mx prof professor sir sister nurse rev fr chief alhaji smt shri".split())
_VERTEBRA: Final = re.compile(r"[CTLS](?:1[0-2]|[1-9])(?:[-/][CTLS]?\d{1,2})?")
_SHORT: Final = re.compile(
    r"[A-Z][A-Za-z]?[A-Z]{0,4}s?|(?:[A-Za-z]\.){2,}[A-Za-z]?|[A-Za-z](?:/[A-Za-z])+|[b-df-hj-np-tv-xz]+"
)
_LABEL: Final = re.compile(r"(?:^|  |\t|\|)[ \t*#>-]*((?:[^\s:|]+ ){0,4}[^\s:|]+) ?:(?=\s|$)", re.MULTILINE)
_ACRONYMS: Final = Path(__file__).parents[3] / "recipes" / "words" / "acronyms.txt"


def classes_of(doc: Document) -> list[str]:
    """Return the clinical class of every token.

    >>> classes_of(Document.make("Allergies: aspirin 81 mg, Foley in situ, L4 disc, SOB"))[:6:2]
    ['label or title', 'drug', 'measurement']
    """
    labels = [match.span(1) for match in _LABEL.finditer(doc.text)]
    inside = {
        place
        for place, (start, end) in enumerate(doc.tokens.tolist())
        if any(first <= start and end <= last for first, last in labels)
    }
    return [_class_of(word, place in inside) for place, word in enumerate(doc.words())]


def _class_of(word: str, in_label: bool) -> str:
    plain = fold(word)
    if word_lists().is_drug(word):
        return "drug"
    frequent = word_lists().is_frequent(word)
    if word[:1].isupper() and plain in _eponyms() and not frequent:
        return "eponym"
    if plain in ANATOMY or _VERTEBRA.fullmatch(word):
        return "anatomy"
    if any(map(str.isdigit, word)) or plain in UNITS or plain in _folded("units"):
        return "measurement"
    section = word[:1].isupper() and word_lists().is_section(word)
    if in_label or section or plain.rstrip(".") in _TITLES or word in _as_written("credentials"):
        return "label or title"
    if len(word) > 1 and not frequent and (_SHORT.fullmatch(word) or plain in _acronyms()):
        return "abbreviation"
    if 1 < len(word) < 4 and word.isupper() and plain not in SMALL_WORDS and plain in _acronyms():
        return "abbreviation"
    return "ordinary"


@cache
def _as_written(name: str) -> frozenset[str]:
    return frozenset(languages.lines("en", f"protected/{name}"))


@cache
def _folded(name: str) -> frozenset[str]:
    return frozenset(map(fold, languages.lines("en", f"protected/{name}")))


@cache
def _eponyms() -> frozenset[str]:
    return _folded("eponyms") | _folded("surnames")


@cache
def _acronyms() -> frozenset[str]:
    lines = _ACRONYMS.read_text(encoding="utf-8").splitlines()
    return frozenset(fold(line) for line in lines if line and not line.startswith("#"))
