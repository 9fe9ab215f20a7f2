"""`chaffinch train` and `chaffinch tag` as a user meets them: what they find, and trouble that loses nothing."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.cli import train as train_module
from chaffinch.cli.train.progress import progress_line
from chaffinch.models import tagger
from chaffinch.models.cascade import model as cascade
from chaffinch.models.core.training import Progress
from chaffinch.text import Document, Soft, Span
from chaffinch.text.formats import read, write
from tests.canary import Canary
from tests.cli.interrupts import interrupt_at_walk

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = ("Penn", "Lowe", "Hart", "Ford", "Cole", "Nash", "Webb", "Dunn", "Pike", "Shaw", "Reed", "Boyd")
UNSEEN = ("Marsh", "Thorne", "Vickers")

Printed = pytest.CaptureFixture[str]


def note(name: str, number: int, *, drug: bool = False) -> Document:
    """An invented note about a doctor and a date; perhaps with a drug."""
    text = f"Seen by Dr. {name} on {number % 12 + 1}/{number + 10}/1998. She is well.\nDr. {name} gave aspirin."
    date = text.index(" on ") + 4
    spans = [Span(date, text.index(". She"), "DATE")]
    spans += [Span(place, place + len(name), "DOCTOR") for place in (12, text.rindex(name))]
    spans += [Span(text.index("aspirin"), len(text) - 1, "DRUG")] if drug else []
    return Document.make(text, id=f"{name}-1", group=name, layers={"gold": spans})


def notes_of(names: Sequence[str], *, drug: bool = False) -> list[Document]:
    return [note(name, number, drug=drug) for number, name in enumerate(names)]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    write(notes_of(NAMES), path)
    return path


@pytest.fixture
def model(labelled: Path, tmp_path: Path, capsys: Printed) -> Path:
    path = tmp_path / "notes.cfm"
    assert main(["train", str(labelled), "-o", str(path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    return path


@pytest.fixture
def unseen(tmp_path: Path) -> Path:
    path = tmp_path / "unseen.jsonl"
    write(notes_of(UNSEEN), path)
    return path


def result_of(arguments: Sequence[str | Path], capsys: Printed, *, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    found = main([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert found == code, printed.err
    result: dict[str, Any] = json.loads(printed.out)
    return result


def refused(arguments: Sequence[str | Path], code: int, words: str, capsys: Printed) -> None:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err


def test_train_tag_evaluate(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "tagged.jsonl"
    assert result_of(["tag", model, unseen, "-o", out], capsys) == {
        "from": "jsonl",
        "to": "jsonl",
        "align": None,
        "confidence": None,
        "patients": None,
        "documents_with_patient": None,
        "documents": 3,
        "characters": sum(len(doc.text) for doc in notes_of(UNSEEN)),
        "tokens": sum(len(doc.tokens) for doc in notes_of(UNSEEN)),
        "spans": 9,
        "labels": {"DATE": 3, "DOCTOR": 6},
        "lost": {},
    }
    assert all(set(doc.layers) == {"gold", "cascade"} for doc in read(out))
    assert result_of(["evaluate", unseen, out], capsys)["strict"]["micro"]["f1"] == 1.0


def test_the_example_notes(tmp_path: Path, capsys: Printed) -> None:
    path, out = tmp_path / "notes.cfm", tmp_path / "tagged"
    assert main(["train", str(EXAMPLES / "notes"), "-o", str(path), "--group-by", r"^(\d+)-"]) == 0
    printed = capsys.readouterr()
    assert "AGE, CITY, DATE, DOCTOR" in printed.out
    assert "vocabulary floor  1 patient\n" in printed.out
    assert "private           yes: no words from inside spans\n" in printed.out
    assert "one patient alone used; before you share it, see --set floor=2." in printed.err
    assert main(["tag", str(path), str(EXAMPLES / "notes"), "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert "layers other than the new one      6" in printed.out
    assert result_of(["evaluate", EXAMPLES / "notes", out], capsys)["strict"]["micro"]["f1"] > 0.95


def test_the_summary_of_training_as_json(labelled: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "m.cfm"
    told = result_of(["train", labelled, "-o", path, "--dev", unseen, "--set", "notes=CC0, by nobody"], capsys)
    expected = {
        "model": str(path),
        "method": "cascade",
        "documents": 12,
        "patients": 12,
        "documents_with_patient": 12,
        "labels": ["DATE", "DOCTOR"],
        "spans": 36,
        "tokens": sum(len(doc.tokens) for doc in notes_of(NAMES)),
        "vocabulary_floor": 1,
        "sentences": "prose",
        "private": True,
        "interrupted": False,
        "lost": {},
        "dev": {"documents": 3, "precision": 1.0, "recall": 1.0, "f1": 1.0},
    }
    assert {key: told[key] for key in expected} == expected
    assert set(told) - set(expected) == {"size", "megabytes", "seconds", "calibrated"}
    assert told["megabytes"] == round(path.stat().st_size / 1e6, 3)
    shown = result_of(["show", path], capsys)
    assert sum(shown["features"].values()) == told["size"]["features"] > 0
    assert set(shown["calibration"]) == {"scale", "slope", "intercept"}
    assert (shown["notes"], shown["corpus"]) == ("CC0, by nobody", "")


def test_a_share_of_the_patients_is_held_out(labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    told = result_of(["train", labelled, "-o", tmp_path / "m.cfm", "--dev", "0.25", "--set", "seed=3"], capsys)
    assert (told["documents"], told["dev"]["documents"]) == (9, 3)
    assert main(["train", str(labelled), "-o", str(tmp_path / "m.cfm"), "--dev", "0.25"]) == 0
    assert "F1 1.000 on 3 documents" in capsys.readouterr().out


def test_what_reading_could_not_keep_is_told(labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    notes, path = tmp_path / "notes", tmp_path / "m.cfm"
    notes.mkdir()
    (notes / "a.txt").write_text("left and right arm")
    (notes / "a.ann").write_text("T1\tBODY 0 4;15 18\tleft arm\n")
    assert sum(result_of(["train", notes, "-o", path, "--dev", labelled], capsys)["lost"].values()) == 1
    assert main(["train", str(notes), "-o", str(path)]) == 0
    assert "not kept" in capsys.readouterr().out


def test_going_on_from_a_model_adds_a_label(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    more, again, out = tmp_path / "more.jsonl", tmp_path / "again.cfm", tmp_path / "tagged.jsonl"
    text = "Take {} twice daily.\nShe gave aspirin."
    taken = [text.format(drug) for drug in ("aspirin", "codeine", "heparin", "insulin")]
    write([Document.make(one, id=one[5:12], layers={"gold": [Span(5, 12, "DRUG")]}) for one in taken], more)
    told = result_of(["train", more, "-o", again, "--start", model], capsys)
    assert told["labels"] == ["DATE", "DOCTOR", "DRUG"]  # the first two are known from the earlier documents alone
    assert result_of(["show", again], capsys)["documents"] == 12 + 4
    assert result_of(["tag", again, unseen, "-o", out], capsys)["labels"] == {"DATE": 3, "DOCTOR": 6}
    assert result_of(["tag", again, more, "-o", out], capsys)["labels"] == {"DRUG": 4}
    before = model.read_bytes()
    for option in (
        ["--set", "scheme=IOB2"],
        ["--set", "stages=2"],
        ["--set", "layers=pos"],
        ["--set", "published=true"],
    ):
        refused(["train", more, "-o", model, "--start", model, *option], 2, f"leave out {option[0]}", capsys)
    refused(
        ["train", more, "-o", model, "--start", model, "--set", f"clusters={more}"],
        2,
        "leave out --set clusters",
        capsys,
    )
    assert model.read_bytes() == before


def test_same_seed_same_model_and_same_output(
    labelled: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, other = tmp_path / "again.cfm", tmp_path / "other.cfm"
    assert main(["train", str(labelled), "-o", str(again), "--quiet", "--set", "workers=2"]) == 0
    assert again.read_bytes() == model.read_bytes()
    assert main(["train", str(labelled), "-o", str(other), "--quiet", "--set", "seed=1"]) == 0
    assert other.read_bytes() != model.read_bytes()
    monkeypatch.setattr(tagger, "BATCH_TOKENS", 30)  # several batches
    outs = [tmp_path / f"{workers}.jsonl" for workers in (1, 2)]
    for workers, out in enumerate(outs, start=1):
        run = ["tag", model, labelled, "-o", out, "--quiet", "--confidence", "--posteriors", "--workers", str(workers)]
        assert main([*map(str, run)]) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_every_option_of_training_reaches_the_model(labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    names, path, plain = tmp_path / "names.txt", tmp_path / "m.cfm", tmp_path / "plain.jsonl"
    names.write_text("# doctors\nMarsh\nThorne\n")
    with_words = [doc.with_layer("pos", [Span(0, 4, "VBN")]) for doc in notes_of(NAMES)]
    write(with_words, plain)
    options = [
        "--set",
        "objective=crf",
        "--set",
        "scheme=IOB2",
        "--set",
        "epochs=3",
        "--set",
        "floor=2",
        "--set",
        "private=true",
        "--set",
        "documents=false",
    ]
    options += ["--lexicon", f"NAME={names}", "--lexicon", f"OTHER={names}", "--set", f"clusters={labelled}"]
    told = result_of(["train", plain, "-o", path, *options, "--set", "layers=pos", "--set", "workers=2"], capsys)
    assert told["vocabulary_floor"] == 2
    config = result_of(["show", path], capsys)["config"]
    chosen = {"objective": "crf", "scheme": "IOB2", "epochs": 3, "floor": 2, "private": True, "documents": False}
    assert {name: config[name] for name in chosen} == chosen
    assert config["layers"] == ["pos"]
    learnt = tagger.load(path).model
    assert isinstance(learnt, cascade.Model)
    kept = learnt.resources
    assert kept.lexicon is not None
    assert kept.lexicon.labels == ("NAME", "OTHER")
    assert kept.clusters is not None
    refused(["tag", path, labelled, "-o", tmp_path / "x.jsonl"], 3, "no layer 'pos', which serves as a feature", capsys)
    two = result_of(
        ["train", labelled, "-o", path, "--set", "published=true", "--set", "epochs=2", "--set", "private=false"],
        capsys,
    )
    config = result_of(["show", path], capsys)["config"]
    assert (config["stages"], config["epochs"], config["cutoff"]) == (2, 2, 6)
    assert two["size"]["features"] == sum(result_of(["show", path], capsys)["features"].values())


def test_soft_labels_teach_too(unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    soft, path = tmp_path / "soft.jsonl", tmp_path / "m.cfm"
    docs = []
    for doc in notes_of(NAMES):
        doctors = [int(doc.text[a:b] == doc.group) for a, b in doc.tokens]
        values = np.array([[1 - sure, sure] for sure in doctors], float)
        docs.append(Document.make(doc.text, id=doc.id, soft={"votes": Soft(("O", "DOCTOR"), values)}))
    write(docs, soft)
    told = result_of(["train", soft, "-o", path, "--set", "soft=votes"], capsys)
    assert (told["labels"], told["spans"]) == (["DOCTOR"], 0)
    assert result_of(["tag", path, unseen, "-o", tmp_path / "t.jsonl"], capsys)["labels"] == {"DOCTOR": 6}


def test_a_labelled_file_with_one_layer_gets_the_predictions(
    model: Path, unseen: Path, tmp_path: Path, capsys: Printed
) -> None:
    columns, out = tmp_path / "in.conll", tmp_path / "out.conll"
    write([doc.with_layer("gold", []) for doc in notes_of(UNSEEN)], columns)
    told = result_of(["tag", model, columns, "-o", out], capsys)
    assert (told["from"], told["to"], told["labels"]["DOCTOR"]) == ("conll", "conll", 6)
    assert told["lost"] == {"layers other than the new one": 3}
    assert sum(span.label == "DOCTOR" for doc in read(out) for span in doc.layer()) == 6
    refused(["tag", model, columns, "-o", tmp_path / "x.conll", "--strict"], 3, "other than the new one (3)", capsys)
    assert not (tmp_path / "x.conll").exists()


def test_the_form_of_the_output(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    texts, tasks = tmp_path / "texts", tmp_path / "tasks.json"
    assert main(["convert", str(unseen), "-o", str(texts), "--to", "txt", "-q"]) == 0
    told = result_of(["tag", model, texts, "-o", tmp_path / "brat", "--strict"], capsys)
    assert (told["to"], told["lost"]) == ("brat", {})
    assert (tmp_path / "brat" / "Marsh-1.ann").read_text().startswith("T1\tDOCTOR 12 17\tMarsh\n")
    assert result_of(["tag", model, texts, "-o", tmp_path / "x.jsonl"], capsys)["to"] == "jsonl"
    assert result_of(["tag", model, unseen, "-o", tasks, "--to", "labelstudio"], capsys)["to"] == "labelstudio"
    assert set(next(iter(read(tasks))).layers) == {"gold", "cascade"}
    told = result_of(["tag", model, tasks, "-o", tmp_path / "again.json", "--new-layer", "second"], capsys)
    assert told["to"] == "labelstudio"
    assert set(next(iter(read(tmp_path / "again.json"))).layers) == {"gold", "cascade", "second"}
    refused(["tag", model, texts, "-o", tmp_path / "t", "--to", "txt"], 2, "txt cannot hold spans", capsys)
    refused(["tag", model, texts, "-o", tmp_path / "t.txt"], 2, "name it with --to", capsys)


def test_confidence_and_posteriors(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "out.jsonl"
    told = result_of(["tag", model, unseen, "-o", out, "--new-layer", "ours", "--confidence", "--posteriors"], capsys)
    assert told["lost"] == {}
    for doc in read(out):
        assert all(0 < span.score < 1 for span in doc.layer("ours"))
        assert doc.soft["ours"].labels == ("O", "DATE", "DOCTOR")
        np.testing.assert_allclose(doc.soft["ours"].values.sum(axis=1), 1.0, rtol=0, atol=1e-6)
    told = result_of(["tag", model, unseen, "-o", tmp_path / "brat", "--to", "brat", "--posteriors"], capsys)
    assert told["lost"]["soft layers"] == 3


def test_a_layer_that_is_replaced_is_reported(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    told = result_of(["tag", model, unseen, "-o", tmp_path / "o.jsonl", "--new-layer", "gold"], capsys)
    assert told["lost"] == {"layers with the name of the new one": 3}


def test_bias_finds_more_or_less(labelled: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    model = tmp_path / "open.cfm"
    result_of(["train", labelled, "-o", model, "--set", "private=false"], capsys)

    def spans(*bias: str) -> int:
        options = [part for one in bias for part in ("--bias", one)]
        found: int = result_of(["tag", model, unseen, "-o", tmp_path / "o.jsonl", *options], capsys)["spans"]
        return found

    assert spans("O=-100") > spans() > spans("O=100") == 0
    assert spans("DATE=-100") == 6 == spans("DATE=5", "DATE=-100")
    for bad in ("O", "O=", "=1", "O=x", "O=nan", "O=inf", ""):
        refused(["tag", model, unseen, "-o", tmp_path / "x", "--bias", bad], 2, "is not LABEL=NUMBER", capsys)
    refused(["tag", model, unseen, "-o", tmp_path / "x.jsonl", "--bias", "DOC=1"], 2, "O, DATE, DOCTOR", capsys)


def test_what_is_small_but_sound_works(tmp_path: Path, labelled: Path, capsys: Printed) -> None:
    one, dev, path = tmp_path / "one.jsonl", tmp_path / "dev.jsonl", tmp_path / "m.cfm"
    write([Document.make("Dr. Penn came.", layers={"gold": [Span(4, 8, "DOCTOR")]})], one)
    assert result_of(["train", one, "-o", path], capsys)["spans"] == 1
    assert result_of(["tag", path, one, "-o", tmp_path / "o.jsonl"], capsys)["labels"] == {"DOCTOR": 1}
    write(notes_of(UNSEEN, drug=True), dev)  # a label that training never saw
    told = result_of(["train", labelled, "-o", path, "--dev", dev], capsys)
    assert (told["dev"]["precision"], told["dev"]["recall"]) == (1.0, 0.75)
    assert main(["train", str(one), "-o", str(path), "--set", "published=true", "--set", "private=false"]) == 0
    printed = capsys.readouterr()
    assert "1 (each document counts as one; see --group-by)" in printed.out
    assert "no feature" in printed.err


def test_data_that_cannot_teach(model: Path, labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    before, source = model.read_bytes(), tmp_path / "in.jsonl"
    overlap = Document.make("Dr. Penn came.", layers={"gold": [Span(4, 8, "DOCTOR"), Span(0, 8, "NAME")]})
    plain = Document.make("Dr. Penn came.", layers={"gold": []})
    cases: list[tuple[list[Document], list[str], str]] = [
        ([], [], "no documents to learn from"),
        ([plain], [], "holds no span in any of 1 documents"),
        ([overlap], [], "[0, 8) NAME and [4, 8) DOCTOR overlap"),
        (notes_of(NAMES[:1]), ["--dev", "0.5"], "fewer than two patients"),
        (notes_of(NAMES), ["--layer", "silver"], "no layer 'silver'"),
        (notes_of(NAMES), ["--set", "soft=votes"], "no soft layer 'votes'"),
        (notes_of(NAMES), ["--set", "layers=pos"], "no layer 'pos'"),
        (notes_of(NAMES[:1]), ["--set", f"clusters={source}"], "of at least 2 patients"),
        (notes_of(NAMES), ["--dev", str(tmp_path / "none")], "does not exist"),
    ]
    for documents, options, words in cases:
        write(documents, source)
        refused(["train", source, "-o", model, *options], 3, words, capsys)
    for document, words in ((overlap, "overlap"), (plain, "none of the 1 dev documents holds a span")):
        write([document], source)
        refused(["train", labelled, "-o", model, "--dev", source], 3, words, capsys)
    assert model.read_bytes() == before


def test_options_that_cannot_be(model: Path, labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    before, phrases = model.read_bytes(), tmp_path / "p.txt"
    phrases.write_text("x\n")
    cases = [
        (["--method", "casacde"], 2, "unknown method 'casacde'; did you mean 'cascade'?"),
        (["--method", "crf"], 2, "unknown method 'crf'; choose one of cascade, hmmdp"),
        (["--lexicon", "names.txt"], 2, "--lexicon 'names.txt' is not LABEL=FILE"),
        (["--lexicon", "=names.txt"], 2, "is not LABEL=FILE"),
        (["--lexicon", f"NAME={tmp_path / 'none.txt'}"], 3, "none.txt: cannot be read"),
        (["--lexicon", f"NAME={phrases}"], 2, "under 2 characters"),
        (["--set", "layers=gold"], 2, "is the layer to be learnt"),
        (["--set", "scheme=BIO"], 2, "scheme must be one of IOBES"),
        (["--set", "stages=3"], 2, "stages must be one of 1, 2"),
        (["--set", "objective=svm"], 2, "objective must be one of pa, crf"),
        (["--set", "epochs=0"], 2, "epochs must be a whole number, at least 1, got 0"),
        (["--set", "floor=0"], 2, "floor must be a whole number, at least 1, got 0"),
        (["--set", "workers=0"], 2, "workers"),
        (["--dev", "1"], 2, "must lie between 0 and 1"),
        (["--start", str(tmp_path / "none.cfm")], 3, "no such file"),
        (["--group-by", str(tmp_path / "none.tsv")], 2, "no such file"),
    ]
    for options, code, words in cases:
        refused(["train", labelled, "-o", model, *options], code, words, capsys)
    assert model.read_bytes() == before


def test_the_place_of_the_model_is_checked_first(
    labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    def learns(*_: object, **__: object) -> None:
        raise AssertionError("it must not come to learning")

    monkeypatch.setattr(train_module, "train", learns)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    before = labelled.read_bytes()
    for place, words in (
        (tmp_path / "no" / "m.cfm", "does not exist"),
        (tmp_path, "is a folder"),
        (labelled, "the output is an input"),
        (pipe, "not a regular file"),
    ):
        refused(["train", labelled, "-o", place], 2, words, capsys)
    assert labelled.read_bytes() == before

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    refused(["train", labelled, "-o", tmp_path / "m.cfm"], 2, "nothing can be written in", capsys)


def test_the_place_of_the_tagged_documents(model: Path, unseen: Path, tmp_path: Path, capsys: Printed) -> None:
    pipe, before = tmp_path / "pipe.jsonl", (model.read_bytes(), unseen.read_bytes())
    os.mkfifo(pipe)
    for place, code, words in (
        (unseen, 2, "the output is an input"),
        (model, 2, "the output is an input"),
        (pipe, 2, "neither a file nor a folder"),
        (tmp_path / "no" / "x.jsonl", 3, "does not exist"),
    ):
        refused(["tag", model, unseen, "-o", place], code, words, capsys)
    assert (model.read_bytes(), unseen.read_bytes()) == before


def test_what_is_no_tagger(labelled: Path, model: Path, tmp_path: Path, capsys: Printed) -> None:
    other, cut = tmp_path / "other.cfm", tmp_path / "cut.cfm"
    bundle.save(other, bundle.Manifest(kind="other"), {"w": np.zeros(3, np.float32)})
    cut.write_bytes(model.read_bytes()[:-1])
    for path, words in (
        (labelled, "not a model file"),
        (other, "is a model of kind 'other', not a tagger (cascade, hmmdp, classhmm, encoder)"),
        (cut, "checksum does not match"),
        (tmp_path / "none", "no packaged model of that name"),
    ):
        refused(["tag", path, labelled, "-o", tmp_path / "x.jsonl"], 3, words, capsys)
        refused(["train", labelled, "-o", model, "--start", path], 3, words, capsys)
    assert not (tmp_path / "x.jsonl").exists()


def test_a_full_disk_leaves_the_old_files(
    labelled: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    out = tmp_path / "tagged.jsonl"
    out.write_text("mine")
    before = model.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(["train", labelled, "-o", model, "--set", "seed=5"], 3, "an existing file is unchanged", capsys)
    refused(
        ["train", labelled, "-o", tmp_path / "new.cfm"],
        3,
        "new.cfm: cannot be written (No space left on device)",
        capsys,
    )
    refused(["tag", model, labelled, "-o", out], 1, "could not be written (No space left on device)", capsys)
    assert (model.read_bytes(), out.read_text()) == (before, "mine")
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith((".chaffinch-", "new"))]


@pytest.mark.parametrize("number", [1, 2, 15, 40])
def test_ctrl_c_saves_what_was_learnt(
    number: int, labelled: Path, unseen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    path, out = tmp_path / "m.cfm", tmp_path / "o.jsonl"
    interrupt_at_walk(number, monkeypatch)
    assert main(["train", str(labelled), "-o", str(path), "--json"]) == 130
    printed = capsys.readouterr()
    assert json.loads(printed.out)["interrupted"] is True
    assert f"chaffinch: stopped early; the best model so far is saved in {path}\n" in printed.err
    assert "not written" not in printed.err
    assert result_of(["show", path], capsys)["metrics"]["interrupted"] == 1.0
    assert result_of(["tag", path, unseen, "-o", out], capsys)["spans"] == (0 if number == 1 else 9)


def test_settings_from_a_file(labelled: Path, tmp_path: Path, capsys: Printed) -> None:
    config, path = tmp_path / "c.toml", tmp_path / "m.cfm"
    config.write_text('[train]\ndev = "0.25"\n[train.cascade]\nepochs = 2\ndocuments = false\nnotes = "ours"\n')
    told = result_of(["train", labelled, "-o", path, "--config", config, "--set", "epochs=4"], capsys)
    assert told["dev"]["documents"] == 3
    shown = result_of(["show", path], capsys)
    assert (shown["config"]["epochs"], shown["config"]["documents"], shown["notes"]) == (4, False, "ours")
    config.write_text("[train.cascade]\nepoch = 2\n")
    refused(["train", labelled, "-o", path, "--config", config], 2, "did you mean 'epochs'?", capsys)


def test_the_live_line() -> None:
    assert progress_line(Progress("first readings", 1, 5, 0.0), 2.0) == "first readings · fold 1/5 · 8 s left"
    assert progress_line(Progress("reading", 8, 8, 0.0, 0.5), 9.0) == "reading · epoch 8/8 · loss 0 · dev F1 0.500"
    assert progress_line(Progress("passes", 2, 3, 1234.5), 4.0) == "passes 2/3 · bound -1,234 · 2 s left"
    assert progress_line(Progress("discriminative", 4, 4, 0.25), 4.0) == "discriminative · epoch 4/4 · loss 0.25"


def test_help_begins_with_an_example(capsys: Printed) -> None:
    for verb in ("train", "tag"):
        assert main([verb, "--help"]) == 0
        lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
        assert lines[1].startswith(f"chaffinch {verb}")


@pytest.fixture
def compiled(canary: Canary) -> None:
    """The kernels that the tests above compiled, where a canary's command looks for them."""
    from chaffinch.kernels._compile import FOLDER

    if FOLDER is not None:
        shutil.copytree(FOLDER, canary.folder / "private" / "chaffinch_cache" / "kernels" / FOLDER.name)


