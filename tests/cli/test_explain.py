"""`explain` and `deid explain`: numbers and offsets without text, everything for one span, text where asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chaffinch as cf
from chaffinch.cli import main
from tests.canary import Canary
from tests.models.notes import notes

NOTE = "Attending: Dr. Osric Quillfeather\nMRN: 4471209\nSeen on 3/4/1998.\n"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text(NOTE)
    return path


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "names.cfm"
    cf.train(notes(24), cf.Cascade(epochs=2)).save(path)
    return path


def test_deid_explain_shows_voices_and_no_text(note: Path, tmp_path: Path) -> None:
    done = Canary(tmp_path).run("deid", "explain", note)
    assert done.returncode == 0, done.stderr
    assert "[15, 33) DOCTOR: chance" in done.stdout
    assert "  pattern id-mrn: [39, 46) MEDICALRECORD" in done.stdout
    assert "  tagger cascade: " in done.stdout
    full = Canary(tmp_path).run("deid", "explain", note, "--json")
    assert full.returncode == 0, full.stderr


def test_deid_explain_in_json_has_what_python_has(note: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deid", "explain", str(note), "--json", "--with-text"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = cf.deid.explain(cf.Document.make(NOTE), cf.deid.detector("deid-en", by_patient=True))
    (document,) = told["documents"]
    assert (told["model"], told["spans"], document["document"]) == ("deid-en", len(expected), 1)
    for number, (found, why) in enumerate(zip(document["spans"], expected, strict=True), start=1):
        assert found.pop("number") == number
        assert found.pop("text") == NOTE[why.span.start : why.span.end]
        assert found == json.loads(json.dumps(why.to_dict(with_text=True)))


def test_one_span_is_explained_in_full_and_quoted_if_asked(note: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deid", "explain", str(note), "--span", "1"]) == 0
    plain = capsys.readouterr().out
    assert "span 1\n" in plain
    assert "span 2" not in plain
    assert "  layer patterns: DOCTOR" in plain
    assert "Quillfeather" not in plain
    assert main(["deid", "explain", str(note), "--span", "1", "--with-text"]) == 0
    assert "span 1 Osric Quillfeather\n" in capsys.readouterr().out
    assert main(["deid", "explain", str(note), "--span", "9"]) == 2
    assert "--span 9: 3 spans were found; choose one of them" in capsys.readouterr().err


def test_names_repeat_in_the_other_notes_of_the_patient(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p1-a.txt").write_text("Attending: Dr. Osric Penhaligon.")
    (tmp_path / "p1-b.txt").write_text("The plan was changed, which Penhaligon had wanted.")
    command = ["deid", "explain", str(tmp_path), "--group-by", r"^(\w+)-", "--model", "rules"]
    assert main(command) == 0
    assert "  repeat other note 1" in capsys.readouterr().out
    assert main([*command, "--apart"]) == 0
    assert "repeat" not in capsys.readouterr().out


def test_a_tagger_explains_what_it_finds_or_what_is_marked(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = notes(4, 1)
    cf.write(docs, tmp_path / "docs.jsonl")
    assert main(["explain", str(tagger), str(tmp_path / "docs.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = [len(doc.layer("cascade")) for doc in cf.load(tagger).annotate(docs)]
    assert told["spans"] == sum(found)
    assert [len(each["spans"]) for each in told["documents"]] == [number for number in found if number]
    voice = told["documents"][0]["spans"][0]["voices"][0]
    assert sum(each["weight"] for each in voice["features"]) == pytest.approx(voice["margin"])
    assert {each["quote"] for each in voice["features"]} == {None}
    assert main(["explain", str(tagger), str(tmp_path / "docs.jsonl"), "--layer", "gold", "--json"]) == 0
    marked = json.loads(capsys.readouterr().out)
    assert marked["spans"] == sum(len(doc.layer("gold")) for doc in docs)
    assert main(["explain", str(tagger), str(tmp_path / "docs.jsonl"), "--layer", "none"]) == 3
    assert "no layer of the name given with --layer" in capsys.readouterr().err


def test_a_model_that_is_no_tagger_is_refused_with_the_remedy(note: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "deid-en", str(note)]) == 3
    assert "use chaffinch deid explain" in capsys.readouterr().err


def test_nothing_found_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note.txt").write_text("No pain.")
    assert main(["deid", "explain", str(tmp_path / "note.txt"), "--model", "rules"]) == 0
    assert capsys.readouterr().out == "no span was found\n"


@pytest.mark.parametrize(("text", "found"), [("", "no"), ("No pain.", "no"), ("Seen by Dr. Penn.", "one")])
def test_a_span_number_that_is_too_high_says_what_to_do(
    text: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.txt").write_text(text)
    assert main(["deid", "explain", str(tmp_path / "note.txt"), "--model", "rules", "--span", "2"]) == 2
    assert f"--span 2: {found} span was found; leave out --span" in capsys.readouterr().err


def test_offsets_are_of_code_points_as_the_file_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\ufeff\U0001f600 \U0001f469\u200d\u2695\ufe0f Pain:\r\nnone.\r\nSeen by Dr. Pe\u0301nn\u200b.\r\n"
    (tmp_path / "note.txt").write_bytes(text.encode())
    assert main(["deid", "explain", str(tmp_path / "note.txt"), "--model", "rules", "--json", "--with-text"]) == 0
    ((span,),) = (document["spans"] for document in json.loads(capsys.readouterr().out)["documents"])
    start, end, name = span["span"]["start"], span["span"]["end"], "Pe\u0301nn\u200b"  # all that is written there
    assert (start, text[start:end], span["text"]) == (text.index("Pe"), name, name)
