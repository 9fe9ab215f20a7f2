"""A format is known from its content, whatever the file is called."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.formats import find_format, write
from chaffinch.text.formats.walk import entries


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["1"], "text": ["Anna"]}), sink)
    return sink.getvalue()


LONG = "Anna saw Leeds. " * 10_000
GOLDEN = [
    ("parquet", _parquet()),
    ("labelstudio", b'[{"id":1,"annotations":[{"result":[]}],"data":{"text":"Anna"}}]'),
    ("labelstudio", b'[\n  {\n    "data": {\n      "text": "Anna"\n    }\n  }\n]'),
    ("weak", b'{"0": {"label": [], "data": {"text": ["Anna"]}, "weak_labels": [[]]}}'),
    ("weak", b'{\n "0": {\n  "data": {"text": ["Anna"]},\n  "label": ["O"], "weak_labels": [["O"]]\n }\n}'),
    ("hf", b'{"id":"0","tokens":["Anna"],"ner_tags":["B-PER"]}\n'),
    ("hf", b'{"tokens":["Anna"],"text":"Anna","labels":[0]}\n'),
    ("hf", json.dumps({"tokens": LONG.split()}).encode() + b'\n{"tokens":[]}\n'),
    ("doccano", b'{"id":1,"text":"Anna","label":[[0,4,"PER"]],"Comments":[]}\n'),
    ("doccano", b'{"id":1,"text":"Anna","entities":[],"relations":[],"Comments":[]}\n'),
    (
        "doccano",
        b'{"id":1,"text":"Anna","entities":[{"id":1,"label":"A","start_offset":0,"end_offset":1}],"relations":[]}',
    ),
    ("doccano", json.dumps({"text": LONG, "label": [[0, 4, "PER"]]}).encode() + b"\n"),
    ("jsonl", b'{"text":"Anna"}'),
    ("jsonl", b'\xef\xbb\xbf{"id":"1","text":"Anna","layers":{"gold":[]},"tokens":[[0,4]],"sentences":[[0,4]]}\n'),
    (
        "jsonl",
        b'{"text":"Anna","entities":[{"start":0,"end":4,"label":"PER"}],"relations":[{"label":"r","arguments":[]}]}',
    ),
    ("jsonl", b'{"text":"Anna","label":"positive"}\n'),
    ("jsonl", json.dumps({"text": LONG, "layers": {}}).encode() + b"\n"),
    ("conll", b"-DOCSTART- -X- O O\n\nAnna NNP I-NP I-PER\n"),
    ("conll", b"###MEDLINE:1\n\nIL-2\tB-DNA\n\n"),
    ("conll", b"Confidence NN B-NP\nin IN B-PP\nthe DT B-NP\npound NN I-NP\n\n"),
    ("conll", b"IL-2\tS-DNA\r\ngene\tO\r\n\r\nYes\tO\r\n"),
    ("conll", "Anna\tB-PER\n\xa0\tO\n.\tO\n\n".encode() * 5000),
    ("csv", b"id,text\n1,Anna\n"),
    ("csv", b'\xef\xbb\xbf"ROW_ID";"TEXT"\r\n1;"Anna\r\nSmith"\r\n'),
    ("csv", b"note_id\tnote\n1\tAnna\n"),
    ("csv", b"id,text\n" + b"".join(b'%d,"%s"\n' % (i, LONG.encode()) for i in range(3))),
    ("txt", b"Vitamin B-12\n"),
    ("txt", b"Anna saw Leeds.\nNote O\nThe text, and more.\n"),
    ("txt", b""),
]


@pytest.mark.parametrize(("form", "content"), GOLDEN)
@pytest.mark.parametrize("name", ["a.txt", "data.json", "b.jsonl", "c.tsv", "d.csv", "eng.train", "plain"])
def test_one_sample_of_each_format_is_recognised(tmp_path: Path, form: str, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    named_by_suffix = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}.get(path.suffix)
    if form == "txt" and named_by_suffix:
        assert find_format(entries(path), path).name == named_by_suffix  # prose in it: reading will say what is wrong
    elif form == "txt" and name != "a.txt":
        with pytest.raises(DataError, match="no known format"):
            find_format(entries(path), path)
    else:
        assert find_format(entries(path), path).name == form


@pytest.mark.parametrize("form", ["parquet", "labelstudio", "hf", "doccano", "jsonl", "conll", "csv", "tsv", "weak"])
def test_what_we_write_is_recognised(tmp_path: Path, form: str) -> None:
    doc = Document.make("Anna saw Leeds .", id="1", layers={"gold": [Span(0, 4, "PER")]})
    write([doc, Document.make("Yes .", id="2", layers={"gold": []})], tmp_path / "out", format=form)
    expected = {"tsv": "csv"}.get(form, form)
    assert find_format(entries(tmp_path / "out"), tmp_path / "out").name == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".conll", ".iob1", ".iobes", ".csv", ".tsv", ".parquet"])
def test_the_suffix_tells_what_to_write(tmp_path: Path, suffix: str) -> None:
    write([Document.make("Anna", id="1")], tmp_path / f"out{suffix}")
    names = {".jsonl": "jsonl", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"}
    found = find_format(entries(tmp_path / f"out{suffix}"), tmp_path).name
    assert found == names.get(suffix, "conll")
