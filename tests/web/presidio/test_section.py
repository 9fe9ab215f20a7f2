"""What the drop-in does beyond Presidio, and where it is stricter."""

from __future__ import annotations

from typing import Any

import pytest

from chaffinch.deid.keys import Secret
from chaffinch.web.api.engine import EngineSettings
from chaffinch.web.app import create_app
from chaffinch.web.settings import ServerSettings
from tests.web.client import BEARER, TOKEN, call

NOTE = "MARGARET PENN, seen by Dr. Margaret Penn on 3/14/1998 and 3/20/1998. Call 617-555-0134."


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("secret") / "secret"
    Secret.new().write(file)
    return create_app(ServerSettings(), EngineSettings(models={}, secrets={"default": str(file)}))


def post(app: Any, path: str, body: Any, status: int = 200) -> Any:
    answer = call(app, "POST", path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_types_are_presidio_s_unless_ours_are_asked_for(app: Any) -> None:
    body = {"text": NOTE, "language": "en"}
    theirs = {each["entity_type"] for each in post(app, "/analyze", body)}
    ours = {each["entity_type"] for each in post(app, "/analyze?labels=native", body)}
    assert {"PERSON", "DATE_TIME", "PHONE_NUMBER"} <= theirs
    assert {"DOCTOR", "DATE", "PHONE"} <= ours
    assert "PERSON" in call(app, "GET", "/supportedentities").json()
    assert "DOCTOR" in call(app, "GET", "/supportedentities?labels=native").json()
    assert post(app, "/analyze?labels=x", body, 400)


def test_decisions_are_explained_without_text(app: Any) -> None:
    found = post(app, "/analyze", {"text": NOTE, "language": "en", "return_decision_process": True})
    (phone,) = [each for each in found if each["entity_type"] == "PHONE_NUMBER"]
    reasons = phone["analysis_explanation"]
    assert reasons["recognizer"] == "ChaffinchRecognizer"
    assert reasons["pattern_name"].startswith("phone")
    assert "PHONE: chance" in reasons["textual_explanation"]
    assert "617" not in str(reasons)


def anonymize(app: Any, operator: dict[str, Any], text: str = NOTE, status: int = 200) -> Any:
    found = post(app, "/analyze?labels=native", {"text": text, "language": "en"})
    body = {"text": text, "analyzer_results": found, "anonymizers": {"DEFAULT": operator}}
    return post(app, "/anonymize", body, status)


def test_surrogates_are_consistent_for_a_patient_and_dates_keep_their_distance(app: Any) -> None:
    operator = {"type": "surrogate", "patient": "p1"}
    once, again = anonymize(app, operator), anonymize(app, operator, NOTE + " Dr. Penn signed.")
    assert "Penn" not in once["text"]
    assert "3/14/1998" not in once["text"]
    assert again["text"].startswith(once["text"])
    other = anonymize(app, {**operator, "patient": "p2"})
    assert other["text"] != once["text"]
    days = [int(item["text"].split("/")[1]) for item in once["items"] if item["entity_type"] == "DATE"]
    months = [int(item["text"].split("/")[0]) for item in once["items"] if item["entity_type"] == "DATE"]
    assert (months[0] - months[1], days[0] - days[1]) == (0, 6) or months[0] == months[1] % 12 + 1


def test_the_shift_of_presidio_s_dates_fits_that_of_ours(app: Any) -> None:
    date = {"start": 44, "end": 53, "score": 1.0}
    texts = [
        post(
            app,
            "/anonymize",
            {
                "text": NOTE,
                "analyzer_results": [{**date, "entity_type": kind}],
                "anonymizers": {"DEFAULT": {"type": operator, "patient": "p1"}},
            },
        )["items"][0]["text"]
        for kind, operator in (("DATE_TIME", "shift"), ("DATE", "surrogate"))
    ]
    assert texts[0] == texts[1] != NOTE[44:53]


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ({"type": "surrogate"}, "Expected parameter patient"),
        ({"type": "shift", "patient": "p"}, "shift moves dates"),
        ({"type": "surrogate", "patient": "p", "secret": "other"}, "no secret of this name"),
    ],
)
def test_keyed_operators_refuse_what_they_cannot_do(app: Any, operator: Any, words: str) -> None:
    body = {
        "text": NOTE,
        "analyzer_results": [{"start": 0, "end": 13, "score": 1.0, "entity_type": "PERSON"}],
        "anonymizers": {"DEFAULT": operator},
    }
    answer = call(app, "POST", "/anonymize", json=body)
    assert answer.status_code in (404, 422)
    assert words in answer.json()["error"]


def test_encryption_comes_back(app: Any) -> None:
    key = "WmZq4t7w!z%C&F)J"
    hidden = anonymize(app, {"type": "encrypt", "key": key})
    assert "Penn" not in hidden["text"]
    body = {"text": hidden["text"], "anonymizer_results": hidden["items"]}
    found = post(app, "/deanonymize", {**body, "deanonymizers": {"DEFAULT": {"type": "decrypt", "key": key}}})
    assert found["text"] == NOTE
    wrong = {"DEFAULT": {"type": "decrypt", "key": key[::-1]}}
    assert "cannot be decrypted" in post(app, "/deanonymize", {**body, "deanonymizers": wrong}, 422)["error"]


@pytest.mark.parametrize(
    "recognizer",
    [
        {"supported_entity": "X", "patterns": [{"regex": "(?<=a)b", "score": 0.5}]},
        {"supported_entity": "X", "patterns": [{"regex": "(", "score": 0.5}]},
        {"supported_entity": "X", "patterns": [{"regex": "a", "score": 7}]},
        {"supported_entity": "X"},
        {"patterns": [{"regex": "a", "score": 0.5}]},
        5,
    ],
)
def test_recognisers_that_cannot_be_used_are_refused(app: Any, recognizer: Any) -> None:
    post(app, "/analyze", {"text": NOTE, "language": "en", "ad_hoc_recognizers": [recognizer]}, 400)


def test_a_pattern_that_explodes_elsewhere_is_quick_here(app: Any) -> None:
    recognizer = {"supported_entity": "X", "patterns": [{"name": "x", "regex": "(a+)+b", "score": 0.5}]}
    body = {"text": "a" * 5000, "language": "en", "entities": ["X"], "ad_hoc_recognizers": [recognizer]}
    assert post(app, "/analyze", body) == []


def test_context_words_raise_the_score_of_a_recogniser(app: Any) -> None:
    zip_code = {
        "supported_entity": "ZIP_CODE",
        "patterns": [{"name": "zip", "regex": r"\b\d{5}\b", "score": 0.01}],
        "context": ["zip"],
    }
    body = {"language": "en", "entities": ["ZIP_CODE"], "ad_hoc_recognizers": [zip_code]}
    scores = [post(app, "/analyze", {**body, "text": text})[0]["score"] for text in ("my zip is 98052", "number 98052")]
    assert scores == [0.4, 0.01]


def test_the_token_is_asked_for_and_health_is_not() -> None:
    closed = create_app(ServerSettings(token=TOKEN), EngineSettings(models={}))
    body = {"text": NOTE, "language": "en"}
    refused = call(closed, "POST", "/analyze", json=body)
    assert (refused.status_code, set(refused.json())) == (401, {"error"})
    assert call(closed, "POST", "/analyze", json=body, headers=BEARER).status_code == 200
    health = call(closed, "GET", "/health")
    assert (health.status_code, health.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Presidio Analyzer service is up" in health.text
