"""The OpenAPI document says what the server does: schemathesis generates requests from it and checks the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.web.process import WAIT, Server, serving

# The first takes our token for one that it made up (test_security.py asks without one). The second: a span outside its
# text, a model that is not loaded, 5.0 for 5 are refused, and a schema cannot say that.
EXCLUDED = [ignored_auth, positive_data_acceptance]
NAMES = "aggregate deidentify detect explain health metrics models openapi.json relate tag".split()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), "--model", "rules", "--model", "genia") as started:
        yield started
        assert "Traceback" not in started.errors.read_text()


@pytest.fixture(scope="module")
def described(server: Server) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", NAMES)
def test_requests_made_from_the_document_are_answered_as_it_says(
    described: Any, server: Server, name: str, mode: GenerationMode
) -> None:
    operation = next(iter(described[f"/api/v1/{name}"].values()))
    if mode is GenerationMode.NEGATIVE and operation.method == "get":
        return  # there is nothing to get wrong

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        case.headers = {**(case.headers or {}), **server.bearer}
        case.call_and_validate(excluded_checks=EXCLUDED, timeout=WAIT)

    check()


def test_every_path_is_described(server: Server) -> None:
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=WAIT).json()
    assert sorted(document["paths"]) == [f"/api/v1/{name}" for name in NAMES]
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"].endswith(".")
