"""HMM-DP on de-identification: MEDDOCAN, GraSCCo and aci-phi, beside python-crfsuite and the cascade, in one run.

Each system is trained in a process of its own; costs are CPU seconds of that process with compiled kernels warm, from
documents in memory to the finished model and from documents to documents. A fit that several parts need is made once.
Scores are of tokens by category (without B and I) and of strict spans by type; intervals come from drawing documents
anew. `--only` takes one part; `--split dev` tags 100 held-out training notes and does not read the test notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks._folder import ROOT
from benchmarks.hmmdp import leaks as dial
from benchmarks.hmmdp import rows
from benchmarks.hmmdp import systems as chosen
from benchmarks.hmmdp import tables as published_tables
from benchmarks.hmmdp.curve import draw
from benchmarks.hmmdp.data import FOLDS, Corpus, Sample, categories
from benchmarks.hmmdp.runner import Runner, aligned, alignment_absent
from benchmarks.hmmdp.scores import Change, Scores, change, leaks, read_without_begins, removed, score
from benchmarks.hmmdp.worker import ALIGNED, FOUND, System
from benchmarks.tagger.benchmark import Options
from chaffinch import HMMDP, Document
from chaffinch.errors import ConfigError

TAKES_CORPUS = True  # with --corpus
PRECISION = 0.97  # of tokens, that the bar on leaks asks for
LEAKED = 0.01755, 0.01145  # shares of identifier tokens that may leak: floor and goal
BI = "updated, with B and I, lines and seven classes"
NOTES = 10, 25, 50, 100, 500
MIDDLE = 3  # seeds of systems whose strict F1 moves by up to .004 with them: the one in the middle is shown
SEVERAL = 3  # draws of training notes, where there are fewer than 100
CURVE = "docs/methods/hmmdp-curve.svg"


class Bench:
    """Runs the parts and gathers rows and bars."""

    def __init__(self, options: Options) -> None:
        self.corpus: Path | None = getattr(options, "corpus", None)
        if self.corpus is not None and options.only not in (None, "tables"):
            raise ConfigError(f"--corpus is for the part tables, not for {options.only}; leave out one of them")
        if options.data is None and self.corpus is None:
            raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
        self.main = Sample(split="dev" if options.split == "dev" else "test")
        self.runner, self.seeds = Runner(options.data or Path()), options.seeds
        self.rows: list[dict[str, Any]] = []
        self.bars: list[dict[str, Any]] = []

    def have(self, name: str, system: System) -> bool:
        """Whether a system can be run; if not, a row says why."""
        reason = self.runner.absent(system)
        if reason:
            self.rows.append({"system": name, "absent": reason})
        return not reason

    def have_alignment(self, name: str) -> bool:
        """Whether there is an alignment; if not, a row says so."""
        reason = alignment_absent()
        if reason:
            self.rows.append({"system": name, "absent": reason})
        return not reason

    def gold(self, samples: Sequence[Sample]) -> list[Document]:
        """The documents to tag of all samples."""
        return [doc for sample in samples for doc in self.runner.documents(sample)[1]]

    def table(self, corpus: Corpus = "meddocan") -> dict[str, str]:
        """The category of every type."""
        return dict(categories(self.runner.data, corpus))

    def row(self, name: str, docs: Sequence[Document], samples: Sequence[Sample], **more: Any) -> Scores:
        """The scores of tagged documents, which become a row."""
        found = score(self.gold(samples), docs, self.table(samples[0].corpus))
        self.rows.append({**rows.scored(name, found), **more})
        return found

    def ours(self, name: str, system: System, samples: Sequence[Sample] = ()) -> tuple[Scores, dict[str, float]]:
        """A system on samples, the main one by default, as a row."""
        docs, costs = self.runner.found(system, samples or [self.main])
        return self.row(name, docs, samples or [self.main], **rows.costing(costs)), costs

    def middle(self, system: System, least: int = 1) -> System:
        """The system with that seed, of as many as were asked for, which is in the middle by strict F1."""
        if max(self.seeds, least) == 1:
            return system
        seeded = [system, *(system.but(seed=seed) for seed in range(1, max(self.seeds, least)))]
        docs = [self.runner.found(one, [self.main])[0] for one in seeded]
        reached = [score(self.gold([self.main]), found, self.table()).strict.f1 for found in docs]
        return seeded[sorted(range(len(seeded)), key=reached.__getitem__)[(len(seeded) - 1) // 2]]

    def bar(self, name: str, value: float, floor: float | None, goal: float | None, **more: Any) -> None:
        """One bar of the result."""
        kinds = {"low": None, "high": None, "unit": "F1", "better": "higher", **more}
        self.bars.append(
            {"id": name, "value": round(value, 4 if abs(value) < 10 else 1), "floor": floor, "goal": goal, **kinds}
        )

    def bars_of(self, name: str, found: Scores, category: tuple[float, float], strict: tuple[float, float]) -> None:
        """The two bars of F1 that the systems on MEDDOCAN have."""
        for kind, one, levels in (("category", found.categories, category), ("strict", found.strict, strict)):
            low, high = (round(edge, 4) for edge in one.f1_interval or (one.f1, one.f1))
            self.bar(f"{name}_{kind}_f1", one.f1, *levels, low=low, high=high)

    def difference_bar(self, name: str, found: Change, *, floor: float | None, goal: float | None) -> None:
        """A bar of a difference in F1."""
        self.bar(name, found.value, floor, goal, low=round(found.low, 4), high=round(found.high, 4))

    def tables(self) -> None:
        """Tables 3 and 4: submitted, updated, and updated with alignment, on --corpus or on this project's notes."""
        sample = Sample("notes") if self.corpus is None else Sample("i2b2", folder=str(self.corpus.resolve()))
        gold, table = self.gold([sample]), self.table(sample.corpus)
        updated = published_tables.UPDATED
        found = []
        for name, system in (
            ("submitted", published_tables.SUBMITTED), ("updated", updated),
            ("updated, aligned", replace(updated, decode=ALIGNED)),
        ):  # fmt: skip
            docs, costs = self.runner.found(system, [sample])
            found.append(published_tables.Tagged(name, score(gold, docs, table), costs))
        self.rows += published_tables.tables(found, table)
        plain, aligned_scores = found[1].scores, found[2].scores
        removed_share = 1 - aligned_scores.leaked / plain.leaked if plain.leaked else 0.0
        self.bar("alignment_learnt_removed", removed_share, None, None, unit="share of leaked tokens")

    def published(self) -> None:
        """The three published systems, by category and by type, and what is known of them."""
        if self.have("submitted", chosen.SUBMITTED):
            self.rows.extend(rows.labels("submitted", self.ours("submitted", chosen.SUBMITTED)[0]))
        self.rows += chosen.KNOWN
        if not self.have("updated", chosen.PUBLISHED):
            return
        found, _ = self.ours("updated", self.middle(chosen.PUBLISHED))
        self.rows.extend(rows.labels("updated", found))
        self.bars_of("published", found, (0.952, 0.960), (0.885, 0.91))
        for name, changed in chosen.FIDELITY.items():
            self.ours(f"updated, {name}", chosen.PUBLISHED.but(**changed))
        best = read_without_begins(self.gold([self.main]), HMMDP.published())
        self.row("gold itself, read without B and I", best, [self.main])
        self.ours(BI, chosen.DOUBLED)
        if self.have_alignment(f"{BI}, aligned"):
            self.row(f"{BI}, aligned", aligned(self.runner.posteriors(chosen.DOUBLED, self.main)), [self.main])

    def generative(self) -> None:
        """Factored emissions, which the bars are for, and the back-off from words to signatures."""
        if self.have("factored emissions", chosen.FACTORED):
            found, _ = self.ours("factored emissions", self.middle(chosen.FACTORED, MIDDLE))
            self.bars_of("generative", found, (0.962, 0.970), (0.920, 0.940))
        if self.have("back-off emissions", chosen.BACKOFF):
            self.ours("back-off emissions", chosen.BACKOFF)

    def discriminative(self) -> None:
        """The defaults beside the peer and the cascade."""
        self.ours("cascade", chosen.CASCADE)
        peer = self.middle(chosen.CRF, MIDDLE) if self.have("CRF", chosen.CRF) else None
        if peer is not None:
            self.ours("CRF", peer)
        if not self.have("HMM-DP, defaults", chosen.DEFAULT):
            return
        system = self.middle(chosen.DEFAULT)
        found, _ = self.ours("HMM-DP, defaults", system)
        self.bars_of("discriminative", found, (0.976, 0.982), (0.952, 0.965))
        if peer is not None:
            docs = [self.runner.found(one, [self.main])[0] for one in (peer, system)]
            for kind, table in (("category", self.table()), ("strict", None)):
                gap = change(self.gold([self.main]), docs[0], docs[1], table)
                self.difference_bar(f"discriminative_less_crf_{kind}", gap, floor=0.0, goal=None)

    def leaks(self) -> None:
        """HMM-DP and cascade together, with a dial set on held-out training notes, aligned."""
        systems, name, held = (chosen.DEFAULT, chosen.CASCADE), "HMM-DP with cascade", Sample(split="dev")
        if not all(self.have(name, system) for system in systems):
            return
        both = {
            sample: dial.pairs(*(self.runner.posteriors(system, sample) for system in systems))
            for sample in {held, self.main}
        }
        last: Callable[[list[Document]], list[Document]] = list
        self.row(name, dial.union(both[self.main], 0.0), [self.main])
        if self.have_alignment(f"{name}, aligned"):
            last, name = aligned, f"{name}, aligned"
            self.row(name, last(dial.union(both[self.main], 0.0)), [self.main])
        theta = dial.choose(both[held], PRECISION, last)
        same = ", chosen on these notes" if self.main == held else ""
        docs = last(dial.union(both[self.main], theta))
        found = self.row(f"{name}, P(O) below {theta:.3f}{same}", docs, [self.main]).binary
        few, many = (round(found.gold * (1 - edge)) for edge in reversed(found.recall_interval or (found.recall,) * 2))
        low, high = (round(edge, 4) for edge in found.precision_interval or (found.precision,) * 2)
        floor, goal = (round(share * found.gold) for share in LEAKED)
        unit = f"tokens in {found.gold:,}"
        self.bar("leaked_tokens", found.fn, floor, goal, low=few, high=many, unit=unit, better="lower")
        self.bar("leaked_precision", found.precision, PRECISION, PRECISION, low=low, high=high, unit="precision")

    def effects(self) -> None:
        """What each choice of the generative model does, and alignment; differences with intervals."""
        if not self.have("HMM-DP 20/4, generative", chosen.SMALL):
            return
        self.runner.fit(chosen.SMALL, [self.main], chosen.DECODERS)
        self.ours("HMM-DP 20/4, generative", chosen.SMALL)
        base, _ = self.runner.found(chosen.SMALL, [self.main])
        for name, (changed, other) in chosen.EFFECTS.items():
            first, second = (chosen.SMALL.but(**fields) for fields in (other, changed))
            if self.have(name, second):
                self.ours(name, second)
                self.effect(name, *(self.runner.found(one, [self.main])[0] for one in (first, second)))
        for decoder in chosen.DECODERS:
            docs, _ = self.runner.found(replace(chosen.SMALL, decode=decoder), [self.main])
            self.effect(f"decoder {decoder}", base, docs)
        for name, system in ((BI, chosen.DOUBLED), ("HMM-DP, defaults", chosen.DEFAULT)):
            if self.have(name, system) and self.have_alignment(f"{name}, aligned"):
                docs = self.runner.posteriors(system, self.main)
                self.effect(f"{name}, aligned", docs, aligned(docs))

    def effect(self, name: str, first: Sequence[Document], second: Sequence[Document]) -> None:
        """A row with the differences in F1, and that in leaked tokens."""
        gold, table = self.gold([self.main]), self.table()
        token, strict = change(gold, first, second, table), change(gold, first, second)
        leaked = sum(leaks(doc, FOUND)[0] for doc in second) - sum(leaks(doc, FOUND)[0] for doc in first)
        self.rows.append(rows.difference(name, token, strict, leaked))

    def align(self) -> None:
        """Generated patients whose names are in no training note: leaked name tokens before and after alignment."""
        sample, table = Sample("synth"), self.table("aci")
        try:
            self.runner.documents(sample)
        except ImportError as error:
            self.rows.append({"system": "generated patients", "absent": str(error)})
            return
        for name, system in (("cascade", chosen.CASCADE), ("HMM-DP, defaults", chosen.DEFAULT)):
            if not (self.have(name, system) and self.have_alignment(name)):
                continue
            before = self.runner.posteriors(system, sample)
            after = aligned(before)
            lost: dict[str, list[int]] = {}
            for one, two in zip(before, after, strict=True):
                held = lost.setdefault(one.patient, [0, 0, 0])
                (first, size), (second, _) = (leaks(doc, FOUND, "NAME", table) for doc in (one, two))
                lost[one.patient] = [held[0] + first, held[1] + second, held[2] + size]
            first_leaks, second_leaks, sizes = zip(*lost.values(), strict=True)
            for kind, found in (("", first_leaks), (", aligned", second_leaks)):
                counts = {"label": "NAME", "leaked": sum(found), "of": sum(sizes)}
                self.rows.append({"system": f"{name}, generated patients{kind}", **counts})
            gain = removed(first_leaks, second_leaks)
            if system is chosen.DEFAULT:
                low, high = round(gain.low, 4), round(gain.high, 4)
                self.bar("alignment_names_removed", gain.value, 0.20, 0.50, low=low, high=high, unit="share")

    def folds(self) -> None:
        """GraSCCo and aci-phi by folds."""
        for corpus in ("grascco", "aci"):
            samples = [Sample(corpus, fold=fold) for fold in range(FOLDS)]
            tagged: dict[str, tuple[float, list[Document]]] = {}
            for name in ("cascade", "CRF", "HMM-DP, defaults"):
                if self.have(f"{name}, {corpus}", chosen.SYSTEMS[name]):
                    found, _ = self.ours(f"{name}, {corpus}", chosen.SYSTEMS[name], samples)
                    tagged[name] = found.strict.f1, self.runner.found(chosen.SYSTEMS[name], samples)[0]
            own = tagged.pop("HMM-DP, defaults", None)
            if own is not None:
                best = max(tagged.values(), key=lambda one: one[0])
                gap = change(self.gold(samples), best[1], own[1])
                self.difference_bar(f"{corpus}_less_best_strict", gap, floor=None, goal=0.0)

    def curve(self) -> None:
        """Strict F1 by training notes; with the test notes, also as a drawing for the documentation."""
        curves: dict[str, list[tuple[int, float]]] = {}
        for name, system in chosen.SYSTEMS.items():
            if not self.have(f"{name}, curve", system):
                continue
            samples = {notes: self.draws(notes) for notes in NOTES}
            self.runner.fit(system, [one for several in samples.values() for one in several])
            for notes, several in samples.items():
                size = min(notes, len(self.runner.documents(self.main)[0]))
                found = [self.ours(f"{name}, {size} notes", system, [one])[0].strict.f1 for one in several]
                curves.setdefault(name, []).append((size, fmean(found)))
        if self.main.split == "test" and curves:
            path = ROOT / CURVE
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(draw(curves, up="strict F1, MEDDOCAN"), encoding="utf-8")

    def draws(self, notes: int) -> list[Sample]:
        """Samples with so many training notes; all of them are the main sample."""
        if notes >= len(self.runner.documents(self.main)[0]):
            return [self.main]
        count = 1 if notes >= 100 else SEVERAL
        return [Sample(split=self.main.split, notes=notes, draw=draw) for draw in range(count)]

    def speed(self) -> None:
        """CPU seconds of training, tokens per CPU second of tagging."""
        levels = (("published", chosen.PUBLISHED, (120, 40), (20_000, 60_000)),
                  ("discriminative", chosen.DEFAULT, (60, 25), (150_000, 300_000)))  # fmt: skip
        for name, system, training, tagging in levels:
            if self.have(f"{name}, speed", system):
                _, costs = self.runner.found(system, [self.main])
                self.bar(f"{name}_training", costs["train CPU s"], *training, unit="CPU s", better="lower")
                self.bar(f"{name}_tagging", costs["tokens per CPU s"], *tagging, unit="tokens per CPU s")


PARTS = ("tables", "published", "generative", "discriminative", "leaks", "effects", "align", "folds", "curve", "speed")


def run(options: Options) -> dict[str, Any]:
    """All parts, or the one asked for."""
    if options.only not in (None, *PARTS):
        raise ConfigError(f"unknown part {options.only!r}; choose one of {', '.join(PARTS)}")
    bench = Bench(options)
    every = PARTS if bench.corpus is None else ("tables",)
    with bench.runner:
        for part in every if options.only is None else (options.only,):
            getattr(bench, part)()
    return {"bars": bench.bars, "rows": rows.table(bench.rows)}
