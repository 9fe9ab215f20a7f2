"""Training of a detector's model: its lists, its folds, its dial, and its use of names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch import languages
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.synth import names as synth_names
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.learn import SOURCE, learn, names_in, split_by_source, with_lists
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.word_lists import word_profile
from chaffinch.models.core.resources import Resources
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span
from tests.deid.training.lessons import QUICK
from tests.models.notes import cascade_model

NAMES = "Penn Lowe Hart Ford Stoddart Quennell Oxenford Marchbank Tilling Vandermolen".split()


def notes(patients: int, *, seed: int = 3) -> list[Document]:
    found = synth.notes(patients, 1, seed=seed, style="varied")
    return [replace(doc, meta={**doc.meta, SOURCE: f"site-{doc.meta['site']}"}) for doc in found]


@pytest.fixture(scope="module")
def learnt() -> Model:
    return learn(notes(24), lesson=QUICK)


def marked(lines: int) -> Iterator[Document]:
    for number in range(lines):
        name = NAMES[number % len(NAMES)]
        text = f"Tremor noted by zookeeper {name} at noon."
        at = text.index(name)
        yield Document.make(text, id=str(number), layers={"gold": [Span(at, at + len(name), "DOCTOR")]})


def test_a_model_learns_what_no_rule_knows() -> None:
    asked = Document.make("Tremor noted by zookeeper Brightwaterton at noon.")
    assert not next(detector()([asked])).layer("deid")
    model = learn(list(marked(40)), lesson=QUICK)
    spans = next(detector(model)([asked])).layer("deid")
    assert [(asked.text[span.start : span.end], span.label) for span in spans] == [("Brightwaterton", "DOCTOR")]


def test_the_dial_is_set_on_sources_the_tagger_did_not_learn_from(learnt: Model) -> None:
    assert learnt.dial.labels == learnt.labels
    thresholds = [learnt.dial.at(recall)["DOCTOR"] for recall in (0.9, 0.99, 1.0)]
    assert thresholds == sorted(thresholds, reverse=True)
    held = learn(notes(24), notes(4, seed=9), lesson=QUICK)
    assert held.dial.reached != learnt.dial.reached  # another set of notes, another dial


def test_the_same_notes_and_seed_give_the_same_file(learnt: Model, tmp_path: Path) -> None:
    learnt.save(tmp_path / "one.cfm")
    learn(notes(24), lesson=QUICK).save(tmp_path / "two.cfm")
    assert (tmp_path / "one.cfm").read_bytes() == (tmp_path / "two.cfm").read_bytes()
    doc = notes(1, seed=8)[0]
    ways = [next(detector(model)([doc])) for model in (learnt, load(tmp_path / "one.cfm"))]
    assert ways[0].layer("deid") == ways[1].layer("deid")
    np.testing.assert_array_equal(ways[0].soft["deid"].values, ways[1].soft["deid"].values)


def test_names_are_hidden_while_it_learns_and_back_in_the_finished_lists(
    learnt: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = cascade_model(learnt.taggers[0].model).resources
    assert lists.standing is not None
    assert lists.standing.hidden == lists.hidden == frozenset()
    chain = learnt.taggers[1].model
    assert isinstance(chain, hmmdp_model.Model)
    assert chain.symbols.pack.lexica == languages.pack("en").lexica
    while_learning: list[frozenset[str]] = []

    def train(docs: object, config: object, *, resources: Resources, **_: object) -> Tagger:
        assert resources.standing is None or resources.standing.hidden == resources.hidden
        while_learning.append(resources.hidden)
        return learnt.taggers[len(while_learning) - 1]

    monkeypatch.setattr("chaffinch.models.tagger.train", train)
    learn(notes(2), notes(1, seed=8), lesson=QUICK)
    assert [0.3 < len(hidden) / len(word_lists().every_word) < 0.36 for hidden in while_learning] == [True, True]


def test_lists_and_generated_notes_lack_hidden_names() -> None:
    fewer = word_lists(hidden=["Smith", "Mary"])
    fewest = fewer.hide_words(["Miller"])
    assert [fewest.rate(name, "last") for name in ("Smith", "Miller", "Brown")] == ["", "", "hi"]
    assert fewer.rate("Miller", "last") == "hi"
    drawn = synth_names.names_of_half("all", fewer.hidden).last
    assert "Smith" not in drawn
    assert "Miller" in drawn
    assert word_profile("Smith", languages.pack("en", fewer.hidden)) == "Title new"
    assert word_lists().rate("Smith", "last") == "hi"
    assert "Smith" in synth_names.names_of_half("all").last
    words = {word for doc in synth.notes(3, 1, style="varied", hidden=fewer.hidden) for word in doc.text.split()}
    assert not words & {"Smith", "Mary"}
    with pytest.raises(ConfigError, match="varied"):
        synth.notes(1, 1, hidden=fewer.hidden)


def test_a_model_that_is_given_other_lists_has_them_in_every_tagger(learnt: Model) -> None:
    lists = word_lists(hidden=["Smith"])
    fewer = with_lists(learnt, lists)
    for old, new in zip(learnt.taggers, fewer.taggers, strict=True):
        assert (old.model.resources.hidden, new.model.resources.hidden) == (frozenset(), {"smith"})  # type: ignore[attr-defined]  # both methods have them
    chain = fewer.taggers[1].model
    assert isinstance(chain, hmmdp_model.Model)
    assert "smith" not in chain.symbols.pack.lexica["last"]
    back = with_lists(fewer, word_lists()).taggers[1].model
    assert isinstance(back, hmmdp_model.Model)
    assert back.symbols.pack is languages.pack("en")


def test_a_model_in_another_thread_is_not_touched_by_hidden_words(learnt: Model) -> None:
    """One thread learns, with every third name hidden; meanwhile another finds what it found before, list or model."""
    docs = [Document.make("Seen by Smith. Mary Miller of Boston, RN, saw Baker.", id="a"), *notes(3, seed=9)]

    def look() -> list[object]:
        found = [doc.layer("deid") for find in (detector(), detector(learnt)) for doc in find(docs)]
        return [*found, [word_lists().rate(word, "last") for word in ("Smith", "Miller", "Baker", "Brown")]]

    before, looks, done = look(), list[list[object]](), threading.Event()

    def watch() -> None:
        while not done.is_set():
            looks.append(look())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        again = learn(notes(12), notes(2, seed=5), lesson=QUICK, lists=word_lists(hidden=["Brown"]))
    finally:
        done.set()
        thread.join()
    assert len(looks) > 1
    assert all(each == before for each in looks)
    alone = learn(notes(12), notes(2, seed=5), lesson=QUICK, lists=word_lists(hidden=["Brown"]))
    assert again.dial.to_dict() == alone.dial.to_dict()  # nor is learning by the others


def test_names_in_are_the_words_of_names_and_places_alone() -> None:
    spans = [Span(4, 13, "DOCTOR"), Span(17, 22, "CITY"), Span(26, 33, "DATE")]
    doc = Document.make("Dr. Penn-Lowe of Eaton on 3/4/98.", layers={"gold": spans})
    assert names_in([doc]) == {"Penn", "Lowe", "Eaton"}


def test_folds_never_part_a_source() -> None:
    docs = notes(24)
    parts = split_by_source(docs)
    assert sorted(doc.id for part in parts for doc in part) == sorted(doc.id for doc in docs)
    sources = [{doc.meta[SOURCE] for doc in part} for part in parts]
    assert len(parts) == 2
    assert all(not a & b for a in sources for b in sources if a is not b)
    with pytest.raises(DataError, match="no notes"):
        split_by_source([])
