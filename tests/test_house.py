"""The house rules: errors map to codes, imports stay light, the public names are few."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import chaffinch
from chaffinch import errors

CODES = {
    errors.ConfigError("x"): 2,
    errors.DataError("x"): 3,
    errors.LimitError("x"): 3,
    errors.LossError("x"): 3,
    errors.InfeasibleError("x"): 3,
    errors.ModelError("x"): 3,
    errors.StorageError("x"): 1,
    errors.GateError("x"): 4,
    errors.WithheldError("x"): 5,
    errors.MissingExtraError("pyarrow", "parquet"): 1,
    KeyboardInterrupt(): 130,
    RuntimeError(): 1,
}


@pytest.mark.parametrize("error", CODES, ids=lambda error: type(error).__name__)
def test_every_error_has_its_exit_code(error: BaseException) -> None:
    assert errors.outcome(error).exit_code == CODES[error]
    assert 400 <= errors.outcome(error).http_status < 600


def test_errors_say_where() -> None:
    assert str(errors.DataError("is broken", path="a.xml", line=3)) == "a.xml:3: is broken"
    assert str(errors.DataError("is broken").at(Path("a.xml"))) == "a.xml: is broken"
    assert str(errors.DataError("is broken", path="a.xml").at("b.xml", 2)) == "a.xml:2: is broken"
    assert "pip install 'chaffinch[parquet]'" in str(errors.MissingExtraError("pyarrow", "parquet"))


def test_errors_cross_processes() -> None:
    for error in CODES:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
    placed = errors.DataError("is broken", path="a.xml", line=3)
    assert str(pickle.loads(pickle.dumps(placed))) == str(placed)


def test_import_is_light() -> None:
    code = "import sys, chaffinch; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numba", "scipy", "bioc", "pyarrow", "typer", "rich", "torch", "spacy", "pandas", "requests"}
    assert not heavy & set(loaded)


def test_commands_have_one_blas_thread_unless_told_otherwise() -> None:
    code = "import os; from chaffinch.cli import main; main(['--help']); print(os.environ['OPENBLAS_NUM_THREADS'])"
    for chosen, expected in ((None, "1"), ("2", "2")):
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
        environment |= {} if chosen is None else {"OPENBLAS_NUM_THREADS": chosen}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == expected


def test_the_public_names_are_few_and_real() -> None:
    assert len(chaffinch.__all__) <= 25
    assert all(hasattr(chaffinch, name) for name in chaffinch.__all__)
    assert callable(chaffinch.evaluate)


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert chaffinch.__version__ == version("chaffinch")
