"""Whether every public corpus is read as its README counts it: documents, sentences, tokens, entities, relations.

The data folder has one folder per corpus. What is expected stands below, from the READMEs of those folders. Corpora in
formats of our own go through `chaffinch.text.formats.read`, which must also recognise the format by itself; the others
through `recipes.corpora`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import comb
from pathlib import Path
from typing import Any, Protocol

from recipes.corpora import READERS

from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.formats import find_format, read
from chaffinch.text.formats.walk import entries


class Options(Protocol):
    """What the benchmark needs of the command line; there is nothing to split or to seed here."""

    @property
    def data(self) -> Path | None: ...
    @property
    def only(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """Some files of a corpus, or those of its documents whose meta fields fit, and the counts that are stated."""

    corpus: str
    file: str  # "" for the whole folder
    format: str  # "" for a reader of `recipes.corpora`
    expected: Mapping[str, int]
    keep: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The corpus and what is chosen of it."""
        chosen = [self.file, *self.keep.values(), *([self.format] if self.file.startswith("meddocan") else [])]
        return " ".join([self.corpus, *filter(None, chosen)])

    def fits(self, doc: Document) -> bool:
        """Whether the document belongs to this part."""
        return all(doc.meta.get(key) == value for key, value in self.keep.items())


def run(options: Options) -> dict[str, Any]:
    """The counts found beside those expected, and how many are equal."""
    if options.data is None:
        raise ConfigError("give --data DIR or set CHAFFINCH_DATA")
    names = sorted({part.corpus for part in PARTS})
    if options.only is not None and options.only not in names:
        raise ConfigError(f"unknown corpus {options.only!r}; choose one of {', '.join(names)}")
    chosen = [part for part in PARTS if options.only in (None, part.corpus)]
    rows: list[dict[str, Any]] = []
    for _, parts in groupby(chosen, key=lambda part: (part.corpus, part.file, part.format)):
        rows += compare(list(parts), options.data)
    equal = sum(row["equal"] for row in rows)
    bar = {"id": "corpora_equal", "value": equal, "low": equal, "high": equal, "unit": "counts"}
    bar |= {"floor": len(rows), "goal": len(rows), "better": "higher"}
    return {"name": "corpora", "bars": [bar], "rows": rows}


def compare(parts: list[Part], data: Path) -> Iterator[dict[str, Any]]:
    """One row per count of parts that are read in one walk; where reading fails, the reason stands for the count."""
    first = parts[0]
    path = data / first.corpus / first.file
    if first.format:
        yield _row(first, "format", _EITHER if first.corpus == "meddocan" else first.format, _recognised(path))
    tallies = [Tally() for _ in parts]
    failure = ""
    try:
        for doc in read(path, format=first.format) if first.format else READERS[first.corpus](path):
            for part, tally in zip(parts, tallies, strict=True):
                if part.fits(doc):
                    tally.add(doc)
    except ChaffinchError as error:
        # Results are kept in the repository, so the message goes without its path.
        failure = error.message if isinstance(error, DataError) else str(error)
    for part, tally in zip(parts, tallies, strict=True):
        found = tally.counts()
        for what, expected in part.expected.items():
            yield _row(part, what, expected, failure or found[what])


def _row(part: Part, what: str, expected: int | str, found: int | str) -> dict[str, Any]:
    return {"corpus": part.name, "what": what, "expected": expected, "found": found, "equal": expected == found}


def _recognised(path: Path) -> str:
    """The name of the format that the files tell by themselves."""
    try:
        return find_format(entries(path), path).name
    except DataError as error:
        several = re.search(r"several formats \((.*?)\)", error.message)
        return " or ".join(sorted(several[1].split(", "))) if several else "none"


