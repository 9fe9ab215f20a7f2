"""The REST interface answers as the library does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import chaffinch as cf
from chaffinch.deid.keys import Secret
from chaffinch.deid.synth.notes import notes
from chaffinch.web.api.engine import EngineSettings
from chaffinch.web.app import create_app
from chaffinch.web.settings import Limits, ServerSettings
from tests.web.client import call, client_of, started

API = "/api/v1"
NOTE = "Seen by Dr. Margaret Penn on 3/4/1998. Call 617-555-0134."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    """An app with the rules, a tagger, an aggregator, an extractor of relations, and a secret."""
    Secret.new().write(folder / "secret")
    named = [cf.Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    tagger = cf.train([note.with_layer("gold", [cf.Span(4, 8, "DOCTOR")]) for note in named])
    tagger.save(folder / "names.cfm")
    abstracts = cf.read("examples/relations/abstracts.jsonl")
    schema = cf.relations.Schema("localises", roles=("Protein", "Location"))
    cf.relations.save(cf.relations.train(abstracts, schema), folder / "localises.cfm")
    models = {name: str(folder / f"{name}.cfm") for name in ("names", "localises")}
    return create_app(
        ServerSettings(), EngineSettings(models={"genia": "genia", **models}, secrets={"site": str(folder / "secret")})
    )


def post(app: Any, path: str, body: Any) -> Any:
    answer = call(app, "POST", API + path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_detect_finds_what_the_detector_finds(app: Any) -> None:
    (doc,) = cf.deid.detector(None, by_patient=True)([cf.Document.make(NOTE)])
    answer = post(app, "/detect", {"documents": [{"id": "n1", "text": NOTE}]})
    found = [(span["start"], span["end"], span["label"], span["score"]) for span in answer["documents"][0]["spans"]]
    assert found == [(span.start, span.end, span.label, span.score) for span in doc.layer("deid")]
    assert (answer["model"], answer["documents"][0]["id"]) == ("rules", "n1")


def test_documents_of_a_patient_are_read_together_and_those_of_others_apart(app: Any) -> None:
    texts = ["Dr. Zwingelberg came.", "zwingelberg, Zwingelberg again."]

    def spans(*patients: str) -> list[int]:
        documents = [{"text": text, "patient": patient} for text, patient in zip(texts, patients, strict=True)]
        return [len(each["spans"]) for each in post(app, "/detect", {"documents": documents})["documents"]]

    assert spans("p", "q")[1] < spans("p", "p")[1]


@pytest.mark.parametrize("policy", ["safe-harbor", "limited-dataset", "i2b2-surrogate"])
def test_deidentify_equals_a_run_on_files(app: Any, folder: Path, policy: str, tmp_path: Path) -> None:
    made = list(notes(patients=4, seed=3))
    cf.write(made, tmp_path / "notes.jsonl")
    secret = Secret.read(folder / "secret")
    cf.deid.run(
        tmp_path / "notes.jsonl",
        tmp_path / "clean.jsonl",
        cf.deid.detector(None, by_patient=True),
        policy=policy,
        secret=secret,
    )
    body = {
        "documents": [{"id": doc.id, "patient": doc.group, "text": doc.text} for doc in made],
        "policy": policy,
        "secret": "site",
    }
    answer = post(app, "/deidentify", body)
    assert (answer["released"], answer["withheld"]) == (len(made), 0)
    lines = [msgspec.json.decode(line) for line in (tmp_path / "clean.jsonl").read_bytes().splitlines()]
    assert [each["text"] for each in answer["documents"]] == [line["text"] for line in lines]
    assert [each["pseudonym"] for each in answer["documents"]] == [line["id"] for line in lines]


def test_replacements_lead_back_to_the_original(app: Any) -> None:
    (released,) = post(app, "/deidentify", {"documents": [{"text": NOTE}]})["documents"]
    text = released["text"]
    for each in reversed(released["replacements"]):
        text = text[: each["out_start"]] + NOTE[each["start"] : each["end"]] + text[each["out_end"] :]
    assert text == NOTE
    assert released["replacements"]
    assert "Penn" not in released["text"]


def test_the_default_secret_is_taken_where_the_policy_needs_one(folder: Path, app: Any) -> None:
    named = EngineSettings(models={}, secrets={"default": str(folder / "secret")}, policy="i2b2-surrogate")
    body = {"documents": [{"id": "a", "patient": "p", "text": NOTE}]}
    answer = post(create_app(ServerSettings(), named), "/deidentify", body)
    assert (answer["secret"], answer["policy"]) == ("default", "i2b2-surrogate")
    same = post(app, "/deidentify", {**body, "policy": "i2b2-surrogate", "secret": "site"})
    assert same["documents"] == answer["documents"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"policy": "i2b2-surrogate", "documents": [{"text": "x", "patient": "p"}]}, "needs a secret"),
        (
            {"policy": "i2b2-surrogate", "secret": "site", "documents": [{"text": "x"}]},
            "no patient: give patient",
        ),
        ({"secret": "other", "documents": [{"text": "x"}]}, "no secret of this name"),
        ({"policy": "other", "documents": [{"text": "x"}]}, "no policy of this name"),
        ({"model": "names", "documents": [{"text": "x"}]}, "finds no identifiers"),
        ({"date_order": "dmy", "documents": [{"text": "x"}]}, "date_order has no effect"),
        ({"documents": [{"text": "x", "id": "a"}, {"text": "y", "id": "a"}]}, "two documents have one id"),
        ({"each_document_a_patient": True, "documents": [{"text": "x", "patient": "p"}]}, "leave it out"),
        ({"recall": 0.9, "documents": [{"text": "x"}]}, "rules have none"),
        (
            {
                "policy": "i2b2-surrogate",
                "secret": "site",
                "each_document_a_patient": True,
                "documents": [{"text": "x"}],
            },
            "give id",
        ),
    ],
)
def test_what_cannot_be_released_is_refused_in_words(app: Any, body: Any, words: str) -> None:
    answer = call(app, "POST", f"{API}/deidentify", json=body)
    assert answer.status_code == (404 if "of this name" in words else 409)
    assert words in answer.json()["error"]


def test_tag_finds_what_the_tagger_finds(app: Any, folder: Path) -> None:
    text = "Dr. Ford came, and Dr. Hall."
    (doc,) = cf.load(folder / "names.cfm").annotate([cf.Document.make(text)], confidence=True)
    answer = post(app, "/tag", {"model": "names", "documents": [{"text": text}]})
    found = [(span["start"], span["end"], span["score"]) for span in answer["documents"][0]["spans"]]
    assert found == [(span.start, span.end, span.score) for span in doc.layer("cascade")]
    assert found


def test_aggregate_joins_votes(app: Any) -> None:
    votes = {"a": [{"start": 7, "end": 13, "label": "D"}], "b": [{"start": 7, "end": 23, "label": "D"}], "c": []}
    document = {"text": "severe copper toxicosis", "votes": votes}
    answer = post(app, "/aggregate", {"rule": "longest-span", "documents": [document]})
    assert [(span["start"], span["end"]) for span in answer["documents"][0]["spans"]] == [(7, 23)]
    refused = call(app, "POST", f"{API}/aggregate", json={"documents": [document]})
    assert (refused.status_code, refused.json()["error"]) == (422, "give a model or a rule, and not both")
    outside = {"text": "copper", "votes": {"a": [{"start": 5, "end": 9, "label": "D"}]}}
    assert call(app, "POST", f"{API}/aggregate", json={"rule": "union", "documents": [outside]}).status_code == 409


def test_a_whole_number_may_have_a_point_and_no_other_number_is_one(app: Any) -> None:
    body = {"model": "names", "document": {"text": "Dr. Ford came."}, "top": 3}
    assert post(app, "/explain", {**body, "top": 3.0}) == post(app, "/explain", body)
    for top in (3.5, "3", 1e300, True):
        assert call(app, "POST", f"{API}/explain", json={**body, "top": top}).status_code == 422


def test_relate_finds_what_the_extractor_finds(app: Any, folder: Path) -> None:
    docs = list(cf.read("examples/relations/abstracts.jsonl"))[:20]
    extractor = cf.load(folder / "localises.cfm")
    body = {
        "model": "localises",
        "documents": [
            {"text": doc.text, "spans": [{"start": s.start, "end": s.end, "label": s.label} for s in doc.layer("gold")]}
            for doc in docs
        ],
    }
    answer = post(app, "/relate", body)
    expected = [[relation.score for relation in extractor.extract(doc)] for doc in docs]
    assert [[relation["score"] for relation in each["relations"]] for each in answer["documents"]] == expected
    assert any(expected)


def test_explain_says_what_the_library_says(app: Any, folder: Path) -> None:
    expected = [each.to_dict() for each in cf.deid.explain(NOTE, cf.deid.detector(None, by_patient=True))]
    answer = post(app, "/explain", {"document": {"text": NOTE}})
    assert answer["explanations"] == msgspec.json.decode(msgspec.json.encode(expected))
    assert answer["explanations"]
    tagger = cf.load(folder / "names.cfm")
    doc = tagger("Dr. Ford came.")
    body = {"model": "names", "document": {"text": doc.text}, "with_text": True}
    (found,) = post(app, "/explain", body)["explanations"]
    assert found["chance"] == tagger.explain(doc, doc.layer("cascade")[0]).chance
    (asked,) = post(app, "/explain", {**body, "span": {"start": 4, "end": 8, "label": "DOCTOR"}})["explanations"]
    assert asked["voices"][0]["features"] == found["voices"][0]["features"]
    assert any(feature["quote"] for feature in found["voices"][0]["features"])
    assert len(found["voices"][0]["features"]) == 12


def test_models_lists_what_requests_can_name(app: Any) -> None:
    answer = call(app, "GET", f"{API}/models").json()
    uses = {model["name"]: model["use"] for model in answer["models"]}
    assert uses["rules"] == ["detect", "deidentify", "tag", "explain"]
    assert uses["names"] == uses["genia"] == ["tag", "explain"]
    assert uses["localises"] == ["relate"]
    assert (answer["secrets"], answer["default_model"]) == (["site"], "rules")


def test_answers_do_not_depend_on_what_is_asked_at_the_same_time(app: Any) -> None:
    made = list(notes(patients=6, seed=5))
    bodies = [
        {"documents": [{"id": "a", "patient": "p", "text": doc.text}], "secret": "site", "policy": "i2b2-surrogate"}
        for doc in made
    ]

    async def run(path: str, width: int) -> list[Any]:
        answers: list[Any] = []
        async with started(app), client_of(app) as client:
            for at in range(0, len(bodies), width):
                part = [
                    body if path == "/deidentify" else {"documents": body["documents"]}
                    for body in bodies[at : at + width]
                ]
                answers += [
                    each.json() for each in await asyncio.gather(*(client.post(API + path, json=body) for body in part))
                ]
        return [answer["documents"] for answer in answers]

    for path in ("/detect", "/deidentify"):
        assert asyncio.run(run(path, 1)) == asyncio.run(run(path, len(bodies)))


def test_too_many_and_too_long_documents_are_refused() -> None:
    small = create_app(ServerSettings(limits=Limits(documents=2, characters=10)), EngineSettings(models={}))
    for documents in ([{"text": "x"}] * 3, [{"text": "x" * 11}]):
        for path in ("/detect", "/deidentify"):
            assert call(small, "POST", API + path, json={"documents": documents}).status_code == 413
    assert call(small, "POST", f"{API}/detect", json={"documents": [{"text": "x" * 10}] * 2}).status_code == 200
