"""Models that learn identifiers are private unless the user says otherwise: their files hold no names."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle, languages
from chaffinch.cli import main
from chaffinch.deid.kinds import KINDS, kind_of
from chaffinch.deid.synth import notes as synth
from chaffinch.errors import ConfigError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.registry import Config
from chaffinch.models.tagger import load, train
from chaffinch.text import Document, Soft, Span
from chaffinch.text.formats import write
from chaffinch.text.identifiers import names_identifier

METHODS: dict[str, Config] = {"cascade": Cascade(), "hmmdp": HMMDP(), "classhmm": ClassHMM()}
QUICK: dict[str, Config] = {
    "cascade": Cascade(epochs=1, documents=False, calibrate=False),
    "hmmdp": HMMDP(2, 1, passes=2, epochs=1, calibrate=False),
    "classhmm": ClassHMM(1, evaluations=3, calibrate=False),
}


@pytest.fixture(scope="module")
def notes() -> list[Document]:
    return synth.notes(24, 2, seed=5)


def names_of(docs: list[Document]) -> set[str]:
    """Return the names of patients and clinicians that are no words of the language."""
    common = languages.pack("en").common
    texts = (doc.text[s.start : s.end] for doc in docs for s in doc.layer() if kind_of(s.label).category == "NAME")
    words = {word.lower() for text in texts for word in re.findall(r"[^\W\d_]{4,}", text)}
    return {word for word in words if word not in common}


def held_by(path: Path) -> str:
    """Return all strings of a model file and its manifest, in lower case."""
    found = bundle.load(path)
    return "\n".join([str(found.manifest), *(word for words in found.strings.values() for word in words)]).lower()


@pytest.mark.parametrize("method", METHODS)
def test_no_name_is_in_a_model_trained_at_default_settings(method: str, notes: list[Document], tmp_path: Path) -> None:
    names = names_of(notes)
    assert len(names) > 50
    tagger = train(notes, METHODS[method])
    tagger.save(tmp_path / "m.cfm")
    held = held_by(tmp_path / "m.cfm")
    assert sorted(name for name in names if name in held) == []
    assert load(tmp_path / "m.cfm").manifest.config["private"] is True


def note(label: str, number: int = 0, *, soft: bool = False) -> Document:
    text = f"Seen Zyxgov on ward {number}. Zyxgov came."
    doc = Document.make(text, id=str(number))
    if soft:
        rows = [[0.1, 0.9] if word == "Zyxgov" else [1.0, 0.0] for word in doc.words()]
        return doc.with_soft("votes", Soft(("O", label), np.array(rows)))
    return doc.with_layer("gold", [Span(m.start(), m.end(), label) for m in re.finditer("Zyxgov", text)])


def told(config: Any, private: bool | None) -> Config:
    made: Config = replace(config, private=private)
    return made


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(("label", "private"), [("PATIENT", True), ("Phone number", True), ("Disease", False)])
def test_labels_decide_unless_the_user_does(method: str, soft: bool, label: str, private: bool) -> None:
    docs = [note(label, number, soft=soft) for number in range(6)]
    way: dict[str, Any] = {"soft": "votes"} if soft else {}
    for said in (None, True, False):
        tagger = train(docs, told(QUICK[method], said), **way)
        expected = private if said is None else said
        assert asdict(tagger.model.config)["private"] is expected
        assert tagger.manifest.config["private"] is expected


def test_which_labels_name_identifiers() -> None:
    direct = {name for name, kind in KINDS.items() if kind.category in ("NAME", "CONTACT", "ID")} | {"STREET"}
    assert {name for name in KINDS if names_identifier(name)} == direct
    for label in (
        "PER", "person", "NOMBRE_SUJETO_ASISTENCIA", "MRN", "PHI", "Patient name", "patient_first_name", "DoctorName",
        "CALLE", "email-address", "ID_ASEGURAMIENTO",
    ):  # fmt: skip
        assert names_identifier(label), label
    for label in ("LOC", "ORG", "GPE", "MISC", "DATE", "AGE", "Disease", "DNA", "protein", "Chemical", "Identity", ""):
        assert not names_identifier(label), label


def test_two_stages_on_identifiers_must_be_asked_for() -> None:
    docs = [note("PATIENT", number) for number in range(6)]
    two = replace(Cascade.published(), epochs=1, cutoff=1)
    with pytest.raises(ConfigError, match=r"PATIENT.*private=False"):
        train(docs, two)
    assert train(docs, replace(two, private=False)).manifest.config["private"] is False
    assert train([note("DNA", number) for number in range(6)], two).manifest.config["private"] is False
    with pytest.raises(ConfigError, match="use stages=1"):
        replace(two, private=True)


def test_published_settings_are_those_of_the_publications() -> None:
    assert [HMMDP.published().private, HMMDP.submitted().private, ClassHMM.published().private] == [False] * 3


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("private", [True, False])
def test_a_model_goes_on_as_it_was(method: str, private: bool, tmp_path: Path) -> None:
    docs = [note("PATIENT", number) for number in range(6)]
    train(docs, told(QUICK[method], private)).save(tmp_path / "m.cfm")
    old = load(tmp_path / "m.cfm")
    assert asdict(old.model.config)["private"] is private
    old.save(tmp_path / "again.cfm")
    assert (tmp_path / "m.cfm").read_bytes() == (tmp_path / "again.cfm").read_bytes()
    if method == "cascade":
        assert old.partial_fit(docs).manifest.config["private"] is private


def test_packaged_models_load_as_they_were() -> None:
    assert load("genia").manifest.config["private"] is False


@pytest.mark.parametrize(
    ("option", "private"),
    [
        ([], True),
        (["--set", "private=true"], True),
        (["--set", "private=false"], False),
        (["--set", "published=true"], None),
    ],
)
def test_the_command_line_says_whether_a_model_is_private(
    option: list[str], private: bool | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "notes.jsonl", str(tmp_path / "m.cfm")
    write([note("PATIENT", number) for number in range(6)], path)
    code = main(["train", str(path), "-o", model, "--set", "epochs=1", "--json", *option])
    said = capsys.readouterr()
    if private is None:
        assert code == 2
        assert "private=False" in said.err
        return
    assert code == 0
    assert json.loads(said.out)["private"] is private
    assert ("holds words of identifiers" in said.err) is not private
    assert main(["show", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["private"] is private
    assert main(["show", model]) == 0
    assert re.search(rf"^\W*private +{'yes' if private else 'no'}\b", capsys.readouterr().out, re.MULTILINE)


def test_words_of_one_patient_are_told_of_whatever_the_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for label, advice in (("Disease", "see --set floor=2 and --set private=true."), ("PATIENT", "see --set floor=2.")):
        path = tmp_path / f"{label}.jsonl"
        write([note(label, number) for number in range(6)], path)
        assert main(["train", str(path), "-o", str(tmp_path / "m.cfm"), "--set", "epochs=1"]) == 0
        assert f"one patient alone used; before you share it, {advice}" in capsys.readouterr().err


def test_show_tells_of_models_made_of_several_taggers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "deid-en", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["private"] is False  # its names were invented
