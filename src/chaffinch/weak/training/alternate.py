"""Training a tagger from votes without gold: our recipe for real votes, or alternate training as published.

The recipe: aggregate the votes, propagate labels within and across the documents, train students on the result, and let
them add spans where nothing is labelled. Labels of sources stay; the student only adds. Published (CHMM-ALT):
aggregator and student take turns, see `published`. Every step is reported, and saved if there is a folder: the same
call then resumes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaffinch.checks import check_flags, check_fractions, check_wholes
from chaffinch.errors import DataError
from chaffinch.models.core.runs import span_f1
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document
from chaffinch.weak import propagate as text_sources
from chaffinch.weak.analysis import analyse
from chaffinch.weak.analysis.results import Outlook
from chaffinch.weak.embedded import Embedder
from chaffinch.weak.sources.base import Source
from chaffinch.weak.tagger import KIND, THRESHOLD, WeakTagger, with_added
from chaffinch.weak.training import students
from chaffinch.weak.training.aggregator import AggregatorChoice, fit_step
from chaffinch.weak.training.checkpoints import Checkpoints, Step, fingerprint
from chaffinch.weak.training.students import Plan, Student
from chaffinch.weak.votes import LINK, SOURCE, sources_of

THRESHOLDS = (0.45, 0.55, 0.65, 0.75, 0.85, 0.95)  # candidates of which dev documents choose the best
LAYER = "alternate"
OWN = "own"
FEW = 100  # gold spans; with fewer in the dev documents the default threshold stays


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of the recipe. `threshold` None is chosen on the dev documents, or 0.65 without them.

    With an `embedder`, for example `features.embed.Embedder.load()`, a small network on its embeddings is one more
    student; `CHMM()` uses the embedder as well.
    """

    folds: int = 5
    stacked: bool = True
    threshold: float | None = None
    embedder: Embedder | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid setting."""
        check_wholes(self, "folds", least=2)
        check_wholes(self, "seed")
        check_fractions(self, "threshold", optional=True)
        check_flags(self, "stacked")


@dataclass(frozen=True, slots=True)
class Published:
    """Settings of alternate training as published: the number of loops after the first student, with early stopping.

    Dev documents stop the training after `patience` loops without improvement, and choose the best loop. Without them
    all loops run and the last one counts; 2 are enough. With `continued` the student continues from its last weights,
    at half the rate and for half the epochs, if its method can; otherwise it starts from scratch.
    """

    loops: int = 2
    patience: int = 5
    continued: bool = True

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid setting."""
        check_wholes(self, "loops", "patience", least=1)
        check_flags(self, "continued")


@dataclass(frozen=True, slots=True)
class Turn:
    """Scores of one loop: strict F1 on dev documents, if any, of the student alone and of the aggregator with it."""

    loop: int
    aggregator: float | None = None
    student: float | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """A callback for every finished step, and the folder from which an interrupted run resumes.

    Steps loaded from the folder are not reported again. The folder holds students, whose vocabulary is training text.
    """

    tell: Callable[[Step], None] | None = None
    folder: str | Path | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alternated:
    """Result of `alternate`: documents with a layer `alternate`, a tagger for others, and F1 on dev documents by loop.

    `outlook` is the quality of the votes as an HMM of many sources estimates it without gold: an upper bound for the
    votes; it does not cover what students add.
    """

    documents: tuple[Document, ...]
    tagger: WeakTagger
    turns: tuple[Turn, ...] = ()
    best: int = 0
    outlook: Outlook | None = None


def alternate(
    docs: Sequence[Document], aggregator: AggregatorChoice | None = None, student: Student | None = None, *,
    how: Recipe | Published | None = None, dev: Sequence[Document] = (), sources: Sequence[Source] = (),
    watch: Watch | None = None,
) -> Alternated:  # fmt: skip
    """Train a tagger without gold: aggregate votes, train students on them; return documents, tagger and estimates.

    `docs` have a layer "source:NAME" for every source. The aggregator defaults to `MultiHMM()`; a custom one is a
    function from documents to a function of documents and a layer name. Of a pair of students both learn: the spans are
    those of the second, probabilities the mean of both. `dev` documents have votes and gold; they choose the threshold,
    or the best loop. `sources` become part of the tagger, which can then label documents without votes.
    """
    docs, dev, how, watch = list(docs), list(dev), how or Recipe(), watch or Watch()
    students.configs_of(student)
    steps = Checkpoints.of(watch.folder, watch.tell, lambda: fingerprint(docs, dev, aggregator, student, how))
    if isinstance(how, Published):
        from chaffinch.weak.training.published import run_published

        made = run_published(docs, aggregator, student, how, dev, sources, steps)
    else:
        made = _recipe(docs, aggregator, student, how, dev, sources, steps)
    return replace(made, outlook=_outlook(docs, aggregator))


def _recipe(
    docs: list[Document], aggregator: AggregatorChoice | None, student: Student | None, how: Recipe,
    dev: list[Document], sources: Sequence[Source], steps: Checkpoints,
) -> Alternated:  # fmt: skip
    """Aggregate votes, propagate labels, cross-fit students, set the threshold; DataError without a labelled span."""
    fitted = fit_step(docs, aggregator, how.embedder, steps, Step("votes"))
    labelled = fitted(docs, KIND)
    text = text_sources.learn(labelled, KIND)
    enriched = text_sources.apply(text, labelled, KIND, into=OWN)
    if not any(doc.layer(OWN) for doc in enriched):
        raise DataError(f"no source labels a span in any of {len(docs)} documents; there is nothing to learn")
    steps.report(Step("text sources"))
    taught, answers = students.learn(
        enriched, OWN, Plan(student, how.embedder, how.stacked, how.folds, how.seed), steps
    )  # fmt: skip
    tagger = WeakTagger(fitted, taught, text, sources=tuple(sources), names=sources_of(docs))
    if how.threshold is not None or dev:
        tagger = replace(tagger, threshold=_best_threshold(tagger, dev) if how.threshold is None else how.threshold)
    out = tuple(
        doc.with_layer(LAYER, with_added(doc, rich.layer(OWN), answer, taught.names, tagger.threshold))
        for doc, rich, answer in zip(docs, enriched, answers, strict=True)
    )
    return Alternated(out, tagger)


def _outlook(docs: Sequence[Document], aggregator: AggregatorChoice | None) -> Outlook | None:
    """Estimate the quality of the votes by a MultiHMM, without gold; None for another kind of aggregator."""
    if aggregator is not None and not isinstance(aggregator, MultiHMM):
        return None
    bare = [
        replace(doc, layers={name: spans for name, spans in doc.layers.items() if name.startswith((SOURCE, LINK))})
        for doc in docs
    ]
    return analyse(bare, aggregator, most=0).outlook


def _best_threshold(tagger: WeakTagger, dev: Sequence[Document]) -> float:
    """Return the threshold of best F1 on dev, of equals the nearest to the default; the default with little gold."""
    gold = [doc.layer("gold") for doc in dev]
    if sum(map(len, gold)) < FEW:
        return THRESHOLD
    fixed, answers = tagger.source_spans(tagger.with_votes(dev)), tagger.students(dev)
    scores = {
        threshold: span_f1(gold, [with_added(doc, spans, answer, tagger.labels, threshold)
                             for doc, spans, answer in zip(dev, fixed, answers, strict=True)])
        for threshold in THRESHOLDS
    }  # fmt: skip
    return max(scores, key=lambda threshold: (scores[threshold], -abs(threshold - THRESHOLD)))
