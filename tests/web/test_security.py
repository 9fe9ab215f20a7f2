"""Who is let in, and what is refused, before any route is reached."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from chaffinch.errors import ConfigError, DataError
from chaffinch.web import tokens
from chaffinch.web.app import build_app, create_app
from chaffinch.web.sections import Section
from chaffinch.web.settings import Limits, ServerSettings, TlsFiles
from tests.web.client import BEARER, TOKEN, call, client_of, started

CANARY = "Quillfeather"
SETTINGS = ServerSettings(token=TOKEN)


async def _echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def _fail(request: Request) -> Response:
    raise ValueError((await request.body()).decode())


async def _refuse(request: Request) -> Response:
    raise DataError("a document is damaged; mend it", path="/notes/SMITH.txt")


async def _page(request: Request) -> Response:
    return HTMLResponse("<p>hello")


def _app(settings: ServerSettings = SETTINGS) -> Any:
    routes = [
        Route("/x/echo", _echo, methods=["POST"]),
        Route("/x/fail", _fail, methods=["POST"]),
        Route("/x/refuse", _refuse, methods=["POST"]),
        Route("/x/page", _page),
        Route("/x/open", _page),
    ]
    return build_app(settings, [Section("x", ("/x",), routes, frozenset({"/x/open"}))])


@pytest.mark.parametrize("shown", [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}])
def test_a_request_without_the_token_is_refused(shown: dict[str, str]) -> None:
    answer = call(_app(), "POST", "/x/echo", headers=shown, content=b"abc")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "no_token"
    assert call(_app(), "POST", "/x/echo", headers=BEARER, content=b"abc").text == "3"
    assert call(_app(), "GET", "/x/open").status_code == 200


def test_a_path_that_does_not_exist_needs_the_token_too() -> None:
    assert call(_app(), "GET", f"/{CANARY}").status_code == 401
    answer = call(_app(), "GET", f"/{CANARY}", headers=BEARER)
    assert (answer.status_code, CANARY in answer.text) == (404, False)
    assert answer.json()["code"] == "not_found"
    assert call(_app(), "GET", "/x/echo", headers=BEARER).json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "", "localhost:x"]
)
def test_a_name_that_was_pointed_at_us_is_refused(host: str) -> None:
    answer = call(_app(), "GET", "/x/open", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8765", "LOCALHOST", "[::1]:80"])
def test_names_of_this_computer_are_taken(host: str) -> None:
    assert call(_app(), "GET", "/x/open", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[str, str]) -> None:
    answer = call(_app(), "GET", "/x/open", headers={"host": "localhost:8765", **headers})
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin")


def test_pages_of_this_server_are_let_in() -> None:
    headers = {"host": "localhost:8765", "origin": "http://localhost:8765", "sec-fetch-site": "same-origin"}
    assert call(_app(), "GET", "/x/open", headers=headers).status_code == 200


def test_a_large_body_is_refused_whether_it_says_its_length_or_not() -> None:
    small = ServerSettings(token=TOKEN, limits=Limits(body_bytes=100))
    assert call(_app(small), "POST", "/x/echo", headers=BEARER, content=b"a" * 100).text == "100"
    assert call(_app(small), "POST", "/x/echo", headers=BEARER, content=b"a" * 101).status_code == 413

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"a" * 10

    async def run() -> int:
        app = _app(small)
        async with started(app), client_of(app) as client:
            return (await client.post("/x/echo", headers=BEARER, content=chunks())).status_code

    assert asyncio.run(run()) == 413


def test_a_slow_body_is_cut_off() -> None:
    hasty = ServerSettings(token=TOKEN, limits=Limits(body_seconds=0.2))
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(0.15)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"authorization", BEARER["authorization"].encode())]
    scope = {"type": "http", "method": "POST", "path": "/x/echo", "headers": headers, "query_string": b""}
    asyncio.run(_app(hasty)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_an_unknown_failure_answers_with_an_id_that_the_log_has(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = call(_app(), "POST", "/x/fail", headers=BEARER, content=CANARY.encode())
    assert answer.status_code == 500
    assert answer.json()["id"] == answer.headers["x-request-id"]
    assert CANARY not in answer.text
    assert f"request {answer.json()['id']} failed with ValueError at test_security.py:" in caplog.text
    assert CANARY not in caplog.text


def test_our_errors_are_answered_in_words_without_the_path() -> None:
    answer = call(_app(), "POST", "/x/refuse", headers=BEARER, content=b"")
    assert answer.status_code == 422
    assert answer.json()["error"] == "a document is damaged; mend it"


def test_pages_load_nothing_from_elsewhere() -> None:
    page, data = call(_app(), "GET", "/x/page", headers=BEARER), call(_app(), "POST", "/x/echo", headers=BEARER)
    assert page.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert data.headers["content-security-policy"].startswith("default-src 'none'; ")
    for answer in (page, data, call(_app(), "GET", "/x/page")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in answer.headers


def test_other_computers_need_tls_and_a_token(tmp_path: Path) -> None:
    files = [tmp_path / "c.pem", tmp_path / "k.pem"]
    for file in files:
        file.touch()
    tls = TlsFiles(*files)
    for wrong in ({"token": TOKEN}, {"tls": tls}, {}):
        with pytest.raises(ConfigError, match="other computers"):
            ServerSettings(host="0.0.0.0", **wrong)
    open_settings = ServerSettings(host="0.0.0.0", token=TOKEN, tls=tls, names=("notes.example",))
    assert open_settings.host_names == {"0.0.0.0", "notes.example"}
    assert ServerSettings(host="127.0.0.7").is_local
    assert TOKEN not in repr(open_settings)
    with pytest.raises(ConfigError, match="no such file"):
        TlsFiles(tmp_path / "none.pem", files[1])


def test_a_token_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    token = tokens.read_or_make(path)
    assert len(token) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tokens.read_or_make(path) == token
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        tokens.read_or_make(path)
    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(ConfigError, match="no token"):
        tokens.read_or_make(path)


def test_metrics_name_routes_and_never_paths() -> None:
    app = create_app(SETTINGS)

    async def run() -> str:
        async with started(app), client_of(app) as client:
            await client.get(f"/{CANARY}", headers=BEARER)
            await client.get(f"/api/v1/health?{CANARY}")
            return (await client.get("/api/v1/metrics", headers=BEARER)).text

    text = asyncio.run(run())
    assert 'chaffinch_requests_total{route="/api/v1/health",status="200"} 1' in text
    assert 'chaffinch_requests_total{route="none",status="404"} 1' in text
    assert CANARY not in text
