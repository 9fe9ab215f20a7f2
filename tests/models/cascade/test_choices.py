"""What may be asked of a tagger: bias, alternatives, more learning, interrupts, privacy, very long sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.features import describe as names
from chaffinch.features import observe as window
from chaffinch.kernels.linear import Learner
from chaffinch.models.cascade import fit as cascade
from chaffinch.models.cascade import segments
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.training import Lesson, Progress, Reading
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from tests.features.test_vocabulary import key_of
from tests.kernels import oracle
from tests.models.cascade.test_cascade import CONFIGS, TEST, TRAIN, every_config, one_stage, spans, tagger
from tests.models.notes import cascade_model, hit_rate, note, notes


@every_config
def test_more_bias_to_the_outside_finds_less(name: str) -> None:
    sizes = []
    for bias in (-4.0, -1.0, -0.3, 0.0, 0.3, 1.0, 4.0):
        found = [s for layer in spans(list(tagger(name).annotate(TEST, bias={"O": bias}))) for s in layer]
        # A chain trades tokens; a classifier trades segments.
        sizes.append(len(found) if name == "two stages" else sum(len(s) for s in found))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] > sizes[-1]
    assert name == "two stages" or sizes[0] > sizes[3]  # here its classifier rejects no segment unbiased
    with_names = [s for layer in spans(list(tagger(name).annotate(TEST, bias={"NAME": -9.0}))) for s in layer]
    assert not [s for s in with_names if s.label == "NAME"]


def test_bias_of_an_unknown_label_is_refused() -> None:
    with pytest.raises(ConfigError, match="label 'AGE'; this model has O, DOSE, DRUG"):
        tagger("pa").annotate(TEST, bias={"AGE": 1.0})


@one_stage
def test_alternatives_are_distinct_and_the_best_come_first(name: str) -> None:
    doc = Document.make("Dr. Ann Voss")
    model = cascade_model(tagger(name).model)
    part = model.readings[-1]
    lattice = part.batch(*model.observe([doc]))[0]
    found = [reading.layer("cascade") for reading in tagger(name).alternatives(doc, 12)]
    listed = [part.labels.runs(np.array(path, np.int32)) for _, path in oracle.listing(lattice).paths[:12]]
    starts, ends = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist()
    assert found == [tuple(Span(starts[a], ends[b - 1], label) for a, b, label in runs) for runs in listed]
    assert len(set(found)) == len(found) == 12
    assert len(tagger(name).alternatives(doc, 1)) == 1
    with pytest.raises(ConfigError, match="at least 1"):
        tagger(name).alternatives(doc, 0)


@one_stage
def test_the_first_alternative_is_what_is_read(name: str) -> None:
    for doc in TEST:
        assert tagger(name).alternatives(doc, 2)[0].layer("cascade") == tagger(name)(doc).layer("cascade")


def test_the_classifier_is_shown_the_same_by_reading_and_by_the_first_alternative(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    margins, levels, known = segments.margins, [], tagger("two stages")

    def watched(*args: Any) -> Any:
        levels.append(margins(*args).tolist())
        return margins(*args)

    monkeypatch.setattr(segments, "margins", watched)
    for doc in TEST[:5]:
        known(doc)
        known.alternatives(doc, 1)
    assert levels[::2] == levels[1::2]


@every_config
def test_a_label_that_dev_documents_do_not_have_is_learnt_all_the_same(name: str) -> None:
    dev = [doc for doc in notes(40, 3) if all(s.label != "TOWN" for s in doc.layer())][:5]
    told: list[Progress] = []
    found = train(TRAIN, CONFIGS[name], dev=dev, progress=told.append)
    assert "TOWN" in {s.label for layer in spans(list(found.annotate(TEST))) for s in layer}
    assert any("F1 on dev" in metric for metric in found.manifest.metrics)
    assert all(one.score is None or 0 <= one.score <= 1 for one in told)
    assert any(one.score is not None for one in told)


def test_a_label_that_only_dev_documents_have_counts_as_missed() -> None:
    dev = [Document.make("Dr. Ann came.", layers={"gold": [Span(4, 7, "PERSON")]})]
    found = train(TRAIN, CONFIGS["pa"], dev=dev)
    assert "PERSON" not in found.labels
    assert max(found.manifest.metrics.values()) == 0.0


def with_ages(count: int) -> list[Document]:
    return [note([[("Aged", ""), (str(20 + n), "AGE"), ("years .", "")]], id=f"age-{n}") for n in range(count)]


@one_stage
def test_partial_fit_adds_a_label_and_keeps_the_old_ones(name: str) -> None:
    more = tagger(name).partial_fit(with_ages(12))
    assert more.labels == (*tagger(name).labels, "AGE")
    found = more(Document.make("Aged 77 years."))
    assert [(s.start, s.end, s.label) for s in found.layer("cascade")] == [(5, 7, "AGE")]
    before, after = (list(each.annotate(TEST)) for each in (tagger(name), more))
    assert hit_rate(after) > 0.9 * hit_rate(before)
    assert more.manifest.documents == tagger(name).manifest.documents + 12


def test_two_stages_cannot_go_on() -> None:
    with pytest.raises(ConfigError, match="stages=1"):
        tagger("published").partial_fit(with_ages(3))


@pytest.mark.parametrize("walks", [2, 4])
@every_config
def test_an_interrupt_keeps_what_was_learnt(name: str, walks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    walk, calls = Learner.walk, []

    def interrupted(self: Learner, *args: Any) -> float:
        calls.append(1)
        if len(calls) == walks:
            raise KeyboardInterrupt
        return walk(self, *args)

    monkeypatch.setattr(Learner, "walk", interrupted)
    try:
        found = train(TRAIN, CONFIGS[name])
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")
    monkeypatch.undo()
    assert found.manifest.metrics["interrupted"] == 1.0
    assert hit_rate(list(found.annotate(TEST))) > (
        0.4 if name == "tokens" else 0.6 if CONFIGS[name].stages == 1 else 0.0
    )
    assert "interrupted" not in tagger(name).manifest.metrics


def keys_of_model(found: Tagger) -> set[int]:
    model = cascade_model(found.model)
    parts = [*model.readings, *([model.classifier] if model.classifier else [])]
    return {int(key) for part in parts for key in part.vocabulary.keys} | {int(key) for key in model.stops}


def traces(word: str) -> set[int]:
    """The keys of a word: as it is, in lower case, and of a segment's head and inside."""
    seen = window.observe([Document.make(word)])
    whole, low = int(key_of(word)), int(seen.folded[1])
    return {whole, low, *(names._mix(key, part << 40) for key in (whole, low) for part in (1, 2))}


