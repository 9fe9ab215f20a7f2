"""`chaffinch train --method classhmm` and `chaffinch tag` with its models, as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import main
from chaffinch.deid import notes
from chaffinch.text.formats import read, write

QUICK = ("--method", "classhmm", "--evaluations", "15")

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notes.jsonl, and more.jsonl without labels."""
    folder = tmp_path_factory.mktemp("classhmm")
    write(notes(8, 3), folder / "notes.jsonl")
    bare = list(read(folder / "notes.jsonl"))[:6]
    write([type(doc).make(doc.text, id=f"bare-{doc.id}") for doc in bare], folder / "more.jsonl")
    return folder


def result_of(arguments: Sequence[object], capsys: Printed) -> dict[str, Any]:
    capsys.readouterr()
    code = main([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    result: dict[str, Any] = json.loads(printed.out)
    return result


@pytest.mark.parametrize("objective", ["crf", "krogh", "joint", "mix"])
def test_train_tells_states_and_tag_reads_with_the_model(
    objective: str, place: Path, tmp_path: Path, capsys: Printed
) -> None:
    model = tmp_path / "m.cfm"
    options = ["--objective", objective, "--states-per-class", "3", "--kappa", "0.1"]
    told = result_of(["train", place / "notes.jsonl", "-o", model, *QUICK, *options], capsys)
    assert told["method"] == "classhmm"
    assert told["states"] == {"O": 3, "others": 3, "in all": 3 * (1 + len(told["labels"]))}
    assert set(told["held-out log-likelihood per token"]) == {"with these states", "with one per class"}
    assert told["features"] > 100
    result_of(["tag", model, place / "more.jsonl", "-o", tmp_path / "out.jsonl", "--confidence"], capsys)
    tagged = list(read(tmp_path / "out.jsonl"))
    spans = [span for doc in tagged for span in doc.layer("classhmm")]
    assert spans
    assert all(0 <= span.score <= 1 for span in spans)


def test_untagged_documents_are_learnt_from(place: Path, tmp_path: Path, capsys: Printed) -> None:
    models = []
    for number, more in enumerate(([], ["--untagged", place / "more.jsonl"])):
        path = tmp_path / f"{number}.cfm"
        result_of(["train", place / "notes.jsonl", "-o", path, *QUICK, "--objective", "joint", *more], capsys)
        models.append(path.read_bytes())
    assert models[0] != models[1]


def test_the_published_system_and_its_features(place: Path, tmp_path: Path, capsys: Printed) -> None:
    asked = ["--published", "--word-features", "muc", "--states-per-class", "2"]
    result_of(["train", place / "notes.jsonl", "-o", tmp_path / "m.cfm", *QUICK, *asked], capsys)
    config = result_of(["show", tmp_path / "m.cfm"], capsys)["config"]
    assert (config["objective"], config["features"], config["states_per_class"]) == ("joint", "muc", 2)
    assert (config["kappa"], config["shared"], config["evaluations"]) == (0.25, False, 15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stages", "2"], "--stages is an option of --method cascade; classhmm has --states-per-class"),
        (["--epochs", "2"], "--epochs is an option of --method cascade, hmmdp and encoder; classhmm has --evaluations"),
        (["--no-documents"], "--no-documents is an option of --method cascade; classhmm has no use for it"),
        (["--start", "x.cfm"], "--start is an option of --method cascade, hmmdp and encoder; classhmm learns from the"),
        (["--objective", "pa"], "objective must be one of crf, krogh, joint, mix, got 'pa'"),
        (["--word-features", "all"], "features must be one of basic, capitalisation, shape, muc, spelling, rich"),
        (["--kappa", "-1"], "kappa must be a number of at least 0, got -1.0"),
        (["--states-per-class", "0"], "states_per_class must be a whole number, at least 1, got 0"),
        (
            ["--untagged", "x.jsonl"],
            "--untagged: objective crf learns nothing from untagged documents; leave them out, or",
        ),
        (
            ["--objective", "joint", "--lexicon", "DRUG=x"],
            "--lexicon: lexicons and clusters are features of the objective crf",
        ),
    ],
)
def test_options_that_cannot_be(options: list[str], words: str, place: Path, tmp_path: Path, capsys: Printed) -> None:
    code = main(["train", str(place / "notes.jsonl"), "-o", str(tmp_path / "m.cfm"), *QUICK[:2], *options])
    assert code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "m.cfm").exists()
