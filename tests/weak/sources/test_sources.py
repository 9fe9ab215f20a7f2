"""The project file of sources, sources as plain data, and the order in which they run."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.weak.sources import (
    IN_FILES,
    KINDS,
    Abbreviations,
    Annotations,
    Context,
    FromSpacy,
    History,
    Lexicon,
    Link,
    Regex,
    Source,
    Suffix,
    Token,
    TokenPattern,
    describe_source,
    load_sources,
    negative_reliable,
    of_data,
    order_sources,
    source,
    to_data,
)
from chaffinch.weak.sources.base import collect_spans

PLAIN: list[Any] = [
    Regex("dose", r"(\d+) ?mg", label="Dose", ignore_case=True),
    Lexicon("drugs", ["aspirin", "beta blocker"], label="Chemical", plurals=True, negative_reliable=True),
    TokenPattern("doctor", [Token(lower=["dr."], mark=False), Token(shape=["Xx"], repeat="+")], label="NAME"),
    TokenPattern("unit", [Token(regex=r"\d+"), Token(in_list=["MG"]), Token(any=True, repeat="?")], label="Dose"),
    Suffix("itis", ["itis"], label="Disease", exceptions=["tritis"]),
    Context("by", ["seen by"], label="NAME", reach=2, pattern="[A-Z].*"),
    Link("caps", "capitalised", apart=True),
    Link("lists", "phrases", ["beta blocker"]),
    Abbreviations("short", ["itis"]),
    History("again", ["drugs", "itis"], everywhere=True),
]
TEXT = "Seen by Dr. Ada Penn: beta blockers, aspirin 20 MG for hepatitis in Boston (HIB); aspirin, HIB."


@pytest.mark.parametrize("given", PLAIN, ids=lambda own: own.name)
def test_plain_sources_come_back_from_json_and_from_other_processes(given: Any) -> None:
    doc = Document.make(TEXT, layers={"itis": [Span(0, 4, "X")], "drugs": [Span(37, 44, "Y")]})
    data = json.loads(json.dumps(to_data(given)))
    for back in (of_data(data), pickle.loads(pickle.dumps(given))):
        assert back == given
        assert list(back(doc)) == list(given(doc))
        assert describe_source(back) == describe_source(given)


def test_other_sources_say_that_they_cannot_travel() -> None:
    @source("mine", label="X")
    def mine(doc: Document) -> list[tuple[int, int]]:
        return [(0, 1)]

    class Own:
        name = "own"

        def __call__(self, doc: Document) -> list[Span]:
            return []

    for given, what in (
        (mine, "Python code"),
        (Own(), "Python code"),
        (FromSpacy("s", len), "a spaCy pipeline"),
        (Annotations("a", {}), "spans of certain documents"),
    ):
        with pytest.raises(ConfigError, match=f"{what} and cannot be stored in a file"):
            to_data(given)
    with pytest.raises(ConfigError, match="not plain data"):
        of_data({"kind": "spacy", "name": "s"})


TOML = r"""
[[source]]
kind = "regex"
name = "dose"
pattern = '\d+ ?mg'
label = "Dose"
negative_reliable = true

[[source]]
kind = "lexicon"
name = "drugs"
phrases = "lists/drugs.txt"
label = "Chemical"

[[source]]
kind = "tokens"
name = "amount"
pattern = [{regex = '\d+'}, {in_list = "lists/units.txt"}]
label = "Dose"

[[source]]
kind = "spans"
name = "crowd"
path = "crowd.jsonl"

[[source]]
kind = "history"
name = "again"
on = ["drugs"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "drugs.txt").write_text("aspirin\n")
    (tmp_path / "lists" / "units.txt").write_text("mg\n")
    span = {"document": "d", "start": 0, "end": 1, "label": "X"}
    (tmp_path / "crowd.jsonl").write_text("".join(json.dumps({**span, "annotator": n}) + "\n" for n in (1, 2)))
    path = tmp_path / "sources.toml"
    path.write_text(TOML)
    return path


