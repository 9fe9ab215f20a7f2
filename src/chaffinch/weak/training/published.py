"""Alternate training as published (CHMM-ALT): aggregator and student take turns, each learning from the other.

Phase I: the aggregator combines the votes, and the student learns from its soft labels. Phase II, loop by loop: the
student's distributions are one more source, the aggregator is fitted again, and the student continues training. A pair
of students is one source, whose distributions are the mean of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.runs import span_f1
from chaffinch.models.registry import Config, method_of
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document
from chaffinch.weak.aggregate import LabelVotes
from chaffinch.weak.sources.base import Source
from chaffinch.weak.tagger import KIND, STUDENT, WeakTagger, with_student
from chaffinch.weak.training.aggregator import AggregatorChoice, fit_step
from chaffinch.weak.training.alternate import LAYER, Alternated, Published, Turn
from chaffinch.weak.training.checkpoints import Checkpoints, Step
from chaffinch.weak.training.soft_labels import one_hot_tags
from chaffinch.weak.training.students import Student, Students, configs_of, load_or_train
from chaffinch.weak.votes import SOURCE, sources_of

NAMES = ("student", "second student")  # of their steps


def run_published(
    docs: list[Document], aggregator: AggregatorChoice | None, student: Student | None, how: Published,
    dev: list[Document], sources: Sequence[Source], steps: Checkpoints,
) -> Alternated:  # fmt: skip
    """Run the published loops; return the loop best on dev, else the last; ConfigError if a source is `student`."""
    if SOURCE + STUDENT in {name for doc in docs for name in doc.layers}:
        raise ConfigError(f"a source is called {STUDENT!r}, a name reserved for the student; rename it")
    votes = _Votes(docs, aggregator, steps, how.loops)
    turns, taught = list[Turn](), list[Students]()
    while len(turns) <= how.loops and not _out_of_patience(turns, how, dev):
        lesson = _Lesson(votes, len(turns), taught[-1] if taught else None, how)
        taught.append(lesson.train(configs_of(student)))
        turns.append(_turn(votes, len(turns), taught[-1], dev))
    best = _best(turns) if dev else len(turns) - 1
    votes.join(best + 1, taught[best])
    labelled = votes.fitted(votes.voted, KIND)
    out = [doc.with_layer(LAYER, result.layer(KIND)) for doc, result in zip(docs, labelled, strict=True)]
    tagger = WeakTagger(
        votes.fitted, taught[best], how="votes", sources=tuple(sources), names=sources_of(docs)
    )  # fmt: skip
    return Alternated(tuple(out), tagger, tuple(turns), best)


class _Votes:
    """The votes of sources and of the last student, with their aggregator, which is fitted only when needed."""

    def __init__(
        self, docs: list[Document], aggregator: AggregatorChoice | None, steps: Checkpoints, loops: int
    ) -> None:
        """Begin with the documents' votes and no fitted aggregator."""
        self.docs, self.aggregator, self.steps, self.loops = docs, aggregator, steps, loops
        self.voted, self.number = docs, -1
        self.fitted: LabelVotes

    def join(self, number: int, students: Students | None) -> None:
        """Fit the aggregator to votes and students as one more source, unless loop `number` is fitted already."""
        if number != self.number:
            self.voted = self.docs if students is None else add_student_votes(self.docs, students)
            self.fitted = fit_step(
                self.voted, self.aggregator, None, self.steps, Step("votes", number, self.loops + 1)
            )  # fmt: skip
            self.number = number


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lesson:
    """One loop of training on aggregated votes."""

    votes: _Votes
    loop: int
    before: Students | None
    how: Published

    def train(self, configs: tuple[Config, ...]) -> Students:
        """Train the students of this loop on the aggregated labels, and return them."""
        first, *rest = [self._train_one(number, config) for number, config in enumerate(configs)]
        names = tuple(dict.fromkeys(label for tagger in (first, *rest) for label in tagger.labels))
        return Students(names, first, rest[0] if rest else None)

    def _train_one(self, number: int, config: Config) -> Tagger:
        """Load the student of this number and loop from its checkpoint, or train and save it."""
        last = self.before.taggers[number] if self.before is not None and self.how.continued else None

        def make() -> Tagger:
            """Fit the aggregator if needed, and train the student on its labels."""
            self.votes.join(self.loop, self.before)
            return _train_student(self.votes.fitted(self.votes.voted, KIND), config, last)

        return load_or_train(self.votes.steps, Step(NAMES[number], self.loop, self.how.loops), make)


def add_student_votes(docs: Sequence[Document], students: Students) -> list[Document]:
    """Return the documents with the students' answers as votes of one more source."""
    return with_student(docs, students(docs), students.names)


def _train_student(labelled: Sequence[Document], config: Config, last: Tagger | None) -> Tagger:
    """Train a student on soft labels (else on spans), on from `last` if it can; DataError if there is no span."""
    names = sorted({span.label for doc in labelled for span in doc.layer(KIND)})
    if not names:
        raise DataError(f"no source labels a span in any of {len(labelled)} documents; there is nothing to learn")
    ready = [doc if KIND in doc.soft else doc.with_soft(KIND, one_hot_tags(doc, KIND, names)) for doc in labelled]
    slower = method_of(config).slower
    if last is None or slower is None:
        return train(ready, config, soft=KIND)
    return train(ready, slower(config), soft=KIND, start=last)


def _turn(votes: _Votes, loop: int, students: Students, dev: Sequence[Document]) -> Turn:
    """Return a loop's dev F1 of aggregator and students, computed or loaded; no scores without dev; report if new."""
    step = Step("loop", loop, votes.loops)

    def make() -> dict[str, float | int | None]:
        """Fit the next aggregator with the students as a source; return the loop as a dict, scores if dev."""
        votes.join(loop + 1, students)
        if not dev:
            return asdict(Turn(loop))
        gold, answers = [doc.layer("gold") for doc in dev], students(dev)
        found = votes.fitted(with_student(dev, answers, students.names), KIND)
        alone = span_f1(gold, [answer.spans for answer in answers])
        return asdict(Turn(loop, span_f1(gold, [doc.layer(KIND) for doc in found]), alone))

    facts, new = votes.steps.load_or_make_facts(step, make)
    turn = Turn(**facts)
    if new:
        votes.steps.report(replace(step, score=turn.aggregator))
    return turn


def _best(turns: Sequence[Turn]) -> int:
    """Return the loop whose aggregator, with the student among its sources, is best on dev; of equals the first."""
    return max(range(len(turns)), key=lambda loop: (turns[loop].aggregator or 0.0, -loop))


def _out_of_patience(turns: Sequence[Turn], how: Published, dev: Sequence[Document]) -> bool:
    """Tell whether the dev score has not improved for `patience` loops."""
    return bool(dev and turns) and len(turns) - 1 - _best(turns) >= how.patience
