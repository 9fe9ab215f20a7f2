"""What every format promises, whatever it is called; a new one is tested here by being there."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.text import Document, Soft, Span
from chaffinch.text.formats import FORMATS, Format, ReadOptions, by_name, read, write
from chaffinch.text.formats.walk import entries
from tests.text.formats.annotated import annotated, legal_in_xml
from tests.text.formats.oddities import oddities
from tests.text.formats.roundtrip import assert_kept_or_reported, exact, through
from tests.text.formats.tokenised import enriched_documents, token_documents
from tests.text.strategies import TEXTS, corpora, documents, simple_documents

every_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
SAMPLES = st.one_of(
    corpora(documents), corpora(simple_documents), corpora(token_documents), corpora(enriched_documents),
    corpora(annotated, related=True, concepts=("", "D009270", "a b")),
)  # fmt: skip
NOTES = [
    Document.make(f"Anna saw Dr. Smith on day {n}.", id=f"{n}0-01", layers={"gold": [Span(0, 4, "NAME")]})
    for n in range(3)
]


def usable(docs: list[Document], form: Format) -> list[Document]:
    """The documents, with tokens given or computed from the text; in a folder at least one, with a file's name."""
    sound = [doc if doc.given else _with_computed_tokens(doc) for doc in docs]
    return [replace(doc, id=f"doc-{n}") for n, doc in enumerate(sound or NOTES[:1])] if form.folder else sound


def _with_computed_tokens(doc: Document) -> Document:
    plain = Document.make(doc.text)
    return replace(doc, tokens=plain.tokens, sentences=plain.sentences)


@every_format
@settings(max_examples=60)
@given(docs=SAMPLES)
def test_what_comes_back_is_equal_in_every_part_that_no_loss_names(form: Format, docs: list[Document]) -> None:
    assert_kept_or_reported(usable(docs, form), form.name)


@every_format
def test_each_thing_that_is_odd_comes_back_or_is_named_as_lost(form: Format) -> None:
    for doc in oddities(given=form.can.needs_tokens, folder=form.folder):
        assert_kept_or_reported([doc], form.name)


@every_format
@settings(max_examples=60)
@given(text=TEXTS)
def test_formats_that_are_exact_keep_every_character(form: Format, text: str) -> None:
    doc = Document.make(legal_in_xml(text), id="doc", layers={"gold": ()})
    (back,), losses = through([doc], form.name)
    if form.can.exact:
        assert back.text == doc.text
        assert not [what for what in losses.counts if "characters" in what]


@every_format
def test_what_a_format_says_of_layers_is_so(form: Format) -> None:
    rich = NOTES[0].with_layer("rules", [Span(0, 4, "NAME", source="r")]).with_layer("source:a", [Span(5, 8, "X")])
    soft = rich.with_soft("gold", Soft(("O",), np.ones((len(rich.tokens), 1))))
    (back,), _ = through([soft], form.name)
    kinds = {0: "none", 1: "one", 2: "one", 3: "many"}
    assert kinds[len(back.layers)] == form.can.layers
    assert ("source:a" in back.layers and bool(back.layers["source:a"])) >= form.can.votes
    assert bool(back.soft) == form.can.soft
    assert any(span.source == "r" for span in back.layers.get("rules", ())) == form.can.span_sources


@every_format
def test_a_format_that_needs_tokens_writes_none_without_them(form: Format) -> None:
    bare = Document("doc", "Anna saw.", layers={"gold": ()})
    (back,), _ = through([bare], form.name)
    assert (back.text == bare.text) != form.can.needs_tokens


@every_format
def test_only_a_format_that_says_so_is_not_recognised_without_a_layer(form: Format, tmp_path: Path) -> None:
    path = tmp_path / ("out" if form.folder else f"out{form.suffixes[0]}")
    write([replace(doc, layers={}) for doc in NOTES], path, format=form.name)
    same = read(path).format == form.name
    aliased = form.recognises(entries(path)[0], entries(path)[0].head()) or form.can.needs_layer
    if aliased:
        assert same != form.can.needs_layer


@every_format
def test_the_formats_that_others_name_are_there(form: Format) -> None:
    names = [*dict(form.can.variants).values(), *([form.can.annotated_as] if form.can.annotated_as else [])]
    assert [by_name(name).name for name in names] == names
    assert bool(form.can.annotated_as) <= (form.can.layers == "none")


@every_format
def test_reading_is_parsing_units_one_by_one_in_this_process_or_another(form: Format, tmp_path: Path) -> None:
    path = tmp_path / "in"
    write(NOTES, path, format=form.name)
    files = [file for file in entries(path) if file.suffix in form.suffixes or not form.folder]
    units = list(form.units(files, ReadOptions()))
    documents = [exact(doc) for doc in read(path, format=form.name)]
    assert [exact(unit.read()) for unit in reversed(units)][::-1] == documents
    sent = pickle.loads(pickle.dumps([unit.hold() for unit in units]))
    assert [exact(unit.read()) for unit in sent] == documents
    assert len({unit.content() for unit in units}) == len(units), "content tells documents apart"
    assert not [unit for unit in units if "Anna" in repr(unit)]


def _spoil(form: Format, folder: Path) -> bool:
    """Make the second document of a folder or file one that cannot be read; False if that was not found."""
    found = False
    for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
        if path.is_file():
            content = path.read_bytes()
            for old, new in _FAULTS.get(form.name, _FAULTS["*"]):
                if old in content:
                    path.write_bytes(content.replace(old, new))
                    found = True
    return found


# How to spoil what is written of the second note, and nothing else: by format, else bytes that are not UTF-8.
_FAULTS: dict[str, list[tuple[bytes, bytes]]] = {
    "*": [(b"day 1.", b"d\xff\xff 1."), (b"10-01", b"10\xff01")],
    "bioc-json": [(b'"id":"10-01","infons":{}', b'"id":"10-01","infons":7')],
    "bioc-xml": [(b"<id>10-01</id>", b"<id>10-01</id><annotation/>")],
    "labelstudio": [(b'"id":2,"data":', b'"id":2,"data":7,"was":')],
    "weak": [(b'"1":{"label":', b'"1":{"label":7,"was":')],
}


@every_format
def test_a_document_that_cannot_be_read_takes_no_other_with_it_unless_the_format_is_a_stream(
    form: Format, tmp_path: Path
) -> None:
    if form.name in ("parquet", "docbin"):
        pytest.skip("its bytes cannot be edited")
    path = tmp_path / "in"
    write(NOTES, path, format=form.name)
    assert _spoil(form, path)
    files = [file for file in entries(path) if file.suffix in form.suffixes or not form.folder]
    read_ids, faults = [], []
    for unit in form.units(files, ReadOptions()):
        try:
            read_ids.append(unit.read().id)
        except DataError as error:
            faults.append((unit.rest, str(error.path)))
    streaming = form.can.unit == "stream"
    assert [rest for rest, _ in faults] == [streaming]
    assert str(path) in faults[0][1]
    if streaming:  # the fault may be the end of the document before
        assert read_ids in ([], [NOTES[0].id])
    else:
        assert read_ids == [NOTES[0].id, NOTES[2].id]
