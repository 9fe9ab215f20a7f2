"""Bodies that are wrong in every way, against a real server: a clear status each, and nothing of them in its log."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.web.process import WAIT, Server, serving

CANARY = "Quillfeather"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), "--model", "rules", "--max-body", "300000") as started:
        yield started
        assert started.process.poll() is None, "the server ended"
        assert CANARY not in started.errors.read_text()
        assert "Traceback" not in started.errors.read_text()


def nested(depth: int) -> bytes:
    return b'{"documents": ' + b"[" * depth + f'"{CANARY}"'.encode() + b"]" * depth + b"}"


def one(text: str, **more: object) -> bytes:
    return json.dumps({"documents": [{"text": text, **more}]}).encode()


BODIES = {
    "not JSON": (CANARY.encode(), 400),
    "empty": (b"", 400),
    "cut off": (one(CANARY)[:-5], 400),
    "nested 1,000 deep": (nested(1000), 422),
    "nested 140,000 deep": (nested(140_000), 422),
    "open brackets": (b"[" * 200_000, 422),
    "invalid UTF-8": (b'{"documents": [{"text": "' + CANARY.encode() + b'\xff\xfe"}]}', 400),
    "half a surrogate pair": (f'{{"documents": [{{"text": "{CANARY} \\ud800"}}]}}'.encode(), 400),
    "NUL": (one(f"Dr. {CANARY}\0\0 came."), 200),
    "no characters": (one(""), 200),
    "unknown field": (one(CANARY, **{CANARY: 1}), 422),
    "wrong type": (json.dumps({"documents": {CANARY: CANARY}}).encode(), 422),
    "a number for a text": (json.dumps({"documents": [{"text": 5}], "model": CANARY}).encode(), 422),
    "unknown model": (json.dumps({"documents": [{"text": CANARY}], "model": CANARY}).encode(), 404),
    "a huge number": (b'{"documents": [{"text": "' + CANARY.encode() + b'"}], "recall": 1e999}', 422),
    "no documents": (b'{"documents": []}', 422),
    "too large": (one(CANARY * 30_000), 413),
    "two keys": (b'{"documents": [{"text": "' + CANARY.encode() + b'"}], "documents": []}', 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_wrong_body_gets_a_clear_status(server: Server, name: str) -> None:
    body, status = BODIES[name]
    for path in ("detect", "deidentify"):
        answer = httpx.post(
            f"{server.url}/api/v1/{path}", content=body, headers={**JSON, **server.bearer}, timeout=WAIT
        )
        assert answer.status_code == status, answer.text
        if status != 200:
            assert CANARY not in answer.text
            assert set(answer.json()) == {"error", "code", "id"}


@pytest.mark.parametrize("name", BODIES)
def test_presidio_s_paths_take_no_wrong_body_either(server: Server, name: str) -> None:
    body, _ = BODIES[name]
    for path in ("analyze", "anonymize", "deanonymize"):
        answer = httpx.post(f"{server.url}/{path}", content=body, headers={**JSON, **server.bearer}, timeout=WAIT)
        assert 400 <= answer.status_code <= 500, answer.text
        assert set(answer.json()) == {"error"}
        assert CANARY not in answer.text


def test_a_note_for_presidio_leaves_no_trace(server: Server) -> None:
    headers = {**JSON, **server.bearer}
    note = {"text": f"Dr. {CANARY} came.", "language": "en", "correlation_id": CANARY, "context": [CANARY]}
    pattern = {"name": CANARY, "supported_entity": CANARY, "patterns": [{"name": "x", "regex": CANARY, "score": 1}]}
    for more in ({}, {"ad_hoc_recognizers": [pattern]}, {"return_decision_process": True}, {"allow_list": [CANARY]}):
        answer = httpx.post(f"{server.url}/analyze", json={**note, **more}, headers=headers, timeout=WAIT)
        assert answer.status_code == 200
    results = {"text": note["text"], "analyzer_results": [{"start": 4, "end": 9, "score": 1, "entity_type": CANARY}]}
    assert httpx.post(f"{server.url}/anonymize", json=results, headers=headers, timeout=WAIT).status_code == 200
    assert CANARY not in httpx.get(f"{server.url}/api/v1/metrics", headers=headers, timeout=WAIT).text


def test_other_media_types_are_refused(server: Server) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        headers = {"content-type": media_type, **server.bearer}
        answer = httpx.post(f"{server.url}/api/v1/detect", content=one(CANARY), headers=headers, timeout=WAIT)
        assert answer.status_code == 415


def test_the_canary_is_in_no_metric_and_in_no_path(server: Server) -> None:
    httpx.get(f"{server.url}/api/v1/{CANARY}?{CANARY}={CANARY}", headers=server.bearer, timeout=WAIT)
    assert CANARY not in httpx.get(f"{server.url}/api/v1/metrics", headers=server.bearer, timeout=WAIT).text


@pytest.mark.parametrize(
    "content",
    [
        CANARY.encode() + b"\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /api/v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n" + CANARY.encode(),
        b"POST /api/v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"
        + CANARY.encode(),
        b"GET /api/v1/health HTTP/1.1\r\n" + CANARY.encode() + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(server: Server, content: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(1 << 16)
    assert not answer.startswith(b"HTTP/1.1 200")
    assert CANARY.encode() not in answer
    assert httpx.get(f"{server.url}/api/v1/health", timeout=WAIT).status_code == 200


def test_a_client_that_leaves_is_no_error(server: Server, tmp_path: Path) -> None:
    head = f"POST /api/v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {server.bearer['authorization']}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(head.encode() + b'{"documents": [{"text": "' + CANARY.encode())
    assert httpx.get(f"{server.url}/api/v1/health", timeout=WAIT).status_code == 200
