"""`chaffinch relate` from the shell: train, extract, evaluate, distant; messages without document text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.relations import generated

from chaffinch import Document, read, write
from chaffinch.cli import main
from chaffinch.relations import JointExtractor
from chaffinch.relations.storage import load
from tests.relations.made import documents, with_concepts

ASKED = ["--relation", "localises", "--role", "Protein", "--role", "Location"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents and an extractor learnt from them."""
    place = tmp_path_factory.mktemp("relate")
    write(documents(12), place / "docs.jsonl")
    assert main(["relate", "train", str(place / "docs.jsonl"), "-o", str(place / "m.cfm"), *ASKED, "--quiet"]) == 0
    return place


def test_training_reports_the_baseline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(folder / "again.cfm")
    assert main(["relate", "train", str(folder / "docs.jsonl"), "-o", output, *ASKED, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["own"]["auc"] > 0.99
    assert set(facts["baseline"]) == set(facts["own"])
    assert facts["loses"] in (True, False)
    assert (folder / "again.cfm").read_bytes() == (folder / "m.cfm").read_bytes()


@pytest.mark.parametrize(
    "told", [["--mode", "joint", "--representation", "token"], ["--mode", "documents", "--floor", "2"]]
)
def test_other_modes_train_extract_and_evaluate(
    folder: Path, tmp_path: Path, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, model = tmp_path / "docs.jsonl", str(tmp_path / "m.cfm")
    write([with_concepts(doc) for doc in documents(10)], source)
    assert main(["relate", "train", str(source), "-o", model, *ASKED, *told]) == 0
    said = capsys.readouterr().out
    assert "every tuple" in said
    assert ("floor 2" if "documents" in told else "holds words of single documents (floor 1)") in said
    out, why = tmp_path / "found.jsonl", tmp_path / "why.jsonl"
    more = ["--explain", str(why), "--json"]
    assert main(["relate", "extract", model, str(source), "-o", str(out), *more]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(len(doc.relations) for doc in read(out)) == facts["relations"] == len(why.read_text().splitlines()) > 0
    lines = [json.loads(line) for line in why.read_text().splitlines()]
    assert all(line["sentence"]["number"] >= 1 for line in lines)
    if "joint" in told:
        _check_sentences(lines, list(read(source)))
    page = tmp_path / "page.html"
    assert main(["relate", "evaluate", model, str(source), "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["extracted"] == facts["relations"]


@pytest.mark.parametrize("suffix", ["jsonl", "pubtator", "bioc.json", "brat"])
def test_extracted_relations_are_written(folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"found.{suffix}" if suffix != "brat" else tmp_path / "brat"
    told = ["--to", "brat"] if suffix == "brat" else ["--to", "bioc-json"] if suffix.startswith("bioc") else []
    model, source = str(folder / "m.cfm"), str(folder / "docs.jsonl")
    code = main(["relate", "extract", model, source, "-o", str(out), "--quiet", *told])
    assert code == 0
    if suffix in ("jsonl", "brat"):
        found = {doc.id: {own.arguments for own in doc.relations} for doc in read(out)}
        truth = {doc.id: {own.arguments for own in doc.relations} for doc in read(folder / "docs.jsonl")}
        assert found == truth


def test_reasons_and_precision(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    why, out = tmp_path / "why.jsonl", tmp_path / "found.jsonl"
    model, source = str(folder / "m.cfm"), str(folder / "docs.jsonl")
    told = ["--explain", str(why), "--precision", "0.9", "--json"]
    assert main(["relate", "extract", model, source, "-o", str(out), *told]) == 0
    facts = json.loads(capsys.readouterr().out)
    lines = [json.loads(line) for line in why.read_text().splitlines()]
    assert len(lines) == facts["relations"]
    assert {"view", "feature", "weight"} == set(lines[0]["why"][0])
    _check_sentences(lines, list(read(source)))


def _check_sentences(lines: list[dict[str, Any]], docs: list[Document]) -> None:
    """Each explanation names the sentence, by number and offsets, that has all of its arguments."""
    texts = {doc.id: doc for doc in docs}
    for line in lines:
        place, doc = line["sentence"], texts[line["document"]]
        assert [place["start"], place["end"]] == doc.sentences[place["number"] - 1].tolist()
        assert all(place["start"] <= start < end <= place["end"] for start, end in line["arguments"].values())


def test_evaluation_with_a_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    model, source = str(folder / "m.cfm"), str(folder / "docs.jsonl")
    assert main(["relate", "evaluate", model, source, "--html", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["f1"]["value"] == 1.0
    content = page.read_text(encoding="utf-8")
    assert content.count('<path class="curve"') == 1
    assert "http" not in content
    assert "Abc" not in content  # no words of documents
    assert main(["relate", "evaluate", model, source, "--fail-under", "1.1", "--quiet"]) == 4


def test_known_tuples(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doc = next(doc for doc in read(folder / "docs.jsonl") if doc.relations)
    names = [doc.text[own.spans[0].start : own.spans[0].end] for own in doc.relations[0].arguments]
    (tmp_path / "known.tsv").write_text("\t".join(names) + "\n")
    out, sheet = str(tmp_path / "noisy.jsonl"), tmp_path / "audit.tsv"
    told = [str(folder / "docs.jsonl"), str(tmp_path / "known.tsv"), "-o", out, *ASKED, "--audit", str(sheet), "--json"]
    assert main(["relate", "distant", *told]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["labelled"] >= 1
    assert sheet.read_text().splitlines()[0].startswith("document\tsentence\tlabelled")


def test_an_output_whose_name_tells_no_format_takes_that_of_the_input(folder: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.dat", tmp_path / "out.dat"
    source.write_bytes(b"\n" + (folder / "docs.jsonl").read_bytes())
    model = str(folder / "m.cfm")
    assert main(["relate", "extract", model, str(source), "-o", str(out), "--from", "jsonl", "--quiet"]) == 0
    assert len(list(read(out, format="jsonl"))) == len(list(read(folder / "docs.jsonl")))


@pytest.mark.parametrize(
    ("told", "code", "message"),
    [
        (["--relation", "localises", "--role", "Protein"], 2, "two roles"),
        (["--relation", "localises", "--role", "Protein", "--role", "Drug"], 3, "role 'Drug' needs entities"),
        (["--relation", "binds", "--role", "Protein", "--role", "Location"], 3, "no sentence states"),
        ([*ASKED, "--view", "nothing"], 2, "views must be some of"),
        ([*ASKED, "--mode", "both"], 2, "mode must be one of"),
        ([*ASKED, "--no-mask"], 2, "are for --mode joint"),
        ([*ASKED, "--mode", "joint", "--view", "words"], 2, "--view is of no use"),
        ([*ASKED, "--mode", "joint", "--representation", "letters"], 2, "representation must be one of"),
    ],
)
def test_bad_input_says_what_to_do(
    folder: Path, told: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = str(folder / "docs.jsonl"), str(folder / "bad.cfm")
    assert main(["relate", "train", source, "-o", output, *told]) == code
    said = capsys.readouterr().err
    assert message in said
    assert "Abc" not in said
    assert not Path(output).exists()


@pytest.mark.parametrize("told", [[], ["--mode", "joint", "--representation", "phrase"]], ids=["entities", "joint"])
def test_three_roles_from_training_to_scores(
    tmp_path: Path, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write(generated.documents(40, seed=0), tmp_path / "known.jsonl")
    held = generated.documents(10, seed=1)
    write(held, tmp_path / "held.jsonl")
    roles = ["--role", "protein=Protein", "--role", "source=Place", "--role", "target=Compartment"]
    model, source = str(tmp_path / "m.cfm"), str(tmp_path / "held.jsonl")
    known = str(tmp_path / "known.jsonl")
    assert main(["relate", "train", known, "-o", model, "--relation", "moves", *roles, *told, "--quiet"]) == 0
    out, why = tmp_path / "found.jsonl", tmp_path / "why.jsonl"
    assert main(["relate", "extract", model, source, "-o", str(out), "--explain", str(why), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["relate", "evaluate", model, source, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    truth = {(doc.id, own.arguments) for doc in held for own in doc.relations}
    said = {(doc.id, own.arguments) for doc in read(out) for own in doc.relations}
    assert all(len(arguments) == 3 for _, arguments in said)
    assert facts["f1"]["value"] == pytest.approx(2 * len(said & truth) / (len(said) + len(truth)))
    assert facts["f1"]["value"] > 0.85  # every tuple of entities: .66
    _check_sentences([json.loads(line) for line in why.read_text().splitlines()], held)


def test_a_published_model_is_trained_by_its_name(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.cfm"
    told = ["--mode", "joint", "--set", "published=token 2", "--set", "trainer=krogh", "--set", "epochs=1", "--quiet"]
    assert main(["relate", "train", str(folder / "docs.jsonl"), "-o", str(model), *ASKED, *told]) == 0
    extractor = load(model)
    assert isinstance(extractor, JointExtractor)
    config = extractor.config
    assert (config.pairing, config.labels, config.mask) == ("order", "path", False)
    hmm = config.hmm
    assert (hmm.representation, hmm.zones, hmm.update, hmm.epochs, hmm.combined) == ("token", True, "plain", 1, True)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (["--set", "epochs=1"], "--set is for --mode joint"),
        (["--mode", "joint", "--set", "epoch=1"], "--set epoch: a phrase HMM has no such setting; did you mean"),
        (["--mode", "joint", "--set", "published=pos", "--representation", "pos"], "leave out --representation"),
        (["--mode", "joint", "--set", "published=words"], "the publication has the models phrase, pos"),
        (["--mode", "joint", "--set", "seed=1", "--seed", "2"], "--set seed and --seed were both given"),
    ],
)
def test_settings_of_no_use_are_refused(
    folder: Path, tmp_path: Path, told: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["relate", "train", str(folder / "docs.jsonl"), "-o", str(tmp_path / "m.cfm"), *ASKED, *told]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