def canary_notes(word: str, patients: int, times: int = 4) -> list[Document]:
    """The word as a name, `times` times in two notes each of some patients."""
    parts = [[("Dr.", ""), (word, "NAME"), ("came.", "")]] * times
    return [note(parts, id=f"{word}-{n}", group=f"patient-{n // 2}") for n in range(2 * patients)]


@every_config
def test_a_word_of_too_few_patients_has_no_key_in_the_model(name: str) -> None:
    config = CONFIGS[name]
    settings = {**{field: getattr(config, field) for field in Cascade.__slots__}, "floor": 2, "cutoff": 1}
    found = train([*TRAIN, *canary_notes("Zyxgov", 1), *canary_notes("Qophan", 3)], Cascade(**settings))
    assert found.manifest.vocabulary_floor == found.model.floor == 2
    assert not traces("Zyxgov") & keys_of_model(found)
    assert traces("Qophan") & keys_of_model(found)  # three patients


def test_from_twenty_patients_on_the_floor_is_two() -> None:
    assert train(notes(19), Cascade(epochs=1)).model.floor == 1
    assert train(notes(20), Cascade(epochs=1)).model.floor == 2


def test_the_floor_of_the_second_stage_counts_a_patient_once() -> None:
    config = Cascade(stages=2, floor=3, documents=False, epochs=3, private=False)
    found = train([*TRAIN, *canary_notes("Qophan", 2)], config)
    assert not traces("Qophan") & keys_of_model(found)


def test_a_stop_word_too_must_come_from_enough_patients() -> None:
    secret = note([[("zyxgov " * 12 + ".", "")]], id="secret")
    found = train([*TRAIN, secret], Cascade(floor=2, epochs=1))
    assert not traces("zyxgov") & keys_of_model(found)


