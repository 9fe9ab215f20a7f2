"""Requests that Presidio answered are answered by us with the same status and shape, and mostly the same values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaffinch.web.api.engine import EngineSettings
from chaffinch.web.app import create_app
from chaffinch.web.settings import ServerSettings
from tests.web.client import call
from tests.web.presidio.record import RECORDED

PAIRS = json.loads(RECORDED.read_text(encoding="utf-8"))["pairs"]


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(ServerSettings(), EngineSettings(models={}))


def answer_to(app: Any, pair: Any) -> Any:
    method = "GET" if pair["body"] is None else "POST"
    answer = call(app, method, pair["path"], json=pair["body"])
    assert answer.status_code == pair["status"], answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def shape(value: Any) -> Any:
    """The keys and types of a value; numbers are of one type, and of lists all different shapes count."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(each)) for each in value})
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def is_exact(pair: Any) -> bool:
    """Whether the answer does not depend on what our detector finds: all but lists, and plain texts to analyze."""
    asked = pair["body"] or {}
    ad_hoc = "ad_hoc_recognizers" in asked
    return (pair["body"] is not None and (pair["path"] != "/analyze" or ad_hoc)) or pair["status"] != 200


@pytest.mark.parametrize("number", [n for n, pair in enumerate(PAIRS) if is_exact(pair)])
def test_what_needs_no_detector_is_answered_alike(app: Any, number: int) -> None:
    pair = PAIRS[number]
    ours, theirs = answer_to(app, pair), pair["answer"]
    assert ours == theirs
    if pair["path"] == "/analyze":
        assert json.dumps(ours) == json.dumps(theirs).replace('improvement": 0,', 'improvement": 0.0,')  # keys sorted


@pytest.mark.parametrize("number", [n for n, pair in enumerate(PAIRS) if not is_exact(pair)])
def test_what_is_found_has_the_shape_of_theirs(app: Any, number: int) -> None:
    pair = PAIRS[number]
    ours, theirs = answer_to(app, pair), pair["answer"]
    if (pair["body"] or {}).get("return_decision_process"):  # null where a part does not apply, in theirs as in ours
        assert {key for each in ours for key in each["analysis_explanation"]} == set(theirs[0]["analysis_explanation"])
        ours, theirs = ([{**each, "analysis_explanation": None} for each in answer] for answer in (ours, theirs))
    assert shape(ours) == shape(theirs) or (pair["body"] or {}).get("score_threshold") == 0.99
    if isinstance(pair["body"] and pair["body"]["text"], str):
        assert [each["score"] for each in ours] == sorted((each["score"] for each in ours), reverse=True)


def test_most_pairs_are_replayed_exactly() -> None:
    assert sum(map(is_exact, PAIRS)) > 40
    assert {pair["status"] for pair in PAIRS} == {200, 400, 422, 500}
