"""A small project for tests: notes by hand, users with one password, and a server in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from chaffinch.deid.keys import Secret
from chaffinch.text import Document, Span
from chaffinch.web.app import build_app
from chaffinch.web.pages.access import Door, Proxy
from chaffinch.web.pages.section import review_sections
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.importing import import_notes, read_layer_notes
from chaffinch.web.review.judging import assign_notes
from chaffinch.web.review.project import Project, ProjectConfig, create_project
from chaffinch.web.review.store.users import User, add_user, find_user, list_users
from chaffinch.web.review.store.work import list_assignments
from chaffinch.web.settings import ServerSettings

PASSWORD = "a finch in the hand"
CANARY = "Quillfeather"
PEOPLE = (("ann", "reader"), ("bob", "reader"), ("cay", "adjudicator"), ("sue", "steward"), ("otto", "auditor"))
TEXT = f"Dr. Penn saw Mary {CANARY} on 4 May 2010.\r\nCall 555-0134. 🧑‍⚕️ Mary {CANARY} left; é Penn wrote.\n"


def note(number: int, text: str = TEXT, *, patient: str | None = None) -> Document:
    """Return a note whose layer "machine" has one right, one wrong and one missing suggestion."""
    spans = [
        Span(text.index("Penn"), text.index("Penn") + 4, "DOCTOR", 0.9, "cascade"),
        Span(text.index("saw"), text.index("saw") + 3, "PATIENT", 0.4, "cascade"),
        Span(text.index("4 May 2010"), text.index("4 May 2010") + 10, "DATE", 0.99, "rules"),
    ]
    group = patient or f"patient-{CANARY}-{number // 2}"
    return Document.make(text, id=f"{CANARY}-{number}.txt", group=group, layers={"machine": spans})


def make_project(
    folder: Path, documents: Sequence[Document], *, url: str = "", people: Any = PEOPLE, **settings: Any
) -> Project:
    """Return a new project with users and assigned notes; its keys lie beside it."""
    key, secret = Secret.new(), Secret.new()
    key.write(folder / "project.key")
    secret.write(folder / "surrogates.key")
    settings.setdefault("without_suggestions", 0.0)
    config = ProjectConfig(
        "Test", policy="i2b2-surrogate", key_file="../project.key", secret_file="../surrogates.key", database=url,
        **settings,
    )  # fmt: skip
    project = create_project(folder / "project", config, key)
    with project.database.change("test") as change:
        for name, role in people:
            add_user(change, name, role, password=PASSWORD)
    import_notes(project, read_layer_notes(documents, "machine"), "test")
    if any(role == "steward" for _, role in people) and documents:
        assign_notes(Desk(project), user(project, "sue"))
    return project


def user(project: Project, name: str) -> User:
    """Return a user by name."""
    with project.database.read() as connection:
        found = find_user(connection, name)
    assert found is not None
    return found


def task_of(project: Project, name: str, note_number: int) -> int:
    """Return the number of a reader's task for a note."""
    with project.database.read() as connection:
        people = {one.id: one.name for one in list_users(connection)}
        rows = list_assignments(connection, note=note_number)
    return next(row.id for row in rows if people[row.user] == name)


_CLIENTS: list[httpx.Client] = []  # of visitors, closed with the server


@dataclass
class Visitor:
    """A browser without a screen: cookies and CSRF token of one user."""

    base: str
    csrf: str = ""
    client: httpx.Client = field(default_factory=lambda: httpx.Client(follow_redirects=False, timeout=30))

    def __post_init__(self) -> None:
        _CLIENTS.append(self.client)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(self.base + path, headers=headers)

    def post(self, path: str, json: Any = None, **headers: str) -> httpx.Response:
        return self.client.post(self.base + path, json=json, headers={"x-chaffinch-csrf": self.csrf, **headers})

    def submit(self, path: str, **fields: str) -> httpx.Response:
        return self.client.post(self.base + path, data={"csrf": self.csrf, **fields})

    def log_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        answer = self.client.post(f"{self.base}/login", data={"name": name, "password": password})
        if answer.status_code == 303:
            page = self.get("/")
            page = self.get(page.headers["location"]) if page.status_code == 303 else page
            self.csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
        return answer


@contextmanager
def served(project: Project, *, proxy: Proxy | None = None) -> Iterator[str]:
    """Serve a project from a thread of this process, and yield its address."""
    settings = ServerSettings()
    door = Door(Desk(project), proxy=proxy)
    app = build_app(settings, review_sections(door, settings))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        while _CLIENTS:
            _CLIENTS.pop().close()
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
