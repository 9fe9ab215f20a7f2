"""The journal of slow sources: what is kept, what is asked again, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.weak.apply import apply
from chaffinch.weak.journal import Journal, remember_answers, sources_digest
from chaffinch.weak.sources import Regex, Source


class Slow:
    """A source that counts how often it is asked."""

    name, label, on = "slow", "Drug", ("dose",)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, doc: Document) -> list[Any]:
        self.asked.append(doc.id)
        if "bad" in doc.text:
            return [(0, 10_000)]
        return [Span(0, 3, "Drug", 0.5, "me", "D1"), (4, 6)] if doc.layers["source:dose"] else []


DOCS = [Document.make(text, id=str(n)) for n, text in enumerate(("aaa 20 mg", "bbb 3 mg", "none", "bad 1 mg"))]


def sources(slow: Slow) -> list[Source]:
    return [slow, Regex("dose", r"\d+ mg", label="Dose")]


def spans_of(docs: Any) -> list[Any]:
    return [(own, own.score, own.source, own.concept) for doc in docs for own in doc.layers["source:slow"]]


def test_answers_are_kept_and_used_and_errors_asked_again(tmp_path: Path) -> None:
    plain, slow, again = Slow(), Slow(), Slow()
    expected = apply(sources(plain), DOCS)
    journal = Journal.open(tmp_path / "j", "run", resume=False)
    first = apply(remember_answers(sources(slow), journal), DOCS)
    assert spans_of(first) == spans_of(expected)
    assert len(spans_of(first)) == 4
    assert [own.errors for own in first.report.sources] == [own.errors for own in expected.report.sources]
    back = Journal.open(tmp_path / "j", "run", resume=True)
    second = apply(remember_answers(sources(again), back), [*DOCS, replace(DOCS[0], id="new"), DOCS[1]])
    assert spans_of(second)[:4] == spans_of(expected)
    assert again.asked == ["3", "new"]


def test_a_document_that_changed_is_asked_again(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j", "run", resume=False)
    apply(remember_answers(sources(Slow()), journal), DOCS[:1])
    changed = [
        Document.make("aab 20 mg", id="0"), replace(DOCS[0], meta={"age": 3}), replace(DOCS[0], group="x"),
        DOCS[0].with_layer("other", []),
    ]  # fmt: skip
    slow = Slow()
    apply(remember_answers(sources(slow), journal), [*changed, DOCS[0]])
    assert len(slow.asked) == 4


def test_a_journal_of_another_run_is_refused_and_a_cut_line_is_not(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal.open(path, "run", resume=False).keep("a", [Span(0, 1, "X")])
    whole = path.read_bytes()
    path.write_bytes(whole + b'["b",[[0')
    assert list(Journal.open(path, "run", resume=True).answers) == ["a"]
    assert path.read_bytes() == whole
    with pytest.raises(ConfigError, match="other sources"):
        Journal.open(path, "another", resume=True)
    path.write_bytes(whole + b"nothing\n")
    with pytest.raises(ConfigError, match="damaged"):
        Journal.open(path, "run", resume=True)
    assert Journal.open(path, "run", resume=False).answers == {}
    assert path.read_bytes() == b"run\n"
    path.write_bytes(b"ru")
    with pytest.raises(ConfigError, match="other sources"):
        Journal.open(path, "run", resume=True)


def test_the_run_is_told_by_the_file_and_its_sources(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("a")
    found: list[Source] = [Regex("dose", "mg", label="Dose")]
    usual = sources_digest(found, file)
    assert sources_digest(found, file) == usual
    assert sources_digest([Regex("dose", "mg", label="Other")], file) != usual
    file.write_text("b")
    assert sources_digest(found, file) != usual