@dataclass(slots=True)
class Tally:
    """Everything there is to count in documents, by name.

    "words" are separated by white space, "pairs" are pairs of entities that begin in the same sentence.
    """

    found: Counter[str] = field(default_factory=Counter)
    texts: set[str] = field(default_factory=set)

    def add(self, doc: Document) -> None:
        """Counts one more document."""
        found, entities = self.found, doc.layers.get("gold", ())
        found["documents"] += 1
        found["documents with entities"] += bool(entities)
        found["documents with relations"] += bool(doc.relations)
        found["sentences"] += len(doc.sentences)
        found["tokens"] += len(doc.tokens)
        found["words"] += len(doc.text.split())
        for name, start, end in doc.meta.get("sections", ()):
            found[f"words in {name}"] += len(doc.text[start:end].split())
        found["entities"] += len(entities)
        found["relations"] += len(doc.relations)
        found["pairs"] += _pairs(doc)
        found["sources"] = max(found["sources"], sum(name.startswith("source:") for name in doc.layers))
        found.update(f"entity {span.label}" for span in entities)
        found.update(f"relation {relation.label}" for relation in doc.relations)
        self.texts.add(doc.text)

    def counts(self) -> Counter[str]:
        """The counts, with those that follow from others."""
        found = self.found.copy()
        found["documents without entities"] = found["documents"] - found["documents with entities"]
        found["documents without relations"] = found["documents"] - found["documents with relations"]
        found["pairs without relation"] = found["pairs"] - found["relations"]
        found["distinct texts"] = len(self.texts)
        found["relation labels"] = sum(name.startswith("relation ") for name in self.found)
        return found


def _pairs(doc: Document) -> int:
    starts = doc.sentences[:, 0].tolist()
    inside = Counter(bisect_right(starts, span.start) for span in doc.layers.get("gold", ()))
    return sum(comb(size, 2) for size in inside.values())


# What follows is from the READMEs of the data folders.

_EITHER = "brat or meddocan"  # the archives hold each note in both


def _part(corpus: str, names: str, *numbers: int, file: str = "", form: str = "", labels: str = "") -> Part:
    """A part from lists as a README has them: names and numbers, and labels ("DATE 422, PATIENT 385")."""
    by_label = (item.rsplit(" ", 1) for item in filter(None, labels.split(", ")))
    expected = dict(zip(names.split(", "), numbers, strict=True))
    return Part(corpus, file, form, expected | {f"entity {label}": int(number) for label, number in by_label})


def _where(part: Part, **fields: str) -> Part:
    """The part with only those documents whose meta fields fit."""
    return replace(part, keep=fields)


def _conll(file: str, names: str, *numbers: int, labels: str = "") -> Part:
    corpus, _, name = file.partition("/")
    return _part(corpus, names, *numbers, file=name, form="conll", labels=labels)


def _pubtator(file: str, names: str, *numbers: int) -> Part:
    corpus, _, name = file.partition("/")
    return _part(corpus, names, *numbers, file=name, form="pubtator")


def _weak(file: str, *numbers: int) -> Part:
    corpus, _, name = file.partition("/")
    return _part(corpus, "documents, tokens, entities, sources", *numbers, file=name, form="weak")


def _meddocan(form: str) -> Iterable[Part]:
    names = "documents, words, entities"
    archives = ("meddocan-train.tar.gz", "meddocan-dev.tar.gz")
    yield _part("meddocan", names, 500, 208_464, 11_333, file=archives[0], form=form, labels=_MEDDOCAN_TRAIN)
    yield _part("meddocan", names, 250, 110_601, 5_801, file=archives[1], form=form, labels=_MEDDOCAN_DEV)


def _ppi(corpus: str, train: tuple[int, ...], test: tuple[int, ...]) -> Iterable[Part]:
    names = "documents, sentences, entities, relation PPI, pairs"
    yield _where(_part("ppi-5corpora", names, *train), corpus=corpus, split="train")
    yield _where(_part("ppi-5corpora", names, *test), corpus=corpus, split="test")


def _ddi(names: str, *numbers: int, **fields: str) -> Part:
    return _where(_part("ddi2013", names, *numbers), **fields)


def _genia(split: str, documents: int, sentences: int) -> Part:
    return _where(_part("genia-treebank", "documents, sentences", documents, sentences), split=split)


