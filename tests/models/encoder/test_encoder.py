"""A fine-tuned encoder: a tiny one without any download, against losses worked by hand; the packaged MiniLM once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError, MissingExtraError, ModelError
from chaffinch.features import embed
from chaffinch.models import registry as methods
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.tasks import Task
from chaffinch.models.core.training import Progress
from chaffinch.models.encoder import inputs as encoder_input
from chaffinch.models.encoder import model as encoder_model
from chaffinch.models.encoder import network as encoder
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Soft, Span
from tests.features import tiny_encoder
from tests.models.notes import hit_rate, notes

TRAIN, TEST = notes(30), notes(8, 1)
CANARY = "zyzzyvaq"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.make(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def config(folder: Path) -> Encoder:
    return Encoder(str(folder), epochs=12, rate=5e-3, head=2.0, length=48, words=True)


@pytest.fixture(scope="module")
def tagger(config: Encoder) -> Tagger:
    return train(TRAIN, config)


def test_it_learns(tagger: Tagger) -> None:
    assert hit_rate(list(tagger.annotate(TEST)), "encoder") > 0.6
    assert tagger.layer == tagger.manifest.kind == "encoder"
    assert tagger.labels == ("DOSE", "DRUG", "NAME", "TOWN")


def test_a_saved_model_reads_the_same_without_its_folder(tagger: Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model.cfm")
    again = load(tmp_path / "model.cfm")
    for doc in TEST:
        for ours, theirs in zip(tagger.model.posteriors([doc]), again.model.posteriors([doc]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert again.model.config == tagger.model.config
    again.save(tmp_path / "again.cfm")
    assert (tmp_path / "again.cfm").read_bytes() == (tmp_path / "model.cfm").read_bytes()
    content = (tmp_path / "model.cfm").read_bytes()
    assert not any(name.encode() in content for name in ("Penn", "warfarin"))


def test_the_same_seed_gives_the_same_weights_and_leaves_other_randomness_alone(config: Encoder) -> None:
    import torch

    short = replace(config, epochs=1)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, other = (encoder.fit(TrainingSet(TRAIN[:6]), short) for _ in range(2))
    assert torch.rand(1) == expected
    third = encoder.fit(TrainingSet(TRAIN[:6]), replace(short, seed=1))
    first = one.net.scores(TEST)
    np.testing.assert_array_equal(first, other.net.scores(TEST))
    assert not np.array_equal(first, third.net.scores(TEST))


def test_neighbours_change_nothing(tagger: Tagger) -> None:
    docs = [*TEST, Document.make(""), Document.make("\u200b", tokens=[(0, 1)]), Document.make("a \U0001f600 b")]
    together = tagger.model.posteriors(docs)
    for doc, found in zip(docs, together, strict=True):
        assert found.shape == (len(doc.tokens), 5)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found, tagger.model.posteriors([doc])[0])


def test_a_long_document(tagger: Tagger) -> None:
    doc = Document.make("Dr. Ann Penn came. " * 600)
    found = tagger(doc).layer("encoder")
    assert all(0 <= span.start < span.end <= len(doc.text) for span in found)
    word = Document.make("Take " + "a" * 4_000)
    assert len(tagger.model.posteriors([word])[0]) == len(word.tokens)


def test_confidence_alternatives_and_bias(tagger: Tagger) -> None:
    sure = list(tagger.annotate(TEST, confidence=True))
    assert all(0 < span.score <= 1 for doc in sure for span in doc.layer("encoder"))
    readings = tagger.alternatives(TEST[0], 3)
    assert readings[0].layer("encoder") == tagger(TEST[0]).layer("encoder")
    assert len({reading.layer("encoder") for reading in readings}) == 3
    less, more = (
        sum(len(doc.layer("encoder")) for doc in tagger.annotate(TEST, bias={"O": bias})) for bias in (30.0, -30.0)
    )
    assert less == 0 < more


def test_tags_follow_one_another(tagger: Tagger) -> None:
    _, batch = tagger.model.batch(TEST)  # type: ignore[attr-defined]
    tags = encoder_model.best(batch)
    follows = Labels(tagger.labels, "IOB2").follows
    inner = np.ones(len(tags), np.bool_)
    inner[batch.bounds[:-1]] = False
    assert follows[:-2][tags[:-1][inner[1:]], tags[1:][inner[1:]]].all()


def one_token(values: list[float], logs: list[float]) -> float:
    """The loss of one token, whose tags O, B-X, I-X are read with those logs."""
    import torch

    doc = Document.make("a", soft={"s": Soft(("O", "B-X", "I-X"), np.array([values]))})
    task = Task.of([doc], layer=None, soft="s")
    targets = encoder_input.Targets.of(task, Labels(("X",), "IOB2"))
    job = encoder_input.Job([5], np.array([0]), np.array([1]))
    return float(encoder.divergence(targets, [job], torch.tensor([logs])))


def test_losses_by_hand() -> None:
    logs = np.log([0.5, 0.3, 0.2]).tolist()
    assert one_token([0.0, 1.0, 0.0], logs) == pytest.approx(-np.log(0.3), abs=1e-6)
    assert one_token([0.6, 0.4, 0.0], logs) == pytest.approx(-0.6 * np.log(0.5) - 0.4 * np.log(0.3), abs=1e-6)
    assert one_token([0.0, 1.0, 1.0], logs) == pytest.approx(-np.log(0.5), abs=1e-6)  # either is possible
    assert one_token([0.0, 0.0, 0.0], logs) == 0.0  # nothing is known


def test_hard_labels_are_soft_labels_with_ones() -> None:
    labels = Labels(("DOSE", "DRUG", "NAME", "TOWN"), "IOB2")
    hard = Task.of(TRAIN[:4], layer=None, soft=None, names=labels.names)
    rows = encoder_input.Targets.of(hard, labels).rows
    at, docs = 0, []
    for doc in hard.docs:
        docs.append(doc.with_soft("s", Soft(labels.tags, rows[at : at + len(doc.tokens)].astype(float))))
        at += len(doc.tokens)
    soft = encoder_input.Targets.of(Task.of(docs, layer=None, soft="s", names=labels.names), labels)
    np.testing.assert_allclose(soft.rows, rows)
    assert soft.known.all()
    assert not soft.free.any()


def test_it_learns_from_soft_labels_and_goes_on_at_half_the_rate(
    tagger: Tagger, config: Encoder, monkeypatch: Any
) -> None:
    docs = [doc.with_soft("guess", tags) for doc, tags in zip(TRAIN, soft_tags(TRAIN), strict=True)]
    rates = []
    kept = encoder._optimiser

    def watched(net: encoder.Net, rate: float, steps: int) -> tuple[Any, Any]:
        rates.append(rate)
        return kept(net, rate, steps)

    monkeypatch.setattr(encoder, "_optimiser", watched)
    before = tagger.model.net.scores(TEST).copy()  # type: ignore[attr-defined]
    on = train(docs, replace(config, epochs=2), soft="guess", start=tagger)
    assert rates == [config.rate / 2]
    np.testing.assert_array_equal(tagger.model.net.scores(TEST), before)  # type: ignore[attr-defined]
    assert hit_rate(list(on.annotate(TEST)), "encoder") > 0.6
    assert on.labels == tagger.labels


def soft_tags(docs: list[Document]) -> Iterator[Soft]:
    """The right tags with 0.9, O with the rest."""
    labels = Labels(("DOSE", "DRUG", "NAME", "TOWN"), "IOB2")
    task = Task.of(docs, layer=None, soft=None, names=labels.names)
    rows, at = 0.9 * encoder_input.Targets.of(task, labels).rows.astype(float), 0
    rows[:, 0] += 0.1
    for doc in task.docs:
        yield Soft(labels.tags, rows[at : at + len(doc.tokens)])
        at += len(doc.tokens)


def test_new_labels_join_those_of_the_model_gone_on_from(tagger: Tagger, config: Encoder) -> None:
    docs = [Document.make("The abc came.", id=str(n), layers={"gold": [Span(4, 7, "BEAST")]}) for n in range(3)]
    on = train(docs, replace(config, epochs=1), start=tagger)
    assert on.labels == (*tagger.labels, "BEAST")


def test_dev_documents_choose_the_epoch_and_calibrate(config: Encoder) -> None:
    steps: list[Progress] = []
    found = train(TRAIN[:12], replace(config, epochs=5, patience=2), dev=TEST, progress=steps.append)
    scores = [progress.score or 0.0 for progress in steps]
    assert found.manifest.metrics["F1 on dev"] == max(scores)
    gold, read = ([set(doc.layer(name)) for doc in found.annotate(TEST)] for name in ("gold", "encoder"))
    right = sum(len(a & b) for a, b in zip(gold, read, strict=True))
    assert 2 * right / (sum(map(len, gold)) + sum(map(len, read))) == pytest.approx(max(scores), abs=0.02)
    assert found.model.calibration != Calibration()  # type: ignore[attr-defined]


def test_an_interrupt_keeps_what_was_learnt(config: Encoder) -> None:
    def stop(progress: Progress) -> None:
        if progress.epoch == 2:
            raise KeyboardInterrupt

    found = train(TRAIN[:8], config, progress=stop)
    assert found.manifest.metrics["interrupted"] == 1.0
    assert list(found.annotate(TEST))


def test_shape_bits_reach_the_tags(config: Encoder) -> None:
    docs = [
        Document.make(
            f"the {'AT' if n % 2 else 'at'} the", id=str(n), layers={"gold": [Span(4, 6, "X")] if n % 2 else []}
        )
        for n in range(12)
    ]
    for shape, expected in ((True, 6), (False, None)):
        found = train(docs, replace(config, shape=shape, epochs=30))
        spans = [len(doc.layer("encoder")) for doc in found.annotate(docs)]
        assert sum(spans) == expected if expected else len(set(spans)) == 1


def test_frozen_layers_stay_as_they_were(config: Encoder, folder: Path) -> None:
    before = embed.load_encoder(str(folder)).network.state_dict()
    found = encoder.fit(TrainingSet(TRAIN[:6]), replace(config, epochs=1, frozen=1, words=False)).net.state().arrays
    changed = {
        name: not np.array_equal(found[f"encoder.{name}"], tensor.half().numpy())
        for name, tensor in before.items()
        if name.endswith("dense.weight")
    }
    assert {changed[name] for name in changed if ".layer.0." in name} == {False}
    assert {changed[name] for name in changed if ".layer.1." in name} == {True}


def test_fewer_bits_learn_the_same_up_to_rounding(tagger: Tagger, config: Encoder) -> None:
    short = replace(config, bfloat16=True)
    found = train(TRAIN, short)
    assert hit_rate(list(found.annotate(TEST)), "encoder") > 0.6
    net = replace(tagger.model.net, config=short)  # type: ignore[attr-defined]
    rounded, exact = net.scores(TEST), tagger.model.net.scores(TEST)  # type: ignore[attr-defined]
    assert 0 < np.abs(np.exp(rounded) - np.exp(exact)).max() < 0.2
    np.testing.assert_array_equal(np.concatenate([net.scores([doc]) for doc in TEST]), rounded)


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"rate": 0.0}, {"length": 8}, {"warmup": 2.0}, {"threads": 0}, {"frozen": -1}, {"bfloat16": 1}],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Encoder(**wrong)


def test_a_damaged_model_is_refused(tagger: Tagger) -> None:
    state = replace(tagger.model.state(), kind="encoder", config=tagger.manifest.config, labels=tagger.labels)
    assert methods.model_of(state).names == tagger.labels
    for lost in ("specials", "head.weight"):
        rest = {name: array for name, array in state.arrays.items() if name != lost}
        with pytest.raises(ModelError, match="retrain it"):
            methods.model_of(replace(state, arrays=rest))


def test_torch_is_loaded_when_it_is_used() -> None:
    code = (
        "import sys, chaffinch, chaffinch.models.registry; print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_missing_extra_is_named(config: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chaffinch\[neural,minilm\]'"):
        encoder.fit(TrainingSet(TRAIN[:2]), config)


def test_no_text_in_errors_or_logs(config: Encoder, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    docs = [Document.make(f"{CANARY} came", id="1", layers={"gold": [Span(0, 8, "X"), Span(4, 8, "X")]})]
    with pytest.raises(DataError) as error:
        encoder.fit(TrainingSet(docs), config)
    found = encoder.fit(TrainingSet([docs[0].with_layer("gold", [Span(0, 8, "X")])]), replace(config, epochs=1))
    said = f"{error.value}{found!r}{caplog.text}{capfd.readouterr()}"
    assert CANARY not in said


def test_the_packaged_minilm_learns_a_little() -> None:
    model = encoder.fit(TrainingSet(TRAIN[:12]), Encoder(epochs=2, rate=1e-3))
    assert model.net.state().arrays["head.weight"].shape == (9, 384 + encoder_input.BITS)
    assert sum(map(len, model.read(TRAIN[:12]))) > 0