def test_a_project_file_with_paths_beside_it(project: Path) -> None:
    found = load_sources(project)
    assert [own.name for own in found] == ["dose", "drugs", "amount", "crowd/1", "crowd/2", "again"]
    assert negative_reliable(found) == ("dose",)
    assert [len(list(own(Document.make("aspirin 20 mg", id="d")))) for own in found[:5]] == [1, 1, 1, 1, 1]
    assert describe_source(found[0]) == {
        "name": "dose", "kind": "regex", "layer": "source:dose", "label": "Dose", "on": [], "negative_reliable": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('label = "Dose"', 'lable = "Dose"', "source 1 ('dose'): unknown key 'lable' for the kind regex; did you mean"),
        ('kind = "regex"', 'kind = "regx"', "unknown kind 'regx'; did you mean 'regex'?"),
        ('kind = "regex"', "", "has no kind"),
        ('name = "drugs"', 'name = "dose"', "two sources are called 'dose'"),
        ('name = "drugs"', "", "source 2: a source of the kind lexicon needs name"),
        ("[[source]]", "[source]", "TOML"),
        ("[[source]]", "[[sources]]", "unknown key 'sources'"),
        (r"pattern = '\d+ ?mg'", "pattern = '('", "at character 1; close this bracket"),
        ('on = ["drugs"]', 'on = ["again"]', "build on one another in a cycle"),
    ],
)
def test_a_project_file_that_cannot_be_is_explained(project: Path, old: str, new: str, words: str) -> None:
    project.write_text(TOML.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_sources(project)
    assert words in str(caught.value)
    assert "sources.toml" in str(caught.value)


def test_a_list_that_is_not_there(project: Path) -> None:
    (project.parent / "lists" / "drugs.txt").unlink()
    with pytest.raises(DataError, match=r"source 2 \('drugs'\): .*cannot be read"):
        load_sources(project)
    with pytest.raises(ConfigError, match="no such file"):
        load_sources(project.parent / "none.toml")
    with pytest.raises(ConfigError, match=r"\.toml or \.py"):
        load_sources(project.parent / "crowd.jsonl")
    (project.parent / "empty.toml").write_text("")
    with pytest.raises(ConfigError, match="has no sources"):
        load_sources(project.parent / "empty.toml")


def test_a_python_file_of_sources(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(
        "from chaffinch.weak.sources import Regex, source\n"
        "dose = Regex('dose', r'\\d+', label='Dose')\n"
        "@source('loud', label='LOUD', on=['dose'])\n"
        "def loud(doc):\n    return [(a, b) for a, b in doc.tokens.tolist() if doc.text[a:b].isupper()]\n"
        "more = [Regex('x', 'x', label='X'), dose]\n"
    )
    assert [own.name for own in load_sources(path)] == ["dose", "loud", "x"]
    path.write_text("a = 1\nb = a / 0\n")
    with pytest.raises(ConfigError, match=r"ZeroDivisionError at line 2"):
        load_sources(path)
    path.write_text("a = (\n")
    with pytest.raises(ConfigError, match="SyntaxError"):
        load_sources(path)


def test_sources_run_after_those_they_build_on() -> None:
    first, second, third = (
        History("h", ["short"]),
        Abbreviations("short", ["source:list"]),
        Regex("list", "x", label="X"),
    )
    given: list[Source] = [first, second, third]
    assert [own.name for own in order_sources(given)] == ["list", "short", "h"]
    with pytest.raises(ConfigError, match="'a', 'b' build on one another"):
        order_sources([History("a", ["b"]), History("b", ["a"]), third])


def test_what_a_source_gives_is_sorted_and_counted() -> None:
    found = [(3, 5), Span(0, 2, "B", 0.5), (0, 2, "B"), (4, 4), (-1, 2), (0, 99), (1.0, 2), (1, 2, ""), None, "ab"]
    spans, refused = collect_spans(found, "A", 10)
    assert spans == [Span(0, 2, "B"), Span(3, 5, "A")]
    assert refused == {"span outside the text": 3, "not a span": 4}
    assert collect_spans([(0, 1)], "", 10) == ([], {"not a span": 1})


def test_a_kind_is_known_by_what_its_class_says_alone() -> None:
    assert {made.kind for made in KINDS.values()} == set(KINDS)
    assert set(IN_FILES) == set(KINDS) - {"python"}
    for made in KINDS.values():
        known = inspect.signature(made.factory()).parameters
        placed = {*made.file_fields, *made.place_fields, *made.model_fields} - {"in_list"}
        assert placed <= set(known), made.kind
        assert set(made.model_fields) <= set(made.place_fields), made.kind
        assert getattr(cf.weak, made.__name__) is made
    with pytest.raises(AttributeError, match="no attribute 'Regexp'"):
        _ = cf.weak.Regexp


def test_a_project_file_names_all_kinds_where_one_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    for text, message in (('name = "a"', "has no kind; choose one of"), ('kind = "python"', "unknown kind 'python'")):
        path.write_text(f"[[source]]\n{text}\n")
        with pytest.raises(ConfigError, match=message) as caught:
            load_sources(path)
        assert all(kind in str(caught.value) for kind in IN_FILES)
