"""Adaptation: votes on the notes of a site, the labels that taggers learn from them, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.deid.detect import cues
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.token_scores import token_flags
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.patterns.find import find
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training import adapt as adapt_module
from chaffinch.deid.training import cross_check as cross_check_module
from chaffinch.deid.training import reader as reader_module
from chaffinch.deid.training.adapt import SiteLesson, adapt, label_by_votes
from chaffinch.deid.training.cross_check import cross_check, describe_limits, highest_promise
from chaffinch.deid.training.learn import SOURCE, dial_samples, learn
from chaffinch.errors import ConfigError, DataError
from chaffinch.models import tagger
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.text import Document, Span
from chaffinch.text.formats import read, write
from tests.deid.training.lessons import QUICK
from tests.models.notes import cascade_model
from tests.models.reader.random_reader import reader_of

Printed = pytest.CaptureFixture[str]

WORD = "Quillfeather"
NAMES = "Vandermolen Brightwater Oxenfordham Tillinghurst Marchbanksy Quennellow Stoddartson Fairweatherby".split()


def known(patients: int, seed: int = 3) -> list[Document]:
    found = synth.notes(patients, 1, seed=seed, style="varied")
    return [replace(doc, meta={**doc.meta, SOURCE: f"site-{doc.meta['site']}"}) for doc in found]


def of_site(number: int, name: str) -> str:
    """Return a note that names someone twice: in a form that rules know, and in a form of this site only."""
    return f"Attending: Dr. {name}\n\nWound clean, drain {number} out.\nwardlead ~ {name} ~ rounds done\n"


@pytest.fixture(scope="module")
def model() -> Model:
    return learn(known(18), lesson=QUICK)


@pytest.fixture(scope="module")
def file(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "old.cfm"
    model.save(path)
    return path


def test_what_is_voted_for_is_told_and_what_nobody_knows_is_not(model: Model) -> None:
    docs = [Document.make(of_site(n, name), id=str(n)) for n, name in enumerate(NAMES * 2)]
    for doc in label_by_votes(docs, model, word_lists()):
        soft, words = doc.soft["told"], doc.words()
        told = dict(zip(words, soft.values.tolist(), strict=True))
        assert soft.labels[int(np.argmax(told[words[3]]))].endswith("DOCTOR")
        assert all(sum(row) in (0.0, 1.0) for row in soft.values.tolist())
        assert told["clean"][0] in (0.0, 1.0)
        assert sum(told["clean"]) == told["clean"][0]  # O, or nothing at all


def test_every_tagger_goes_on_learning_and_the_dial_is_set_anew(model: Model) -> None:
    docs = [Document.make(of_site(n, name), id=str(n)) for n, name in enumerate(NAMES)]
    new = adapt(docs, model, lesson=SiteLesson(known(6, seed=5)))
    assert (
        [tagger.layer for tagger in new.taggers] == [tagger.layer for tagger in model.taggers] == ["cascade", "hmmdp"]
    )
    assert new.labels == model.labels
    asked = list(cues.with_cues([Document.make(of_site(1, NAMES[0]), id="1")]))
    for before, after in zip(model.taggers, new.taggers, strict=True):
        chances = [
            tagger.read(asked)[0][1][-4, 0] for tagger in (before, after)
        ]  # of O, where the site writes the name
        assert chances[1] < chances[0]
    assert new.dial.labels == new.labels
    assert new.dial.to_dict() != model.dial.to_dict()


@pytest.mark.parametrize("label", ["USERNAME", "BADGE"])  # one the model knows, one it does not
def test_reviewed_notes_teach_what_votes_cannot(model: Model, label: str) -> None:
    def reviewed(n: int, code: str) -> Document:
        text = f"Tray {n} carried by glimmerhand {code} again.\n"
        at = text.index(code)
        return Document.make(text, id=f"r{n}", layers={"gold": [Span(at, at + len(code), label)]})

    codes = "zorple quixen vandle brimto skelva tarnik plovex drumel".split()
    asked = Document.make("Tray 4 carried by glimmerhand wexelo again.\n", id="asked")
    assert not next(detector(model)([asked])).layer("deid")
    new = adapt(
        [], model, gold=[reviewed(n, code) for n, code in enumerate(codes * 4)], lesson=SiteLesson(known(2, seed=5))
    )
    assert [asked.text[a.start : a.end] for a in next(detector(new)([asked])).layer("deid")] == ["wexelo"]


def test_without_a_model_it_learns_from_reviewed_notes_alone_in_any_language() -> None:
    def carta(n: int) -> Document:
        name = NAMES[n % 8]
        text = f"Paciente: {name}\nIngresa con fiebre. Dr. Smith\n"
        return Document.make(text, id=str(n), layers={"gold": [Span(10, 10 + len(name), "NOMBRE")]})

    new = adapt([], None, gold=[carta(n) for n in range(24)])
    assert new.labels == ("NOMBRE",)
    doc = next(detector(new)([Document.make("Paciente: Arrizabalaga\nIngresa con tos. Dr. Smith\n")]))
    assert [doc.text[span.start : span.end] for span in doc.layer("deid")] == ["Arrizabalaga"]  # no English rule


@pytest.mark.parametrize(
    ("notes", "old", "gold", "said"),
    [([], "model", None, "there are 0 notes"), ([], None, None, "no reviewed note"), ([], "rules", None, "no tagger")],
)
def test_too_little_is_refused(
    notes: list[Document], old: str | None, gold: list[Document] | None, said: str, model: Model
) -> None:
    with pytest.raises(DataError, match=said):
        adapt(notes, {"model": model, "rules": Model()}.get(old or ""), gold=gold)


def test_the_lists_of_a_language_help_to_learn_without_a_model(model: Model, tmp_path: Path) -> None:
    notes = [Document.make(f"Atendida por Dra. {name} hoy.\n", id=name) for name in NAMES]
    marked = [doc.with_layer("gold", [Span(18, 18 + len(doc.id), "DOCTOR")]) for doc in notes]
    learnt = adapt([], None, gold=marked, language="es")
    learnt.save(tmp_path / "es.cfm")
    lists = cascade_model(load(tmp_path / "es.cfm").taggers[0].model).resources.standing
    assert lists is not None
    assert lists.language == "es"
    with pytest.raises(ConfigError, match="no word lists for 'xx'; name one of de, en, es"):
        adapt([], None, gold=marked, language="xx")
    with pytest.raises(ConfigError, match="without a model"):
        adapt(known(4), model, language="es")


def test_a_method_that_cannot_go_on_is_refused() -> None:
    quick = ClassHMM(evaluations=1, calibrate=False)
    other = Model((tagger.train(known(4), quick, layer="gold"),))
    with pytest.raises(DataError, match="a classhmm cannot train further; adapt deid-en"):
        adapt(known(4), other)


def test_the_command_adapts_and_says_no_word_of_the_notes(file: Path, tmp_path: Path, capsys: Printed) -> None:
    folder, place = tmp_path / "notes", tmp_path / "ours.cfm"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(of_site(number, WORD), encoding="utf-8")
    assert main(["deid", "adapt", str(folder), "-o", str(place), "--model", str(file), "--json"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["notes"], result["reviewed"]) == (8, 0)
    assert set(result["found"][0]) == {"kind", "before", "after"}
    assert len(load(place).taggers) == 2
    assert WORD not in printed.out + printed.err
    assert WORD.encode() not in place.read_bytes()


def test_the_command_refuses_what_cannot_work(file: Path, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "a.txt").write_text("Seen by Quillfeather.", encoding="utf-8")
    notes, place = str(tmp_path / "a.txt"), str(tmp_path / "m.cfm")
    assert main(["deid", "adapt", notes, "-o", place, "--model", "none"]) == 2
    assert "--gold" in capsys.readouterr().err
    assert main(["deid", "adapt", notes, "-o", place, "--model", str(file), "--gold", notes]) != 0
    told = capsys.readouterr().err
    assert "nothing was reviewed" in told
    assert "Quillfeather" not in told
    assert not Path(place).exists()


def test_tag_finds_identifiers_with_a_model_of_them(tmp_path: Path, capsys: Printed) -> None:
    write([Document.make("Seen by Dr. Penn on 3/4/1998.\n", id="1")], tmp_path / "in.jsonl", format="jsonl")
    out = str(tmp_path / "out")
    assert main(["tag", "deid-en", str(tmp_path / "in.jsonl"), "-o", out, "--to", "i2b2", "--quiet"]) == 0
    (doc,) = read(tmp_path / "out")
    assert [(doc.text[span.start : span.end], span.label) for span in doc.layer("gold")] == [
        ("Penn", "DOCTOR"), ("3/4/1998", "DATE"),
    ]  # fmt: skip
    assert main(["tag", "deid-en", str(tmp_path / "in.jsonl"), "-o", out, "--bias", "O=-1"]) == 2
    assert "one of identifiers" in capsys.readouterr().err


def marked(n: int, name: str) -> Document:
    """Return a note of the site with its name marked at both places."""
    text = of_site(n, name)
    places = [text.index(name), text.rindex(name)]
    spans = [Span(at, at + len(name), "DOCTOR") for at in places]
    return Document.make(text, id=f"m{n}", group=f"p{n}", layers={"gold": spans})


def test_gains_are_measured_on_patients_that_were_not_learnt_from(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = [marked(n, name) for n, name in enumerate(NAMES[:4])]
    at = gold[0].text.index("rounds done")
    missed = Span(at, at + len("rounds done"), "DOCTOR")  # what no model finds
    gold[0] = gold[0].with_layer("gold", [*gold[0].layer(), missed])
    learnt: list[set[str]] = []

    def watched(notes: list[Document], old: Model, *, gold: list[Document], **_: object) -> Model:
        learnt.append({doc.patient for doc in (*notes, *gold)})
        return old

    monkeypatch.setattr(cross_check_module, "adapt", watched)
    found = cross_check(gold, model, gold)
    assert learnt == [{"p1", "p3"}, {"p0", "p2"}]
    assert found is not None
    assert (found.notes, found.identifiers) == (4, 10)
    assert found.recall_before == found.recall_after == pytest.approx(0.8)
    assert found.precision_before == found.precision_after == 1.0
    assert cross_check(gold, model, gold[:3]) is None


def test_no_pattern_hit_is_lost_and_both_dials_are_set(model: Model) -> None:
    voice = ContextVoice(reader_of(["DOCTOR", "DATE"]), model.dial)
    whole = replace(model, context=voice)
    docs = [
        Document.make(of_site(n, name) + "Seen 3/4/1998, call 555-123-4567.\n", id=str(n))
        for n, name in enumerate(NAMES)
    ]
    new = adapt(
        docs, whole, gold=[marked(n, name) for n, name in enumerate(NAMES)], lesson=SiteLesson(known(2, seed=5))
    )
    for doc, found in zip(docs, detector(new)(docs), strict=True):
        covered = token_flags(doc, found.layer("deid"))
        assert covered[token_flags(doc, find(doc))].all()
    assert new.context is not None
    assert new.context.fast_dial.to_dict() not in (model.dial.to_dict(), new.dial.to_dict())
    assert new.context.fast_dial.labels == new.fast().labels


def test_the_reader_learns_and_the_dial_is_set_on_patients_kept_from_it(
    model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taught: list[set[str]] = []
    readers = [reader_of(["DOCTOR", "DATE"], seed=seed) for seed in (0, 1, 2)]

    def watched(voice: ContextVoice, notes: list[Document], **_: object) -> ContextVoice:
        taught.append({doc.patient for doc in notes})
        assert all(doc.text.startswith("attending: dr. ") for doc in notes)  # as they are written, not in capitals
        return replace(voice, reader=readers[len(taught)], adapted=len(notes))

    dialled: list[str] = []
    generated: list[int] = []  # notes that set a dial

    def sampled(old: Model, docs: list[Document], *rest: object) -> Iterator[DialSample]:
        generated.append(sum(not doc.id.startswith("m") for doc in docs))
        dialled.extend(doc.text for doc in docs if doc.id.startswith("m"))
        return dial_samples(old, docs, *rest)  # type: ignore[arg-type]  # labels and lists

    monkeypatch.setattr(adapt_module, "dial_samples", sampled)
    monkeypatch.setattr(adapt_module, "adapt_reader", watched)
    gold = [marked(n, name) for n, name in enumerate(NAMES)]
    gold = [replace(doc, text=doc.text.lower()) for doc in gold]
    whole, replay = replace(model, context=ContextVoice(readers[0], model.dial)), known(2, seed=5)
    new = adapt([], whole, gold=gold, lesson=SiteLesson(replay, reader=True))
    assert taught == [{f"p{n}" for n in range(8) if n % 4}, {f"p{n}" for n in range(8)}]
    assert dialled == [gold[0].text, gold[4].text] * 2
    assert generated == [0, 0]
    assert new.context is not None
    assert new.context.reader is readers[2]
    kept = adapt([], whole, gold=gold, lesson=SiteLesson(replay))
    assert len(taught) == 2
    others = [Document.make(f"Seen by Dr. Penn on day {n}.", id=f"u{n}", group=f"n{n}") for n in range(3)]
    dialled.clear()
    taught.clear()
    adapt(others, whole, gold=gold[:2], lesson=SiteLesson(replay, reader=True))
    assert taught == [{"p1"}, {"p0", "p1"}], "a reviewed patient is held out, whatever else there is"
    assert dialled == [gold[0].text] * 2
    assert generated[-2:] == [1, 1], "two patients are too few to set a dial on"
    assert kept.context is not None
    assert kept.context.reader is readers[0]
    assert kept.dial.to_dict() != new.dial.to_dict()
    assert kept.context.fast_dial.to_dict() == new.context.fast_dial.to_dict()
    with pytest.raises(ConfigError, match="no contextual reader"):
        adapt([], model, gold=gold, lesson=SiteLesson(replay, reader=True))


@pytest.mark.parametrize("asked", [True, False])
def test_the_command_adapts_the_reader_if_asked_and_says_so(
    model: Model, asked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Printed
) -> None:
    asked_of: list[bool] = []

    def watched(notes: list[Document], old: Model, *, lesson: SiteLesson, **_: object) -> Model:
        asked_of.append(lesson.reader)
        assert old.context is not None
        return replace(old, context=replace(old.context, adapted=len(notes)) if lesson.reader else old.context)

    monkeypatch.setattr(adapt_module, "adapt", watched)
    monkeypatch.setattr(cross_check_module, "adapt", watched)
    old, notes, place = tmp_path / "old.cfm", tmp_path / "notes.jsonl", tmp_path / "ours.cfm"
    replace(model, context=ContextVoice(reader_of(["DOCTOR"]), model.dial)).save(old)
    gold = [marked(n, name) for n, name in enumerate(NAMES)]
    write(gold, notes)
    command = ["deid", "adapt", str(notes), "--gold", str(notes), "--model", str(old), "-o", str(place), "--json"]
    if asked:
        assert main([*command, "--adapt-reader"]) == 3
        assert "8 reviewed notes are too few" in capsys.readouterr().err
        assert not place.exists()
        monkeypatch.setattr(reader_module, "FEWEST", 8)
    assert main([*command, *(["--adapt-reader"] if asked else [])]) == 0
    result = json.loads(capsys.readouterr().out)
    assert asked_of == [asked] * 3  # and in both folds of the check
    assert result["reader"] == (8 if asked else 0)
    assert ("has learnt from 8" if asked else "reads as before") in result["remarks"][-1]
    assert ("reader was adapted" in bundle.read_manifest(place).notes) is asked


def test_limits_say_what_so_many_notes_can_show() -> None:
    gold = [marked(n, name) for n, name in enumerate(NAMES)]
    assert "No note was reviewed" in describe_limits([])[0]
    assert "review those of 4 or more" in describe_limits(gold[:3])[0]
    assert describe_limits(gold) == [
        "16 reviewed identifiers can promise a recall of 0.866 at most (90 % confidence, if none was missed)."
    ]
    assert 1 - highest_promise(16) ** 16 == pytest.approx(0.9)
