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

QUICK = ("--method", "classhmm", "--set", "evaluations=15")

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
    options = ["--set", f"objective={objective}", "--set", "states_per_class=3", "--set", "kappa=0.1"]
    told = result_of(["train", place / "notes.jsonl", "-o", model, *QUICK, *options], capsys)
    assert told["method"] == "classhmm"
    assert told["size"]["states"] == {"O": 3, "others": 3, "total": 3 * (1 + len(told["labels"]))}
    assert set(told["size"]["held_out_log_likelihood"]) == {"with_these_states", "with_one_per_class"}
    assert told["size"]["features"] > 100
    result_of(["tag", model, place / "more.jsonl", "-o", tmp_path / "out.jsonl", "--confidence"], capsys)
    tagged = list(read(tmp_path / "out.jsonl"))
    spans = [span for doc in tagged for span in doc.layer("classhmm")]
    assert spans
    assert all(0 <= span.score <= 1 for span in spans)


def test_untagged_documents_are_learnt_from(place: Path, tmp_path: Path, capsys: Printed) -> None:
    models = []
    for number, more in enumerate(([], ["--set", f"untagged_documents={place / 'more.jsonl'}"])):
        path = tmp_path / f"{number}.cfm"
        result_of(["train", place / "notes.jsonl", "-o", path, *QUICK, "--set", "objective=joint", *more], capsys)
        models.append(path.read_bytes())
    assert models[0] != models[1]


def test_the_published_system_and_its_features(place: Path, tmp_path: Path, capsys: Printed) -> None:
    asked = ["--set", "published=true", "--set", "features=muc", "--set", "states_per_class=2"]
    result_of(["train", place / "notes.jsonl", "-o", tmp_path / "m.cfm", *QUICK, *asked], capsys)
    config = result_of(["show", tmp_path / "m.cfm"], capsys)["config"]
    assert (config["objective"], config["features"], config["states_per_class"]) == ("joint", "muc", 2)
    assert (config["kappa"], config["shared"], config["evaluations"]) == (0.25, False, 15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "stages=2"], "classhmm has no setting 'stages'; it is one of cascade"),
        (["--set", "epochs=2"], "classhmm has no setting 'epochs'; it is one of cascade, hmmdp or encoder"),
        (["--set", "documents=false"], "classhmm has no setting 'documents'; it is one of cascade"),
        (["--start", "genia"], "--start goes on from a class HMM, and this model is of cascade"),
        (["--set", "objective=pa"], "objective must be one of crf, krogh, joint, mix, got 'pa'"),
        (["--set", "features=all"], "features must be one of basic, capitalisation, shape, muc, spelling, rich"),
        (["--set", "kappa=-1"], "kappa must be a number of at least 0, got -1.0"),
        (["--set", "states_per_class=0"], "states_per_class must be a whole number, at least 1, got 0"),
        (
            ["--set", "untagged_documents=x.jsonl"],
            "--set untagged_documents: objective crf cannot learn from untagged documents; leave them out, or",
        ),
        (
            ["--set", "objective=joint", "--lexicon", "DRUG=x"],
            "--lexicon: lexicons and clusters are features of the objective crf",
        ),
    ],
)
def test_options_that_cannot_be(options: list[str], words: str, place: Path, tmp_path: Path, capsys: Printed) -> None:
    code = main(["train", str(place / "notes.jsonl"), "-o", str(tmp_path / "m.cfm"), *QUICK[:2], *options])
    assert code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "m.cfm").exists()
