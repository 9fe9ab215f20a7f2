"""The estimator: as scikit-learn expects where that applies, and equal to the tagger inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import chaffinch as cf
from chaffinch.errors import DataError
from chaffinch.integrations.sklearn import SequenceTagger

NAMES = "Penn Lowe Hart Ford Bell Cole Dean Ross".split()
X = [["Dr.", name, "came", "at", "noon"] for name in NAMES]
Y = [["O", "B-DOCTOR", "O", "O", "B-TIME"]] * len(NAMES)
# The checks of `check_estimator` that do not apply, by reason. X of a tagger is lists of words, and so is y of tags.
NUMBERS, TARGETS = "it fits a table of numbers", "it fits a column of targets and asks for scikit-learn's words"
NOT_APPLICABLE = {
    NUMBERS: """
        check_complex_data check_dict_unchanged check_dont_overwrite_parameters check_dtype_object
        check_estimator_sparse_array check_estimator_sparse_matrix check_estimator_sparse_tag check_estimators_dtypes
        check_estimators_empty_data_messages check_estimators_fit_returns_self check_estimators_nan_inf
        check_estimators_overwrite_params check_estimators_pickle check_f_contiguous_array_estimator check_fit1d
        check_fit2d_1feature check_fit2d_1sample check_fit2d_predict1d check_fit_check_is_fitted check_fit_idempotent
        check_fit_score_takes_y check_methods_sample_order_invariance check_methods_subset_invariance
        check_n_features_in check_n_features_in_after_fitting check_pipeline_consistency
        check_positive_only_tag_during_fit check_readonly_memmap_input
    """,
    TARGETS: """
        check_classifier_data_not_an_array check_classifiers_classes check_classifiers_one_label
        check_classifiers_regression_target check_classifiers_train check_requires_y_none check_supervised_y_2d
        check_supervised_y_no_nan
    """,
}
EXPECTED = {name: reason for reason, names in NOT_APPLICABLE.items() for name in names.split()}


class OfTables(SequenceTagger):
    """The estimator without its word that X is no table, for which scikit-learn leaves out nearly all checks."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


def test_scikit_learn_s_checks_as_a_whole() -> None:
    results = check_estimator(OfTables(), expected_failed_checks=EXPECTED, on_skip=None)  # raises at another failure
    by_status: dict[str, set[str]] = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert by_status["xfail"] == set(EXPECTED)
    assert by_status.get("skipped", set()) <= {"check_array_api_input"}  # it needs a setting of the environment
    assert len(by_status["passed"]) >= 15
    with pytest.warns(SkipTestWarning, match="which requires input"):
        check_estimator(SequenceTagger())


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
    wrong: list[tuple[Any, Any]] = [
        (X, Y[1:]),
        (X, [["O"]] * len(X)),
        (["a b"], [["O"]]),
        ([1], [["O"]]),
        (X, None),
        ([["a", ""]], [["O", "O"]]),
    ]
    for sentences, tags in wrong:
        with pytest.raises(DataError):
            SequenceTagger().fit(sentences, tags)
    with pytest.raises(DataError, match="groups"):
        SequenceTagger().fit(X, Y, groups=["p"])
