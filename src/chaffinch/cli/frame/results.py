"""What commands print: one typed structure per command; --json writes its fields, tables show them in words.

A field is a key of the JSON object, and both are documented in docs/json.md. Keys of maps (labels, losses, sources) are
data and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from chaffinch.cli.frame.output import facts_table, table_of

if TYPE_CHECKING:
    from rich.table import Table


class Result(msgspec.Struct, kw_only=True):
    """A result of a command; a field without a value is null in JSON and left out of tables."""


class ConvertResult(Result, kw_only=True, rename={"from_": "from"}):
    """What `convert` wrote."""

    from_: str  # the format of the input
    to: str  # the format of the output
    documents: int
    spans: int
    relations: int
    tokens: int
    documents_with_patient: int  # documents that name their patient
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: a table of facts, and one of losses."""
        shown = facts_of(self, "lost")
        if not self.documents_with_patient:
            shown["documents_with_patient"] = "none: each document counts as one patient (see --group-by)"
        yield facts_table(shown)
        yield from losses_table(self.lost)


class VerifyResult(Result, kw_only=True):
    """What `verify` compared."""

    output: str  # the path of the release
    documents: dict[str, int]  # in, released, withheld and excluded
    files: int  # files whose names and contents agree with the manifest
    lines: int | None = None  # of the account; null if the private lists are not there
    texts: int  # texts that agree with their hashes in the account


class ProjectResult(Result, kw_only=True):
    """What a verb of `project`, or `verify` of a project, did."""

    project: str  # the folder of the project
    did: str  # what was done
    counts: dict[str, int]  # of what, and how many
    output: str | None = None  # the file or folder that was written
    hash: str | None = None  # the last one of the audit trail; note it elsewhere


class TagResult(Result, kw_only=True, rename={"from_": "from"}):
    """What `tag` found."""

    from_: str  # the format of the input
    to: str  # the format of the output
    align: str | None = None  # the mode of alignment
    confidence: str | None = None  # with --confidence: calibrated or uncalibrated
    patients: int | None = None  # with alignment
    documents_with_patient: int | None = None  # with alignment
    documents: int
    characters: int
    tokens: int
    spans: int
    labels: dict[str, int]  # spans of each label
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: a table of facts, and tables of labels and losses."""
        shown = facts_of(self, "labels", "lost", "documents_with_patient")
        alone = self.documents - (self.documents if self.patients is None else self.documents_with_patient or 0)
        if alone:
            whose = "each document is" if alone == self.documents else f"each of {alone:,} documents without one is"
            shown["patients"] = f"{self.patients:,} ({whose} its own patient; see --group-by)"
        yield facts_table(shown)
        yield from labels_table(self.labels)
        yield from losses_table(self.lost)


class SpanRow(Result, kw_only=True):
    """A span of an explanation."""

    start: int  # code points
    end: int  # one past the last
    label: str  # O speaks against any span
    score: float
    source: str  # what found it


class FeatureRow(Result, kw_only=True):
    """A feature that speaks for a span or against it."""

    name: str
    weight: float  # in favour of the span
    start: int  # of the token that it is about
    end: int
    quote: str | None = None  # of the document; with --with-text


class StateRow(Result, kw_only=True):
    """A token on the path of a tagger with states."""

    state: str
    start: int  # of the token
    end: int
    quote: str | None = None  # of the document; with --with-text


class VoiceRow(Result, kw_only=True):
    """What one voice says of a span."""

    kind: str  # pattern, list, protected, known, deny, type, tagger, reader or repeat
    name: str  # of the pattern, list or tagger
    spans: list[SpanRow]  # what it found there
    chance: float | None = None  # its probability of the span, or of any identifier
    margin: float | None = None  # how far the reading with the span is ahead of the best one without it
    features: list[FeatureRow]  # the largest weights first
    path: list[StateRow]
    remarks: list[str] | None = None  # on the states of the path; with --with-text


class ExplainedSpan(Result, kw_only=True):
    """Why a span is one."""

    number: int  # over all documents, from 1
    text: str | None = None  # with --with-text
    span: SpanRow
    chance: float | None = None  # of the span; of an identifier, that of its surest token
    threshold: float | None = None  # the least chance at which its type is flagged
    runner_up: list[SpanRow]  # what would be there instead
    voices: list[VoiceRow]


class ExplainedDocument(Result, kw_only=True):
    """The explained spans of a document."""

    document: int  # its number in the input, from 1
    spans: list[ExplainedSpan]


class ExplainResult(Result, kw_only=True):
    """What `explain` and `deid explain` say."""

    model: str  # the model as it was named
    documents: list[ExplainedDocument]  # those with an explained span
    spans: int  # found in all documents


class DevScore(Result, kw_only=True):
    """Scores on dev documents."""

    documents: int
    precision: float
    recall: float
    f1: float

    def __str__(self) -> str:
        """Return precision, recall, F1 and the number of documents, in words."""
        scores = f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}"
        return f"{scores} on {count(self.documents, 'document')}"


class TrainResult(Result, kw_only=True):
    """What `train` learnt."""

    model: str  # the path of the model file
    method: str
    documents: int
    patients: int
    documents_with_patient: int  # documents that name their patient
    labels: list[str]
    spans: int
    tokens: int
    size: dict[str, Any]  # how large the model is; its keys depend on the method
    megabytes: float
    vocabulary_floor: int  # patients who must have used a word
    private: bool | None = None  # whether words inside spans were left out; only of methods that can
    calibrated: bool  # whether confidences were calibrated on held-out patients
    sentences: str  # how text was cut: lines or prose
    dev: DevScore | None = None
    interrupted: bool = False
    seconds: float
    lost: dict[str, int]  # what reading could not keep, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows of a training run: facts, sizes, scores, losses."""
        shown = facts_of(self, "documents_with_patient", "interrupted", "lost")
        if not self.documents_with_patient:
            shown["patients"] = f"{self.patients:,} (each document counts as one; see --group-by)"
        shown["labels"] = ", ".join(self.labels)
        shown["vocabulary_floor"] = count(self.vocabulary_floor, "patient")
        if self.private is not None:
            shown["private"] = describe_privacy(self.private)
        rows: dict[str, Any] = {}
        for key, value in shown.items():
            if key == "size":
                rows |= {name: _describe_size(part) for name, part in self.size.items()}
            else:
                rows[key] = value
        yield facts_table(rows)
        yield from losses_table(self.lost)


