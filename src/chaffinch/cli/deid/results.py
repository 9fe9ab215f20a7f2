"""What the commands of `chaffinch deid` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from chaffinch.cli.frame.output import facts_table, table_of
from chaffinch.cli.frame.results import Result, facts_of, losses_table

if TYPE_CHECKING:
    from rich.table import Table


class RunResult(Result, kw_only=True):
    """What `deid run` did: the manifest of the release, where it is, and how fast it was."""

    dry_run: bool  # nothing was written
    output: str | None  # the path of the release; null in a dry run
    format: int  # the version of the manifest
    settings: dict[
        str, Any
    ]  # model with its expected and promised recall, policy, secret's fingerprint, ids, released fields, format
    versions: dict[str, str]  # of chaffinch, python and numpy
    documents: dict[str, int]  # in, released, withheld and excluded
    withheld: dict[str, int]  # reasons, and how many documents
    excluded: dict[str, int]  # rules that left files out, and how many
    patients: int
    without_patient: int  # documents that name no patient; each counts as one
    characters: int
    tokens: int
    replacements: int
    labels: dict[str, dict[str, Any]]  # per kind: found, bands of confidence, operators
    over_redaction: dict[str, int]  # words in replacements that are of a clinical class which names nobody; a hint
    expected_leaks: dict[str, Any] | None  # by the detector's probabilities, if it gives any
    chain: dict[str, str]  # first and last hash of the account
    warnings: list[str]  # settings that have no effect, or less than asked
    files: dict[str, Any] | None = None  # number of files, and a hash of them, for `verify`; null in a dry run
    lost: dict[str, int] | None = None  # what the output cannot hold, and how often; null in a dry run
    state: dict[str, int] | None = None  # releases, patients and notes that the state remembered; null without one
    notes_per_second: float

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, tables of kinds, withheld, excluded and lost, and warnings."""
        patients, leaks = f"{self.patients:,}", self.expected_leaks
        if self.without_patient:
            alone = self.without_patient == self.documents["released"]
            whose = "each note is" if alone else f"{self.without_patient:,} notes without one are"
            patients += f" ({whose} taken for its own patient; see --group-by)"
        yield facts_table({
            **{f"documents {name}": number for name, number in self.documents.items()},
            "patients": patients,
            "characters": self.characters,
            "replacements": self.replacements,
            "model": self.settings["model"]["name"],
            "recall": self._recall(),
            "policy": self.settings["policy"]["name"],
            "ids": self.settings["ids"],
            "expected leaks": "not known" if leaks is None else f"{leaks['per_note']:.3g} identifier tokens per note",
            "speed": f"{self.notes_per_second:,.1f} notes/s",
        })  # fmt: skip
        if self.labels:
            yield ""
            yield table_of([_kind_row(label, counts) for label, counts in self.labels.items()])
        if self.over_redaction:
            yield ""
            yield table_of([{"perhaps over-redacted": name, "words": n} for name, n in self.over_redaction.items()])
        if self.withheld:
            yield ""
            yield table_of([{"withheld because": why, "documents": n} for why, n in self.withheld.items()])
        if self.excluded:
            yield ""
            yield table_of([{"excluded by the rule": rule, "items": n} for rule, n in self.excluded.items()])
        yield from losses_table(self.lost or {})
        if self.warnings:
            yield ""
            yield from (f"warning: --{warning}" for warning in self.warnings)

    def _recall(self) -> str:
        """Return a sentence on the recall to expect and that promised, on notes that the model was not tuned on."""
        model = self.settings["model"]
        expected, promised = model.get("expected_recall"), model.get("promised_recall")
        if expected is None:
            return "not measured on other notes; see deid sample"
        return f"{expected:.3f} expected, {promised:.3f} promised with 90 % confidence"


