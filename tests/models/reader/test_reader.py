"""The reader: its forward pass against torch, what 8 bits lose, files, windows, and that neighbours change nothing."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.bundle import State
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.features import embed
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader import fit as learning
from chaffinch.models.reader import forward
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.inputs import Inputs, windows_of
from chaffinch.models.reader.model import Model, load, softmax
from chaffinch.text import Document
from tests.features import tiny_encoder
from tests.models.notes import TINY, notes
from tests.models.reader.float_twin import around, with_floats

TRAIN, TEST = notes(30), notes(8, 1)
NAMES = ("DOSE", "DRUG", "NAME", "TOWN")
CANARY = "zyzzyvaq"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tiny_encoder.make(tmp_path_factory.mktemp("encoder"))
    return Reader(str(folder), layers=(0, 1), epochs=10, rate=5e-3, head=2.0, pieces=128, length=40, overlap=12)


@pytest.fixture(scope="module")
def model(config: Reader) -> Model:
    return learning.fit(lambda _: TRAIN, NAMES, config)


def label_accuracy(model: Model, docs: Sequence[Document]) -> float:
    """The share of tokens inside gold spans with the right label."""
    right = total = 0
    for doc, rows in zip(docs, model.posteriors(docs), strict=True):
        for span, (first, end) in zip(doc.layer("gold"), doc.token_ranges(doc.layer("gold")).tolist(), strict=True):
            best = rows[first:end].argmax(axis=1)
            right += int((best == model.labels.index(span.label)).sum())
            total += end - first
    return right / total


def test_it_learns(model: Model) -> None:
    assert model.labels == ("O", *NAMES)
    assert label_accuracy(model, TEST) > 0.6


def test_bytes_move_log_odds_by_little(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated tolerance: 0.1 in the mean (root of squares), 0.5 at most, of chances from 1e-4 to 1 - 1e-4."""
    rows = np.concatenate(list(model.posteriors(TEST)))
    with_floats(monkeypatch)
    twin = Model.of(State(model.weights.arrays, model.weights.strings, "reader", asdict(model.config), model.names))
    exact = np.concatenate(list(twin.posteriors(TEST)))
    odds = [
        np.log(values) - np.log1p(-values) for values in (np.clip(rows, 1e-4, 1 - 1e-4), np.clip(exact, 1e-4, 1 - 1e-4))
    ]
    gaps = np.abs(odds[0] - odds[1])
    assert 0 < gaps.max() < 0.5
    assert np.sqrt((gaps**2).mean()) < 0.1