@pytest.mark.usefixtures("compiled")
def test_no_word_of_a_document_leaves_by_another_way(model: Path, tmp_path: Path, canary: Canary) -> None:
    source = tmp_path / "in.jsonl"
    write(notes_of((*NAMES, canary.word)), source)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    path, out = outputs / "m.cfm", outputs / "o.jsonl"
    done = canary.run("train", source, "-o", path, "--dev", source, "--group-by", "(.*)-", outputs=[path])
    assert done.returncode == 0, done.stderr
    assert canary.word.encode() not in path.read_bytes()
    done = canary.run("tag", path, source, "-o", out, "--confidence", outputs=[out])
    assert done.returncode == 0, done.stderr
    assert canary.word in out.read_text()
    overlap = Document.make(f"Dr. {canary.word} came.", layers={"gold": [Span(0, 9, "A"), Span(4, 9, "B")]})
    write([overlap], source)
    failing: list[list[str | Path]] = [
        ["train", source, "-o", path],
        ["train", source, "-o", path, "--set", "max_chars=5"],
        ["train", source, "-o", path, "--layer", "none"],
        ["tag", source, source, "-o", out],
        ["tag", path, source, "-o", out, "--max-chars", "5"],
    ]
    for arguments in failing:
        assert canary.run(*arguments, outputs=[path, out]).returncode == 3
    assert sorted(file.name for file in outputs.iterdir()) == ["m.cfm", "o.jsonl"]