class SparkResult(Result, kw_only=True):
    """What `deid run --engine spark` did: the manifest of the release, where it is, and how fast it was."""

    output: str  # the path of the release
    settings: dict[str, Any]  # engine, model, policy, secret's fingerprint, ids, spans, date order, format
    settings_digest: str  # a SHA-256 of the settings
    versions: dict[str, str]  # of chaffinch, python, numpy, scipy and numba
    documents: dict[str, int]  # in, released and withheld
    withheld: dict[str, int]  # reasons, and how many documents
    patients: int  # whose name or pseudonym is released
    files: dict[str, Any]  # number of files, and a hash of them
    notes_per_second: float

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, and reasons of withheld documents."""
        yield facts_table({
            **{f"documents {name}": number for name, number in self.documents.items()},
            "patients": self.patients,
            "model": self.settings["model"]["name"],
            "policy": self.settings["policy"]["name"],
            "ids": self.settings["ids"],
            "speed": f"{self.notes_per_second:,.1f} notes/s",
        })  # fmt: skip
        if self.withheld:
            yield ""
            yield table_of([{"withheld because": why, "documents": n} for why, n in self.withheld.items()])


class KindCount(Result, kw_only=True):
    """Identifiers of one kind that the model finds, before and after `deid adapt`."""

    kind: str
    before: int
    after: int


class CheckResult(Result, kw_only=True):
    """What `deid adapt` gains on reviewed notes that were not learnt from."""

    notes: int  # reviewed
    identifiers: int  # words of them
    recall_before: float
    recall_after: float
    precision_before: float
    precision_after: float


class AdaptResult(Result, kw_only=True, rename={"from_": "from"}):
    """What `deid adapt` learnt."""

    model: str  # the path of the model file
    from_: str  # the model it began with
    notes: int
    reviewed: int  # notes with every identifier marked
    labels: list[str]
    found: list[KindCount]  # in at most 500 of the notes
    check: CheckResult | None = (
        None  # on reviewed notes that were not learnt from; null with too few or with --no-check
    )
    reader: int  # reviewed notes that the contextual reader has learnt from; 0 if it reads as before
    remarks: list[str]  # what so many notes can do and show
    megabytes: float
    seconds: float

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, gains on reviewed notes, identifiers of each kind before and after."""
        yield facts_table(
            facts_of(self, "found", "labels", "check", "reader", "remarks") | {"labels": ", ".join(self.labels)}
        )
        if self.check is not None:
            row = self.check
            yield ""
            yield table_of(
                [
                    {"on words": "recall", "before": row.recall_before, "after": row.recall_after},
                    {"on words": "precision", "before": row.precision_before, "after": row.precision_after},
                ],
                title=f"{row.notes:,} reviewed notes, each read by a model that did not learn from its patient",
            )
        if self.remarks:
            yield ""
            yield from self.remarks
        if self.found:
            yield ""
            yield table_of([msgspec.structs.asdict(row) for row in self.found], title="Identifiers found in the notes")


class RestoreResult(Result, kw_only=True):
    """What `deid restore` wrote."""

    restored: int  # documents
    in_vault: int  # documents whose originals the vault holds
    format: str


class StateOutput(Result, kw_only=True):
    """A release that a state remembers."""

    output: str  # its path when it was made; it may have been moved since
    notes: int  # released


class HeldNote(Result, kw_only=True):
    """A released note of a patient."""

    output: str  # the path of the release
    released: str  # its id there; in a folder, the name of its file without the ending
    id: str  # in the input


class StateResult(Result, kw_only=True):
    """What `deid state` found."""

    state: str  # its path
    policy: str  # of all its releases
    secret: str | None = None  # fingerprint
    date_order: str | None = None  # of dates such as 03/04/1998, where it is known
    patients: int
    notes: int  # released
    names: int  # distinct words of names, by patient
    unfinished: bool  # a run that uses it stopped before its end, or is going on
    outputs: list[StateOutput]
    known: bool | None = None  # whether there are notes of the patient; null without --patient
    held: list[HeldNote] | None = None  # the patient's notes; null without --patient

    def tables(self) -> Iterator[Table | str]:
        """Yield what a terminal shows: facts, releases, and a patient's notes if one was asked for."""
        yield facts_table(facts_of(self, "outputs", "held"))
        if self.held is None and self.outputs:
            yield ""
            yield table_of([msgspec.structs.asdict(one) for one in self.outputs])
        if self.held:
            yield ""
            yield table_of([msgspec.structs.asdict(one) for one in self.held])


class RekeyResult(Result, kw_only=True):
    """What `deid rekey` changed."""

    vault: str  # its path
    documents: int


class SecretResult(Result, kw_only=True):
    """What `deid secret` wrote."""

    secret: str  # the path of the secret
    fingerprint: str
    old: str | None = None  # where the former secret is, after `rotate`


class StratumRow(Result, kw_only=True):
    """A stratum of risk, for `deid sample`."""

    stratum: int
    lowest_risk: float
    highest_risk: float
    notes: int
    tokens: int
    expected_leaks: float
    read: int  # notes drawn


class SampleResult(Result, kw_only=True):
    """What `deid sample` drew."""

    notes: int  # of the release
    tokens: int
    read: int  # notes drawn
    seed: int
    strata: list[StratumRow]


def _kind_row(label: str, counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table row of a kind of identifier: how many found, by band of confidence, by operator."""
    done = ", ".join(f"{operator} {number:,}" for operator, number in counts["operators"].items())
    return {"kind": label, "found": counts["found"], **counts["bands"], "done": done}
