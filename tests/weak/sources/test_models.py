"""Other systems as sources: our taggers, spaCy, functions, and files of a crowd or a language model."""

from __future__ import annotations

import builtins
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from chaffinch.errors import ChaffinchError, ConfigError, DataError, MissingExtraError
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from chaffinch.weak.sources import FromSpacy, FromTagger, load_sources, read_annotations


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    notes = [Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    return train([note.with_layer("gold", [Span(4, 8, "DOCTOR")]) for note in notes])


def test_a_tagger_in_memory_or_on_disk(tagger: Tagger, tmp_path: Path) -> None:
    doc = Document.make("Dr. Ford came.")
    assert FromTagger("t", tagger)(doc) == [Span(4, 8, "DOCTOR")]
    assert FromTagger("t", tagger, labels={"DOCTOR": "NAME"})(doc) == [Span(4, 8, "NAME")]
    tagger.save(tmp_path / "m.cfm")
    assert FromTagger("t", tmp_path / "m.cfm")(doc) == [Span(4, 8, "DOCTOR")]
    with pytest.raises(ConfigError, match="no label 'NURSE'"):
        FromTagger("t", tagger, labels={"NURSE": "NAME"})


def test_a_tagger_beside_the_project_file(tagger: Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "m.cfm")
    table = '[[source]]\nkind = "tagger"\nname = "t"\nmodel = "m.cfm"\nlabels = {DOCTOR = "NAME"}\n'
    (tmp_path / "sources.toml").write_text(table)
    (found,) = load_sources(tmp_path / "sources.toml")
    assert list(found(Document.make("Dr. Ford came."))) == [Span(4, 8, "NAME")]
    (tmp_path / "sources.toml").write_text(table.replace("m.cfm", "none.cfm"))
    with pytest.raises(ChaffinchError, match=r"source 1 \('t'\)"):
        load_sources(tmp_path / "sources.toml")


def test_a_spacy_pipeline(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spacy = pytest.importorskip("spacy")
        pipeline = spacy.blank("en")
        pipeline.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Acme"}])
        pipeline.to_disk(tmp_path / "pipe")
        doc = Document.make("😀\r\nfrom Acme")
        assert FromSpacy("s", pipeline)(doc) == [Span(8, 12, "ORG")]
        assert FromSpacy("s", tmp_path / "pipe", labels={"ORG": "FIRM"})(doc) == [Span(8, 12, "FIRM")]
        with pytest.raises(ConfigError, match="no pipeline 'xx_none'"):
            FromSpacy("s", "xx_none")


def test_without_spacy_the_pip_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "spacy":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError) as caught:
        FromSpacy("s", "en_core_web_sm")
    assert "pip install 'chaffinch[spacy]'" in str(caught.value)


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_file_of_spans_has_one_source_per_annotator(tmp_path: Path) -> None:
    place = {"document": "d1", "start": 2, "end": 6, "label": "NAME"}
    path = lines(
        tmp_path / "crowd.jsonl",
        {**place, "annotator": "b", "text": "Penn"},
        {**place, "annotator": "a", "label": "O"},
        {**place, "annotator": "b", "document": 7},
    )
    a, b = read_annotations("crowd", path, negative_reliable=True)
    doc = Document.make("😀 Penn", id="d1")
    assert (a.name, b.name, a.negative_reliable) == ("crowd/a", "crowd/b", True)
    assert (a(doc), b(doc)) == ([Span(2, 6, "O")], [Span(2, 6, "NAME")])
    assert b.documents == {"d1", "7"}
    assert a(Document.make("other", id="d2")) == []
    (alone,) = read_annotations("llm", lines(tmp_path / "llm.jsonl", place))
    assert alone.name == "llm"


def test_spans_that_do_not_fit_are_counted_and_not_moved(tmp_path: Path) -> None:
    place = {"document": "d1", "start": 2, "end": 6, "label": "NAME"}
    path = lines(
        tmp_path / "llm.jsonl", {**place, "text": "Pen"}, {**place, "end": 60}, {**place, "start": 6}, place
    )  # fmt: skip
    (source,) = read_annotations("llm", path)
    doc = Document.make("a Penn", id="d1")
    assert source(doc) == [Span(2, 6, "NAME")]
    assert source.misfits(doc) == {"span whose text differs": 1, "span outside the text": 2}
    assert "Pen" not in repr(source)


def test_a_broken_file_of_spans_is_explained(tmp_path: Path) -> None:
    for record, words in (
        ({"start": 0, "end": 1, "label": "X"}, "document"),
        ({"document": "d", "start": "0", "end": 1, "label": "X"}, "start"),
        ({"document": "d", "start": 0, "end": 1, "label": " "}, "empty label"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            read_annotations("s", lines(tmp_path / "s.jsonl", record))
        assert "s.jsonl:1:" in str(caught.value)
    with pytest.raises(DataError, match="no spans"):
        read_annotations("s", lines(tmp_path / "s.jsonl"))
