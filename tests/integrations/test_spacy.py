"""The components of spaCy: found by name, exact spans, and nothing of an identifier left out."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import spacy

import chaffinch as cf
import chaffinch.integrations.spacy  # registers the factories, as an installed entry point does

ROOT = Path(__file__).resolve().parents[2]
NOTE = "Seen by Dr. Margaret Penn on 3/4/1998. Call 617-555-0134."


@pytest.fixture
def nlp() -> Any:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("chaffinch_deid", config={"model": None})
    return pipeline


def test_spans_are_those_of_the_detector(nlp: Any) -> None:
    (note,) = cf.deid.detector(None)([cf.Document.make(NOTE)])
    expected = [(span.start, span.end, span.label) for span in note.layer("deid")]
    doc = nlp(NOTE)
    group = doc.spans["chaffinch_deid"]
    assert [(span.start_char, span.end_char, span.label_) for span in group] == expected
    assert [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents] == expected
    assert group.attrs["scores"] == [span.score for span in note.layer("deid")]
    assert expected


def test_a_pipe_gives_what_single_calls_give(nlp: Any) -> None:
    texts = [note.text for note in cf.deid.notes(patients=3, seed=2)]
    alone = [[(ent.start, ent.end, ent.label_) for ent in nlp(text).ents] for text in texts]
    assert [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in nlp.pipe(texts, batch_size=4)] == alone
    assert any(alone)


def test_a_span_inside_a_token_is_widened_and_ours_win(nlp: Any) -> None:
    text = "Seen by Dr. Pennxyz/3-4-1998/ward"
    doc = spacy.blank("en").tokenizer(text)
    component = nlp.get_pipe("chaffinch_deid")
    token = doc[-1]
    doc.set_ents([spacy.tokens.Span(doc, token.i, token.i + 1, "OLD"), spacy.tokens.Span(doc, 0, 1, "FIRST")])
    component._write(doc, [cf.Span(token.idx + 1, token.idx + 3, "NEW")])
    assert [(ent.label_, ent.start_char, ent.end_char) for ent in doc.ents] == [
        ("FIRST", 0, 4),
        ("NEW", token.idx, token.idx + len(token)),
    ]


def test_any_tagger_is_a_component(tmp_path: Path) -> None:
    named = [cf.Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    cf.train([note.with_layer("gold", [cf.Span(4, 8, "DOCTOR")]) for note in named]).save(tmp_path / "names.cfm")
    pipeline = spacy.blank("en")
    config = {"model": str(tmp_path / "names.cfm"), "set_ents": False, "spans_key": "names"}
    pipeline.add_pipe("chaffinch_tagger", config=config)
    doc = pipeline("Dr. Ford came.")
    assert [(span.text, span.label_) for span in doc.spans["names"]] == [("Ford", "DOCTOR")]
    assert not doc.ents


def test_a_saved_pipeline_comes_back(nlp: Any, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert [ent.text for ent in again(NOTE).ents] == [ent.text for ent in nlp(NOTE).ents]


def test_spacy_finds_the_components_by_name_alone(tmp_path: Path) -> None:
    """With the entry points of pyproject.toml as an installed package has them, no import is needed."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["spacy_factories"]
    installed = tmp_path / "chaffinch_points-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: chaffinch_points\nVersion: 0\n")
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    (installed / "entry_points.txt").write_text(f"[spacy_factories]\n{lines}")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import spacy; nlp = spacy.blank('en');"
        "nlp.add_pipe('chaffinch_deid', config={'model': None});"
        "print([ent.label_ for ent in nlp('Seen by Dr. Penn.').ents])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == "['DOCTOR']\n", done.stderr
