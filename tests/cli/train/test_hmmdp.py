"""`chaffinch train --method hmmdp` and `chaffinch tag` with its models, as a user meets them."""

from __future__ import annotations

import json
import re
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

SMALL = ("--set", "outside=3", "--set", "inside=1", "--set", "epochs=2")  # quick to learn
LINES = "Seen by Dr. Penn\non 3/12/1998\nat Mercy\nShe is well. Dr. Lowe\ncame."  # its lines are not its sentences

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notes.jsonl, h.cfm of both stages and g.cfm of the generative one."""
    folder = tmp_path_factory.mktemp("hmmdp")
    write(notes(12, 3), folder / "notes.jsonl")
    source = str(folder / "notes.jsonl")
    assert main(["train", source, "-o", str(folder / "h.cfm"), "--method", "hmmdp", "--quiet"]) == 0
    small = ["--method", "hmmdp", "--quiet", "--set", "discriminative=false", "--set", "outside=3", "--set", "inside=1"]
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
    assert (told["documents"], told["align"], told["lost"]) == (36, None, {})
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
    assert trained("b.cfm", "--set", "workers=2", "--set", "seed=0") == first
    assert trained("c.cfm", "--set", "seed=1") != first


def test_the_summary_as_json(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "m.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--method", "hmmdp", *SMALL, "--dev", "0.25"]
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
    assert told["size"]["symbols"] == {"words": words, "signatures": signatures}
    assert words > 0
    states = 3 + 2 * len(told["labels"])  # B and I of each label
    used = int((kept.arrays["mass"] > 1).sum())
    assert told["size"]["subtags"] == {"O": 3, "others": 1, "total": states, "in_use": used}
    assert 1 < used <= states
    assert told["size"]["features"] == len(kept.arrays["latent.keys"]) > 0
    assert told["dev"]["documents"] == 9
    assert 0 < told["dev"]["f1"] <= 1


def test_the_summary_in_words(place: Path, tmp_path: Path, capsys: Printed) -> None:
    run = [
        "train",
        place / "notes.jsonl",
        "-o",
        tmp_path / "m.cfm",
        "--method",
        "hmmdp",
        "--set",
        "outside=3",
        "--set",
        "inside=1",
    ]
    out, err = printed_by([*run, "--set", "discriminative=false", "--dev", "0.25"], capsys)
    facts = dict(line.split("  ", 1) for line in out.splitlines())
    assert re.fullmatch(r"words \d+, signatures \d+", facts["symbols"].strip())
    assert re.fullmatch(r"O 3, others 1, total \d+, in use \d+", facts["subtags"].strip())
    assert facts["features"].strip() == "0"
    assert facts["sentences"].strip() == "lines"
    assert "F1 0." in facts["dev"]
    uncalibrated = "Confidences are not calibrated, because the settings or the data do not allow it"
    assert [line.split(";")[0] for line in err.splitlines()] == [uncalibrated]
    # it has no features, but is not empty; and two patients used each of its words
    _, err = printed_by([*run, "--set", "discriminative=false", "--set", "floor=1"], capsys)
    shared, rest = err.splitlines()
    assert shared == "The model holds words that one patient alone used; before you share it, see --set floor=2."
    assert rest.startswith(uncalibrated)
    _, err = printed_by([*run, "--set", "discriminative=false", "--set", "floor=1", "--set", "private=false"], capsys)
    assert err.splitlines()[0] == (
        "The model holds words of identifiers; share it only as you would the notes, "
        "or train it with --set private=true."
    )
    _, err = printed_by([*run, "--set", "discriminative=false", "--set", "floor=1", "--set", "private=true"], capsys)
    assert [line.split(";")[0] for line in err.splitlines()] == [uncalibrated]


def test_every_option_reaches_the_model(place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, path, names = place / "notes.jsonl", tmp_path / "m.cfm", tmp_path / "names.txt"
    names.write_text("Marsh\nThorne\n")
    run = ["train", source, "-o", path, "--method", "hmmdp"]
    options = [
        "--set",
        "language=de",
        "--set",
        "outside=4",
        "--set",
        "inside=2",
        "--set",
        "emissions=categorical",
        "--set",
        "decode=joint",
    ]
    options += ["--set", "epochs=1", "--set", "floor=3", "--set", "private=true", "--set", "seed=5"]
    told = result_of([*run, *options, "--lexicon", f"NAME={names}", "--set", f"clusters={source}"], capsys)
    chosen = {
        "language": "de", "outside": 4, "inside": 2, "emissions": "categorical", "decode": "joint", "epochs": 1,
        "floor": 3, "min_patients": 3, "private": True, "seed": 5, "discriminative": True,
        "layer": "hmmdp", "split": "lines",
    }  # fmt: skip
    config = config_of(path)
    assert {name: config[name] for name in chosen} == chosen
    assert told["vocabulary_floor"] == 3
    model = tagger.load(path).model
    assert isinstance(model, hmmdp_model.Model)
    assert model.resources.lexicon is not None
    assert model.resources.lexicon.labels == ("NAME",)
    assert model.resources.clusters is not None
    result_of(
        [
            *run,
            "--set",
            "emissions=backoff",
            "--set",
            "discriminative=false",
            "--set",
            "outside=2",
            "--set",
            "inside=1",
        ],
        capsys,
    )
    config = config_of(path)
    assert (config["emissions"], config["discriminative"], config["inside"]) == ("backoff", False, 1)
    told = result_of([*run, "--set", "published=true", "--set", "outside=2", "--set", "inside=1"], capsys)
    config = config_of(path)
    assert (config["emissions"], config["discriminative"], config["decode"]) == ("categorical", False, "kl")
    assert (told["size"]["subtags"]["O"], told["size"]["features"]) == (2, 0)


def test_a_folder_of_word_lists(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    shutil.copytree(Path(languages.__file__).parent / "es", tmp_path / "mine")
    source = place / "notes.jsonl"
    monkeypatch.chdir(tmp_path)
    run = [
        "train",
        source,
        "-o",
        "m.cfm",
        "--method",
        "hmmdp",
        "--set",
        "discriminative=false",
        "--set",
        "outside=2",
        "--set",
        "inside=1",
    ]
    result_of([*run, "--set", "language=mine"], capsys)
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
    told = result_of(["train", soft, "-o", path, "--method", "hmmdp", *SMALL, "--set", "soft=v"], capsys)
    assert (told["labels"], told["spans"]) == (["DATE"], 0)
    assert result_of(["tag", path, place / "notes.jsonl", "-o", tmp_path / "t.jsonl"], capsys)["labels"]["DATE"] > 40


HMMDP_LACKS = [
    (["--set", "stages=2"], "hmmdp has no setting 'stages'; it is one of cascade"),
    (
        ["--set", "objective=crf"],
        "hmmdp has no setting 'objective'; it is one of cascade or classhmm",
    ),
    (
        ["--set", "documents=false"],
        "hmmdp has no setting 'documents'; it is one of cascade",
    ),
    (["--set", "layers=pos"], "hmmdp has no setting 'layers'; it is one of cascade"),
    (["--set", "before=genia"], "hmmdp cannot use layers of other taggers; leave out `before`, or train a cascade"),
    (
        ["--set", "scheme=IOB2"],
        "hmmdp has no setting 'scheme'; it is one of cascade",
    ),
    (["--set", "outside=8", "--set", "inside=0"], "inside must be a whole number, at least 1, got 0"),
    (["--set", "language=fr"], "no language pack 'fr'; name one of de, en, es, or a folder"),
    (["--set", "emissions=words"], "emissions must be one of factored, categorical, backoff, got 'words'"),
    (["--set", "emissions=backoff"], "not from backoff; say discriminative=False"),
    (["--set", "decode=viterbi"], "decode must be one of kl+rerank, kl,"),
    (["--set", "epochs=0"], "epochs must be a whole number, at least 1, got 0"),
    (
        ["--set", "discriminative=false", "--set", "epochs=3"],
        "--set epochs: epochs are for the discriminative stage, which these settings turn off; leave them out",
    ),
    (
        ["--set", "published=true", "--lexicon", "A=b.txt"],
        "--lexicon: lexicons and clusters are for the discriminative stage, which these settings turn off",
    ),
    (
        ["--set", "discriminative=false", "--set", "clusters=x"],
        "lexicons and clusters are for the discriminative stage",
    ),
    (["--set", "align=both"], "align must be one of recall, balanced, got 'both'"),
    (
        ["--set", "align=recall", "--set", "soft=votes"],
        "--set align learns from spans, and from the beginning; leave out --set soft, or it",
    ),
]
CASCADE_LACKS = [
    (
        ["--set", "language=es"],
        "cascade has no setting 'language'; it is one of hmmdp or classhmm",
    ),
    (["--set", "outside=8", "--set", "inside=2"], "cascade has no setting 'outside'; it is one of hmmdp"),
    (["--set", "emissions=backoff"], "cascade has no setting 'emissions'; it is one of hmmdp"),
    (["--set", "discriminative=false"], "cascade has no setting 'discriminative'; it is one of hmmdp"),
    (
        ["--set", "decode=kl"],
        "cascade has no setting 'decode'; it is one of hmmdp or classhmm",
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
    refused(
        [*run, "--start", place / "h.cfm", "--set", "align=recall", "--method", "hmmdp"],
        2,
        "leave out --start, or it",
        capsys,
    )
    refused([*run, "--method", "hmm"], 2, "unknown method 'hmm'; did you mean 'hmmdp'?", capsys)
    write(notes(1, 3), tmp_path / "one.jsonl")
    one = ["train", tmp_path / "one.jsonl", "-o", path, "--method", "hmmdp", "--set", "align=recall"]
    refused(one, 3, "--set align learns from two patients or more, and there is 1; leave it out", capsys)
    assert not path.exists()


def test_train_goes_on_from_a_model_of_hmmdp(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "again.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--method", "hmmdp"]
    told = result_of([*run, "--start", place / "h.cfm", "--set", "epochs=1", "--set", "floor=2"], capsys)
    before, after = bundle.load(place / "h.cfm"), bundle.load(path)
    assert (told["method"], told["sentences"], told["interrupted"]) == ("hmmdp", "lines", False)
    assert after.manifest.documents == 2 * before.manifest.documents
    assert (after.arrays["tables.trans"] == before.arrays["tables.trans"]).all()  # the generative chain stays
    assert (after.manifest.config["epochs"], after.manifest.config["outside"]) == (1, 8)
    assert after.manifest.config["min_patients"] == before.manifest.config["min_patients"]  # and so do its words
    start = [*run, "--start", place / "h.cfm"]
    refused(
        [*start, "--set", "outside=4", "--set", "inside=2"],
        2,
        "goes on from a model with outside=8; leave out --set outside",
        capsys,
    )
    refused([*start, "--set", "emissions=categorical"], 2, "goes on from a model with emissions=factored", capsys)
    refused([*start, "--set", "discriminative=false"], 2, "an HMM-DP goes on with the discriminative stage", capsys)
    refused(
        [*start, "--set", "published=true"],
        2,
        "goes on with the settings of that model; leave out --set published",
        capsys,
    )
    refused([*run, "--start", place / "g.cfm"], 2, "an HMM-DP goes on with the discriminative stage", capsys)


def test_a_model_of_hmmdp_may_come_before_a_cascade(place: Path, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "m.cfm"
    run = ["train", place / "notes.jsonl", "-o", path, "--set", f"before={place / 'g.cfm'}", "--set", "epochs=2"]
    _, err = printed_by(run, capsys)
    assert "The tagger of `before` learnt from lines, this one from prose; --lines suits both.\n" in err
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
    generative = ["--method", "hmmdp", "--set", "discriminative=false", "--set", "outside=2", "--set", "inside=1"]
    for options, split in (
        ([*generative, "--prose"], "prose"),
        (["--set", "epochs=1"], "prose"),
        (["--lines"], "lines"),
    ):
        assert result_of(["train", source, "-o", model, *options], capsys)["sentences"] == split
        assert config_of(model)["split"] == split
    # The last is a cascade that learnt from lines: to go on with it takes lines too, and so does tagging.
    assert (
        result_of(["train", source, "-o", again, "--start", model, "--set", "epochs=1"], capsys)["sentences"] == "lines"
    )
    words = "--start goes on from a model that learnt from lines; leave out --prose, or train a new one"
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
        assert (told["align"], told["patients"], told["documents_with_patient"]) == (mode, 4, 12)
        assert {doc.id: doc.layer("hmmdp") for doc in read(out)} == expected[mode]
        assert all("hmmdp" not in doc.soft for doc in read(out))
    assert {key: set(spans) for key, spans in expected["recall"].items()} != plain
    printed, err = printed_by(["tag", model, source, "-o", out, "--align", "recall"], capsys)
    assert "patients    4\n" in printed
    assert err == "The model learnt no alignment, so one set by hand was used; train --set align=recall learns one.\n"
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
    assert "patients    6 (each document is its own patient; see --group-by)\n" in printed_by(run, capsys)[0]
    told = result_of(run, capsys)
    assert (told["patients"], told["documents_with_patient"]) == (6, 0)
    assert "patients    2\n" in printed_by([*run, "--group-by", "(.*)-"], capsys)[0]
    write([*notes(1, 3), *nobody[3:]], source)
    words = "patients    4 (each of 3 documents without one is its own patient; see --group-by)\n"
    assert words in printed_by(run, capsys)[0]
    assert "patient" not in printed_by([*run[:-2]], capsys)[0].replace("PATIENT", "")


def test_alignment_is_learnt_and_kept(place: Path, tmp_path: Path, capsys: Printed) -> None:
    source, model, out = place / "notes.jsonl", tmp_path / "m.cfm", tmp_path / "o.jsonl"
    run = ["train", source, "-o", model, "--method", "hmmdp", *SMALL, "--set", "align=balanced"]
    result_of([*run, "--set", "seed=3"], capsys)
    config = config_of(model)
    assert (config["align"]["mode"], config["align"]["seed"], config["split"]) == ("balanced", 3, "lines")
    assert tagger.load(model).aligner is not None
    assert printed_by(["tag", model, source, "-o", out, "--align", "recall"], capsys)[1] == ""
    result_of(
        ["train", source, "-o", model, "--set", "epochs=1", "--set", "documents=false", "--set", "align=recall"], capsys
    )
    assert config_of(model)["align"]["mode"] == "recall"
    _, err = printed_by(["train", source, "-o", tmp_path / "a.cfm", "--start", model, "--set", "epochs=1"], capsys)
    assert "The alignment of the earlier model is not kept; to learn one, train a new model with align=recall.\n" in err


def test_settings_from_a_file(place: Path, tmp_path: Path, capsys: Printed) -> None:
    config, path = tmp_path / "c.toml", tmp_path / "m.cfm"
    config.write_text(
        '[train]\nmethod = "hmmdp"\nlines = false\n[train.hmmdp]\noutside = 2\ninside = 1\ndiscriminative = false\n'
    )
    told = result_of(["train", place / "notes.jsonl", "-o", path, "--config", config], capsys)
    assert (told["method"], told["sentences"], told["size"]["subtags"]["O"]) == ("hmmdp", "prose", 2)


@pytest.mark.parametrize("options", [(), ("--set", "align=recall"), ("--dev", "0.25")])
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
        assert (told["size"]["features"] == 0) == (interrupt is interrupt_at_pass)
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
    done = canary.run(
        *run, "--set", "private=true", "--set", "floor=3", "--set", "align=recall", "--dev", source, outputs=[path]
    )
    assert done.returncode == 0, done.stderr
    assert canary.word.encode() not in path.read_bytes()  # two patients used it, and three are needed
    done = canary.run("tag", path, source, "-o", out, "--confidence", "--align", "recall", "--prose", outputs=[out])
    assert done.returncode == 0, done.stderr
    assert canary.word in out.read_text()
    overlap = Document.make(f"Dr. {canary.word} came.", layers={"gold": [Span(0, 9, "A"), Span(4, 9, "B")]})
    write([overlap], source)
    failing: list[tuple[list[str | Path], int]] = [
        (run, 3),
        ([*run, "--set", "outside=x"], 2),
        ([*run, "--set", "soft=none"], 3),
        (["tag", path, source, "-o", out, "--align", "recall", "--max-chars", "5"], 3),
    ]
    for arguments, code in failing:
        assert canary.run(*arguments, outputs=[path, out]).returncode == code
    assert sorted(file.name for file in outputs.iterdir()) == ["m.cfm", "o.jsonl"]
