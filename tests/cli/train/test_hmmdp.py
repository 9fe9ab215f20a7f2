"""`chaffinch train --method hmmdp` and `chaffinch tag` with its models, as a user meets them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle, languages
from chaffinch.cli import main
from chaffinch.deid import notes
from chaffinch.models import tagger
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.text import Document, Soft, Span
from chaffinch.text.document import Splitter
from chaffinch.text.formats import read, write
from tests.canary import Canary
from tests.cli.interrupts import interrupt_at_pass, interrupt_at_walk

SMALL = ("--subtags", "3,1", "--epochs", "2")  # quick to learn
LINES = "Seen by Dr. Penn\non 3/12/1998\nat Mercy\nShe is well. Dr. Lowe\ncame."  # its lines are not its sentences

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notes.jsonl, h.cfm of both stages and g.cfm of the generative one."""
    folder = tmp_path_factory.mktemp("hmmdp")
    write(notes(12, 3), folder / "notes.jsonl")
    source = str(folder / "notes.jsonl")
    assert main(["train", source, "-o", str(folder / "h.cfm"), "--method", "hmmdp", "--quiet"]) == 0
    small = ["--method", "hmmdp", "--quiet", "--no-discriminative", "--subtags", "3,1"]
    assert main(["train", source, "-o", str(folder / "g.cfm"), *small]) == 0
    return folder


