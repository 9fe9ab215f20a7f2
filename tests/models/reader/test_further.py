"""A reader learns further: torch computes what numpy reads, and only what may move moves."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.models.reader import fit as learning
from chaffinch.models.reader import forward, further
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.inputs import Inputs
from chaffinch.models.reader.model import Model, load
from chaffinch.text import Document, Span
from tests.models.notes import notes
from tests.models.reader.float_twin import around, with_floats
from tests.models.reader.random_reader import reader_of

MATRICES = ("query", "key_value", "out", "inner", "outer")
PLAN = Reader(epochs=2, rate=5e-3, head=1.0, pieces=256)
WORDS = "Vander Bright Oxen Tilling March Quenn Stodd Fair".split()


def of_site(number: int, name: str) -> Document:
    """A note that names somebody in a form of its own."""
    text = f"drain {number} out\nwardlead ~ {name} ~ done\n"
    at = text.index(name)
    return Document.make(text, id=str(number), layers={"gold": [Span(at, at + len(name), "NAME")]})


SITE = [of_site(number, name) for number, name in enumerate(WORDS[:6])]


@pytest.fixture(scope="module")
def old() -> Model:
    return reader_of(["NAME", "TOWN"], layers=2)


@pytest.fixture(scope="module")
def new(old: Model) -> Model:
    return further.fit_further(old, lambda _: SITE, replace(PLAN, epochs=40, rate=2e-2))


def test_what_is_restored_is_exported_as_it_was(old: Model) -> None:
    again = learning.export(further.restore(old, old.config), old.config, old.vocabulary)
    assert again.strings == old.weights.strings
    assert again.arrays.keys() == old.weights.arrays.keys()
    for name, array in old.weights.arrays.items():
        np.testing.assert_allclose(again.arrays[name], array, rtol=1e-6, atol=0, err_msg=name)


def test_it_learns_what_the_site_writes_and_its_old_labels_stay(old: Model, new: Model) -> None:
    asked = of_site(9, WORDS[7])
    at = asked.words().index(WORDS[7])
    assert new.labels == old.labels
    assert new.config == old.config
    assert new.read(asked)[at, 1] > 0.8 > 0.5 > old.read(asked)[at, 1]
    assert new.read(asked)[0, 0] > 0.8


def test_only_norms_biases_small_tables_and_the_last_layer_move(old: Model, new: Model) -> None:
    frozen = {"words", "words_scale", "positions", "plan"}
    for number in (0, 1):
        frozen |= {f"layer{number}.{name}{end}" for name in MATRICES for end in ("", "_scale")}
    same = {name for name, array in old.weights.arrays.items() if new.weights.arrays[name].tobytes() == array.tobytes()}
    assert same == frozen
    assert all(new.weights.arrays[name].dtype == array.dtype for name, array in old.weights.arrays.items())


def test_its_file_reads_in_numpy_what_torch_reads(new: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    new.save(tmp_path / "new.cfm")
    again = load(tmp_path / "new.cfm")
    np.testing.assert_array_equal(again.read(SITE[0]), new.read(SITE[0]))
    network = further.restore(again, again.config).eval()
    with_floats(monkeypatch)
    twin = Model.of(replace(again.state(), kind="reader", config=asdict(again.config), labels=again.names))
    for doc in (*SITE, *notes(3)):
        seen = Inputs.of(doc, twin.vocabulary)
        tokens = np.flatnonzero((seen.firsts >= 0) & (seen.firsts < 250))
        lesson = learning.TrainingWindow(
            seen.columns[:, :250], seen.firsts[tokens] + 1, np.zeros(len(tokens), np.int64)
        )
        with torch.inference_mode():
            expected = learning.scores(network, [lesson], twin.vocabulary).numpy()
        window = forward.Window(around(seen.columns[:, :250], twin), lesson.firsts)
        np.testing.assert_allclose(twin.network.scores(window), expected, rtol=0, atol=5e-5)


def test_the_same_seed_gives_the_same_bytes(old: Model, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        further.fit_further(old, lambda _: SITE, replace(PLAN, seed=seed)).save(tmp_path / name)
    assert torch.rand(1) == expected
    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def test_tokens_with_a_label_it_does_not_have_are_not_learnt_from(old: Model) -> None:
    doc = Document.make("Tray 4 wexelo", layers={"gold": [Span(7, 13, "BADGE")]})
    lessons = learning.Lessons(lambda _: [doc], old.names, old.vocabulary, old.config, "gold", learning.IGNORED)
    ((lesson,),) = lessons(0)
    assert lesson.labels.tolist() == [0, 0]
    assert lesson.firsts.tolist() == [1, 5]  # of Tray and 4, spelt by letters
    with pytest.raises(DataError, match="no notes"):
        further.fit_further(old, lambda _: [doc.with_layer("gold", [Span(0, 13, "BADGE")])], PLAN)


def test_without_torch_it_says_what_to_install(old: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="pip install"):
        further.fit_further(old, lambda _: SITE, PLAN)
