"""Every method of tagging passes the shared suite (`tests/models/contract.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaffinch.bundle import State
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.core.methods import Config, Method
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.registry import METHODS, method_of, model_of
from chaffinch.models.tagger import Tagger, train
from tests.features import tiny_encoder
from tests.models import contract
from tests.models.notes import notes

TRAIN, TEST = notes(24, noise=0.06), notes(6, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.make(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest) -> Method:
    return METHODS[request.param]


@pytest.fixture(scope="module")
def config(method: Method, folder: Path) -> Config:
    return contract.small_config(method, folder)


@pytest.fixture(scope="module")
def tagger(config: Config) -> Tagger:
    return train(TRAIN, config)


def test_a_method_says_what_there_is(method: Method, config: Config) -> None:
    contract.check_statement(method, config)
    assert METHODS[method.name] is method


def test_its_layer_and_its_file_bear_its_name(tagger: Tagger) -> None:
    contract.check_names(tagger, TEST)


def test_it_reads_anything(tagger: Tagger) -> None:
    contract.check_reading(tagger, TEST)


def test_posteriors_are_distributions(tagger: Tagger) -> None:
    contract.check_posteriors(tagger, TEST)


def test_a_document_does_not_depend_on_its_neighbours(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.check_neighbours(tagger, TEST, monkeypatch)


def test_a_model_is_the_same_after_saving_and_loading(tagger: Tagger, tmp_path: Path) -> None:
    contract.check_file(tagger, TEST, tmp_path)


def test_it_explains_itself_or_says_that_it_cannot(tagger: Tagger, tmp_path: Path) -> None:
    contract.check_explaining(tagger, TEST, tmp_path)


def test_it_learns_from_next_to_nothing(config: Config) -> None:
    contract.check_tiny(config)


def test_it_learns_a_label_that_most_documents_lack(config: Config) -> None:
    contract.check_absent_label(config, TRAIN)


def test_the_same_seed_gives_the_same_bytes(config: Config, tmp_path: Path) -> None:
    contract.check_same_bytes(config, TRAIN[:12], tmp_path)


def test_it_learns_from_what_it_says_it_does(config: Config) -> None:
    contract.check_materials(config, TRAIN)


# Settings with which a method learns from more, or from less
OTHERS: dict[str, Config] = {
    "two stages": Cascade(stages=2, epochs=2, private=False),
    "one stage of two": HMMDP(2, 2, min_count=2, passes=3, discriminative=False),
    "joint": ClassHMM(objective="joint", evaluations=15, private=False),
    "krogh": ClassHMM(objective="krogh", evaluations=15, private=False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_settings_decide_what_is_learnt_from(name: str) -> None:
    contract.check_statement(method_of(OTHERS[name]), OTHERS[name])
    contract.check_materials(OTHERS[name], TRAIN[:14])


# The list of methods


def test_a_file_of_no_method_is_refused_with_those_there_are() -> None:
    known = re.escape(", ".join(METHODS))
    with pytest.raises(ModelError, match=rf"kind 'crf', not a tagger \({known}\)"):
        model_of(State(kind="crf"))


def test_settings_of_no_method_are_refused_with_those_there_are() -> None:
    @dataclass(frozen=True)
    class Wishful:
        seed: int = 0

    with pytest.raises(ConfigError, match=r"^Wishful is not the settings class of a tagger \(cascade, hmmdp"):
        method_of(Wishful())


def test_train_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'sotf'"):
        train(TRAIN, sotf="votes")  # type: ignore[call-arg]  # on purpose
