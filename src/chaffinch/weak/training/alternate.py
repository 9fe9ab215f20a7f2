"""From votes to a tagger without gold: the recipe that works on real votes, or alternate training as published.

The recipe: join the votes, let own sources add what the text itself tells, train students on the result, and let them
add spans where nothing is labelled. The labels of sources stay; the student only adds. Published (CHMM-ALT): aggregator
and student take turns, see `alternate_loops`. Every step of either way is told, and kept in a folder if there is one:
the same call goes on from there.
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

THRESHOLDS = (0.45, 0.55, 0.65, 0.75, 0.85, 0.95)  # that dev documents choose from
LAYER = "alternate"
OWN = "own"
FEW = 100  # spans in dev documents; fewer choose nothing


@dataclass(frozen=True, slots=True)
class Recipe:
    """What may be chosen of the recipe. `threshold` None is chosen on dev documents, else 0.65.

    With an `embedder`, `features.embed.Embedder.load()` for one, a small network on its embeddings is a student too;
    `CHMM()` reads words by it as well.
    """

    folds: int = 5
    stacked: bool = True
    threshold: float | None = None
    embedder: Embedder | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_wholes(self, "folds", least=2)
        check_wholes(self, "seed")
        check_fractions(self, "threshold", optional=True)
        check_flags(self, "stacked")


@dataclass(frozen=True, slots=True)
class Published:
    """Alternate training as published: so many loops after the first student, or fewer if dev documents say so.

    Without dev documents all loops are made and the last one counts; 2 are enough. With `continued` the student goes on
    from its last weights, at half the rate and for half the epochs, where its method can; else it begins anew.
    """

    loops: int = 2
    patience: int = 5
    continued: bool = True

    def __post_init__(self) -> None:
        check_wholes(self, "loops", "patience", least=1)
        check_flags(self, "continued")


@dataclass(frozen=True, slots=True)
class Turn:
    """One loop: strict F1 on dev documents, if any, of the student alone and of the aggregator with that student."""

    loop: int
    aggregator: float | None = None
    student: float | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told of every step when it is done, and the folder from which an interrupted run goes on.

    What the folder holds is not told again. It has students in it, whose vocabulary is training text.
    """

    tell: Callable[[Step], None] | None = None
    folder: str | Path | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alternated:
    """What came of it: the documents with a layer `alternate`, a tagger for others, and F1 on dev documents by loop.

    `outlook` is how good the votes, joined by an HMM of many sources, seem to be without any gold: an upper end for
    them; of what students add it says nothing.
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
    """Documents labelled by their sources and a student, and the tagger that does the same to others.

    `docs` have a layer "source:NAME" for every source. The aggregator is `MultiHMM()` unless another is given; one that
    is not ours is a function from documents to a function of documents and a layer's name. Of a pair of students both
    learn: the spans are those of the second, chances the mean of both. `dev` documents have votes and gold; they choose
    the threshold, or the best loop. `sources` are kept with the tagger, which then labels documents without votes.
    """
    docs, dev, how, watch = list(docs), list(dev), how or Recipe(), watch or Watch()
    students.configs_of(student)
    steps = Checkpoints.of(watch.folder, watch.tell, lambda: fingerprint(docs, dev, aggregator, student, how))
    if isinstance(how, Published):
        from chaffinch.weak.training.published import published

        made = published(docs, aggregator, student, how, dev, sources, steps)
    else:
        made = _recipe(docs, aggregator, student, how, dev, sources, steps)
    return replace(made, outlook=_outlook(docs, aggregator))


def _recipe(
    docs: list[Document], aggregator: AggregatorChoice | None, student: Student | None, how: Recipe,
    dev: list[Document], sources: Sequence[Source], steps: Checkpoints,
) -> Alternated:  # fmt: skip
    fitted = fit_step(docs, aggregator, how.embedder, steps, Step("votes"))
    settled = fitted(docs, KIND)
    text = text_sources.learn(settled, KIND)
    enriched = text_sources.apply(text, settled, KIND, into=OWN)
    if not any(doc.layer(OWN) for doc in enriched):
        raise DataError(f"no source labels a span in any of {len(docs)} documents; there is nothing to learn")
    steps.told(Step("text sources"))
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
    """How good the votes seem to be, where an HMM of many sources joins them; no gold is looked at."""
    if aggregator is not None and not isinstance(aggregator, MultiHMM):
        return None
    bare = [
        replace(doc, layers={name: own for name, own in doc.layers.items() if name.startswith((SOURCE, LINK))})
        for doc in docs
    ]
    return analyse(bare, aggregator, most=0).outlook


def _best_threshold(tagger: WeakTagger, dev: Sequence[Document]) -> float:
    """The best threshold on dev documents, of equals the nearest to the usual one; that one, if gold is scarce."""
    gold = [doc.layer("gold") for doc in dev]
    if sum(map(len, gold)) < FEW:
        return THRESHOLD
    fixed, answers = tagger.fixed(tagger.voted(dev)), tagger.students(dev)
    scores = {
        threshold: span_f1(gold, [with_added(doc, own, answer, tagger.labels, threshold)
                             for doc, own, answer in zip(dev, fixed, answers, strict=True)])
        for threshold in THRESHOLDS
    }  # fmt: skip
    return max(scores, key=lambda threshold: (scores[threshold], -abs(threshold - THRESHOLD)))
