"""Relations on AIMed, LocText, BC5CDR, GAD, EU-ADR, HPRD50, IEPA and LLL, beside a bag of words in the same run.

Folds are by document where documents are known, the given ones for GAD and EU-ADR after duplicates were removed. Every
fold's settings and threshold come from folds inside its training documents. Intervals come from drawing documents anew.
`--only` takes one part; `--split dev` scores BC5CDR's development set and reads no test set.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks._folder import ROOT
from benchmarks.relations import data, generated, hmm
from benchmarks.relations import distant as noisy
from benchmarks.relations import published as comparison
from benchmarks.relations.curve import draw
from benchmarks.relations.scores import Judged, difference, interval, judged, row, table
from benchmarks.tagger.benchmark import Options
from chaffinch import Document
from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.relations import Extraction, train, train_documents, train_joint
from chaffinch.relations.candidates import candidates
from chaffinch.relations.concepts import relation_concepts
from chaffinch.relations.entities.logistic import folds
from chaffinch.relations.evaluate.scoring import score

PLOTS = ROOT / "docs" / "methods"
GENES = 1_000  # sentences of GAD in the publication's comparison: steps after each sentence are slow
BASELINE = Extraction(views=("words",))
DEFAULT = Extraction()
BARS = {
    "aimed_auc": (0.84, 0.87), "aimed_f1": (0.55, 0.60), "loctext_auc": (0.74, 0.80), "loctext_precision": (0.90, 0.95),
    "bc5cdr_f1": (0.50, 0.60), "loctext_arguments": (0.60, 0.68), "tokens": (50_000, 200_000),
}  # fmt: skip
PARTS = (
    "aimed", "loctext", "others", "documents", "arguments", "published", "rates", "distant", "roles", "candidates",
    "speed",
)  # fmt: skip


class Bench:
    """The parts, their rows and bars."""

    def __init__(self, options: Options) -> None:
        if options.data is None:
            raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
        self.data, self.split = Path(options.data), options.split
        self.rows: list[dict[str, Any]] = []
        self.bars: list[dict[str, Any]] = []

    def bar(self, name: str, value: float, **more: Any) -> None:
        """One bar of the result."""
        floor, goal = BARS.get(name, (None, None))
        kinds = {"low": None, "high": None, "unit": "", "floor": floor, "goal": goal, "better": "higher", **more}
        self.bars.append({"id": name, "value": round(value, 4), **kinds})

    def pairs(self, sample: data.Sample) -> Judged:
        """The default extractor and the baseline on a corpus, as rows; the default comes back."""
        baseline, own = judged(sample, BASELINE), judged(sample, DEFAULT)
        self.rows += [row("bag of words", sample.name, baseline), row("default", sample.name, own)]
        self.rows.append({"corpus": sample.name, "system": "default less bag of words", **difference(own, baseline)})
        return own

    def aimed(self) -> None:
        """Protein pairs of AIMed."""
        own = self.pairs(data.interactions(self.data, "AIMed"))
        for name, figure in (("aimed_auc", own.auc), ("aimed_f1", own.f1)):
            low, high = interval(own, figure)
            self.bar(name, figure(), low=low, high=high)

    def loctext(self) -> None:
        """Proteins and places of LocText, with each view by itself."""
        sample = data.locations(self.data)
        own = self.pairs(sample)
        for views in (("statistics",), ("paths",), ("words", "statistics"), ("contexts",)):
            self.rows.append(row(" + ".join(views), sample.name, judged(sample, Extraction(views=views))))
        for seed in (1, 2):  # how much hangs on the folds: few candidates stand above recall .1
            fold = folds([doc.id for doc in sample.docs], data.FOLDS, seed=seed).tolist()
            self.rows.append(
                row(f"default, folds of seed {seed}", sample.name, judged(replace(sample, fold=fold), DEFAULT))
            )
        for name, figure in (("loctext_auc", own.auc), ("loctext_precision", own.precise)):
            low, high = interval(own, figure)
            self.bar(name, figure(), low=low, high=high)

    def others(self) -> None:
        """The corpora where no clear loss to the baseline is allowed: the upper end of the difference is above 0."""
        samples = [data.interactions(self.data, name) for name in data.INTERACTIONS[1:]]
        samples += [data.genes(self.data, name) for name in ("gad", "eu-adr")]
        for sample in samples:
            self.pairs(sample)
            gap = self.rows[-1]
            more = {"low": gap["low"], "high": gap["high"], "unit": "AUC, upper end of the difference", "floor": 0.0}
            self.bar(f"{sample.name.lower().replace('-', '')}_not_below", gap["high"], **more)

    def documents(self) -> None:
        """Chemicals and the diseases they induce, by concept, from sentences; learnt from training and development."""
        known = data.induced(self.data, "Training")
        if self.split == "test":
            known += data.induced(self.data, "Development")
        held = data.induced(self.data, "Test" if self.split == "test" else "Development")
        merged = train_documents(known, data.INDUCED)
        found = [
            {tuple(own.concept for own in one.relation.arguments) for one in own} for own in merged.extract_all(held)
        ]
        self._concepts("sentences merged", held, found)
        self.bar("bc5cdr_f1", self.rows[-1]["F1"])

    def _concepts(self, name: str, docs: list[Document], found: list[set[tuple[str, ...]]]) -> None:
        truth = [relation_concepts(doc, data.INDUCED) for doc in docs]
        hits = sum(len(a & b) for a, b in zip(truth, found, strict=True))
        predicted, stated = sum(map(len, found)), sum(map(len, truth))
        figures = {"precision": hits / max(predicted, 1), "recall": hits / max(stated, 1)}
        figures["F1"] = 2 * hits / max(predicted + stated, 1)
        kept = {key: round(value, 4) for key, value in figures.items()}
        self.rows.append({"corpus": f"BC5CDR {self.split}", "system": name, **kept, "stated": stated})

    def arguments(self) -> None:
        """Tuples of LocText whose arguments a phrase HMM finds among known entities; and with a tagger's entities."""
        sample = replace(data.locations(self.data), fold=[])
        sample = replace(sample, fold=folds([doc.id for doc in sample.docs], 5, seed=0).tolist())
        found = hmm.arguments(sample)
        self.rows += found
        self.bar("loctext_arguments", found[0]["F1"])
        self.rows.append(hmm.tagged(sample))

    def published(self) -> None:
        """The publication's models by its scoring rule, on two corpora: end points as rows, curves as plots.

        Sentences of LocText are labelled for training by known tuples, as published, and tested against what is stated;
        those of GAD come labelled by tuples, with masked entities.
        """
        places, genes = data.locations(self.data), data.genes(self.data, "gad").some(GENES)
        self._compare(places, "loctext", comparison.comparison((False, True), "tuples"))
        self._compare(genes, "gad", comparison.comparison((True,), "corpus"))

    def _compare(self, sample: data.Sample, name: str, models: list[comparison.Compared]) -> None:
        """Add a row per model, and draw the masked ones: the representations, and the rules of training."""
        drawn: dict[str, comparison.Curve] = {}
        for one in models:
            curve = comparison.measure(sample, one)
            self.rows.append(comparison.row(sample.name, one, curve))
            if one.masked and len(curve.right):
                drawn[one.name.removesuffix(", masked")] = curve
        trained = {key: curve for key, curve in drawn.items() if key.startswith("phrase, combined")}
        separate = {key: curve for key, curve in drawn.items() if "separate" in key}
        for kind, curves in (("models", separate), ("krogh", trained)):
            lines = {key: curve.points() for key, curve in curves.items()}
            bands = {key: curve.band() for key, curve in curves.items()}
            (PLOTS / f"phrasehmm-{name}-{kind}.svg").write_text(draw(lines, bands), encoding="utf-8")

    def rates(self) -> None:
        """Krogh's additive rule on LocText, masked, by rate and number of epochs: neither is published."""
        sample, one = (
            data.locations(self.data),
            comparison.Compared("phrase", "combined", comparison.KROGH, "tuples", masked=True),
        )
        for rate in comparison.RATES:
            for epochs in (1, 5):
                config = replace(one.config(), rate=rate, epochs=epochs)
                curve = comparison.measure(sample, one, config)
                self.rows.append(comparison.row(sample.name, one, curve, rate=rate, epochs=epochs))

    def roles(self) -> None:
        """Three roles on invented documents whose truth is known: entities given, and arguments found."""
        known, held = generated.documents(80, seed=0), generated.documents(40, seed=1)
        joint = Extraction(mode="joint", hmm=PhraseHMM(representation="phrase"))
        for name, extractor in (
            ("three roles, entities given", train(known, generated.MOVES)),
            ("three roles, arguments found among entities", train_joint(known, generated.MOVES, joint)),
            (
                "three roles, arguments found in bare text",
                train_joint(known, generated.MOVES, replace(joint, mask=False)),
            ),
        ):
            found = score(extractor, held)
            figures = {"precision": found.precision.value, "recall": found.recall.value, "F1": found.f1.value}
            edges = f"{found.f1.low:.3f}–{found.f1.high:.3f}"
            self.rows.append({
                "corpus": "invented", "system": name, **{key: round(value, 4) for key, value in figures.items()},
                "interval": edges, "candidates": found.candidates, "stated": found.stated,
            })  # fmt: skip

    def candidates(self) -> None:
        """Candidates beside the pairs that the corpus itself has, and with sentences that we cut."""
        for name in data.INTERACTIONS:
            sample = data.interactions(self.data, name)
            cut = [Document.make(doc.text, id=doc.id, layers={"gold": doc.layer("gold")}) for doc in sample.docs]
            ours, again = (
                sum(len(candidates(doc, sample.schema, layer="gold")) for doc in docs) for docs in (sample.docs, cut)
            )
            self.rows.append({
                "corpus": name, "system": "candidates", "candidates": ours,
                "pairs of the corpus": data.own_pairs(self.data, name), "in sentences that we cut": again,
            })  # fmt: skip

    def distant(self) -> None:
        """LocText's tuples matched back onto its sentences: noise, its estimate, and what is learnt from it."""
        sample = data.locations(self.data)
        self.rows += noisy.rows(sample)

    def speed(self) -> None:
        """Tokens per CPU second from bare documents to relations, parts of speech and chunks included."""
        schema = data.INDUCED
        known = data.without_parse(data.induced(self.data, "Training"))
        extractor = train(known[:200], schema)
        held = known[200:]
        list(extractor.extract_all(held[:20]))  # kernels warm
        began = time.process_time()
        found = sum(map(len, extractor.extract_all(held)))
        seconds = time.process_time() - began
        tokens = sum(len(doc.tokens) for doc in held)
        self.rows.append(
            {"corpus": "BC5CDR", "system": "default", "tokens": tokens, "CPU s": round(seconds, 2), "found": found}
        )
        self.bar("tokens", round(tokens / seconds), unit="tokens per CPU s")


def run(options: Options) -> dict[str, Any]:
    """All parts, or the one asked for."""
    if options.only not in (None, *PARTS):
        raise ConfigError(f"unknown part {options.only!r}; choose one of {', '.join(PARTS)}")
    bench = Bench(options)
    for part in PARTS if options.only is None else (options.only,):
        getattr(bench, part)()
    return {"bars": bench.bars, "rows": table(bench.rows)}
