"""What sources say about themselves: what a group in a pattern does, why nothing was found, where they fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.text import Document, Span
from chaffinch.weak.apply import apply
from chaffinch.weak.sources import Abbreviations, Context, History, Lexicon, Regex, Source, Suffix, load_sources, source
from chaffinch.weak.tagger import load

NOTES = [Document.make("Severe HEART failure, seen by Dr. Penn; aspirin 20 mg.", id=str(n)) for n in range(3)]
EXAMPLES = Path(__file__).parents[2] / "examples" / "weak"


def hints(*sources: Source) -> list[tuple[str, ...]]:
    return [tally.hints for tally in apply(sources, NOTES).report.sources]


def test_the_shipped_example_marks_the_whole_disease() -> None:
    sources = {found.name: found for found in load_sources(EXAMPLES / "sources.toml")}
    doc = Document.make("No sign of heart failure today.")
    spans = list(sources["failure"](doc))
    assert [doc.text[span.start : span.end] for span in spans if isinstance(span, Span)] == ["heart failure"]
    for found in apply(list(sources.values()), cf.read(EXAMPLES / "notes.jsonl")).report.sources:
        assert not any("group" in hint for hint in found.hints)


def test_an_unnamed_group_says_that_it_is_the_span() -> None:
    (unnamed, named, plain, several) = hints(
        Regex("a", r"(heart|liver) failure", label="X", ignore_case=True),
        Regex("b", r"(?P<span>heart|liver) failure", label="X", ignore_case=True),
        Regex("c", r"(?:heart|liver) failure", label="X", ignore_case=True),
        Regex("d", r"(sev)ere (heart|liver)", label="X", ignore_case=True),
    )
    assert len(unnamed) == len(several) == 1
    assert "(?:" in unnamed[0]
    assert "(?P<span>" in unnamed[0]
    assert "first" in several[0]
    assert named == plain == ()


@pytest.mark.parametrize(
    ("silent", "word"),
    [
        (Regex("a", r"heart failure", label="X"), "ignore_case"),
        (Regex("a", r"\\d+ mg", label="X"), "backslash"),
        (Regex("a", "kidney", label="X"), "3 documents"),
        (Lexicon("a", ["heart"], label="X", ignore_case=False), "ignore_case"),
        (Lexicon("a", ["aspirin"], label="X", min_length=20), "min_length"),
        (Suffix("a", ["mg"], label="X"), "min_length"),
        (Context("a", ["Prof."], label="X"), "trigger"),
        (Context("a", ["failure"], label="X", reach=1), "fits"),
        (Abbreviations("a", label="X"), "3 documents"),
    ],
)
def test_a_rule_without_a_hit_gets_a_hint(silent: Source, word: str) -> None:
    ((hint,),) = hints(silent)
    assert word in hint
    assert "HEART" not in hint
    assert "Penn" not in hint


def test_a_source_on_silent_sources_says_so() -> None:
    _, (hint,) = hints(Lexicon("list", ["gout"], label="X"), History("again", ["list"]))
    assert "build" in hint


def test_sources_that_found_something_get_none() -> None:
    assert hints(Regex("a", "aspirin", label="X"), Suffix("b", ["irin"], label="X")) == [(), ()]
    assert [tally.hints for tally in apply([Regex("a", "kidney", label="X")], []).report.sources] == [()]


def test_strict_refuses_a_rule_that_does_nothing_or_something_else() -> None:
    for bad in (Regex("a", "kidney", label="X"), Regex("a", "(aspi)rin", label="X")):
        with pytest.raises(DataError, match="'a'"):
            apply([bad], NOTES, strict=True)


@source("raising", label="X")
def raising(doc: Document) -> Iterator[tuple[int, int]]:
    yield (0, 1)
    raise ValueError(doc.text)  # line mark


class Callable:
    name = "callable"

    def __call__(self, doc: Document) -> list[Span]:
        return [Span(0, 1, "X")][len(doc.text) :] + self.missing  # type: ignore[attr-defined,no-any-return]


def test_a_raising_source_names_its_line() -> None:
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), start=1) if "# line mark" in text)
    first, second = apply([raising, Callable()], NOTES).report.sources
    assert first.errors == {f"ValueError at line {line}": 3}
    assert [kind.startswith("AttributeError at line ") for kind in second.errors] == [True]
    with pytest.raises(DataError, match=f"ValueError at line {line}"):
        apply([raising], NOTES, strict=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger that learnt from votes alone, and so has none of its sources."""
    words = ["aspirin", "heparin", "insulin"]
    docs = [Document.make(f"She takes {word} daily now.", id=f"{n}{word}") for n in range(6) for word in words]
    voted = cf.weak.apply([Lexicon("list", words, label="Drug"), Suffix("ends", ["arin", "irin"], label="Drug")], docs)
    path = tmp_path_factory.mktemp("weak") / "m.cfm"
    cf.weak.alternate(voted.documents, student=cf.Cascade(epochs=2, calibrate=False)).tagger.save(path)
    return path


