"""A glance: its arithmetic worked word by word, what it depends on, what it learns, and files that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.bundle import State
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels import Floats
from chaffinch.models.reader.glance import model
from chaffinch.models.reader.glance.config import Glance
from chaffinch.models.reader.glance.fit import Cued, fit
from chaffinch.models.reader.glance.model import Model
from chaffinch.models.reader.inputs import LENGTHS, gap_of, shape_of
from chaffinch.text import Document, Span
from tests.features import tiny_encoder
from tests.models.notes import notes
from tests.models.reader.glance.random_glance import glance_of, glance_state
from tests.models.reader.random_reader import PIECES

LABELS = ("NAME", "TOWN")
TEXT = "Seen by Dr. Ada Penn\n\nof Salem,  on 3/4, MRN AB12; well.\nPlan: rest at home."
DOC = Document.make(TEXT)
FIELD, SECTION = TEXT.index("Ada"), TEXT.index("Plan")
CUED = replace(
    DOC,
    text=TEXT.upper(),
    layers={
        "cue:field": (Span(FIELD, FIELD + 8, "doctor"), Span(0, 4, "unheard of")),
        "cue:section": (Span(SECTION, len(TEXT), "plan"),),
    },
)


def everything(doc: Document) -> np.ndarray:
    return np.arange(len(doc.tokens))


def test_tokens_of_many_documents_read_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    glance = glance_of(LABELS)
    texts = ["Dr.\tPenn  of Salem\r\nMRN", "", "  Ada", "Lowe\n\n\nHart", "in\u00a0Bath"]
    docs = [DOC, *map(Document.make, texts)]
    cued = [CUED, *docs[1:-1], replace(docs[-1], layers={"cue:field": (Span(0, 7, "doctor"), Span(3, 7, "none"))})]
    shifts = np.cumsum([0, *(len(doc.tokens) for doc in docs)])
    alone = [glance.log_odds(doc, given, everything(doc)) for doc, given in zip(docs, cued, strict=True)]
    for tile in (1, 3, 512):
        monkeypatch.setattr(model, "TILE", tile)
        np.testing.assert_array_equal(glance.log_odds_in(docs, cued, np.arange(shifts[-1])), np.concatenate(alone))
    np.testing.assert_array_equal(glance.log_odds_in(docs, cued, shifts[3:4]), alone[3][:1])


def worked(state: State, doc: Document, cued: Document, token: int) -> float:
    """The log-odds of one token, number by number in double precision."""
    arrays, reach, width = state.arrays, int(state.config["reach"]), int(state.config["width"])
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    rows: list[Floats] = []
    for place in range(token - reach, token + reach + 1):
        if not 0 <= place < len(doc.tokens):
            rows.append(arrays["edge"].astype(float))
            continue
        start, end = doc.tokens[place].tolist()
        word, before = doc.text[start:end], 0 if place == 0 else int(doc.tokens[place - 1, 1])
        total = np.zeros(width)
        pieces, first = [], True
        for letter in word.lower():
            alone = not letter.isalnum()
            pieces.append(numbers[letter if first or alone else f"##{letter}"])
            first = alone
        for piece in pieces:
            total += arrays["words"][piece].astype(float) * arrays["words_scale"][piece] / len(pieces)
        gap = 4 if place == 0 else 2 if doc.text[before:start] == "  " else gap_of(doc.text[before:start])
        total += arrays["shapes"][shape_of(word)] + arrays["gaps"][gap] + arrays["lengths"][min(len(word), LENGTHS - 1)]
        for number, cue in enumerate(state.strings["cues"], 1):
            layer, label = cue.split(" ")
            if any(s.start < end and start < s.end and s.label == label for s in cued.layers[layer]):
                total += arrays["cues"][number]
        rows.append(np.maximum(total, 0))
    x = np.concatenate(rows)
    for name in ("inner", "outer"):
        x = np.maximum(x, 0) if name == "outer" else x
        x = x @ (arrays[name].astype(float) * arrays[f"{name}_scale"]) + arrays[f"{name}_bias"]
    return float(np.log(np.exp(x[1:]).sum()) - x[0])


def test_it_computes_what_can_be_worked_by_hand() -> None:
    state = glance_state(LABELS)
    found = Model.of(state).log_odds(DOC, CUED, everything(DOC))
    wanted = [worked(state, DOC, CUED, token) for token in everything(DOC).tolist()]
    assert np.std(wanted) > 0.5
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.06)  # rows in 8 bits


def test_what_is_asked_beside_a_token_changes_nothing() -> None:
    glance = glance_of(LABELS)
    every = glance.log_odds(DOC, CUED, everything(DOC))
    for chosen in ([0], [3, 4, 9], [len(every) - 1]):
        np.testing.assert_array_equal(glance.log_odds(DOC, CUED, np.array(chosen)), every[chosen])
    assert len(glance.log_odds(DOC, CUED, np.array([], np.int64))) == 0


def test_words_out_of_reach_change_nothing_and_those_in_reach_do() -> None:
    glance, other = glance_of(LABELS), Document.make(TEXT.replace("home", "work"))
    cued = replace(CUED, text=other.text)
    before, after = glance.log_odds(DOC, CUED, everything(DOC)), glance.log_odds(other, cued, everything(DOC))
    place = DOC.words().index("home")
    np.testing.assert_array_equal(np.flatnonzero(before != after), np.arange(place - 2, len(before)))


def test_cues_count_and_unknown_ones_do_not() -> None:
    glance = glance_of(LABELS)
    bare = replace(CUED, layers={name: spans[:1] for name, spans in CUED.layers.items()})
    every = everything(DOC)
    np.testing.assert_array_equal(glance.log_odds(DOC, bare, every), glance.log_odds(DOC, CUED, every))
    assert (glance.log_odds(DOC, replace(CUED, layers={}), every) != glance.log_odds(DOC, CUED, every)).any()


@pytest.mark.parametrize("name", ["words", "words_scale", "shapes", "cues", "edge", "inner", "outer_bias"])
def test_arrays_that_do_not_fit_are_refused(name: str) -> None:
    state = glance_state(LABELS)
    bad = [state.arrays[name][:-1], state.arrays[name].astype(np.float64)]
    if state.arrays[name].dtype == np.float32:
        bad.append(np.full_like(state.arrays[name], np.nan))
    for array in bad:
        with pytest.raises(ModelError, match="fit together"):
            Model.of(replace(state, arrays={**state.arrays, name: array}))
    with pytest.raises(ModelError, match="cannot be read"):
        Model.of(replace(state, arrays={key: array for key, array in state.arrays.items() if key != name}))


def test_a_glance_without_labels_is_refused() -> None:
    with pytest.raises(ModelError, match="no label"):
        Model.of(replace(glance_state(LABELS), labels=()))


def test_cues_without_a_layer_are_refused() -> None:
    state = glance_state(LABELS)
    with pytest.raises(ModelError, match="cannot be read"):
        Model.of(replace(state, strings={**state.strings, "cues": ("field", "section")}))


@pytest.mark.parametrize("setting", [{"reach": 0}, {"hidden": 0}, {"rate": 0.0}, {"hide": 1.5}, {"folder": 3}])
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Glance(**setting)  # type: ignore[arg-type]  # wrong on purpose


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Glance:
    folder = tiny_encoder.make(tmp_path_factory.mktemp("encoder"))
    return Glance(str(folder), reach=3, width=12, hidden=24, layers=("cue",), epochs=6, rate=1e-2)


def cued(count: int, seed: int = 0) -> Iterator[Cued]:
    """Notes whose names, and nothing else, have a cue."""
    for doc in notes(count, seed):
        names = tuple(replace(span, label="name") for span in doc.layer("gold") if span.label == "NAME")
        yield Cued(doc, replace(doc, layers={"cue": names}))


@pytest.mark.slow
def test_it_learns_and_the_same_seed_learns_the_same(config: Glance) -> None:
    models = [fit(lambda _: cued(30), ("DRUG", "DOSE", "NAME", "TOWN"), config) for _ in range(2)]
    assert models[0].cues == {("cue", "name"): 1}
    right = total = 0
    for doc, given in cued(8, 1):
        gold = np.zeros(len(doc.tokens), np.bool_)
        for first, end in doc.token_ranges(list(doc.layer("gold"))).tolist():
            gold[first:end] = True
        words = np.array([any(map(str.isalnum, word)) for word in doc.words()])
        odds = models[0].log_odds(doc, given, everything(doc))
        np.testing.assert_array_equal(models[1].log_odds(doc, given, everything(doc)), odds)
        right, total = right + int(((odds > 0) == gold)[words].sum()), total + int(words.sum())
    assert right / total > 0.85


@pytest.mark.slow
def test_without_documents_nothing_is_learnt(config: Glance) -> None:
    with pytest.raises(DataError, match="no notes"):
        fit(lambda _: [], LABELS, config)


@pytest.mark.slow
def test_what_was_rounded_is_what_was_learnt(config: Glance, tmp_path: Path) -> None:
    model = fit(lambda _: cued(6), LABELS, replace(config, epochs=1))
    again = Model.of(State(model.state().arrays, model.state().strings, config=glance_config(model), labels=LABELS))
    for doc, given in cued(2, 1):
        np.testing.assert_array_equal(
            model.log_odds(doc, given, everything(doc)), again.log_odds(doc, given, everything(doc))
        )


def glance_config(model: Model) -> dict[str, object]:
    """The config of a model as a manifest holds it."""
    from dataclasses import asdict

    return asdict(model.config)