def test_the_forward_pass_is_that_of_torch(config: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are set to what 8 bits hold, and rows stay floats, so that both compute the same function."""
    import torch

    with_floats(monkeypatch)

    torch.manual_seed(3)
    vocabulary = learning.read_vocabulary(config)
    network = learning.build(embed.load_encoder(config.folder).network, config, 5).eval()
    _perturb(network)
    state = learning.export(network, config, vocabulary)
    _round_like(network, state)
    ours = Model.of(State(state.arrays, state.strings, "reader", asdict(config), NAMES))
    for doc in TEST:
        seen = Inputs.of(doc, vocabulary)
        tokens = np.flatnonzero((seen.firsts >= 0) & (seen.firsts < config.length))
        some = seen.columns[:, : config.length]
        lesson = learning.TrainingWindow(some, seen.firsts[tokens] + 1, np.zeros(len(tokens), np.int64))
        with torch.inference_mode():
            expected = learning.scores(network, [lesson], vocabulary).numpy()
        window = forward.Window(
            around(Inputs.of(doc, ours.vocabulary).columns[:, : config.length], ours), lesson.firsts
        )
        np.testing.assert_allclose(ours.network.scores(window), expected, rtol=0, atol=2e-5)


def test_pieces_asked_for_are_scored_as_if_all_were(model: Model) -> None:
    seen = Inputs.of(TEST[0], model.vocabulary)
    columns = around(seen.columns[:, : model.config.length], model)
    every = model.network.scores(forward.Window(columns, np.arange(columns.shape[1])))
    some = model.network.scores(forward.Window(columns, np.array([3, 1])))
    np.testing.assert_allclose(some, every[[3, 1]], rtol=0, atol=1e-5)


def test_8_bits_lose_at_most_half_a_step() -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 7)) * np.logspace(-3, 2, 7)
    matrix[:, 3] = 0.0
    for axis in (0, 1):
        rounded = forward.Quantised.of(matrix, axis=axis)
        back = rounded.matrix() if axis == 0 else rounded.rows(np.arange(30))
        assert (np.abs(back - matrix) <= 0.5001 * np.expand_dims(rounded.scales, axis)).all()


def test_a_saved_model_reads_the_same(model: Model, tmp_path: Path) -> None:
    saved = model.save(tmp_path / "reader.cfm", corpus="invented", documents=30, patients=30, notes="Apache-2.0")
    again = load(tmp_path / "reader.cfm")
    assert again.checksum == saved.checksum
    assert again.labels == model.labels
    for doc in (*TEST, *TINY):
        np.testing.assert_array_equal(again.read(doc), model.read(doc))
    again.save(tmp_path / "again.cfm", corpus="invented", documents=30, patients=30, notes="Apache-2.0")
    assert (tmp_path / "again.cfm").read_bytes() == (tmp_path / "reader.cfm").read_bytes()
    assert bundle.read_manifest(tmp_path / "reader.cfm").config["folder"] is None
    content = (tmp_path / "reader.cfm").read_bytes()
    assert not any(name.encode() in content for name in ("Penn", "warfarin"))


def test_the_same_seed_gives_the_same_model(config: Reader) -> None:
    import torch

    short = replace(config, epochs=1)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, other = (learning.fit(lambda _: TRAIN[:6], NAMES, short) for _ in range(2))
    assert torch.rand(1) == expected
    np.testing.assert_array_equal(one.read(TEST[0]), other.read(TEST[0]))
    third = learning.fit(lambda _: TRAIN[:6], NAMES, replace(short, seed=1))
    assert not np.array_equal(one.read(TEST[0]), third.read(TEST[0]))


def test_neighbours_change_nothing(model: Model) -> None:
    docs = [*TEST, *TINY]
    together = list(model.posteriors(docs))
    for doc, found in zip(docs, together, strict=True):
        assert found.shape == (len(doc.tokens), 5)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found, next(iter(model.posteriors([doc]))))


def test_a_token_without_a_word_piece_is_outside(model: Model) -> None:
    rows = model.read(Document.make("\u200b", tokens=[(0, 1)]))
    assert rows.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]


def test_a_long_note_is_read_window_by_window_as_each_window_is_by_itself(model: Model) -> None:
    long = Document.make(" ".join(doc.text for doc in TRAIN[:12]))
    wide = replace(model, config=replace(model.config, length=40, overlap=20))
    rows = wide.read(long)
    assert (rows[:, 0] < 1.0).all()
    seen = Inputs.of(long, model.vocabulary)
    for window in windows_of(len(seen), 40, 20):
        tokens = np.flatnonzero((seen.firsts >= window.own_first) & (seen.firsts < window.own_end))
        columns = around(seen.columns[:, window.first : window.end], model)
        alone = model.network.scores(forward.Window(columns, seen.firsts[tokens] - window.first + 1))
        np.testing.assert_array_equal(rows[tokens], softmax(alone))


def test_a_damaged_file_is_refused(model: Model, tmp_path: Path) -> None:
    state = model.state()
    for name in ("words", "head", "layer1.inner", "plan"):
        arrays = {key: array for key, array in state.arrays.items() if key != name}
        with pytest.raises(ModelError):
            Model.of(State(arrays, state.strings, "reader", asdict(model.config), NAMES))
    with pytest.raises(ModelError):
        Model.of(State(state.arrays, state.strings, "reader", asdict(model.config), NAMES[:2]))
    with pytest.raises(ModelError):
        Model.of(State(state.arrays, state.strings, "reader", {"layers": "many"}, NAMES))
    bundle.save(tmp_path / "other.cfm", bundle.Manifest("cascade"), {"a": np.zeros(1)})
    with pytest.raises(ModelError, match="not a reader"):
        load(tmp_path / "other.cfm")


def test_settings_are_checked(config: Reader) -> None:
    for wrong in ({"layers": ()}, {"layers": (1, 0)}, {"overlap": 200}, {"rate": 0.0}, {"epochs": 0}, {"dropout": 2.0}):
        with pytest.raises(ConfigError):
            replace(Reader(), **wrong)
    with pytest.raises(ModelError, match="layers"):
        learning.fit(lambda _: TRAIN, NAMES, replace(config, layers=(0, 5)))
    with pytest.raises(DataError, match="no notes"):
        learning.fit(lambda _: [Document.make("", layers={"gold": []})], NAMES, config)


def test_no_text_in_errors_logs_or_progress(
    model: Model, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[Progress] = []
    note = Document.make(f"Dr. {CANARY} came.", id="1", layers={"gold": []})
    learnt = learning.fit(lambda _: [note], NAMES, replace(model.config, epochs=1), watcher=Watcher(tell=told.append))
    learnt.read(note)
    out = capfd.readouterr()
    assert CANARY not in caplog.text + out.out + out.err + repr(told) + repr(learnt) + repr(
        Inputs.of(note, learnt.vocabulary)
    )


def test_reading_needs_no_torch(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "reader.cfm")
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = sys.modules['tokenizers'] = None\n"
        "from chaffinch.models.reader.model import load; from chaffinch.text import Document\n"
        f"print(load({str(tmp_path / 'reader.cfm')!r}).read(Document.make('Dr. Penn')).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 5)" or done.stdout.strip() == "(3, 5)"


def _perturb(network: Any) -> None:
    """Give norms, biases and the last layer values that matter."""
    import torch

    with torch.no_grad():
        for own in network.parameters():
            own.add_(0.1 * torch.randn_like(own))


def _round_like(network: Any, state: State) -> None:
    """Set the matrices of a torch network to what 8 bits hold of them."""
    import torch

    def matrix(name: str) -> Any:
        rounded = forward.Quantised(state.arrays[name], state.arrays[f"{name}_scale"])
        return torch.from_numpy(np.ascontiguousarray(rounded.matrix().T))

    encoder, words = network["encoder"], forward.Quantised(state.arrays["words"], state.arrays["words_scale"])
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight.zero_()
        numbers = {piece: place for place, piece in enumerate(state.strings["pieces"])}
        pieces = (Path(encoder.config._name_or_path) / "vocab.txt").read_text(encoding="utf-8").split()
        for place, piece in enumerate(pieces):
            if piece in numbers:
                row = words.rows(np.array([numbers[piece]]))[0]
                encoder.embeddings.word_embeddings.weight[place] = torch.from_numpy(row)
        positions = torch.from_numpy(state.arrays["positions"].astype(np.float32))
        encoder.embeddings.token_type_embeddings.weight.zero_()
        encoder.embeddings.position_embeddings.weight[: len(positions)] = positions
        network["head"].weight.copy_(matrix("head"))
        for number, layer in enumerate(encoder.encoder.layer):
            own = layer.attention.self
            both = matrix(f"layer{number}.key_value")
            own.query.weight.copy_(matrix(f"layer{number}.query"))
            own.key.weight.copy_(both[: len(both) // 2])
            own.value.weight.copy_(both[len(both) // 2 :])
            layer.attention.output.dense.weight.copy_(matrix(f"layer{number}.out"))
            layer.intermediate.dense.weight.copy_(matrix(f"layer{number}.inner"))
            layer.output.dense.weight.copy_(matrix(f"layer{number}.outer"))