_SENTENCES = "sentences, tokens"
_ENTITIES = "sentences, tokens, entities"
_ANATEM = "sentences, tokens, entity Anatomy"
_JNLPBA = "sentences, tokens, entities, entity protein, entity DNA, entity RNA, entity cell_type, entity cell_line"
_CONLL2003 = "documents, sentences, tokens, entities, entity LOC, entity PER, entity ORG, entity MISC"
_CDR = "documents, entity Chemical, entity Disease, relation CID"
_DDI = "relation effect, relation mechanism, relation advise, relation int, pairs without relation"
_JUDGED = "sentences, documents with relations, documents without relations"
_MEDDOCAN_TRAIN = (
    "TERRITORIO 1875, FECHAS 1231, EDAD_SUJETO_ASISTENCIA 1035, NOMBRE_SUJETO_ASISTENCIA 1009, "
    "NOMBRE_PERSONAL_SANITARIO 1000, SEXO_SUJETO_ASISTENCIA 925, CALLE 862, PAIS 713, ID_SUJETO_ASISTENCIA 567, "
    "ID_TITULACION_PERSONAL_SANITARIO 471, CORREO_ELECTRONICO 469, ID_ASEGURAMIENTO 391, HOSPITAL 255, "
    "FAMILIARES_SUJETO_ASISTENCIA 243, INSTITUCION 98, ID_CONTACTO_ASISTENCIAL 77, NUMERO_TELEFONO 58, PROFESION 24, "
    "NUMERO_FAX 15, OTROS_SUJETO_ASISTENCIA 9, CENTRO_SALUD 6"
)
_MEDDOCAN_DEV = "ID_EMPLEO_PERSONAL_SANITARIO 1"
_ACI = (
    "DATE 422, PATIENT 385, DOCTOR 267, HOSPITAL 167, CITY 124, PHONE 114, AGE 91, MEDICALRECORD 87, STATE 77, "
    "IDNUM 50, COUNTRY 48, PROFESSION 47, USERNAME 31, DEPARTMENT 28, STREET 21, ZIP 21, FAX 21"
)
_ASQ = (
    "GEOGRAPHIC_LOCATION 826, NAME 814, DATE 806, MEDICAL_RECORD_NUMBER 305, HEALTH_PLAN_BENEFICIARY_NUMBER 91, "
    "PHONE_NUMBER 45, SOCIAL_SECURITY_NUMBER 33, EMAIL_ADDRESS 31, UNIQUE_IDENTIFIER 14, ACCOUNT_NUMBER 4, "
    "FAX_NUMBER 2, CERTIFICATE_LICENSE_NUMBER 1, IP_ADDRESS 1"
)
_GRASCCO = (
    "DATE 694, NAME_PATIENT 166, NAME_DOCTOR 154, NAME_TITLE 139, LOCATION_CITY 59, ID 58, LOCATION_ZIP 38, "
    "LOCATION_HOSPITAL 36, LOCATION_STREET 36, AGE 23, PHI 1, CONTACT_PHONE 18, CONTACT_FAX 7, PROFESSION 2, "
    "LOCATION_ORGANIZATION 2, LOCATION_COUNTRY 2, NAME_RELATIVE 1, NAME_EXT 1, NAME_USERNAME 1, CONTACT_EMAIL 1"
)
_IEER = (
    "PERSON 1522, ORGANIZATION 957, LOCATION 906, DATE 537, CARDINAL 469, DURATION 246, MEASURE 191, MONEY 122, "
    "PERCENT 76, TIME 12"
)
_PRESIDIO = (
    "PERSON 857, STREET_ADDRESS 598, GPE 411, ORGANIZATION 250, CREDIT_CARD 136, DATE_TIME 119, TITLE 92, "
    "PHONE_NUMBER 92, AGE 74, NRP 55, EMAIL_ADDRESS 49, ZIP_CODE 37, DOMAIN_NAME 37, IBAN_CODE 21, US_SSN 16, "
    "IP_ADDRESS 14, US_DRIVER_LICENSE 5"
)
_CHUNKS = "NP 55081, VP 21467, PP 21281, ADVP 4227, SBAR 2207, ADJP 2060, PRT 556"
_WORDS = "documents, words, entities"
_QUERIES = "documents, documents with entities, documents without entities, words, entities"

