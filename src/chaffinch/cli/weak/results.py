"""What the commands of `chaffinch weak` print."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.table import Table

from chaffinch.cli.frame.output import facts_table, table_of
from chaffinch.cli.frame.results import Result, facts_of, labels_table, losses_table


class VoteCounts(Result, kw_only=True):
    """What one source did in `weak apply`."""

    source: str  # its name
    kind: str  # the kind of source, such as regex
    layer: str  # the layer of its votes
    label: str | None  # the label it votes for; null if it has several
    on: list[str]  # the labels it votes on
    negative_reliable: bool  # whether its silence is a vote against
    documents: int  # documents it voted in
    spans: int  # spans it voted for
    errors: dict[str, int]  # kinds of errors, with the line in the source's file, and how often
    hints: list[str]  # what its settings do that is easily overlooked; why it may have found nothing
    seconds: float


class ApplyResult(Result, kw_only=True, rename={"from_": "from"}):
    """What `weak apply` wrote."""

    from_: str  # the format of the input
    to: str  # the format of the output
    documents: int
    votes: int  # spans of all sources
    sources: list[VoteCounts]
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, and a table of what each source did."""
        yield facts_table(facts_of(self, "sources", "lost"))
        yield ""
        shown = ("source", "kind", "label", "documents", "spans")
        yield table_of([
            {key: getattr(source, key) for key in shown}
            | {"errors": sum(source.errors.values()), "seconds": source.seconds}
            for source in self.sources
        ])  # fmt: skip
        yield from losses_table(self.lost)


class LoopScore(Result, kw_only=True):
    """F1 on dev documents after one loop of `weak alternate`."""

    loop: int
    aggregator: float | None  # F1 of the aggregated votes
    student: float | None  # F1 of the student


class AlternateDevScore(Result, kw_only=True):
    """Scores of the tagger of `weak alternate` on dev documents."""

    documents: int
    precision: float
    recall: float
    f1: float
    f1_interval: tuple[float, float] | None  # 95 %, from a bootstrap over documents

    def __str__(self) -> str:
        """Return precision, recall and F1 with its interval, in words."""
        interval = "" if self.f1_interval is None else " ({:.3f} to {:.3f})".format(*self.f1_interval)
        return f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}{interval}"


class VoteEstimate(Result, kw_only=True):
    """Scores of the votes alone, estimated without gold."""

    precision: float | None
    recall: float | None
    f1: float | None
    agreement: float | None  # of sources with one another


class AlternateResult(Result, kw_only=True):
    """What `weak alternate` learnt."""

    model: str  # the path of the model file
    documents: int
    sources: int
    labels: list[str]
    spans: int  # spans that the tagger was trained on
    threshold: float | None  # from which probability on the student adds a span
    loops: list[LoopScore]
    best_loop: int | None  # the loop that was kept
    dev: AlternateDevScore | None
    estimated: VoteEstimate | None
    megabytes: float
    seconds: float

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, and tables of loops and scores."""
        shown = facts_of(self, "loops", "estimated")
        shown["labels"] = ", ".join(self.labels)
        if self.estimated is not None and self.estimated.f1 is not None:
            shown["estimated F1 (upper end)"] = f"{self.estimated.f1:.3f} of the votes alone, by what sources agree on"
        yield facts_table(shown)
        if self.loops and self.dev is not None:
            yield ""
            yield table_of([msgspec.structs.asdict(loop) for loop in self.loops], title="F1 on dev documents")


class AggregateResult(Result, kw_only=True):
    """What `weak aggregate` wrote."""

    method: str
    to: str  # the format of the output
    layer: str  # the layer that was added
    documents: int
    tokens: int
    sources: int
    spans: int
    soft_labels: bool  # whether soft labels were added, too
    labels: dict[str, int]  # spans of each label
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, and tables of labels and losses."""
        yield facts_table(facts_of(self, "labels", "lost"))
        yield from labels_table(self.labels)
        yield from losses_table(self.lost)
