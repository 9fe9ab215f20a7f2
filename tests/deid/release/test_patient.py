"""A document goes out with every identifier replaced, or does not go out; and the account tells both apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release import patient as module
from chaffinch.deid.release.account import Account, check_chain
from chaffinch.deid.release.patient import LAYER, NumberedDocument, Release, Released, Withheld, detect_each, release
from chaffinch.deid.release.replace import ReplacedText, Replacement
from chaffinch.deid.release.units import UnitSource, open_source, read_unit
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Soft, Span, formats
from chaffinch.text.formats import ReadOptions, by_name, read, write
from chaffinch.text.grouping import Grouping
from tests.deid.releases import CANARY, OTHER_SECRET, SECRET, FunctionDetector, detector, find, note
from tests.deid.texts import documents

HOW = Release(Policy("tag"))
FORMATS = [form.name for form in formats.FORMATS]


def one(text: str = f"Dr. {CANARY} came.", **more: str) -> Document:
    return Document.make(text, **{"id": "n1", **more})  # type: ignore[arg-type]


def released(doc: Document, how: Release = HOW, found: FunctionDetector | None = None) -> Released | Withheld:
    return release([NumberedDocument(1, doc)], how, found or detector())[0]


@given(documents(overlaps=True), st.sampled_from(["tag", "number", "mask", "remove", "keep", "surrogates"]))
@settings(max_examples=300)
def test_undoing_every_replacement_gives_the_input(doc: Document, name: str) -> None:
    policy = Policy.read("i2b2-surrogate") if name == "surrogates" else Policy(name, PolicyRule(name))
    out = released(doc, Release(policy, SECRET), replace(detector(lambda docs: docs), layer="found"))
    assert isinstance(out, Released)
    text = out.text
    for start, end, _, _, out_start, out_end in reversed(out.places):
        text = text[:out_start] + doc.text[start:end] + text[out_end:]
    assert text == doc.text
    assert Released.unpack(out.pack(), doc.id, doc.group) == out
    assert sum(n for counts in out.bands.values() for n in counts.values()) == len(doc.layer("found"))


def test_only_what_is_named_goes_along() -> None:
    doc = Document.make("Dr. Penn", id="PENN", group="Mary", meta={"ward": 7, "name": "Penn"}, layers={"gold": []})
    out = released(doc, Release(Policy("tag"), fields=("ward",)))
    assert isinstance(out, Released)
    written = out.document(spans=False)
    assert (written.id, written.group, written.meta, written.layers) == ("0000001", None, {"ward": 7}, {})
    assert out.document(spans=True).layers == {LAYER: (Span(4, 12, "DOCTOR"),)}
    kept = released(doc, Release(Policy("tag"), keep_ids=True))
    assert isinstance(kept, Released)
    assert (kept.id, kept.group) == ("PENN", "Mary")


def test_names_are_pseudonyms_that_depend_on_the_secret_and_the_name_alone() -> None:
    how, other = Release(Policy("tag"), SECRET), Release(Policy("tag"), OTHER_SECRET)
    assert how.name("PENN", 1) == how.name("PENN", 2) != how.name("LOWE", 1)
    assert how.name("PENN", 1) != other.name("PENN", 1)
    assert how.patient("PENN") != how.name("PENN", 1)
    assert how.patient(None) is None


def test_a_policy_that_needs_a_secret_is_refused_without() -> None:
    with pytest.raises(ConfigError, match="chaffinch deid secret new"):
        Release(Policy.read("i2b2-surrogate"))


def _failing(docs: Iterable[Document]) -> Iterator[Document]:
    for doc in docs:
        if CANARY in doc.text:
            raise ValueError(doc.text)
        yield from find([doc])


def test_a_detector_that_fails_on_a_document_withholds_that_one_alone() -> None:
    docs = [one(f"Dr. {name} came.", id=f"n{number}") for number, name in enumerate(["Penn", CANARY, "Lowe", CANARY])]
    docs.append(one("Dr. Penn again.", id="n9", group="n0"))
    results = release([NumberedDocument(n, doc) for n, doc in enumerate(docs)], HOW, detector(_failing))
    assert [type(result) for result in results] == [Released, Withheld, Released, Withheld, Released]
    assert results[1] == Withheld("0000001", "n1", "failed with ValueError")
    assert CANARY not in repr(results)
    alone = release([NumberedDocument(2, docs[2])], HOW, detector(_failing))
    assert alone == [results[2]]


def _shifted(docs: Sequence[Document]) -> Iterator[Document]:
    for doc in docs:
        yield replace(doc, layers={LAYER: (Span(0, len(doc.text) + 1, "DOCTOR"),)})


@pytest.mark.parametrize(
    "step",
    [
        lambda docs: [],
        lambda docs: docs,
        lambda docs: [*find(docs), *find(docs)],
        lambda docs: [replace(doc, text=doc.text + "!") for doc in find(docs)],
        lambda docs: [replace(doc, id="other") for doc in find(docs)],
        lambda docs: 1 / 0,
        lambda docs: None,
        _shifted,
    ],
)
def test_a_detector_that_does_anything_odd_releases_nothing(step: object) -> None:
    found = detect_each([one(), one("Dr. Penn.", id="n2")], detector(step))  # type: ignore[arg-type]
    assert all(isinstance(result, Exception) for result in found)


def test_whatever_fails_while_acting_withholds_and_says_no_word_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ValueError(CANARY), MemoryError(CANARY), RecursionError(CANARY), DataError("failed at [4, 16)")):

        def fail(*_: object, problem: BaseException = error) -> ReplacedText:
            raise problem

        monkeypatch.setattr(module, "replace_identifiers", fail)
        out = released(one())
        assert isinstance(out, Withheld)
        assert CANARY not in out.reason


def test_overlapping_spans_leave_nothing_of_either() -> None:
    def both(docs: Sequence[Document]) -> list[Document]:
        return [doc.with_layer(LAYER, [Span(4, 12, "DOCTOR"), Span(9, 16, "PATIENT")]) for doc in docs]

    out = released(one("Dr. Penn Lowe Hart came."), HOW, detector(both))
    assert isinstance(out, Released)
    assert out.text == "Dr. [DOCTOR][PATIENT]rt came."
    assert [(place[0], place[1]) for place in out.places] == [(4, 12), (12, 16)]


def test_expected_leaks_are_of_tokens_that_no_replacement_touches() -> None:
    doc = one("Dr. Penn saw Lowe")  # 4 tokens
    values = np.array([[1.0, 0, 0], [0.1, 0.9, 0], [0.75, 0, 0.25], [0.5, 0.25, 0.25]])
    doc = doc.with_soft(LAYER, Soft(("O", "DOCTOR", "DATE"), values))
    acted = ReplacedText("n1", "", (Replacement(6, 8, "DOCTOR", "tag", 0, 0),))
    row = module.residual_risk(doc, LAYER, acted, "out")
    assert row is not None
    assert (row["id"], row["tokens"], row["expected"]) == ("out", 4, 0.75)
    assert row["categories"] == {"NAME": 0.25, "DATE": 0.5}
    assert row["any_leak"] == pytest.approx(1 - 0.75 * 0.5)
    assert module.residual_risk(one(), LAYER, acted, "out") is None


def test_the_account_adds_up_and_its_chain_shows_every_change() -> None:
    account = Account(HOW.settings(detector()))
    docs = [one(f"Dr. Penn, 01/02/1998. {n}", id=str(n)) for n in range(4)]
    results = [released(doc) for doc in docs]
    results[2] = Withheld("n2", "x", "too long")
    lines = [account.add(result) for result in results]
    manifest = account.manifest()
    assert manifest["documents"] == {"in": 4, "released": 3, "withheld": 1, "excluded": 0}
    assert manifest["labels"]["DOCTOR"]["bands"] == {"0.99-1": 0, "0.9-0.99": 3, "0.5-0.9": 0, "0-0.5": 0}
    assert manifest["labels"]["DATE"]["operators"] == {"tag": 3}
    assert manifest["replacements"] == 6
    assert "Penn" not in json.dumps(manifest) + b"".join(lines).decode()
    assert check_chain(lines, manifest) == 4
    for wrong in (lines[1:], lines[:3], [lines[1], lines[0], *lines[2:]], [*lines, lines[3]]):
        with pytest.raises(DataError):
            check_chain(wrong, manifest)
    with pytest.raises(DataError):
        check_chain([lines[0].replace(b"DOCTOR", b"DOKTOR"), *lines[1:]], manifest)
    with pytest.raises(DataError):
        check_chain(lines, {**manifest, "settings": {**manifest["settings"], "spans": True}})


def _ids(given: UnitSource) -> list[str]:
    return [unit.read().id for unit in given]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("parts", [1, 2])
def test_units_are_the_documents_that_the_format_reads(form: str, parts: int, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for part in range(parts):
        docs = [Document.make(note(n).replace("\0", ""), id=f"{part}{n}-01", layers={"gold": []}) for n in range(3)]
        write(docs, folder / f"part{part}{by_name(form).suffixes[0]}", format=form)
    expected = list(read(folder, format=form))
    units = list(open_source(folder, form=form))
    assert [unit.read() for unit in units] == expected
    assert [unit.number for unit in units] == list(range(1, 3 * parts + 1))
    assert len({unit.name for unit in units}) == 3 * parts


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize(("form", "content"), [
    ("jsonl", b'{"text": "One."}\n\n{"text": "Two.", "id": "0"}\r\n{"text": "Three."}'),
    ("csv", b'\xef\xbb\xbfnote;x\r\n"One\r\n;.";1\r\n\r\nTwo;"2"\r\n'),
    ("csv", b"text,x\nOne.,1\n\"Two \"\"2\"\" \xc3\xa9\",2\n"),
])  # fmt: skip
def test_records_without_an_id_are_numbered_as_the_format_does(
    form: str, content: bytes, files: int, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(files):
        (folder / f"n{number}.{form}").write_bytes(content)
    assert [unit.read() for unit in open_source(folder, form=form)] == list(read(folder, format=form))


def test_a_bad_file_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Dr. Penn came.\r\n")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9 " + CANARY.encode())
    (tmp_path / "c.txt").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "d.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "e.pdf").write_bytes(b"%PDF-1.4" + CANARY.encode())
    (tmp_path / "f.txt").write_bytes(CANARY.encode() * 40)
    (tmp_path / "g.txt").write_bytes(b"")
    source = open_source(tmp_path, options=ReadOptions(max_chars=300))
    found = _reasons(source)
    assert source.seen == 7
    assert found["a"] == found["g"] == ""
    assert "UTF-8" in found["b"]
    assert "UTF-8" in found["c"]
    assert "cannot be read" in found["d"]
    assert "480 characters" in found["f"]
    assert [(item.name, item.rule[:15]) for item in source.excluded] == [("e.pdf", "is no .txt file")]
    assert CANARY not in str(found)


def _reasons(given: UnitSource) -> dict[str, str]:
    found = {}
    for unit in given:
        try:
            read_unit(unit)
            found[unit.id] = ""
        except DataError as error:
            found[unit.id] = module.reason(error)
    return found


def test_a_bad_record_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    lines = [b'{"text": "One."}', b'{"text": "Quill', b'{"text": "caf\xe9"}', b'["Quill"]', b'{"text": "Five."}']
    (tmp_path / "n.jsonl").write_bytes(b"\n".join(lines))
    found = _reasons(open_source(tmp_path / "n.jsonl"))
    assert [bool(found[str(n)]) for n in range(5)] == [False, True, True, True, False]
    rows = [b"id,text", b"a,One.", b"b,Two.,Quill", b"c,caf\xe9", b'd,"Four', b'."', b"e," + b"x" * 99, b"f,Six."]
    (tmp_path / "n.csv").write_bytes(b"\n".join(rows))
    given = open_source(tmp_path / "n.csv", options=ReadOptions(max_chars=90))
    found = _reasons(given)
    assert [bool(found[str(n)]) for n in range(6)] == [False, True, True, False, True, False]
    assert "Quill" not in str(found)


def test_what_stands_behind_broken_quotes_is_withheld(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_bytes(b'id,text\na,One.\nb,"Two" Quill\nc,Three.\n')
    found = list(_reasons(open_source(tmp_path / "n.csv")).values())
    assert found[0] == ""
    assert "nor any document after it" in found[1]
    assert len(found) == 2


def test_an_over_long_row_of_parquet_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    texts = ["One.", "x" * 99, "Three."]
    write([Document.make(text, id=str(n)) for n, text in enumerate(texts)], tmp_path / "n.parquet")
    found = _reasons(open_source(tmp_path / "n.parquet", options=ReadOptions(max_chars=50)))
    assert [bool(reason) for reason in found.values()] == [False, True, False]


def test_patients_come_from_a_pattern_or_a_table() -> None:
    doc = one(id="penn-01")
    assert Grouping(r"^(\w+)-")(doc).group == "penn"
    assert Grouping(r"^\w+")(doc).group == "penn"
    assert Grouping("nothing")(doc).group is None
    assert Grouping(table={"penn-01": "Mary"})(doc).group == "Mary"
    with pytest.raises(ConfigError, match="regular expression"):
        Grouping("(")
