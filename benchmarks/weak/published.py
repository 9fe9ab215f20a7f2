"""The publication's system as published: its tables, what each choice does one at a time, and its sources.

The student is an encoder, MiniLM unless another folder is told, on one CPU. The publication's epochs are upper limits:
a run may take so many CPU minutes, from which follow the epochs of the student; dev labels stop it before if they can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.weak import rows
from benchmarks.weak.bench import SHORT, Base, Measured
from benchmarks.weak.data import ABSTRACTS, Sample
from benchmarks.weak.systems import FIRST, PAIR, TEXT, System
from chaffinch.weak.analysis import analyse
from chaffinch.weak.analysis.results import SourceFacts
from chaffinch.weak.votes import sources_of

RATES = {"NCBI-Disease": 5e-4, "BC5CDR": 1e-3, "CoNLL": 1e-5}  # of the published CHMM
BATCHES = {"NCBI-Disease": 64, "BC5CDR": 64, "CoNLL": 32}
FLOORS = {"NCBI-Disease": (0.81, 0.83), "BC5CDR": (0.856, 0.865)}
PATIENCE = 3  # epochs without a better F1 on dev documents
# CPU seconds that an epoch of the encoder takes for a token of text, its reading of the dev documents included: without
# bfloat16 12.6 CPU minutes for three epochs on the 128,280 tokens of NCBI-Disease (part "encoder").
TOKEN, QUICK_TOKEN = 0.002, 0.0007
MOST = 100, 10  # epochs of the first student, and loops after it, as published
LEAST = 4  # epochs of the first student before a loop is worth its minutes
FROZEN = {"epochs": LEAST, "patience": PATIENCE, "frozen": 3}  # of the encoder in part "ideas"


class Schedule(NamedTuple):
    """Upper limits of a run: epochs of the first student, loops after it, each for half as many epochs."""

    epochs: int
    loops: int

    @classmethod
    def of(cls, tokens: int, minutes: float, token: float) -> Schedule:
        """Half of what the minutes allow is for the first student, the rest for loops; of four epochs all are.

        `token` is how many CPU seconds an epoch takes for a token.

        >>> Schedule.of(128_280, 30, TOKEN), Schedule.of(128_280, 10, TOKEN), Schedule.of(128_280, 10, QUICK_TOKEN)
        (Schedule(epochs=4, loops=1), Schedule(epochs=2, loops=0), Schedule(epochs=4, loops=1))
        """
        all_epochs = max(int(60 * minutes / (token * max(tokens, 1))), 1)
        epochs = min(max(math.ceil(all_epochs / 2), min(all_epochs, LEAST)), MOST[0])
        return cls(epochs, min((all_epochs - epochs) // max(epochs // 2, 1), MOST[1]))


class Publication(Base):
    """The parts that are about the system as published."""

    def chosen(self) -> list[Sample]:
        """The user's corpus if there is one, else the publication's two of biomedical text."""
        if self.folder is not None:
            return [self.sample("own", folder=str(self.folder.resolve()))]
        return [self.sample(corpus) for corpus in ABSTRACTS]

    def published(self) -> None:
        """The publication's main table: CHMM, the student of its labels, and alternate training."""
        for sample in self.chosen():
            if not self.have(sample):
                continue
            self.consensus(sample)
            if not self.embedded(sample):
                continue
            self.measure(
                "CHMM", System("conditional", {**conditional(sample), "stopped": True}), sample, published="CHMM"
            )
            system = self.alternating(sample)
            name = f"of at most {system.fields['encoder']['epochs']} epochs and {system.fields['loops']} loops"
            found = self.measure(f"CHMM-ALT, {name}", system, sample, published="CHMM-ALT")
            self.measure("phase I: its first student, text alone", system, sample, way=FIRST, published="phase I")
            self.measure("its last student, text alone", system, sample, way=TEXT)
            if found is not None:
                self.loops_of("CHMM-ALT", found, sample)
                if sample.corpus in FLOORS:
                    self.f1_bar(f"published_{SHORT[sample.corpus]}", found, FLOORS[sample.corpus])

    def alternating(self, sample: Sample) -> System:
        """Alternate training with an encoder as student, as long as the CPU minutes of a run allow."""
        tokens = sum(len(doc.tokens) for doc in self.runner.documents(sample).train)
        quick = multiplies_bfloat16()
        plan = Schedule(*MOST) if self.full else Schedule.of(tokens, self.minutes, QUICK_TOKEN if quick else TOKEN)
        student = {"epochs": plan.epochs, "patience": PATIENCE, "bfloat16": quick}
        chmm = conditional(sample)
        return System("loops", {"aggregator": "CHMM", "chmm": chmm, "encoder": student, "loops": plan.loops})

    def ideas(self) -> None:
        """What might make more of few CPU minutes: the lowest layers frozen; a linear student beside the encoder."""
        for sample in self.chosen():
            if not self.have(sample) or not self.embedded(sample):
                continue
            student = {**FROZEN, "bfloat16": multiplies_bfloat16()}
            fields = {"aggregator": "CHMM", "chmm": conditional(sample), "encoder": student, "beside": "linear"}
            system, name = System("loops", {**fields, "loops": 0}), "three layers frozen"
            found = self.measure(name, system, sample)
            self.measure(f"{name}, its first student, text alone", system, sample, way=FIRST)
            self.measure(f"{name}, a linear student beside it", system, sample, way=PAIR)
            if found is not None:
                self.loops_of(name, found, sample)

    def loops_of(self, name: str, found: Measured, sample: Sample) -> None:
        """F1 on dev documents by loop, as rows, of the seed in the middle."""
        result = found.results[rows.middle(found.scores)]
        for loop, joined, student in result.turns:
            scores = {"aggregator F1": round(joined or 0.0, 4), "student F1": round(student or 0.0, 4)}
            self.add({"system": f"{name}, dev documents", "loop": loop, **scores}, sample)

    def gap(self) -> None:
        """What each choice does, one at a time: students on better labels, then each part of the published system.

        The linear student takes the encoder's place, for it is a hundred times faster; one loop, one seed.
        """
        for sample in self.chosen():
            if not self.have(sample) or not self.embedded(sample):
                continue
            self.measure(
                "student of all gold, text alone", System("supervised", {"config": "Cascade"}), sample, way=TEXT
            )
            name = "student of faultless labels (best consensus), text alone"
            self.measure(name, System("consensual"), sample, way=TEXT)
            base = System("loops", {"aggregator": "CHMM", "chmm": conditional(sample), "loops": 1})
            first = self.measure("CHMM-ALT as published, linear student", base, sample, seeds=1)
            self.measure("its first student, text alone", base, sample, way=FIRST, seeds=1)
            for what, changed in factors(sample).items():
                own = {name: value for name, value in changed.items() if name != "sources"}
                other = self.sample(sample.corpus, sources=changed.get("sources", "recommended"), folder=sample.folder)
                system = System("loops", {**base.fields, **own})
                found = self.measure(what, system, other, seeds=1)
                self.less(f"{what}: difference", found, first, sample)

    def sources(self) -> None:
        """Each source alone on the documents to label, beside what the aggregator thinks of it without gold."""
        for sample in self.chosen():
            every = self.sample(sample.corpus, sources="all", folder=sample.folder)
            if not self.have(every):
                continue
            recommended = set(sources_of(self.runner.documents(sample).test))
            for source in analyse(self.runner.documents(every).test, most=0).sources:
                used = {"recommended": "yes" if source.name in recommended else "no"}
                self.add({"system": source.name, **used, **facts_of(source)}, every)


