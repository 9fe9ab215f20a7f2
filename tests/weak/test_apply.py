"""Running sources: the layers, the report, failures that leak nothing, and any number of workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.weak.apply import UNREAD, apply
from chaffinch.weak.sources import Annotations, History, Lexicon, Link, Regex, Source, source
from chaffinch.weak.sources.files import Place
from chaffinch.weak.votes import collect_votes

NOTES = [
    Document.make("Aspirin 20 mg\r\nand aspirins.", id="a", layers={"gold": [Span(0, 7, "Chemical")]}),
    Document.make("", id="b"),
    Document.make("😀 5 mg Ada Penn", id="c"),
]
DRUGS = Lexicon("drugs", ["aspirin"], label="Chemical", negative_reliable=True)
DOSE = Regex("dose", r"\d+ ?mg", label="Dose")
AGAIN = History("again", ["drugs"])
CAPS = Link("caps", "capitalised")


@source("failing", label="X")
def failing(doc: Document) -> Iterator[tuple[int, int]]:
    yield (0, 1)
    raise ValueError(doc.text)


@source("odd", label="X")
def odd(doc: Document) -> list[Any]:
    return [(0, 3), (5, 500), doc.text]


def test_every_source_becomes_a_layer_in_the_order_given() -> None:
    applied = apply([AGAIN, DRUGS, DOSE, CAPS], NOTES)
    first = applied.documents[0]
    assert list(first.layers) == ["gold", "source:again", "source:drugs", "source:dose", "link:caps"]
    assert first.layers["source:drugs"] == (Span(0, 7, "Chemical"),)
    assert first.layers["source:again"] == (Span(19, 27, "Chemical"),)
    assert [doc.id for doc in applied] == ["a", "b", "c"]
    assert all(doc.layers["source:drugs"] == () for doc in applied.documents[1:])
    assert len(applied) == applied.report.documents == 3
    votes = collect_votes(applied.documents)
    assert (votes.sources, votes.rules) == (("again", "drugs", "dose"), ("caps",))


def test_the_report_counts_what_each_source_did() -> None:
    again, drugs, dose, _ = apply([AGAIN, DRUGS, DOSE, CAPS], NOTES).report.sources
    assert (again.kind, again.on, again.documents, again.spans) == ("history", ("drugs",), 1, 1)
    assert (drugs.label, drugs.negative_reliable, drugs.documents, drugs.spans) == ("Chemical", True, 1, 1)
    assert (dose.documents, dose.spans, dose.errors) == (2, 2, {})
    assert dose.seconds >= 0


def test_a_source_that_fails_is_counted_and_stops_nothing() -> None:
    applied = apply([failing, odd, DOSE], NOTES)
    bad, strange, good = applied.report.sources
    assert bad.errors == {"ValueError at line 34": 3}
    assert (bad.spans, bad.failures) == (0, 3)
    assert strange.errors == {"span outside the text": 3 + 1, "not a span": 3}  # (0, 3) does not fit the empty one
    assert strange.spans == 2
    assert good.spans == 2
    assert applied.report.faulty_sources == ("failing", "odd")
    for doc in NOTES:
        assert not doc.text or doc.text not in repr(applied)


def test_strict_names_the_source_the_document_and_the_kind_of_error() -> None:
    for workers in (1, 2):
        with pytest.raises(DataError) as caught:
            apply([DOSE, failing], NOTES, strict=True, workers=workers)
        assert "'failing' failed on document 1 (ValueError at line 34)" in str(caught.value)
        assert "Aspirin" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_any_callable_with_a_name_is_a_source() -> None:
    class Own:
        name = "own"

        def __call__(self, doc: Document) -> list[Span]:
            return [Span(0, 1, "O")] if doc.text else []

    class Leaving:
        name = "leaving"

        def __call__(self, doc: Document) -> list[Span]:
            sys.exit(doc.text)

    applied = apply([Own(), Leaving()], NOTES)
    assert [own.spans for own in applied.report.sources] == [2, 0]
    assert applied.report.sources[1].errors == {"SystemExit at line 97": 3}
    assert collect_votes(applied.documents).codes[:, 0].max() == 0


def test_a_file_of_spans_reports_what_does_not_fit() -> None:
    places = {
        "a": (Place(Span(0, 7, "Chemical"), "Aspirin"), Place(Span(0, 7, "X"), "aspirin"), Place(Span(0, 900, "X"))),
        "z": (Place(Span(0, 1, "X")),),
    }
    llm = Annotations("llm", places)
    (tally,) = apply([llm], NOTES).report.sources
    assert tally.spans == 1
    assert tally.errors == {"span whose text differs": 1, "span outside the text": 1, UNREAD: 1}
    with pytest.raises(DataError, match="span"):
        apply([llm], NOTES, strict=True)
    with pytest.raises(DataError, match="1 documents that were not read"):
        apply([Annotations("llm", {"z": places["z"]})], NOTES, strict=True)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'drugs'"):
        apply([History("again", ["drug"]), DRUGS], NOTES)
    with pytest.raises(ConfigError, match="called 'drugs'"):
        apply([DRUGS, DRUGS], NOTES)
    with pytest.raises(ConfigError, match="workers"):
        apply([DRUGS], NOTES, workers=0)
    assert apply([History("again", ["gold"])], NOTES).documents[0].layers["source:again"] == (Span(19, 27, "Chemical"),)
    assert apply([], []).documents == ()
    assert apply([History("again", ["nothing"])], []).report.documents == 0


@pytest.mark.parametrize("others", [[], [odd]], ids=["processes", "threads"])
def test_any_number_of_workers_gives_the_same(others: list[Source], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(apply.__globals__, "BATCH_TOKENS", 8)
    notes = [Document.make(f"aspirin {n} mg, aspirins {'x' * n}", id=str(n)) for n in range(30)]
    given: list[Source] = [AGAIN, DRUGS, DOSE, CAPS, *others]
    alone, together = apply(given, iter(notes)), apply(given, iter(notes), workers=3)
    assert together.documents == alone.documents
    assert together.report == alone.report
    assert [doc.id for doc in together] == [str(n) for n in range(30)]


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import chaffinch as cf\n"
        "from chaffinch.errors import ConfigError\n"
        "from chaffinch.weak.apply import apply\n"
        "from chaffinch.weak.sources import Regex\n"
        "try:\n"
        "    apply([Regex('a', 'b', label='X')], [cf.Document.make('b')], workers=2)\n"
        "except ConfigError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert "__main__" in done.stdout