def result_of(arguments: Sequence[object], capsys: Printed, *, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    found = main([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert found == code, printed.err
    result: dict[str, Any] = json.loads(printed.out)
    return result


def printed_by(arguments: Sequence[object], capsys: Printed) -> tuple[str, str]:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def refused(arguments: Sequence[object], code: int, words: str, capsys: Printed) -> None:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err


def config_of(path: Path) -> dict[str, Any]:
    return dict(bundle.load(path).manifest.config)


def test_train_tag_evaluate(place: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "tagged.jsonl"
    told = result_of(["tag", place / "h.cfm", place / "notes.jsonl", "-o", out, "--confidence"], capsys)
    assert (told["documents"], "align" in told, told["lost"]) == (36, False, {})
    found = list(read(out))
    assert all(set(doc.layers) == {"gold", "hmmdp"} for doc in found)
    assert {span.source for doc in found for span in doc.layer("hmmdp")} == {"hmmdp"}
    assert all(0 < span.score < 1 for doc in found for span in doc.layer("hmmdp"))
    assert result_of(["evaluate", place / "notes.jsonl", out], capsys)["strict"]["micro"]["f1"] > 0.9


@pytest.mark.parametrize("name", ["h.cfm", "g.cfm"])
def test_documents_that_are_small_or_strange(name: str, place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = ["", "x", "Žluťoučký ²³ \U0001f9ec\r\n\r\n", "Dr. Zzyzx"]
    write([Document.make(text, id=str(number)) for number, text in enumerate(texts)], source)
    asked = ["tag", place / name, source, "-o", out, "--posteriors", "--align", "balanced", "--bias", "O=-1"]
    assert result_of(asked, capsys)["documents"] == 4
    for doc, text in zip(read(out), texts, strict=True):
        assert doc.text == text
        assert doc.soft["hmmdp"].values.shape == (len(doc.tokens), 1 + len(tagger.load(place / name).labels))


def test_same_seed_same_model(place: Path, tmp_path: Path) -> None:
    def trained(name: str, *options: str) -> bytes:
        run = ["train", str(place / "notes.jsonl"), "-o", str(tmp_path / name), "--method", "hmmdp", "-q", *SMALL]
        assert main([*run, *options]) == 0
        return (tmp_path / name).read_bytes()

    first = trained("a.cfm")
    assert trained("b.cfm", "--workers", "2", "--seed", "0") == first
    assert trained("c.cfm", "--seed", "1") != first


def test_the_summary_as_json(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "m.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--method", "hmmdp", *SMALL, "--dev-fraction", "0.25"]
    told = result_of(run, capsys)
    expected = {
        "method": "hmmdp",
        "documents": 27,
        "patients": 9,
        "sentences": "lines",
        "interrupted": False,
        "lost": {},
    }
    assert {key: told[key] for key in expected} == expected
    kept = bundle.load(path)
    words, signatures = (len(kept.strings[f"symbols.{name}"]) for name in ("words", "signatures"))
    assert told["symbols"] == {"words": words, "signatures": signatures}
    assert words > 0
    states = 3 + 2 * len(told["labels"])  # B and I of each label
    used = int((kept.arrays["mass"] > 1).sum())
    assert told["sub-tags"] == {"O": 3, "others": 1, "in all": states, "in use": used}
    assert 1 < used <= states
    assert told["features"] == len(kept.arrays["latent.keys"]) > 0
    assert told["dev"]["documents"] == 9
    assert 0 < told["dev"]["f1"] <= 1


def test_the_summary_in_words(place: Path, tmp_path: Path, capsys: Printed) -> None:
    run = ["train", place / "notes.jsonl", "-o", tmp_path / "m.cfm", "--method", "hmmdp", "--subtags", "3,1"]
    out, err = printed_by([*run, "--no-discriminative", "--dev-fraction", "0.25"], capsys)
    facts = dict(line.split("  ", 1) for line in out.splitlines())
    assert facts["symbols"].strip().endswith(" signatures")
    assert " words, " in facts["symbols"]
    assert "3 of O, 1 of every other tag; " in facts["sub-tags"]
    assert facts["sub-tags"].endswith(" in use")
    assert facts["features"].strip() == "0"
    assert facts["sentences"].strip() == "lines"
    assert "F1 0." in facts["dev"]
    assert err == ""  # it has no features, but is not empty; and two patients used each of its words
    _, err = printed_by([*run, "--no-discriminative", "--floor", "1"], capsys)
    assert err == "The model holds words that one patient alone used; before you share it, see --floor.\n"
    _, err = printed_by([*run, "--no-discriminative", "--floor", "1", "--no-private"], capsys)
    assert err == (
        "The model holds words of identifiers; share it only as you would the notes, or train it with --private.\n"
    )
    _, err = printed_by([*run, "--no-discriminative", "--floor", "1", "--private"], capsys)
    assert err == ""


def test_every_option_reaches_the_model(place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, path, names = place / "notes.jsonl", tmp_path / "m.cfm", tmp_path / "names.txt"
    names.write_text("Marsh\nThorne\n")
    run = ["train", source, "-o", path, "--method", "hmmdp"]
    options = ["--language", "de", "--subtags", "4,2", "--emissions", "categorical", "--decode", "joint"]
    options += ["--epochs", "1", "--floor", "3", "--private", "--seed", "5"]
    told = result_of([*run, *options, "--lexicon", f"NAME={names}", "--clusters", source], capsys)
    chosen = {
        "language": "de", "outside": 4, "inside": 2, "emissions": "categorical", "decode": "joint", "epochs": 1,
        "floor": 3, "min_patients": 3, "private": True, "seed": 5, "discriminative": True,
        "layer": "hmmdp", "split": "lines",
    }  # fmt: skip
    config = config_of(path)
    assert {name: config[name] for name in chosen} == chosen
    assert told["vocabulary floor"] == 3
    model = tagger.load(path).model
    assert isinstance(model, hmmdp_model.Model)
    assert model.resources.lexicon is not None
    assert model.resources.lexicon.labels == ("NAME",)
    assert model.resources.clusters is not None
    result_of([*run, "--emissions", "backoff", "--no-discriminative", "--subtags", "2, 1"], capsys)
    config = config_of(path)
    assert (config["emissions"], config["discriminative"], config["inside"]) == ("backoff", False, 1)
    told = result_of([*run, "--published", "--subtags", "2,1"], capsys)
    config = config_of(path)
    assert (config["emissions"], config["discriminative"], config["decode"]) == ("categorical", False, "kl")
    assert (told["sub-tags"]["O"], told["features"]) == (2, 0)


def test_a_folder_of_word_lists(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    shutil.copytree(Path(languages.__file__).parent / "es", tmp_path / "mine")
    source = place / "notes.jsonl"
    monkeypatch.chdir(tmp_path)
    run = ["train", source, "-o", "m.cfm", "--method", "hmmdp", "--no-discriminative", "--subtags", "2,1"]
    result_of([*run, "--language", "mine"], capsys)
    monkeypatch.chdir(place)  # the folder is found from another place too
    assert result_of(["tag", tmp_path / "m.cfm", source, "-o", tmp_path / "o.jsonl"], capsys)["documents"] == 36


def test_soft_labels_teach_too(place: Path, tmp_path: Path, capsys: Printed) -> None:
    soft, path = tmp_path / "soft.jsonl", tmp_path / "m.cfm"
    docs = []
    for doc in notes(12, 3):
        dates = [span for span in doc.layer() if span.label == "DATE"]
        inside = np.array([any(own.start <= a < own.end for own in dates) for a, _ in doc.tokens], float)
        docs.append(
            Document.make(doc.text, id=doc.id, soft={"v": Soft(("O", "DATE"), np.stack([1 - inside, inside], 1))})
        )
    write(docs, soft)
    told = result_of(["train", soft, "-o", path, "--method", "hmmdp", *SMALL, "--soft", "v"], capsys)
    assert (told["labels"], told["spans"]) == (["DATE"], 0)
    assert result_of(["tag", path, place / "notes.jsonl", "-o", tmp_path / "t.jsonl"], capsys)["labels"]["DATE"] > 40


HMMDP_LACKS = [
    (["--stages", "2"], "--stages is an option of --method cascade; hmmdp has --subtags"),
    (
        ["--objective", "crf"],
        "--objective is an option of --method cascade and classhmm; hmmdp has --no-discriminative",
    ),
    (
        ["--no-documents"],
        "--no-documents is an option of --method cascade; hmmdp always reads each document once, so leave it out",
    ),
    (["--features", "pos"], "--features is an option of --method cascade; hmmdp uses no layer as a feature, so leave"),
    (["--before", "genia"], "--before is an option of --method cascade; hmmdp uses no layer of another tagger, so"),
    (
        ["--scheme", "IOB2"],
        "--scheme is an option of --method cascade; hmmdp always writes spans as IOB2 tags, so leave it out",
    ),
    (["--subtags", "8"], "--subtags '8' is not O,OTHERS, two numbers of at least 1, such as 8,2"),
    (["--subtags", "8,2,1"], "is not O,OTHERS"),
    (["--subtags", "8,0"], "is not O,OTHERS"),
    (["--subtags", "a,b"], "is not O,OTHERS"),
    (["--subtags", "8,"], "is not O,OTHERS"),
    (["--subtags", "-1,2"], "is not O,OTHERS"),
    (["--language", "fr"], "no language pack 'fr'; name one of de, en, es, or a folder"),
    (["--emissions", "words"], "emissions must be one of factored, categorical, backoff, got 'words'"),
    (["--emissions", "backoff"], "not from backoff; say discriminative=False (--no-discriminative)"),
    (["--decode", "viterbi"], "decode must be one of kl+rerank, kl,"),
    (["--epochs", "0"], "epochs must be a whole number, at least 1, got 0"),
    (
        ["--no-discriminative", "--epochs", "3"],
        "--epochs: epochs are for the discriminative stage, which these settings leave out; leave them out",
    ),
    (
        ["--published", "--lexicon", "A=b.txt"],
        "--lexicon: lexicons and clusters are for the discriminative stage, which these settings leave out",
    ),
    (["--no-discriminative", "--clusters", "x"], "--clusters: lexicons and clusters are for the discriminative stage"),
    (["--align-mode", "balanced"], "--align-mode balanced was given without --align; give --align as well"),
    (["--align", "--align-mode", "both"], "--align-mode"),
    (["--align", "--soft", "votes"], "--align learns from spans, and from the beginning; leave out --soft, or --align"),
]
CASCADE_LACKS = [
    (
        ["--language", "es"],
        "--language is an option of --method hmmdp and classhmm; cascade needs no word lists, so leave it out",
    ),
    (["--subtags", "8,2"], "--subtags is an option of --method hmmdp; cascade has --stages"),
    (["--emissions", "backoff"], "--emissions is an option of --method hmmdp; cascade has --objective"),
    (["--no-discriminative"], "--no-discriminative is an option of --method hmmdp; cascade has --objective"),
    (
        ["--decode", "kl"],
        "--decode is an option of --method hmmdp and classhmm; cascade decodes in one way, so leave it out",
    ),
]


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [("hmmdp", *case) for case in HMMDP_LACKS] + [("cascade", *case) for case in CASCADE_LACKS],
)
def test_options_that_cannot_be(
    method: str, options: list[str], words: str, place: Path, tmp_path: Path, capsys: Printed
) -> None:
    path = tmp_path / "m.cfm"
    refused(["train", place / "notes.jsonl", "-o", path, "--method", method, *options], 2, words, capsys)
    assert not path.exists()


def test_methods_do_not_mix(place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, path = place / "notes.jsonl", tmp_path / "m.cfm"
    run = ["train", source, "-o", path]
    refused([*run, "--start", place / "h.cfm"], 2, "goes on from a cascade, and this model is of hmmdp; give", capsys)
    refused([*run, "--start", place / "h.cfm", "--align"], 2, "leave out --start, or --align", capsys)
    refused([*run, "--method", "hmm"], 2, "unknown method 'hmm'; did you mean 'hmmdp'?", capsys)
    write(notes(1, 3), tmp_path / "one.jsonl")
    one = ["train", tmp_path / "one.jsonl", "-o", path, "--method", "hmmdp", "--align"]
    refused(one, 3, "--align learns from two patients or more, and there is 1; leave out --align", capsys)
    assert not path.exists()


def test_train_goes_on_from_a_model_of_hmmdp(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "again.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--method", "hmmdp"]
    told = result_of([*run, "--start", place / "h.cfm", "--epochs", "1", "--floor", "2"], capsys)
    before, after = bundle.load(place / "h.cfm"), bundle.load(path)
    assert (told["method"], told["sentences"], told["interrupted"]) == ("hmmdp", "lines", False)
    assert after.manifest.documents == 2 * before.manifest.documents
    assert (after.arrays["tables.trans"] == before.arrays["tables.trans"]).all()  # the generative chain stays
    assert (after.manifest.config["epochs"], after.manifest.config["outside"]) == (1, 8)
    assert after.manifest.config["min_patients"] == before.manifest.config["min_patients"]  # and so do its words
    start = [*run, "--start", place / "h.cfm"]
    refused([*start, "--subtags", "4,2"], 2, "goes on from a model with --subtags 8,2; leave out --subtags", capsys)
    refused([*start, "--emissions", "categorical"], 2, "goes on from a model with --emissions factored", capsys)
    refused([*start, "--no-discriminative"], 2, "--start: an HMM-DP goes on with the discriminative stage", capsys)
    refused([*start, "--published"], 2, "goes on with the settings of that model; leave out --published", capsys)
    refused([*run, "--start", place / "g.cfm"], 2, "--start: an HMM-DP goes on with the discriminative stage", capsys)


def test_a_model_of_hmmdp_may_come_before_a_cascade(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "m.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--before", place / "g.cfm", "--epochs", "2"]
    _, err = printed_by(run, capsys)
    assert "The tagger of --before learnt from lines, this one from prose; --lines would suit both.\n" in err
    config = config_of(path)
    assert (config["layers"], config["before"][0]["kind"], config["split"]) == (["hmmdp"], "hmmdp", "prose")
    _, err = printed_by([*run, "--lines"], capsys)
    assert "learnt from" not in err
    assert result_of(["tag", path, place / "notes.jsonl", "-o", tmp_path / "o.jsonl"], capsys)["spans"] > 0


@pytest.fixture
def one_text(tmp_path: Path) -> Path:
    path = tmp_path / "text" / "a.txt"
    path.parent.mkdir()
    path.write_text(LINES)
    return path.parent


def chances(model: Path, split: Splitter) -> np.ndarray[Any, Any]:
    """What the model says of the text if it is cut so."""
    found = next(iter(tagger.load(model).posteriors([Document.make(LINES, split=split)])))
    return found.soft[next(iter(found.soft))].values


def test_text_is_cut_as_the_model_learnt(place: Path, one_text: Path, tmp_path: Path, capsys: Printed) -> None:
    model, out = place / "h.cfm", tmp_path / "o.jsonl"
    assert config_of(model)["split"] == "lines"
    assert not np.allclose(chances(model, "lines"), chances(model, "prose"), atol=1e-4)
    note = "The model learnt from lines, and --prose cuts text otherwise; expect more errors.\n"
    cases: list[tuple[list[str], Splitter, str]] = [
        ([], "lines", ""),
        (["--lines"], "lines", ""),
        (["--prose"], "prose", note),
    ]
    for options, split, said in cases:
        _, err = printed_by(["tag", model, one_text, "-o", out, "--posteriors", *options], capsys)
        np.testing.assert_allclose(next(iter(read(out))).soft["hmmdp"].values, chances(model, split), rtol=0, atol=1e-6)
        assert err == said
    assert printed_by(["tag", model, one_text, "-o", out, "--prose", "--quiet"], capsys) == ("", "")


def test_how_text_is_cut_is_recorded(place: Path, one_text: Path, tmp_path: Path, capsys: Printed) -> None:
    source, model, again, out = place / "notes.jsonl", tmp_path / "m.cfm", tmp_path / "a.cfm", tmp_path / "o.jsonl"
    generative = ["--method", "hmmdp", "--no-discriminative", "--subtags", "2,1"]
    for options, split in (([*generative, "--prose"], "prose"), (["--epochs", "1"], "prose"), (["--lines"], "lines")):
        assert result_of(["train", source, "-o", model, *options], capsys)["sentences"] == split
        assert config_of(model)["split"] == split
    # The last is a cascade that learnt from lines: to go on with it takes lines too, and so does tagging.
    assert result_of(["train", source, "-o", again, "--start", model, "--epochs", "1"], capsys)["sentences"] == "lines"
    words = "--start goes on from a model that learnt from lines; leave out --prose, or train anew"
    refused(["train", source, "-o", again, "--start", model, "--prose"], 2, words, capsys)
    assert printed_by(["tag", again, one_text, "-o", out, "--posteriors", "-q"], capsys) == ("", "")
    np.testing.assert_allclose(next(iter(read(out))).soft["cascade"].values, chances(again, "lines"), rtol=0, atol=1e-6)


def test_a_model_that_does_not_say_takes_prose(place: Path, one_text: Path, tmp_path: Path, capsys: Printed) -> None:
    old, out = tmp_path / "old.cfm", tmp_path / "o.jsonl"
    known = tagger.load(place / "h.cfm")
    config = {key: value for key, value in known.manifest.config.items() if key != "split"}
    replace(known, manifest=replace(known.manifest, config=config)).save(old)
    for options, split in (([], "prose"), (["--lines"], "lines")):
        _, err = printed_by(["tag", old, one_text, "-o", out, "--posteriors", *options], capsys)
        expected = chances(old, "lines" if split == "lines" else "prose")
        np.testing.assert_allclose(next(iter(read(out))).soft["hmmdp"].values, expected, rtol=0, atol=1e-6)
        assert err == ""


def test_given_sentences_stay(place: Path, tmp_path: Path, capsys: Printed) -> None:
    columns = tmp_path / "in.conll"
    write([Document.make(LINES, layers={"gold": [Span(12, 16, "DOCTOR")]})], columns)
    outs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for out, option in zip(outs, ("--lines", "--prose"), strict=True):
        result_of(["tag", place / "h.cfm", columns, "-o", out, "--posteriors", option], capsys)
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_one_answer_across_the_documents_of_a_patient(place: Path, tmp_path: Path, capsys: Printed) -> None:
    model, source, out = place / "h.cfm", tmp_path / "unseen.jsonl", tmp_path / "o.jsonl"
    write(notes(4, 3, seed=1), source)
    plain = {doc.id: set(doc.layer("hmmdp")) for doc in tagger.load(model).annotate(read_lines(source))}
    expected = {
        mode: {doc.id: doc.layer("hmmdp") for doc in tagger.load(model).annotate(read_lines(source), align=mode)}
        for mode in ("recall", "balanced")
    }
    for mode in ("recall", "balanced"):
        told = result_of(["tag", model, source, "-o", out, "--align", mode], capsys)
        assert (told["align"], told["patients"], told["documents with a patient"]) == (mode, 4, 12)
        assert {doc.id: doc.layer("hmmdp") for doc in read(out)} == expected[mode]
        assert all("hmmdp" not in doc.soft for doc in read(out))
    assert {key: set(spans) for key, spans in expected["recall"].items()} != plain
    printed, err = printed_by(["tag", model, source, "-o", out, "--align", "recall"], capsys)
    assert "patients    4\n" in printed
    assert err == "The model learnt no alignment, so one set by hand was used; train --align learns it.\n"
    refused(["tag", model, source, "-o", out, "--align", "both"], 2, "--align", capsys)


def read_lines(path: Path) -> list[Document]:
    return [
        Document.make(doc.text, id=doc.id, group=doc.group, layers=dict(doc.layers), split="lines")
        for doc in read(path)
    ]


def test_whose_documents_they_are(place: Path, tmp_path: Path, capsys: Printed) -> None:
    model, source, out = place / "h.cfm", tmp_path / "in.jsonl", tmp_path / "o.jsonl"
    nobody = [replace(doc, group=None) for doc in notes(2, 3)]
    write(nobody, source)
    run = ["tag", model, source, "-o", out, "--align", "recall"]
    assert "patients    6 (each document is its own patient; see --group)\n" in printed_by(run, capsys)[0]
    told = result_of(run, capsys)
    assert (told["patients"], told["documents with a patient"]) == (6, 0)
    assert "patients    2\n" in printed_by([*run, "--group", "(.*)-"], capsys)[0]
    write([*notes(1, 3), *nobody[3:]], source)
    words = "patients    4 (each of 3 documents without one is its own patient; see --group)\n"
    assert words in printed_by(run, capsys)[0]
    assert "patient" not in printed_by([*run[:-2]], capsys)[0].replace("PATIENT", "")


def test_alignment_is_learnt_and_kept(place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, model, out = place / "notes.jsonl", tmp_path / "m.cfm", tmp_path / "o.jsonl"
    run = ["train", source, "-o", model, "--method", "hmmdp", *SMALL, "--align", "--align-mode", "balanced"]
    result_of([*run, "--seed", "3"], capsys)
    config = config_of(model)
    assert (config["align"]["mode"], config["align"]["seed"], config["split"]) == ("balanced", 3, "lines")
    assert tagger.load(model).aligner is not None
    assert printed_by(["tag", model, source, "-o", out, "--align", "recall"], capsys)[1] == ""
    result_of(["train", source, "-o", model, "--epochs", "1", "--no-documents", "--align"], capsys)
    assert config_of(model)["align"]["mode"] == "recall"
    _, err = printed_by(["train", source, "-o", tmp_path / "a.cfm", "--start", model, "--epochs", "1"], capsys)
    assert "The alignment that the earlier model learnt is not kept; to learn it, train anew with --align.\n" in err


def test_settings_from_a_file(place: Path, tmp_path: Path, capsys: Printed) -> None:
    config, path = tmp_path / "c.toml", tmp_path / "m.cfm"
    config.write_text('[train]\nmethod = "hmmdp"\nsubtags = "2,1"\nno-discriminative = true\nlines = false\n')
    told = result_of(["train", place / "notes.jsonl", "-o", path, "--config", config], capsys)
    assert (told["method"], told["sentences"], told["sub-tags"]["O"]) == ("hmmdp", "prose", 2)


@pytest.mark.parametrize("options", [(), ("--align",), ("--dev-fraction", "0.25")])
@pytest.mark.parametrize(
    ("interrupt", "number"), [(interrupt_at_pass, 2), (interrupt_at_walk, 1), (interrupt_at_walk, 2)]
)
def test_ctrl_c_saves_what_was_learnt(
    interrupt: Callable[[int, pytest.MonkeyPatch], None],
    number: int,
    options: tuple[str, ...],
    place: Path,
    tmp_path: Path,
    capsys: Printed,
) -> None:
    path, source = tmp_path / "m.cfm", place / "notes.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(number, patch)
        told = result_of(["train", source, "-o", path, "--method", "hmmdp", *SMALL, *options], capsys, code=130)
    assert told["interrupted"] is True
    if interrupt is interrupt_at_pass or number > 1:  # at the first walk there is perhaps nothing yet to keep
        assert (told["features"] == 0) == (interrupt is interrupt_at_pass)
    assert bundle.load(path).manifest.metrics["interrupted"] == 1.0
    assert result_of(["tag", path, source, "-o", tmp_path / "o.jsonl"], capsys)["spans"] > 100


@pytest.fixture
def compiled(canary: Canary) -> None:
    """The kernels that the tests above compiled, where a canary's command looks for them."""
    from chaffinch.kernels._compile import FOLDER

    if FOLDER is not None:
        shutil.copytree(FOLDER, canary.folder / "private" / "chaffinch_cache" / "kernels" / FOLDER.name)


@pytest.mark.usefixtures("compiled", "place")
def test_no_word_of_a_document_leaves_by_another_way(tmp_path: Path, canary: Canary) -> None:
    source, outputs = tmp_path / "in.jsonl", tmp_path / "outputs"
    outputs.mkdir()
    text = f"Dr. {canary.word} came.\n{canary.word} and {canary.word} left. {canary.word}\n"
    spans = [Span(place, place + len(canary.word), "DOCTOR") for place in (4,)]
    planted = [Document.make(text, id=f"q{n}", group=f"q{n}", layers={"gold": spans}) for n in range(2)]
    write([*notes(6, 3), *planted], source)
    path, out = outputs / "m.cfm", outputs / "o.jsonl"
    run: list[str | Path] = ["train", source, "-o", path, "--method", "hmmdp", *SMALL]
    done = canary.run(*run, "--private", "--floor", "3", "--align", "--dev", source, outputs=[path])
    assert done.returncode == 0, done.stderr
    assert canary.word.encode() not in path.read_bytes()  # two patients used it, and three are needed
    done = canary.run("tag", path, source, "-o", out, "--confidence", "--align", "recall", "--prose", outputs=[out])
    assert done.returncode == 0, done.stderr
    assert canary.word in out.read_text()
    overlap = Document.make(f"Dr. {canary.word} came.", layers={"gold": [Span(0, 9, "A"), Span(4, 9, "B")]})
    write([overlap], source)
    failing: list[tuple[list[str | Path], int]] = [
        (run, 3),
        ([*run, "--subtags", "1"], 2),
        ([*run, "--soft", "none"], 3),
        (["tag", path, source, "-o", out, "--align", "recall", "--max-chars", "5"], 3),
    ]
    for arguments, code in failing:
        assert canary.run(*arguments, outputs=[path, out]).returncode == code
    assert sorted(file.name for file in outputs.iterdir()) == ["m.cfm", "o.jsonl"]