def test_sources_of_any_origin_are_supplied(model: Path) -> None:
    supplied: list[Source] = [Lexicon("list", ["aspirin"], label="Drug"), Suffix("ends", ["arin"], label="Drug")]
    tagger = load(model, sources=supplied)
    assert [found.name for found in tagger.sources] == ["list", "ends"]
    doc = tagger(Document.make("She takes aspirin daily now."))
    assert Span(10, 17, "Drug") in doc.layer("weak")
    assert tagger("She takes aspirin daily now.").layer("weak") == doc.layer("weak")


def test_supplied_sources_replace_stored_ones(tmp_path: Path) -> None:
    words = ["aspirin", "heparin", "insulin"]
    docs = [Document.make(f"She takes {word} daily now.", id=f"{n}{word}") for n in range(6) for word in words]
    sources = [Lexicon("list", words, label="Drug")]
    voted = cf.weak.apply(sources, docs)
    student = cf.Cascade(epochs=2, calibrate=False)
    cf.weak.alternate(voted.documents, student=student, sources=sources).tagger.save(tmp_path / "m.cfm")
    longer = Lexicon("list", [*words, "daily"], label="Drug")
    assert load(tmp_path / "m.cfm", sources=[longer]).sources == (longer,)


def test_a_source_that_the_model_does_not_know_is_refused(model: Path) -> None:
    with pytest.raises(ModelError, match="'lists'") as caught:
        load(model, sources=[Lexicon("lists", ["aspirin"], label="Drug")])
    assert "list" in str(caught.value)


def test_a_label_that_a_pipeline_does_not_have_is_refused() -> None:
    class Pipe:
        pipe_labels: ClassVar = {"ner": ["PERSON", "ORG"], "tagger": ["NN"]}

        def __call__(self, text: str) -> Any:
            raise AssertionError

    cf.weak.FromSpacy("a", Pipe(), labels={"PERSON": "NAME"})
    with pytest.raises(ConfigError, match="'PERSN'"):
        cf.weak.FromSpacy("a", Pipe(), labels={"PERSN": "NAME"})


@pytest.mark.parametrize(
    ("name", "label", "word"), [("lists", "Drug", "did you mean 'list'"), ("list", "Medicine", "1 of 1 labels")]
)
@pytest.mark.parametrize("option", ["--model", "--fit"])
def test_votes_that_an_aggregator_did_not_learn_are_refused(
    name: str, label: str, word: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = [
        Document.make(f"She takes {drug} now.", id=f"{n}{drug}") for n in range(4) for drug in ("aspirin", "heparin")
    ]
    learnt, other = tmp_path / "learnt.jsonl", tmp_path / "other.jsonl"
    cf.write(apply([Lexicon("list", ["aspirin"], label="Drug"), Suffix("ends", ["arin"], label="Drug")], docs), learnt)
    cf.write(apply([Lexicon(name, ["aspirin"], label=label)], docs), other)
    out, model = tmp_path / "out.jsonl", tmp_path / "m.cfm"
    assert main(["weak", "aggregate", str(learnt), "-o", str(out), "--save", str(model), "-q"]) == 0
    out.unlink()
    capsys.readouterr()
    code = main(
        ["weak", "aggregate", str(other), "-o", str(out), option, str(model if option == "--model" else learnt)]
    )
    if option == "--fit" and name == "list":  # all labels of both are learnt
        assert code == 0
        return
    assert code == 3
    assert word in capsys.readouterr().err
    assert not out.exists()