def multiplies_bfloat16(facts: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bfloat16 numbers, as its flags say; False where nothing says it."""
    try:
        words = set(facts.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return bool(words & {"avx512_bf16", "amx_bf16", "bf16"})


def conditional(sample: Sample) -> dict[str, Any]:
    """The fields of the published CHMM, with rate and batch of the corpus."""
    rate, batch = RATES.get(sample.corpus, RATES["NCBI-Disease"]), BATCHES.get(sample.corpus, BATCHES["NCBI-Disease"])
    return {"published": {"rate": rate, "batch": batch}}


def facts_of(source: SourceFacts) -> dict[str, Any]:
    """The spans of a source: how many, their share of all, precision and recall by gold, and precision as estimated."""
    facts = source.whole.spans
    if facts is None or not facts.votes:
        return {"spans": 0}
    named = {
        "coverage": facts.coverage, "P": facts.true_precision, "R": facts.true_recall, "estimated P": facts.precision
    }  # fmt: skip
    if facts.true_precision and facts.true_recall:
        named["F1"] = 2 / (1 / facts.true_precision + 1 / facts.true_recall)
    return {"spans": facts.votes} | {name: round(value, 4) for name, value in named.items() if value is not None}


def factors(sample: Sample) -> Mapping[str, dict[str, Any]]:
    """What is changed of the published system, by what the row says; always one thing."""
    chmm = conditional(sample)
    return {
        "dev labels stop neither CHMM nor student": {"inside": False},
        "batches of 32": {"chmm": {**chmm, "batch": 32}},
        "silence: abstain": {"chmm": {**chmm, "silence": "abstain"}},
        "voted tokens are entities": {"chmm": {**chmm, "voted_is_entity": True}},
        "our CHMM": {"chmm": {}},
        "MultiHMM": {"aggregator": "HMM"},
        "student restarted": {"continued": False},
        "ten loops": {"loops": 10},
        "all sources": {"sources": "all"},
    }