class SettingsResult(Result, kw_only=True):
    """The settings of a method, for `show METHOD`."""

    method: str
    settings: list[dict[str, Any]]  # setting, values, default
    run_settings: list[dict[str, Any]]  # the settings that every method shares


class SynthResult(Result, kw_only=True):
    """What `synth notes` wrote."""

    to: str  # the format of the output
    patients: int
    documents: int
    tokens: int
    spans: int
    seed: int
    names: str  # which half of the names was used
    style: str
    labels: dict[str, int]  # spans of each label
    kinds: dict[str, int]  # notes of each kind
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, and tables of labels, kinds of notes and losses."""
        yield facts_table(facts_of(self, "labels", "kinds", "lost"))
        for title, counts in (("label", self.labels), ("kind of note", self.kinds), ("not kept", self.lost)):
            if counts:
                yield ""
                yield table_of([{title: what, "times": number} for what, number in counts.items()])


class ExtraState(Result, kw_only=True):
    """Whether an extra is installed, for `doctor`."""

    extra: str  # its name
    present: bool
    missing: list[str]  # modules that are not installed
    install: str | None  # the command that installs it


class DoctorResult(Result, kw_only=True):
    """What `doctor` found."""

    chaffinch: str  # version
    python: str  # version
    machine: str
    cores: int
    packages: dict[str, str]  # versions of required packages
    kernels: str  # the result of the self-test
    extras: list[ExtraState]

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: versions, extras, and the check of the kernels."""
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        yield facts_table(facts_of(self, "packages", "extras") | {"packages": packages})
        yield ""
        yield table_of([
            {
                "extra": extra.extra,
                "present": "yes" if extra.present else "no",
                "missing": " ".join(extra.missing),
                "to get it": extra.install or "",
            }
            for extra in self.extras
        ])  # fmt: skip


class ExtractResult(Result, kw_only=True):
    """What `relate extract` found."""

    documents: int
    relations: int
    threshold: float
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: a table of facts, and one of losses."""
        yield facts_table(facts_of(self, "lost"))
        yield from losses_table(self.lost)


class DistantResult(Result, kw_only=True):
    """What `relate distant` labelled."""

    documents: int
    candidates: int
    labelled: int  # candidates that are known tuples
    lost: dict[str, int]  # what the output cannot hold, and how often

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: a table of facts, and one of losses."""
        yield facts_table(facts_of(self, "lost"))
        yield from losses_table(self.lost)


def facts_of(result: Result, *without: str) -> dict[str, Any]:
    """Return {JSON key: value} of a result's fields that are not None, except the fields in `without`."""
    names = dict(zip(result.__struct_fields__, result.__struct_encode_fields__, strict=True))
    pairs = ((key, getattr(result, name)) for name, key in names.items() if name not in without)
    return {key: value for key, value in pairs if value is not None}


def labels_table(labels: Mapping[str, int]) -> Iterator[Table | str]:
    """Yield an empty line and a table of span counts by label; nothing if there are no labels."""
    if labels:
        yield ""
        yield table_of([{"label": label, "spans": number} for label, number in sorted(labels.items())])


def losses_table(lost: Mapping[str, int]) -> Iterator[Table | str]:
    """Yield an empty line and a table of what the output format could not hold; nothing if nothing was lost."""
    if lost:
        yield ""
        yield table_of([{"not kept": what, "times": number} for what, number in sorted(lost.items())])


def count(number: int, thing: str) -> str:
    """Return a number with its noun, with an s unless it is 1: "1 patient", "1,200 patients".

    >>> count(1, "patient"), count(1200, "word")
    ('1 patient', '1,200 words')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def describe_privacy(private: bool) -> str:
    """Return "yes: no words from inside spans" for a private model, else "no"."""
    return "yes: no words from inside spans" if private else "no"


def _describe_size(part: object) -> str:
    """Return a part of a model's size as text: a number, or several with their names."""
    if isinstance(part, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_describe_size(value)}" for key, value in part.items())
    return f"{part:,}" if isinstance(part, int | float) else str(part)
