"""Model files whose checksum is right and whose content is not: refused, or read without harm; never a crash.

An attacker can write any checksum. Each example changes one array, list of strings or setting of a trained model.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.errors import ChaffinchError, ModelError
from chaffinch.models.registry import METHODS
from chaffinch.models.tagger import load, train
from tests.attacks.sizes import sized
from tests.features import tiny_encoder
from tests.models import contract
from tests.models.notes import notes

pytestmark = pytest.mark.drill

Array = np.ndarray[Any, Any]
ARRAY_CHANGES: dict[str, Callable[[Array], Array]] = {
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.concatenate([array, array[:1]]) if array.ndim and len(array) else np.zeros(7),
    "empty": lambda array: array[:0],
    "one more dimension": lambda array: array[None],
    "flat": lambda array: array.reshape(-1),
    "bytes": lambda array: array.astype(np.uint8),
    "doubles": lambda array: array.astype(np.float64),
    "signed": lambda array: array.astype(np.int64),
    "negative": lambda array: -array.astype(array.dtype) if array.dtype.kind in "if" else array,
    "largest": lambda array: np.full_like(array, _largest(array)),
    "not a number": lambda array: np.full_like(array, np.nan) if array.dtype.kind == "f" else array,
    "infinite": lambda array: np.full_like(array, np.inf) if array.dtype.kind == "f" else array,
}
VALUES: tuple[Any, ...] = (None, -1, 0, 10**30, "x", [], {}, [1, [2]], 0.5, float(10**300), True)


def _largest(array: Array) -> Any:
    return np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 1


@pytest.fixture(scope="module", params=METHODS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bundle.Bundle:
    folder = tmp_path_factory.mktemp("hostile")
    config = contract.small_config(METHODS[request.param], tiny_encoder.make(folder / "encoder"))
    train(notes(12, noise=0.06), config).save(folder / "m.cfm")
    return bundle.load(folder / "m.cfm")


def read_or_refuse(path: Path) -> bool:
    """Load the file and tag notes; tell whether it was refused in words."""
    try:
        tagger = load(path)
    except ModelError as error:
        return str(path) in str(error) or pytest.fail("the message does not name the file")
    try:
        for doc in notes(2, 1):
            tagger(doc)
    except ChaffinchError:
        return True
    return False


def write(path: Path, manifest: bundle.Manifest, arrays: dict[str, Array], strings: dict[str, tuple[str, ...]]) -> None:
    bundle.save(path, manifest, arrays, strings)


@pytest.mark.parametrize("change", ["absent", *ARRAY_CHANGES])
def test_a_changed_array_is_refused_or_harmless(change: str, whole: bundle.Bundle, tmp_path: Path) -> None:
    names = sorted(whole.arrays)
    rng = random.Random(change)
    for name in rng.sample(names, min(len(names), sized(4, 100))):
        arrays = dict(whole.arrays)
        if change == "absent":
            del arrays[name]
        else:
            with np.errstate(all="ignore"):
                arrays[name] = ARRAY_CHANGES[change](arrays[name])
        write(tmp_path / "m.cfm", whole.manifest, arrays, dict(whole.strings))
        refused = read_or_refuse(tmp_path / "m.cfm")
        if change == "not a number" and name.rpartition(".")[2] in ("values", "moves") and arrays[name].size:
            assert refused, name


def test_changed_strings_are_refused_or_harmless(whole: bundle.Bundle, tmp_path: Path) -> None:
    for name, words in whole.strings.items():
        for other in ((), words[:-1], (*words, "x"), tuple(reversed(words)), ("\0",) * len(words)):
            strings = {**whole.strings, name: other}
            write(tmp_path / "m.cfm", whole.manifest, dict(whole.arrays), strings)
            read_or_refuse(tmp_path / "m.cfm")


def test_changed_settings_are_refused_or_harmless(whole: bundle.Bundle, tmp_path: Path) -> None:
    rng = random.Random(0)
    keys = sorted(whole.manifest.config)
    for _ in range(sized(20, 400)):
        manifest = copy.deepcopy(whole.manifest)
        config = {**manifest.config, rng.choice([*keys, "before", "align", "layer"]): rng.choice(VALUES)}
        labels = rng.choice([manifest.labels, manifest.labels, (), manifest.labels * 2, ("x",) * 300])
        changed = bundle.Manifest(manifest.kind, config, labels, documents=1)
        write(tmp_path / "m.cfm", changed, dict(whole.arrays), dict(whole.strings))
        read_or_refuse(tmp_path / "m.cfm")
