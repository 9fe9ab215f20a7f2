"""`chaffinch show` of class HMMs: classes, one class in detail, JSON and one HTML page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.cli.show import sparkline
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.describe.report import Measure, Piece, Roles, Substructure, Trait, verdict
from chaffinch.models.classhmm.model import Model
from chaffinch.models.tagger import Tagger, train
from tests.cli.show.test_subtags import lines_of, read_page, shown
from tests.models.notes import notes

HELD_OUT = (-2.0, -2.25)
GOOD = Measure(80, 0.4, 0.01, 0.03)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    """A tagger whose states of NAME follow roles, as if that had been measured."""
    own = train(
        notes(40), ClassHMM(3, outside_states=2, objective="joint", evaluations=12, calibrate=False, private=False)
    )
    assert isinstance(own.model, Model)
    found = own.model.substructure
    assert found is not None
    roles = Roles(100, {"given name": 40, "family name": 40}, GOOD, GOOD, GOOD)
    classes = [replace_class(one, roles=roles) if one.name == "NAME" else one for one in found.classes]
    portrait = replace(own.model.portrait, held_out=np.array(HELD_OUT))
    model = replace(own.model, portrait=portrait, substructure=replace_told(found, tuple(classes)))
    return replace(own, model=model)


def replace_class(own: Any, **changes: Any) -> Any:
    return type(own)(**{name: changes.get(name, getattr(own, name)) for name in own.__struct_fields__})


def replace_told(found: Substructure, classes: tuple[Any, ...]) -> Substructure:
    return Substructure(classes, found.patients, found.private)


def told(tagger: Tagger) -> Substructure:
    assert isinstance(tagger.model, Model)
    assert tagger.model.substructure is not None
    return tagger.model.substructure


@pytest.fixture(scope="module")
def file(tagger: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "names.cfm"
    tagger.save(path)
    return path


def test_json_has_all_of_it(file: Path, tagger: Tagger, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(shown(capsys, file, "--json"))
    assert result["kind"] == "classhmm"
    assert result["objective"] == tagger.model.portrait.trace.round(3).tolist()  # type: ignore[attr-defined]
    assert result["held_out"] == {"several": -2.0, "one": -2.25, "gain": 0.25}
    assert (result["patients"], result["private"]) == (2, False)
    assert [own["name"] for own in result["classes"]] == ["O", "DOSE", "DRUG", "NAME", "TOWN"]
    for own, found in zip(result["classes"], told(tagger).classes, strict=True):
        assert own["verdict"] == verdict(found, HELD_OUT)
        assert (own["tokens"], own["mentions"]) == (found.tokens, found.mentions)
        for state, one in zip(own["states"], found.states, strict=True):
            assert (state["name"], state["tokens"], state["share"]) == (one.name, one.tokens, one.share)
            assert [word["name"] for word in state["words"]] == [word.name for word in one.words]
            assert [word["name"] for word in state["features"]] == [word.name for word in one.features]
            assert tuple(state["positions"]) == one.positions
            assert [tuple(share) for share in state["after"]] == list(one.after)
        assert own["examples"] == [[{"text": p.text, "number": p.number} for p in one] for one in found.examples]
    assert [own["substructure"] for own in result["classes"]] == [None, None, False, True, None]
    assert result["classes"][3]["roles"]["single"]["nmi"] == 0.4
    one = json.loads(shown(capsys, file, "--json", "--class", "NAME"))
    assert one["classes"] == [result["classes"][3]]
    assert {key: value for key, value in one.items() if key != "classes"} == {
        key: value for key, value in result.items() if key != "classes"
    }


def test_text_lists_classes_verdicts_and_the_climb(
    file: Path, tagger: Tagger, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = shown(capsys, file)
    rows = {row.split()[0]: row.split() for row in lines_of(printed, "class  ")}
    assert rows["O"][1] == "2"
    assert rows["NAME"][1] == "3"
    assert rows["NAME"][2] == str(told(tagger).classes[3].tokens)
    assert rows["NAME"][-6:] == [".400", ".030", ".400", ".030", "+0.2500", "yes"]
    assert rows["TOWN"][-6:] == ["-", "-", "-", "-", "+0.2500", "?"]
    assert rows["DRUG"][-2:] == ["+0.2500", "no"]  # its states are no parts that the words tell apart
    flat = " ".join(printed.split())
    for own in told(tagger).classes[1:]:
        assert verdict(own, HELD_OUT) in flat
    assert "at least .05 and at least twice the 95th percentile" in flat
    assert "also features of the set rich" in flat
    trace = tagger.model.portrait.trace.tolist()  # type: ignore[attr-defined]
    line = f"objective  {trace[0]:,.0f} → {trace[-1]:,.0f} in {len(trace)} steps  {sparkline(trace)}"
    assert line in printed
    assert "vocabulary floor" in printed
    assert "tables.trans" in printed


def test_one_class_in_detail(file: Path, tagger: Tagger, capsys: pytest.CaptureFixture[str]) -> None:
    printed = shown(capsys, file, "--class", "NAME")
    found = told(tagger).classes[3]
    assert "vocabulary floor" not in printed
    assert " ".join(printed.split()).startswith(verdict(found, HELD_OUT))
    assert "used by at least 2 patients" in " ".join(printed.split())
    for state in found.states:
        row = next(line for line in printed.splitlines() if line.startswith(state.name))
        assert row.split()[1] == str(state.tokens)
        assert not state.words or state.words[0].name in row
    assert found.examples
    for one in found.examples:
        assert " | ".join(f"{piece.text}/{piece.number}" for piece in one) in printed.splitlines()
    assert "Given the place in longer mentions" in printed
    outside = shown(capsys, file, "--class", "O")
    assert "O/2" in outside
    assert "No examples" not in outside


def test_unknown_classes_and_other_models_are_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(file), "--class", "name"]) == 2
    said = capsys.readouterr().err
    assert "there is no class 'name'; did you mean 'NAME'? it has O, DOSE, DRUG, NAME, TOWN" in said
    assert main(["show", str(file), "--class", "xyzzy"]) == 2
    assert "there is no class 'xyzzy'; the model has O, DOSE, DRUG, NAME, TOWN" in capsys.readouterr().err
    path = tmp_path / "c.cfm"
    train(notes(12), Cascade(epochs=1)).save(path)
    assert main(["show", str(path), "--class", "NAME"]) == 2
    assert "--class is for class HMMs, and " in capsys.readouterr().err


def test_a_file_without_descriptions_still_shows(file: Path, tmp_path: Path, capsys: Any) -> None:
    found = bundle.load(file)
    older = {name: words for name, words in found.strings.items() if name != "substructure"}
    path = tmp_path / "old.cfm"
    bundle.save(path, found.manifest, found.arrays, older)
    assert json.loads(shown(capsys, path, "--json"))["classes"] == []
    assert "objective" in shown(capsys, path, "--html", tmp_path / "old.html")
    read_page(tmp_path / "old.html")
    assert main(["show", str(path), "--class", "NAME"]) == 2
    assert "does not describe its states" in capsys.readouterr().err
    broken = {**found.strings, "substructure": ("{",)}
    bundle.save(path, found.manifest, found.arrays, broken)
    assert main(["show", str(path)]) == 3
    assert "old.cfm: its settings cannot be read" in capsys.readouterr().err


def test_the_page_stands_alone(file: Path, tagger: Tagger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "model.html"
    shown(capsys, file, "--html", target)
    page, found = read_page(target), told(tagger)
    classes = [own.get("class") or "" for _, own in page.seen]
    labels = found.classes[1:]
    assert classes.count("dot") == len(tagger.model.portrait.trace)  # type: ignore[attr-defined]
    assert classes.count("places") == sum(len(own.states) for own in labels)
    pieces = sum(len(one) for own in labels for one in own.examples)
    assert sum(name.startswith("part ") for name in classes) == pieces > 0
    assert sum(name.startswith("key ") for name in classes) == sum(len(own.states) for own in found.classes)
    assert classes.count("yes") == 2
    for text in ("names.cfm", "NAME has sub-structure", "step", "followed by", "at least 2 patients", "Examples"):
        assert text in page.text
    assert "prefers-color-scheme: dark" in target.read_text()
    shown(capsys, file, "--html", target, "--class", "NAME")
    one = read_page(target)
    assert sum((own.get("class") or "").startswith("key ") for _, own in one.seen) == 3


def test_words_are_escaped(tagger: Tagger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, evil = told(tagger), "<script>alert(1)</script>"
    own = found.classes[3]
    word = (Trait(evil, 2.0, 3), Trait("[/b]", 2.0, 3), Trait("a\x1b[31mb", 1.5, 2))
    states = tuple(replace_class(state, words=word, features=word) for state in own.states)
    classes = [replace_class(own, states=states, examples=((Piece(evil, 1), Piece("a\x1b[31mb", 2)),))]
    path, target = tmp_path / "m.cfm", tmp_path / "m.html"
    model = tagger.model
    assert isinstance(model, Model)
    replace(tagger, model=replace(model, substructure=replace_told(found, tuple(classes)))).save(path)
    printed = shown(capsys, path, "--class", "NAME", "--html", target)
    assert "[/b]" in printed
    assert "\x1b" not in printed
    assert "<script>" in read_page(target).text


def test_private_models_say_why_there_are_no_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = ClassHMM(2, objective="joint", evaluations=4, calibrate=False, private=True)
    path, target = tmp_path / "p.cfm", tmp_path / "p.html"
    train(notes(30), config).save(path)
    printed = shown(capsys, path, "--class", "NAME", "--html", target)
    assert "No examples: the model is private." in printed
    assert "are left out (private)" in " ".join(printed.split())
    assert "No examples: the model is private." in read_page(target).text
