"""Columns looked up by the parts of a name are those of the names, and scores those of rows."""

from __future__ import annotations

import pytest

from chaffinch.relations import Extraction, Schema, lookup, statistics, train, vectors, words
from chaffinch.relations.frames import Frame
from chaffinch.relations.reading import read
from tests.relations.made import SCHEMA, documents

SAME = Schema("localises", ("Protein", "Location"), symmetric=False)


def made(representation: str) -> list[Frame]:
    """The frames of a few documents."""
    kind = Extraction(representation=representation).representation  # type: ignore[arg-type]  # one of the known
    assert kind != "auto"
    return [frame for own in read(documents(6), SAME, None, kind) for frame in own.frames]


@pytest.mark.parametrize("representation", ["phrase", "pos", "token"])
@pytest.mark.parametrize("view", [words, statistics])
def test_parts_give_the_columns_of_names(view: object, representation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MOST", 3)  # tables start anew all the time
    features, numbers = view.features, view.Numbers  # type: ignore[attr-defined]  # both modules have them
    frames = made(representation)
    symmetric = [frame._replace(sense="") for frame in frames]
    names = sorted({name for frame in frames[::2] for name in features(frame)})
    known = {name: n for n, name in enumerate(names)}
    find = numbers(known)
    for frame in [*frames, *symmetric]:
        assert list(find(frame)) == [known.get(name) for name in features(frame)]


def test_a_scorer_gives_the_product_of_row_and_weights() -> None:
    extractor = train(documents(6), SCHEMA, Extraction(views=("words", "statistics", "paths", "contexts")))
    values, bias = extractor.weights
    scorer = vectors.Scorer(extractor.columns, values.tolist(), bias)
    for frame in made("phrase"):
        row = vectors.row(frame, extractor.columns)
        assert scorer(frame) == pytest.approx(bias + sum(value * values[n] for n, value in row), abs=1e-9)