PARTS: tuple[Part, ...] = (
    _part("aci-phi", _WORDS, 87, 42_960, 2_001, file="aci-phi-xml.tar.gz", form="i2b2", labels=_ACI),
    _conll("anatem/train.tsv.gz", _ANATEM, 5_861, 153_823, 6_946),
    _conll("anatem/devel.tsv.gz", _ANATEM, 2_118, 58_785, 2_139),
    _conll("anatem/test.tsv.gz", _ANATEM, 3_830, 99_976, 4_616),
    _part("asq-phi", _QUERIES, 1_051, 832, 219, 25_165, 2_973, labels=_ASQ),
    _pubtator("bc5cdr/CDR_TrainingSet.PubTator.txt.gz", _CDR, 500, 5_203, 4_182, 1_038),
    _pubtator("bc5cdr/CDR_DevelopmentSet.PubTator.txt.gz", _CDR, 500, 5_347, 4_244, 1_012),
    _pubtator("bc5cdr/CDR_TestSet.PubTator.txt.gz", _CDR, 500, 5_385, 4_424, 1_066),
    _conll("bc5cdr/iob/train.tsv.gz", _SENTENCES, 4_560, 118_170),
    _conll("bc5cdr/iob/devel.tsv.gz", _SENTENCES, 4_581, 117_453),
    _conll("bc5cdr/iob/test.tsv.gz", _SENTENCES, 4_797, 124_750),
    _weak("chmm-alt-weak/NCBI-Disease/train.json.gz", 592, 128_280, 5_105, 17),
    _weak("chmm-alt-weak/NCBI-Disease/valid.json.gz", 99, 22_455, 780, 17),
    _weak("chmm-alt-weak/NCBI-Disease/test.json.gz", 99, 22_901, 947, 17),
    _weak("chmm-alt-weak/BC5CDR/train.json.gz", 500, 107_480, 9_315, 30),
    _weak("chmm-alt-weak/BC5CDR/valid.json.gz", 500, 106_713, 9_508, 30),
    _weak("chmm-alt-weak/BC5CDR/test.json.gz", 500, 112_315, 9_719, 30),
    _weak("chmm-alt-weak/CoNLL/valid.json.gz", 3_250, 51_362, 5_942, 50),
    _weak("chmm-alt-weak/CoNLL/test.json.gz", 3_453, 46_435, 5_648, 50),
    _conll("conll2000/train.txt.gz", _ENTITIES, 8_936, 211_727, 106_978, labels=_CHUNKS),
    _conll("conll2000/test.txt.gz", _ENTITIES, 2_012, 47_377, 23_852),
    _conll("conll2003/eng.train.gz", _CONLL2003, 946, 14_041, 203_621, 23_499, 7_140, 6_600, 6_321, 3_438),
    _conll("conll2003/eng.testa.gz", _CONLL2003, 216, 3_250, 51_362, 5_942, 1_837, 1_842, 1_341, 922),
    _conll("conll2003/eng.testb.gz", _CONLL2003, 231, 3_453, 46_435, 5_648, 1_668, 1_617, 1_661, 702),
    _ddi("documents", 1_017),
    _ddi("documents, sentences", 572, 5_675, split="train", source="DrugBank"),
    _ddi("documents, sentences", 142, 1_301, split="train", source="MedLine"),
    _ddi("documents, sentences", 158, 973, split="test-ddi", source="DrugBank"),
    _ddi("documents, sentences", 33, 326, split="test-ddi", source="MedLine"),
    _ddi("documents, sentences", 54, 145, split="test-ner", source="DrugBank"),
    _ddi("documents, sentences", 58, 520, split="test-ner", source="MedLine"),
    _ddi(f"{_DDI}, relation ddi", 1_687, 1_319, 826, 188, 23_771, 1, split="train"),
    _ddi(_DDI, 360, 302, 221, 96, 4_737, split="test-ddi"),
    _part("eu-adr", _JUDGED, 355, 262, 93),
    _part("gad", f"{_JUDGED}, distinct texts", 5_330, 2_801, 2_529, 5_122),
    _part("genia-treebank", "documents, sentences, tokens", 1_999, 18_541, 486_489),
    _genia("train", 1_551, 14_326),
    _genia("dev", 148, 1_361),
    _genia("test", 150, 1_360),
    _genia("future_use", 150, 1_494),
    _part("grascco-phi", f"documents, {_ENTITIES}", 63, 2_872, 41_992, 1_439, labels=_GRASCCO),
    _part("ieer", "documents, words in TEXT, entities", 94, 55_678, 5_038, labels=_IEER),
    _conll("jnlpba/Genia4ERtask1.iob2.gz", _JNLPBA, 18_546, 492_551, 51_301, 30_269, 9_533, 951, 6_718, 3_830),
    _conll(
        "jnlpba/Genia4ERtask2.iob2.gz",
        f"documents, {_JNLPBA}",
        *(2_000, 18_546, 492_551, 51_301, 30_269, 9_533, 951, 6_718, 3_830),
    ),
    _conll("jnlpba/Genia4EReval1.iob2.gz", _JNLPBA, 3_856, 101_039, 8_662, 5_067, 1_056, 118, 1_921, 500),
    _conll(
        "jnlpba/Genia4EReval2.iob2.gz",
        f"documents, {_JNLPBA}",
        *(404, 3_856, 101_039, 8_662, 5_067, 1_056, 118, 1_921, 500),
    ),
    _part("loctext", "documents", 100, labels="protein 1393, location 558, organism 277, e_4 5"),
    _part("loctext", "relation protein-location, relation protein-organism", 550, 795),
    *_meddocan("brat"),
    *_meddocan("meddocan"),
    _weak("mit-restaurants-weak/valid.json.gz", 500, 4_591, 1_009, 16),
    _weak("mit-restaurants-weak/test.json.gz", 1_521, 14_256, 3_151, 16),
    _pubtator("ncbi-disease/NCBItrainset_corpus.txt.gz", "documents, entities", 593, 5_145),
    _pubtator("ncbi-disease/NCBIdevelopset_corpus.txt.gz", "documents, entities", 100, 787),
    _pubtator("ncbi-disease/NCBItestset_corpus.txt.gz", "documents, entities", 100, 960),
    _conll("ncbi-disease/iob/train.tsv.gz", _ENTITIES, 5_424, 135_701, 5_134),
    _conll("ncbi-disease/iob/devel.tsv.gz", _ENTITIES, 923, 23_969, 787),
    _conll("ncbi-disease/iob/test.tsv.gz", _ENTITIES, 940, 24_497, 960),
    _part("ppi-5corpora", "sentences, relations", 3_751, 4_187),
    *_ppi("AIMed", (180, 1_554, 3_407, 800, 4_680), (44, 389, 795, 191, 1_095)),
    *_ppi("BioInfer", (669, 894, 3_611, 2_109, 8_043), (167, 206, 810, 425, 1_623)),
    *_ppi("HPRD50", (34, 111, 320, 137, 363), (9, 34, 85, 26, 70)),
    *_ppi("IEPA", (160, 391, 907, 279, 681), (40, 95, 210, 56, 136)),
    *_ppi("LLL", (36, 65, 198, 134, 269), (9, 12, 41, 30, 61)),
    _where(_part("presidio-synth", _WORDS, 1_500, 21_473, 2_863, labels=_PRESIDIO), dataset="synth_dataset_v2"),
    _where(_part("presidio-synth", _WORDS, 2_109, 29_836, 4_055), dataset="generated_large"),
    _where(_part("semeval2010-task8", "sentences, relation labels", 8_000, 9), split="train"),
    _where(_part("semeval2010-task8", "sentences, relation labels", 2_717, 9), split="test"),
)
