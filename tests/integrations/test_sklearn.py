"""The estimator: as scikit-learn expects where that applies, and equal to the tagger inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import chaffinch as cf
from chaffinch.errors import DataError
from chaffinch.integrations.sklearn import SequenceTagger

NAMES = "Penn Lowe Hart Ford Bell Cole Dean Ross".split()
X = [["Dr.", name, "came", "at", "noon"] for name in NAMES]
Y = [["O", "B-DOCTOR", "O", "O", "B-TIME"]] * len(NAMES)
# The checks of scikit-learn that do not send tables of numbers; X of a tagger is lists of words.
CHECKS = """
    check_estimator_cloneable check_estimator_repr check_estimator_tags_renamed check_get_params_invariance
    check_mixin_order check_no_attributes_set_in_init check_parameters_default_constructible check_set_params
    check_valid_tag_types
""".split()


@pytest.mark.parametrize("name", CHECKS)
def test_what_scikit_learn_asks_of_an_estimator(name: str) -> None:
    getattr(estimator_checks, name)("SequenceTagger", SequenceTagger())


def test_it_predicts_what_its_tagger_finds() -> None:
    estimator = SequenceTagger(cf.Cascade()).fit(X, Y)
    asked = [["Dr.", "Wren", "came", "at", "noon"], []]
    assert estimator.predict(asked) == [["O", "B-DOCTOR", "O", "O", "B-TIME"], []]
    (doc,) = estimator.tagger_.posteriors([cf.Document.make("Dr. Wren came at noon")], name="soft")
    first, empty = estimator.predict_marginals(asked)
    assert empty == []
    assert [list(row) for row in first] == [["O", "DOCTOR", "TIME"]] * 5
    np.testing.assert_allclose([list(row.values()) for row in first], doc.soft["soft"].values)
    np.testing.assert_allclose([sum(row.values()) for row in first], 1)
    assert estimator.score(X, Y) == 1
    assert estimator.classes_ == ["B-DOCTOR", "B-TIME", "O"]


def test_it_is_cloned_and_searched() -> None:
    estimator = SequenceTagger()
    assert clone(estimator).get_params() == {"config": None}
    search = GridSearchCV(estimator, {"config": [cf.Cascade(), "classhmm"]}, cv=2)
    search.fit(X, Y)
    assert search.best_score_ > 0.9


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(NotFittedError):
        SequenceTagger().predict(X)
    wrong: list[tuple[Any, Any]] = [(X, Y[1:]), (X, [["O"]] * len(X)), (["a b"], [["O"]]), ([["a", ""]], [["O", "O"]])]
    for sentences, tags in wrong:
        with pytest.raises(DataError):
            SequenceTagger().fit(sentences, tags)
    with pytest.raises(DataError, match="groups"):
        SequenceTagger().fit(X, Y, groups=["p"])
