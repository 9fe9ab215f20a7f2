"""No mutation of a working command ends green without doing what it says: it is refused, or told as a warning."""

from __future__ import annotations

import random
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaffinch.cli import main
from tests.attacks.sizes import sized
from tests.cli.mutations import COMMANDS, apply_edit, mutations, name_output, prepare

Printed = pytest.CaptureFixture[str]

ALL = mutations()
CHOSEN = sized(random.Random(21).sample(ALL, 40), ALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        prepare(folder)
    return folder


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_the_command_works_and_warns_of_nothing(
    number: int, place: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert main(name_output(COMMANDS[number], f"whole-{number}")) == 0
    assert "warning" not in "".join(capsys.readouterr())


@pytest.mark.drill
@pytest.mark.parametrize("number", range(len(CHOSEN)))
def test_a_mutation_is_refused_or_told(
    number: int, place: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    mutation, output = CHOSEN[number], f"mutation-{number}"
    with contextmanager(apply_edit)(mutation.edit, place):
        code = main(name_output(mutation.words, output))
    told = capsys.readouterr()
    assert code in (0, 2, 3), (str(mutation), told.err)
    if code:
        assert told.err.startswith("chaffinch: ")
        assert not list(place.glob(f"{output}*")), "nothing is written"
    else:
        assert "warning: " in told.out + told.err, str(mutation)
    assert not any(word in told.err for word in ("Penn", "Lowe", "Zyx")), str(mutation)


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 200
    assert len(CHOSEN) >= 40
    assert {mutation.command for mutation in ALL} == set(range(len(COMMANDS)))