@pytest.mark.parametrize("name", ["pa", "crf", "IOB2"])
def test_private_models_have_no_key_of_words_inside_spans(name: str) -> None:
    config = CONFIGS[name]
    settings = {**{field: getattr(config, field) for field in Cascade.__slots__}, "floor": 1, "private": True}
    docs = [*TRAIN, *canary_notes("Qophan", 5)]
    found = train(docs, Cascade(**settings))
    assert not traces("Qophan") & keys_of_model(found)
    assert traces("Dr.") & keys_of_model(found)
    assert traces("Qophan") & keys_of_model(train(docs, Cascade(**{**settings, "private": False})))


@pytest.mark.parametrize("objective", ["pa", "crf"])
def test_a_sentence_of_200000_tokens_is_read_and_does_not_stop_learning(objective: Any) -> None:
    T = 200_000
    words = (("Dr. Ann came .".split() + "No fever . Lungs are clear .".split() * 9) * (T // 60))[:T]
    names_at = [n for n, word in enumerate(words) if word == "Ann"]
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1]
    tokens = np.stack([starts, starts + [len(word) for word in words]], axis=1).astype(np.int32)
    gold = [Span(int(tokens[n, 0]), int(tokens[n, 1]), "NAME") for n in names_at]
    text = " ".join(words)
    long = Document.make(text, id="long", tokens=tokens, sentences=[(0, len(text))], layers={"gold": gold})
    only_names = [
        doc.with_layer("gold", [s for s in doc.layer() if s.label == "NAME"]) for doc in (*notes(30), *notes(5, 2))
    ]
    found = train([*only_names, long], Cascade(objective=objective, epochs=4))
    assert hit_rate([found(long)]) > 0.9


def test_the_second_stage_learns_to_reject_what_the_first_wrongly_found(monkeypatch: pytest.MonkeyPatch) -> None:
    docs = notes(40)
    seen = window.observe(docs)
    words = ["\n".join(doc.text for doc in docs)[a:b] for a, b in seen.tokens.tolist()]
    wrong = [n for n, word in enumerate(words) if word in ("fever", "home")]
    assert len(wrong) > 4

    def careless(name: str, lesson: Lesson, *args: Any) -> Reading:
        """Readings that take every fever and every home for a segment."""
        states = lesson.target.gold.copy()
        states[wrong] = lesson.labels.state_of[0, 1]
        return states, np.zeros(len(states), np.float32)

    doc = Document.make("No fever. Dr. Ann came. Seen at home.")
    honest = train(docs, CONFIGS["two stages"])
    monkeypatch.setattr(cascade, "jackknife", careless)
    taught = train(docs, CONFIGS["two stages"])
    kept = []
    for found in (honest, taught):
        part, classifier = cascade_model(found.model).readings[-1], cascade_model(found.model).classifier
        assert classifier is not None
        observed = window.observe([doc])
        states = np.zeros(len(observed.types), np.int32)
        states[[observed.places[doc.words().index(word)] for word in ("fever", "Ann", "home")]] = part.labels.state_of[
            0, 1
        ]
        read = segments.observe_reading(observed, part.labels, states, np.zeros(len(states), np.float32))
        runs = read.label_runs(classifier, classifier.decode(read.seen, []))[0]
        kept.append([doc.words()[first] for first, _, _ in runs])
    assert kept[1] == ["Ann"]
    assert "fever" in kept[0]  # never having seen a wrong segment, it names every one


def test_settings_and_spans_that_cannot_be_are_refused() -> None:
    choices: list[dict[str, Any]] = [
        {"stages": 3},
        {"scheme": "BIO"},
        {"epochs": 0},
        {"dropout": 1.0},
        {"rate": 0.0},
        {"floor": 0},
    ]
    for wrong in choices:
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Cascade(**wrong)
    with pytest.raises(DataError, match=r"spans \[0, 8\) A and \[4, 8\) B overlap"):
        train([Document.make("Ann Penn came.", layers={"gold": [Span(0, 8, "A"), Span(4, 8, "B")]})])
