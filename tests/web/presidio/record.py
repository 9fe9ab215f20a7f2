"""Record what Presidio answers: python -m tests.web.presidio.record

Presidio's packages hold no REST service, so this calls its engines as its services do, with pattern recognisers and a
blank language model, and writes requests and answers to recorded.json beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
NOTE = "Call 617-555-0134 or write to mary@example.org; her card is 4012888888881881, SSN 078-05-1120."
ZIP = {
    "name": "Zip code Recognizer",
    "supported_language": "en",
    "supported_entity": "ZIP",
    "patterns": [{"name": "zip code (weak)", "regex": r"(\b\d{5}(?:\-\d{4})?\b)", "score": 0.01}],
    "context": ["zip", "code"],
}
TITLES = {"name": "titles", "supported_language": "en", "supported_entity": "TITLE", "deny_list": ["Mr", "Mrs"]}
EXACT = {
    "name": "wards",
    "supported_language": "en",
    "supported_entity": "WARD",
    "patterns": [
        {"name": "ward", "regex": "ward [A-Z]", "score": 0.75},
        {"name": "bed", "regex": r"bed \d+", "score": 0.5},
    ],
}
SPANISH = {**EXACT, "supported_language": "es"}
WARD = "In ward B, bed 12; ward b again."
PHONE = "hello world, my name is Jane Doe. My number is: 034453334"
FOUND = [
    {"start": 24, "end": 32, "score": 0.8, "entity_type": "NAME"},
    {"start": 48, "end": 57, "score": 0.95, "entity_type": "PHONE_NUMBER"},
]
SALT = "a-salt-of-sixteen-bytes"
KEY = "WmZq4t7w!z%C&F)J"

ANALYZE: list[dict[str, Any]] = [
    {"text": NOTE, "language": "en"},
    {"text": [NOTE, "nothing here", ""], "language": "en"},
    {"text": NOTE, "language": "en", "return_decision_process": True},
    {"text": NOTE, "language": "en", "entities": ["PHONE_NUMBER"]},
    {"text": NOTE, "language": "en", "score_threshold": 0.99},
    {"text": NOTE, "language": "en", "correlation_id": "123", "trace": True},
    {"text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [EXACT]},
    {
        "text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [EXACT],
        "return_decision_process": True,
    },
    {"text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [EXACT], "score_threshold": 0.6},
    {"text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [EXACT], "allow_list": ["ward B"]},
    {
        "text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [EXACT],
        "allow_list": ["^ward"], "allow_list_match": "regex",
    },
    {"text": "Mr Penn and Mrs Penn", "language": "en", "entities": ["TITLE"], "ad_hoc_recognizers": [TITLES]},
    {"text": "the number 98052 is it", "language": "en", "entities": ["ZIP"], "ad_hoc_recognizers": [ZIP]},
    {"text": WARD, "language": "en", "entities": ["WARD"], "ad_hoc_recognizers": [SPANISH]},
    {"text": "", "language": "en"},
    {"language": "en"},
    {"text": NOTE},
    {"text": NOTE, "language": "xx"},
    {"text": NOTE, "language": "en", "entities": ["NOPE"]},
]  # fmt: skip
ANONYMIZE: list[dict[str, Any]] = [
    {"text": PHONE, "analyzer_results": FOUND},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "replace", "new_value": "ANON"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"NAME": {"type": "redact"}}},
    {
        "text": PHONE, "analyzer_results": FOUND,
        "anonymizers": {"PHONE_NUMBER": {"type": "mask", "masking_char": "*", "chars_to_mask": 4, "from_end": True}},
    },
    {
        "text": PHONE, "analyzer_results": FOUND,
        "anonymizers": {"DEFAULT": {"type": "mask", "masking_char": "#", "chars_to_mask": 100, "from_end": False}},
    },
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "hash", "salt": SALT}}},
    {
        "text": PHONE, "analyzer_results": FOUND,
        "anonymizers": {"DEFAULT": {"type": "hash", "salt": SALT, "hash_type": "sha512"}},
    },
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "keep"}}},
    {"text": "", "analyzer_results": []},
    {"text": PHONE, "analyzer_results": []},
    {"text": PHONE, "analyzer_results": [*FOUND, {"start": 28, "end": 32, "score": 0.9, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": [*FOUND, {"start": 20, "end": 40, "score": 0.1, "entity_type": "OTHER"}]},
    {"text": PHONE, "analyzer_results": [*FOUND, {"start": 24, "end": 32, "score": 0.9, "entity_type": "OTHER"}]},
    {"text": PHONE, "analyzer_results": [*FOUND, {"start": 24, "end": 32, "score": 0.8, "entity_type": "OTHER"}]},
    {"text": PHONE, "analyzer_results": [*FOUND, {"start": 28, "end": 40, "score": 0.9, "entity_type": "OTHER"}]},
    {
        "text": PHONE,
        "analyzer_results": [
            {"start": 24, "end": 28, "score": 0.8, "entity_type": "NAME"},
            {"start": 29, "end": 32, "score": 0.7, "entity_type": "NAME"},
        ],
    },
    {"text": "🙂 José", "analyzer_results": [{"start": 2, "end": 6, "score": 1, "entity_type": "PERSON"}]},
    {"text": PHONE},
    {"text": PHONE, "analyzer_results": [{"start": 24, "end": 320, "score": 0.8, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": [{"start": 24, "end": 32, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": [{"start": 24, "end": 32, "score": 0.5}]},
    {"text": PHONE, "analyzer_results": [{"end": 32, "score": 0.5, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": [{"start": -1, "end": 32, "score": 0.5, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": [{"start": 33, "end": 32, "score": 0.5, "entity_type": "NAME"}]},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "nope"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"new_value": "x"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "mask"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "mask", "masking_char": "**"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "hash", "salt": "short"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "encrypt", "key": "short"}}},
    {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "custom"}}},
    {},
]  # fmt: skip


def main() -> None:
    """Write all requests and answers."""
    analyzer, analyze = _analyzer()
    anonymize, deanonymize, encrypted = _anonymizer()
    pairs: list[dict[str, Any]] = [{"path": "/analyze", "body": body, **_answer(analyze, body)} for body in ANALYZE]
    pairs += [{"path": "/anonymize", "body": body, **_answer(anonymize, body)} for body in ANONYMIZE]
    for body in _deanonymize_bodies(encrypted):
        pairs.append({"path": "/deanonymize", "body": body, **_answer(deanonymize, body)})
    for path, call in (
        ("/recognizers", analyzer.get_recognizers),
        ("/supportedentities", analyzer.get_supported_entities),
    ):
        for query in ("", "?language=en", "?language=xx"):
            pairs.append(
                {"path": path + query, "body": None, **_answer(_listing(call), query.rpartition("=")[2] or None)}
            )
    versions = {name: version(name) for name in ("presidio-analyzer", "presidio-anonymizer")}
    RECORDED.write_text(json.dumps({"versions": versions, "pairs": pairs}, indent=1, ensure_ascii=False) + "\n")


def _answer(service: Callable[[Any], tuple[int, Any]], body: Any) -> dict[str, Any]:
    """Return the status and the answer of a service; the body is copied, as engines change it."""
    status, answer = service(json.loads(json.dumps(body)))
    return {"status": status, "answer": answer}


def _listing(call: Callable[[str | None], Any]) -> Callable[[Any], tuple[int, Any]]:
    def serve(language: str | None) -> tuple[int, Any]:
        try:
            return 200, [getattr(each, "name", each) for each in call(language)]
        except Exception as error:
            return 500, {"error": error.args[0]}

    return serve


def _analyzer() -> tuple[Any, Callable[[Any], tuple[int, Any]]]:
    """Return the analyzer and its service."""
    import spacy
    from presidio_analyzer import AnalyzerEngine, AnalyzerRequest, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer, PhoneRecognizer, UsSsnRecognizer

    class Blank(SpacyNlpEngine):  # type: ignore[misc]  # Presidio has no types here
        def __init__(self) -> None:
            super().__init__()
            self.nlp: Any = {"en": spacy.blank("en")}

    registry = RecognizerRegistry(
        [CreditCardRecognizer(), PhoneRecognizer(), UsSsnRecognizer()], supported_languages=["en"]
    )
    engine = AnalyzerEngine(registry, Blank(), supported_languages=["en"])

    def serve(body: Any) -> tuple[int, Any]:
        try:
            request = AnalyzerRequest(body)
            if not request.text:
                raise ValueError("No text provided")
            if not request.language:
                raise ValueError("No language provided")
            engine.get_supported_entities(request.language)
            texts = request.text if isinstance(request.text, list) else [request.text]
            results = [_results(engine, request, text) for text in texts]
            return 200, results if isinstance(request.text, list) else results[0]
        except TypeError as error:
            return 400, {"error": error.args[0]}
        except Exception as error:
            return 500, {"error": error.args[0]}

    return engine, serve


def _results(engine: Any, request: Any, text: str) -> Any:
    names = (
        "language correlation_id score_threshold entities return_decision_process ad_hoc_recognizers context "
        "allow_list allow_list_match regex_flags"
    )
    found = engine.analyze(text=text, **{name: getattr(request, name) for name in names.split()})
    for each in found:
        del each.recognition_metadata
    return json.loads(json.dumps(found, default=lambda each: each.to_dict(), sort_keys=True))


def _anonymizer() -> tuple[Callable[[Any], tuple[int, Any]], Callable[[Any], tuple[int, Any]], Any]:
    """Return the services of the anonymizer, and a text that it encrypted."""
    import presidio_anonymizer
    from presidio_anonymizer.entities import InvalidParamError
    from presidio_anonymizer.services.app_entities_convertor import AppEntitiesConvertor as Convert

    engines: Any = presidio_anonymizer  # their constructors have no types

    def serve(work: Callable[[Any], Any]) -> Callable[[Any], tuple[int, Any]]:
        def answer(body: Any) -> tuple[int, Any]:
            if not body:
                return 400, {"error": "Invalid request json"}
            try:
                return 200, json.loads(work(body).to_json())
            except InvalidParamError as error:
                return 422, {"error": error.err_msg}
            except NotImplementedError as error:
                return 400, {"error": error.args[0]}

        return answer

    def anonymize(body: Any) -> Any:
        operators = Convert.operators_config_from_json(body.get("anonymizers"))
        if Convert.check_custom_operator(operators):
            raise NotImplementedError("Custom type anonymizer is not supported")
        results = Convert.analyzer_results_from_json(body.get("analyzer_results"))
        return engines.AnonymizerEngine().anonymize(
            text=body.get("text", ""), analyzer_results=results, operators=operators
        )

    def deanonymize(body: Any) -> Any:
        entities = Convert.deanonymize_entities_from_json(body)
        operators = Convert.operators_config_from_json(body.get("deanonymizers"))
        return engines.DeanonymizeEngine().deanonymize(
            text=body.get("text", ""), entities=entities, operators=operators
        )

    body = {"text": PHONE, "analyzer_results": FOUND, "anonymizers": {"DEFAULT": {"type": "encrypt", "key": KEY}}}
    return serve(anonymize), serve(deanonymize), serve(anonymize)(body)[1]


def _deanonymize_bodies(encrypted: Any) -> list[dict[str, Any]]:
    places = [{name: item[name] for name in ("start", "end", "entity_type")} for item in encrypted["items"]]
    body = {"text": encrypted["text"], "anonymizer_results": places}
    return [
        {**body, "deanonymizers": {"DEFAULT": {"type": "decrypt", "key": KEY}}},
        {**body, "deanonymizers": {"DEFAULT": {"type": "deanonymize_keep"}}},
        {**body, "deanonymizers": {"NAME": {"type": "decrypt", "key": KEY}, "DEFAULT": {"type": "deanonymize_keep"}}},
        {**body, "deanonymizers": {"DEFAULT": {"type": "decrypt", "key": "short"}}},
        {**body, "deanonymizers": {"DEFAULT": {"type": "nope"}}},
        {"text": PHONE, "anonymizer_results": [], "deanonymizers": {}},
        {},
    ]


if __name__ == "__main__":
    main()
