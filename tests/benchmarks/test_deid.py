"""The benchmark of de-identification: what is counted, how the notes are split, and what it says of missing things."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.deid import benchmark as deid
from benchmarks.deid import data as notes
from benchmarks.deid import dates, peers
from benchmarks.deid.scores import Tally, summed, tally

from chaffinch import Document, Span
from chaffinch.deid.dates.shift import Parsed
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import KINDS
from chaffinch.errors import ConfigError


@dataclass(frozen=True)
class Asked:
    data: Path | None = None
    only: str | None = None
    split: str = "dev"
    seeds: int = 1


def note() -> Document:
    gold = [Span(0, 7, "PATIENT"), Span(12, 20, "DATE"), Span(24, 32, "PROFESSION")]
    return Document.make("Ann Lee, on 3/4/1998, as plumber 45", layers={"gold": gold, "by rule": [Span(33, 35, "AGE")]})


def test_words_of_identifiers_are_counted_and_punctuation_and_ignored_layers_are_not() -> None:
    own = tally([note()], [[Span(4, 8, "DOCTOR"), Span(33, 35, "AGE")]], ignored="by rule")
    assert (own.hits, own.flagged, own.leaking) == (1, 1, 1)  # "Lee"; the comma and the age do not count
    assert own.hipaa == own.gold - 1  # a profession is not on HIPAA's list
    assert own.by_category["NAME"] == 2
    assert own.hits_by_category["NAME"] == 1


def test_nothing_missed_is_no_leaking_note() -> None:
    own = tally([note()], [note().layer("gold")])
    assert (own.recall, own.precision, own.leaking) == (1.0, 1.0, 0)


def test_counts_add_up() -> None:
    one = tally([note()], [[]])
    assert summed([one, one]).gold == 2 * one.gold
    assert summed([one, one]).by_category == {name: 2 * size for name, size in one.by_category.items()}
    assert summed([]) == Tally()


def test_halves_share_no_patient() -> None:
    first, second = notes.halves(notes.other_sites(patients=4))
    assert first
    assert second
    assert not {doc.patient for doc in first} & {doc.patient for doc in second}


def test_moved_dates_keep_their_distances() -> None:
    text = "Seen 14.05.1994 and 2.6.1994, again in March 1995."
    spans = [Span(5, 15, "DATE"), Span(20, 28, "DATE"), Span(39, 49, "DATE")]
    found = dates.check([Document.make(text, layers={"gold": spans})], Secret.new())
    assert (found.pairs, found.unequal, found.partial, found.incompatible) == (1, 0, 1, 0)


def test_a_wrong_distance_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dates, "days_for", lambda _secret, _patient: 40)
    monkeypatch.setattr(Parsed, "shift", lambda self, days: self.text[:-1] + "9")
    text = "Seen 05/14/1994 and 06/02/1993."
    docs = [Document.make(text, layers={"gold": [Span(5, 15, "DATE"), Span(20, 30, "DATE")]})]
    assert dates.check(docs, Secret.new()).unequal == 1


def test_missing_data_and_unknown_parts_are_refused() -> None:
    with pytest.raises(ConfigError, match="--data"):
        deid.run(Asked())
    with pytest.raises(ConfigError, match="meddocan, english, written, peers"):
        deid.run(Asked(Path(), "nothing"))


def test_a_peer_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.MODULES, "scrubadub", ("no_such_module_of_ours",))
    assert "pip install" in peers.absent("scrubadub")


@pytest.mark.parametrize("split", ["dev", "test"])
def test_written_notes_are_marked_with_all_labels(split: str) -> None:
    own = list(notes.written(split))
    assert len(own) == 36
    for doc in own:
        assert "[[" not in doc.text
        assert all(span.label in KINDS for span in doc.layer("gold"))
    labels = {span.label for doc in own for span in doc.layer("gold")}
    assert len(labels) == 30
    assert sum(len(doc.layer("gold")) for doc in own) > 700


def test_marks_leave_the_text_as_it_was() -> None:
    doc = notes.marked("Dr. [[DOCTOR:Penn]] of [[CITY:Eaton]], twice.\n[[DOCTOR:Lowe]]", "a")
    assert doc.text == "Dr. Penn of Eaton, twice.\nLowe"
    assert [doc.text[span.start : span.end] for span in doc.layer("gold")] == ["Penn", "Eaton", "Lowe"]


@pytest.mark.parametrize("missing", ["", "pip install presidio"])
def test_speed_has_rows_for_all_voices_the_fast_ones_and_presidio(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    rates = {"default": 60_000.0, "fast": 900_000.0, peers.PRESIDIO_SPACY: 20_000.0}

    def job(_: deid.Bench, name: str, **asked: str) -> dict[str, Any]:
        if name == "products":
            return {"floats": 120.0, "bytes": 1000.0, "compiled": True}
        return {"chars per CPU s": rates[asked["system"]], "reader": True}

    monkeypatch.setattr(deid.Bench, "job", job)
    monkeypatch.setattr(peers, "absent", lambda _: missing)
    bench = deid.Bench.__new__(deid.Bench)
    bench.part, bench.rows, bench.bars = "speed", [], []
    bench._read_speed()
    shown = {row["system"]: row.get("chars per CPU s") or row.get("Gop per CPU s") for row in bench.rows}
    assert shown["chaffinch, with reader, detection, dev writers"] == 60_000
    assert shown["chaffinch --fast, detection, dev writers"] == 900_000
    assert (shown["products of floats, BLAS"], shown["products of bytes, compiled"]) == (120, 1000)
    bars = {bar["id"]: bar["value"] for bar in bench.bars}
    assert bars["default_chars_per_cpu_second"] == 60_000
    assert bars.get("default_ahead_of_presidio") == (None if missing else 3.0)
    assert bars.get("fast_ahead_of_presidio") == (None if missing else 45.0)
