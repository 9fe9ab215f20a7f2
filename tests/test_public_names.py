"""The package as a Python user meets it: names, settings by name, text for documents, an untouched environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import chaffinch as cf
from chaffinch.errors import ConfigError

NOTES = [
    cf.Document.make(f"Dr. {name} came.", id=name, layers={"gold": [cf.Span(4, 8, "DOCTOR")]})
    for name in ("Penn", "Lowe", "Hart")
]


def test_dir_shows_the_public_names() -> None:
    shown = [name for name in dir(cf) if not name.startswith("__")]
    assert shown == sorted(cf.__all__)
    assert "__version__" in dir(cf)
    assert all(hasattr(cf, name) for name in shown)


def test_an_import_loads_what_is_asked_for_only() -> None:
    script = (
        "import sys, chaffinch; print('numpy' in sys.modules); chaffinch.Document; print('numpy' in sys.modules)\n"
        "print('chaffinch.models' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_evaluate_is_a_function_although_a_package_has_its_name() -> None:
    script = (
        "import chaffinch as cf; import chaffinch.evaluate.scoring; from chaffinch.evaluate import scoring\n"
        "print(cf.evaluate is scoring.evaluate)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_a_detector_is_built_without_training_or_aggregation() -> None:
    script = (
        "import sys, chaffinch as cf; cf.deid.detector(); print(sorted({'chaffinch.deid.training',"
        "'chaffinch.deid.synth', 'chaffinch.weak.aggregate', 'chaffinch.weak.training'}.intersection(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rooms_have_their_names_and_modules_before_and_after_they_are_loaded() -> None:
    script = (
        "import chaffinch as cf\n"
        "for room in (cf.deid, cf.weak):\n"
        "    print(set(room.__all__) <= set(dir(room)), all(map(callable, (getattr(room, n) for n in room.__all__))))\n"
        "import chaffinch.weak.aggregate, chaffinch.weak.apply\n"
        "from chaffinch.weak import apply\n"
        "print(cf.weak.apply is apply, callable(apply), callable(cf.weak.aggregate))\n"
        "print(cf.deid.vault.__name__ == 'chaffinch.deid.vault',"
        " not hasattr(cf.deid, 'nothing'), not hasattr(cf.weak, 'nothing'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"True"}, done.stdout


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tran'"):
        cf.tran  # noqa: B018


def test_a_method_may_be_given_by_name() -> None:
    tagger = cf.train(NOTES, "cascade")
    assert tagger.layer == "cascade"
    assert tagger.model.config == cf.train(NOTES, cf.Cascade()).model.config


@pytest.mark.parametrize("wrong", ["cascde", 7, cf.Cascade, {"epochs": 3}])
def test_what_is_no_method_says_what_to_pass(wrong: object) -> None:
    with pytest.raises(ConfigError, match="cascade") as caught:
        cf.train(NOTES, wrong)  # type: ignore[arg-type]
    assert "cf.Cascade()" in str(caught.value) or "did you mean" in str(caught.value)


def test_a_tagger_takes_a_text() -> None:
    tagger = cf.train(NOTES)
    (span,) = tagger("Dr. Ford came.").layer("cascade")
    assert (span.start, span.end, span.label) == (4, 8, "DOCTOR")
    with pytest.raises(ConfigError, match="Document"):
        tagger(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="list of documents"):
        tagger.annotate("Dr. Ford came.")  # type: ignore[arg-type]


def test_an_import_sets_no_environment_variable() -> None:
    script = "import os; before = dict(os.environ); import chaffinch; print(before == dict(os.environ))"
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", script], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_numpy_still_has_one_thread_and_what_the_user_set_counts() -> None:
    script = (
        "import chaffinch, os, importlib.util; importlib.util.find_spec('numpy')\n"
        "import numpy as np; a = np.ones((900, 900))\n"
        "for _ in range(3): a @ a\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    counts = []
    for more in ({}, {"OPENBLAS_NUM_THREADS": "2"}):
        done = subprocess.run(
            [sys.executable, "-c", script], env=clean | more, capture_output=True, text=True, check=True
        )
        counts.append(int(done.stdout))
    if (os.cpu_count() or 1) > 1 and sys.platform == "linux":
        assert counts[0] == 1 < counts[1]
