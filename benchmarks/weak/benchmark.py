"""Weak supervision on four corpora with votes, beside skweak, snorkel and crowd-kit, in one run.

Each system runs in a process of its own; costs are CPU seconds of that process with compiled kernels warm, from
documents in memory to documents. Work that several parts need is done once. Scores are of strict spans, intervals come
from drawing documents anew. `--only` takes one part; `--split dev` labels valid and reads no test set; `--seeds N`
repeats whatever is random, and means and spreads are shown. No system sees the gold of what it labels; in the parts
"aggregators", "own" and "students" none sees any gold.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks._folder import ROOT
from benchmarks.hmmdp.curve import draw
from benchmarks.hmmdp.scores import change
from benchmarks.tagger.benchmark import Options
from benchmarks.weak import made, rows
from benchmarks.weak.bench import RULES, SHORT, Measured
from benchmarks.weak.data import ABSTRACTS, CORPORA, Corpus, Sample
from benchmarks.weak.peers import PEERS
from benchmarks.weak.published import Publication, conditional
from benchmarks.weak.runner import Runner
from benchmarks.weak.systems import TEXT, System
from chaffinch.errors import ConfigError

HMM = System("hmm")
OWN = System("own")
STUDENT = System("students", {"network": True})  # the recipe that the bars are for: a network on embeddings learns too
LINEAR = System("students", {"network": False})
STOPPED = System("stopped", {"network": True})
CONDITIONAL = System("conditional")
IID = System("conditional", {"iid": True})
ENCODER = System("supervised", {"config": "Encoder"})
RIDGES = {"CoNLL": {"ridge": 30.0}}  # of our CHMM, where valid documents want another than the default
KNOWN = 0, 20, 50, 100  # gold documents of the learning curve
FIELDS = {"skweak HMM": "HMM", "snorkel LabelModel": "Snorkel"}  # peers in the publication
PLOTS = ROOT / "docs"

FLOORS: dict[str, dict[str, tuple[float, float]]] = {
    "aggregator": {"NCBI-Disease": (0.788, 0.80), "BC5CDR": (0.837, 0.85), "CoNLL": (0.665, 0.70)},
    "own": {"NCBI-Disease": (0.82, 0.845), "BC5CDR": (0.866, 0.88)},
    "student": {"NCBI-Disease": (0.84, 0.865), "BC5CDR": (0.87, 0.885)},
    "text_alone": {"NCBI-Disease": (0.75, 0.80), "BC5CDR": (0.785, 0.83)},
    "alternate": {"NCBI-Disease": (0.848, 0.87), "BC5CDR": (0.874, 0.89)},
}


class Bench(Publication):
    """The parts."""

    def level(self, kind: str, corpus: Corpus, found: Measured | None, sources: str = "") -> None:
        """The bar of a kind on a corpus, if there is one."""
        if corpus in FLOORS[kind]:
            self.f1_bar(f"{kind}_{SHORT[corpus]}{sources}", found, FLOORS[kind][corpus])

    def aggregators(self) -> None:
        """Rules, HMMs and peers on the given votes, without gold; with recommended sources and with all."""
        seconds: list[tuple[float, float]] = []
        for corpus in CORPORA:
            for sample in self.samples(corpus):
                if not self.have(sample):
                    continue
                self.consensus(sample)
                found = self.alone(sample)
                peers = {
                    name: self.measure(name, System("peer", {"name": name}), sample, published=FIELDS.get(name, ""))
                    for name in PEERS
                }
                theirs = peers["skweak HMM"]
                for name, one in peers.items():
                    self.less(f"MultiHMM less {name}", found, one, sample)
                if sample.sources == "all":
                    self.level("aggregator", corpus, found, "_all_sources")
                else:
                    self.level("aggregator", corpus, found)
                    if found is not None and theirs is not None and corpus in FLOORS["aggregator"]:
                        seconds.append((theirs.seconds, found.seconds))
        if seconds:
            ratio = sum(own for own, _ in seconds) / max(sum(own for _, own in seconds), 1e-9)
            self.bar("aggregator_speed", ratio, 50, 200, unit="CPU s, skweak ÷ ours")

    def alone(self, sample: Sample) -> Measured | None:
        """Our own rules and HMMs; that of many sources comes back."""
        simple = {
            name: self.measure(name, System("rule", {"rule": name}), sample, published="MV" if name == "Union" else "")
            for name in RULES
        }
        found = self.measure("MultiHMM", HMM, sample, published="HMM")
        self.measure("MultiHMM, labelled documents' votes too", System("hmm", {"joint": True}), sample)
        self.measure("i.i.d. MultiHMM", System("conditional", {"iid": True, "weight": 0.0}), sample, published="iid")
        best = self.best_rule(sample)
        self.less(f"MultiHMM less {best}, the best rule on valid", found, simple[best], sample)
        return found

    def samples(self, corpus: Corpus) -> list[Sample]:
        """Recommended sources and all; MIT-Restaurants recommends all."""
        kinds = ("recommended",) if corpus == "MIT-Restaurants" else ("recommended", "all")
        return [self.sample(corpus, sources=kind) for kind in kinds]

    def own(self) -> None:
        """The HMM of many sources with own sources, one setting for all corpora."""
        for corpus in CORPORA:
            for sample in self.samples(corpus):
                before = self.measure("MultiHMM", HMM, sample)
                found = self.measure("MultiHMM with own sources", OWN, sample)
                self.measure("the same, learnt from the labelled documents too", System("own", {"joint": True}), sample)
                self.less("own sources: difference", found, before, sample)
                self.level("own", corpus, found, "_all_sources" if sample.sources == "all" else "")

    def students(self) -> None:
        """The recipe without any gold, with sources and on the text alone; with and without a network on embeddings."""
        for corpus in ABSTRACTS:
            sample = self.sample(corpus)
            base = self.measure("MultiHMM with own sources", OWN, sample)
            for name, system in (("recipe", STUDENT), ("recipe without embeddings", LINEAR)):
                found = self.measure(name, system, sample)
                alone = self.measure(f"{name}, text alone", system, sample, way=TEXT)
                self.less(f"{name}: difference to own sources", found, base, sample)
                if system is STUDENT:
                    self.level("student", corpus, found)
                    self.level("text_alone", corpus, alone)
                    if found is not None and corpus == "NCBI-Disease":
                        self.bar("recipe_ncbi", found.seconds, 300, 60, unit="CPU s", better="lower")

    def stopped(self) -> None:
        """The recipe with dev labels, which choose its threshold."""
        for corpus in ABSTRACTS:
            self.level(
                "alternate", corpus, self.measure("recipe, threshold chosen on dev", STOPPED, self.sample(corpus))
            )

    def alternate(self) -> None:
        """Alternate training by aggregator, where dev labels choose the loop; as published, the epochs too."""
        for corpus in ABSTRACTS:
            curves: dict[str, list[tuple[float, float]]] = {}
            sample = self.sample(corpus)
            if not self.have(sample):
                continue
            self.consensus(sample)
            self.embedded(sample)
            single = {"MV": System("rule", {"rule": "TokenVote"}), "HMM": HMM, "iid": IID, "CHMM": CONDITIONAL}
            for name, system in single.items():
                self.measure(name, system, sample, published=name)
            own = System("conditional", {**conditional(sample), "stopped": True})
            self.measure("CHMM as published", own, sample, published="CHMM")
            loop = {"inside": False}
            turns: list[tuple[str, dict[str, Any]]] = [(f"{name}-ALT", {"aggregator": name, **loop}) for name in single]
            turns += [
                (f"{name}-ALT, restarted", {"aggregator": name, "continued": False, **loop}) for name in ("HMM", "CHMM")
            ]
            turns += [("CHMM-ALT as published", {"aggregator": "CHMM", "chmm": conditional(sample)})]
            for name, told in turns:
                figure = name.replace(" as published", "")
                found = self.measure(name, System("loops", told), sample, published=figure, seeds=1)
                if found is not None:
                    curves[name.replace("-ALT", "")] = self.turned(name, found, sample)
            if self.split == "test" and curves:
                PLOTS.mkdir(parents=True, exist_ok=True)
                up, along = "strict F1 on dev documents, aggregator with student", "students trained so far"
                plot = draw(curves, up=up, along=along)
                (PLOTS / f"weak-loops-{SHORT[corpus]}.svg").write_text(plot, encoding="utf-8")

    def turned(self, name: str, found: Measured, sample: Sample) -> list[tuple[float, float]]:
        """F1 on dev documents by loop, as rows; the mean over those seeds that came so far, as a curve."""
        out: list[tuple[float, float]] = []
        for loop in range(max(len(one.turns) for one in found.results)):
            here = [one.turns[loop] for one in found.results if len(one.turns) > loop]
            joined, student = (fmean(turn[place] or 0.0 for turn in here) for place in (1, 2))
            scores = {"aggregator F1": round(joined, 4), "student F1": round(student, 4)}
            self.add({"system": f"{name}, dev documents", "loop": loop, "seeds": len(here), **scores}, sample)
            out.append((loop + 1, joined))
        return out

    def chmm(self) -> None:
        """The conditional HMM against that of many sources and the i.i.d. variant: real votes, and generated ones."""
        exact = [made.context(seed) for seed in range(self.seeds)]
        self.made("context, exact ends", exact)
        self.made("context, misjudged ends", [made.context(seed, made.MISJUDGED) for seed in range(self.seeds)])
        for other in ("MultiHMM", "i.i.d. CHMM"):
            self.bar(f"chmm_generated_less_{_word(other)}", fmean(one["CHMM"] - one[other] for one in exact), 0.0, None)
        for corpus in (*ABSTRACTS, "CoNLL"):
            for sample in self.samples(corpus):
                if not self.embedded(sample):
                    continue
                hmm = self.measure("MultiHMM", HMM, sample, published="HMM")
                chosen = RIDGES.get(corpus, {})
                iid = self.measure("i.i.d. CHMM", replace(IID, fields=IID.fields | chosen), sample, published="iid")
                found = self.measure("CHMM", replace(CONDITIONAL, fields=chosen), sample, published="CHMM")
                told = System("conditional", conditional(sample))
                self.measure("CHMM, published settings", told, sample, published="CHMM")
                for name, one in (("MultiHMM", hmm), ("i.i.d. CHMM", iid)):
                    self.less(f"CHMM less {name}", found, one, sample)
                    if found is not None and one is not None and sample.sources == "recommended":
                        self.not_worse(f"chmm_less_{_word(name)}_{SHORT[corpus]}", found, one)

    def not_worse(self, name: str, found: Measured, other: Measured) -> None:
        """A bar of the upper end of a difference in F1: below 0, the first is significantly worse."""
        gap = change(found.docs, other.docs, found.docs)
        low, high = round(gap.low, 4), round(gap.high, 4)
        self.bar(name, gap.high, 0.0, None, low=low, high=high, unit="F1, upper end of the difference")

    def made(self, name: str, found: list[dict[str, float]]) -> None:
        """Rows of systems on generated data."""
        for system in found[0]:
            f1 = [one[system] for one in found]
            more = {"spread": round(stdev(f1), 4), "seeds": len(f1)} if len(f1) > 1 else {}
            self.add({"corpus": f"generated: {name}", "system": system, "F1": round(fmean(f1), 4), **more})

    def links(self) -> None:
        """Linking rules inside the HMM, on generated data: they recover what votes alone cannot."""
        found = [made.links(seed) for seed in range(self.seeds)]
        self.made("linking rules", found)
        gain = fmean(one["MultiHMM with linking rules"] - max(
            own for name, own in one.items() if name != "MultiHMM with linking rules") for one in found)  # fmt: skip
        self.bar("links_gain", gain, 0.0, None)

    def encoder(self) -> None:
        """The encoder fine-tuned on NCBI gold, and the linear student on the same: what all labels could do."""
        sample = self.sample("NCBI-Disease")
        linear = System("supervised", {"config": "Cascade"})
        self.measure("linear student, all gold", linear, sample, way=TEXT)
        found = self.measure("encoder, all gold", ENCODER, sample, way=TEXT, published="supervised encoder")
        if found is not None:
            self.f1_bar("encoder_supervised", found, (None, None))
            self.bar("encoder_training", found.seconds / 60, None, None, unit="CPU minutes", better="lower")

    def gold20(self) -> None:
        """Gold documents added to the votes, one draw for each seed, beside the same documents without any votes."""
        for corpus in ABSTRACTS:
            for count in KNOWN:
                self.drawn(f"votes and {count} gold documents", System("gold"), corpus, count)
                if count:
                    linear = System("supervised", {"config": "Cascade"})
                    self.drawn(f"{count} gold documents alone", linear, corpus, count, TEXT)

    def drawn(self, name: str, system: System, corpus: Corpus, count: int, way: str = "sources") -> None:
        """A row of a system with so many gold documents: the mean over draws of documents."""
        samples = [self.sample(corpus, gold=count, draw=number) for number in range(self.seeds if count else 1)]
        reason = self.runner.absent(system, samples[0])
        if reason:
            self.add({"system": name, "absent": reason}, samples[0])
            return
        found = [self.runner.labelled(system, sample, way) for sample in samples]
        scores = [rows.score(one.docs) for one in found]
        self.add({**rows.scored(name, scores), **rows.costing([one.result.costs for one in found])}, samples[0])

    def speed(self) -> None:
        """Tokens per CPU second of labelling, with what learning cost beside it."""
        systems = {"MultiHMM": HMM, "MultiHMM with own sources": OWN, "recipe": STUDENT}
        for corpus in CORPORA:
            for name, system in systems.items():
                if system is STUDENT and corpus not in ABSTRACTS:
                    continue
                sample = self.sample(corpus)
                reason = self.runner.absent(system, sample)
                if reason:
                    self.add({"system": name, "absent": reason}, sample)
                    continue
                costs = self.runner.result(system, sample).costs
                rate = round(costs["tokens"] / max(costs["apply CPU s"], 1e-9))
                self.add({"system": name, **rows.costing([costs]), "tokens per CPU s": rate}, sample)


PARTS = (
    "published", "ideas", "gap", "sources", "aggregators", "own", "students", "stopped", "alternate", "chmm", "links",
    "encoder", "gold20", "speed",
)  # fmt: skip


def run(options: Options) -> dict[str, Any]:
    """All parts, or the one asked for."""
    if options.only not in (None, *PARTS):
        raise ConfigError(f"unknown part {options.only!r}; choose one of {', '.join(PARTS)}")
    if options.data is None and getattr(options, "corpus", None) is None:
        raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
    with Runner(Path(options.data or ".")) as runner:
        bench = Bench(runner, options)
        for part in PARTS if options.only is None else (options.only,):
            bench.part = part
            getattr(bench, part)()
    return {"bars": bench.bars, "rows": rows.table(bench.rows)}


def _word(name: str) -> str:
    return name.lower().replace(".", "").replace(" ", "_")
