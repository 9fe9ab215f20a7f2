"""The OpenAPI document says what the server does: schemathesis generates requests from it and checks the answers.

The run of schemathesis leaves out no check: a body that fits its description is answered, or refused because of a name
that the server does not have (404) or a contradiction (409); one that does not fit is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import ignored_auth

import chaffinch as cf
from chaffinch.deid.keys import Secret
from tests.attacks.sizes import DRILL, sized
from tests.web.process import WAIT, Server, serving

POSTS = "aggregate deidentify detect explain relate tag".split()
NAMES = sorted([*POSTS, *"docs docs/icon.svg docs/style.css health metrics models openapi.json".split()])
EXAMPLES = sized(10, 300)  # requests of each path and kind
# The same requests each day; a drill draws others every time.
SEED = () if DRILL else ("--seed", "1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model of each kind and a secret."""
    folder = tmp_path_factory.mktemp("models")
    Secret.new().write(folder / "site.secret")
    schema = cf.relations.Schema("localises", roles=("Protein", "Location"))
    cf.relations.save(
        cf.relations.train(cf.read("examples/relations/abstracts.jsonl"), schema), folder / "localises.cfm"
    )
    loaded = ["--model", "rules", "--model", "genia", "--model", str(folder / "localises.cfm")]
    loaded += ["--secret", f"site={folder / 'site.secret'}"]
    with serving(tmp_path_factory.mktemp("server"), *loaded) as started:
        yield started
        assert "Traceback" not in started.errors.read_text()


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return httpx.get(f"{server.url}/api/v1/openapi.json", timeout=WAIT).json()


def test_schemathesis_finds_nothing(server: Server, document: Any, tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(document))  # from a file, its path is tested too
    command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", server.url]
    command += ["--header", f"Authorization: {server.bearer['authorization']}", "--max-examples", str(EXAMPLES)]
    command += [*SEED, "--checks", "all", "--request-timeout", str(WAIT), "--suppress-health-check", "all"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"Selected: {len(NAMES)}/{len(NAMES)}" in done.stdout


@pytest.mark.parametrize("name", POSTS)
def test_requests_with_names_of_the_server_are_answered_as_it_says(document: Any, server: Server, name: str) -> None:
    """Made-up names get no further than 404; these bodies name what is loaded."""
    operation = schemathesis.openapi.from_dict(document)[f"/api/v1/{name}"]["POST"]
    model = {"tag": "genia", "relate": "localises"}.get(name)

    @settings(max_examples=EXAMPLES, derandomize=not DRILL, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(), st.sampled_from([None, "safe-harbor", "i2b2-surrogate"]))
    def check(case: Any, policy: str | None) -> None:
        case.body |= {"model": model} if "model" in case.body or model else {}
        case.body |= {"policy": policy, "secret": "site"} if name == "deidentify" else {}
        if name == "aggregate":
            case.body |= {"rule": case.body.get("rule") or "union"}
        # The run above checks the token at each path; here schemathesis takes ours for one that it made up.
        answer = case.call_and_validate(
            base_url=server.url, headers=server.bearer, timeout=WAIT, excluded_checks=[ignored_auth]
        )
        assert answer.status_code in (200, 409), answer.text

    check()


@pytest.mark.parametrize("name", POSTS)
def test_the_examples_are_answered(document: Any, server: Server, name: str) -> None:
    body = document["paths"][f"/api/v1/{name}"]["post"]["requestBody"]["content"]["application/json"]["example"]
    answer = httpx.post(f"{server.url}/api/v1/{name}", json=body, headers=server.bearer, timeout=WAIT)
    assert answer.status_code == 200, answer.text


def test_every_path_is_described(document: Any) -> None:
    assert sorted(document["paths"]) == [f"/api/v1/{name}" for name in NAMES]
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"].endswith(".")
