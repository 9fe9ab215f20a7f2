"""Clients that send slowly, through real sockets: they are answered 408 and cut off, and others are served."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.web.process import WAIT

SERVER = """
from functools import partial
from chaffinch.web.api.engine import EngineSettings
from chaffinch.web.app import create_app
from chaffinch.web.server import listen, serve
from chaffinch.web.settings import Limits, ServerSettings

settings = ServerSettings(port=0, limits=Limits(head_seconds=1, body_seconds=1))
listener = listen(settings)
print(listener.getsockname()[1], flush=True)
serve(partial(create_app, settings, EngineSettings(models={})), settings, listener)
"""
HEAD = "POST /api/v1/detect HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
POST = f"{HEAD}Content-Length: 999\r\n\r\n".encode()
GET = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CANARY = b"Quillfeather"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        number = int(process.stdout.readline())
        assert httpx.get(f"http://127.0.0.1:{number}/api/v1/health", timeout=WAIT).status_code == 200
        yield number
        process.terminate()
        assert CANARY not in process.stderr.read()


def trickle(connection: socket.socket, content: bytes) -> bytes:
    """Send a byte every tenth of a second for ever, and return what is answered until the server closes."""
    closed = threading.Event()

    def send() -> None:
        while not closed.wait(0.1):
            try:
                connection.sendall(content)
            except OSError:
                return

    sender = threading.Thread(target=send)
    sender.start()
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass  # bytes were on their way when it closed
    closed.set()
    sender.join()
    return b"".join(parts)


@pytest.mark.parametrize(
    ("first", "then"),
    [(b"", b""), (b"GET /api/v1/health HTTP/1.1\r\nX-Slow: ", b"Quillfeather"), (POST, b" ")],
    ids=["nothing", "headers", "body"],
)
def test_a_slow_client_is_cut_off_and_others_are_served(port: int, first: bytes, then: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        connection.sendall(first)
        assert httpx.get(f"http://127.0.0.1:{port}/api/v1/health", timeout=WAIT).status_code == 200
        answer = trickle(connection, then)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert CANARY not in answer


def test_the_headers_of_a_second_request_have_no_more_time(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        connection.sendall(GET)
        seen = b""
        while b'"status":"ok"' not in seen:
            seen += connection.recv(1 << 16)
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nX-Slow: ")
        assert trickle(connection, CANARY).startswith(b"HTTP/1.1 408 ")
