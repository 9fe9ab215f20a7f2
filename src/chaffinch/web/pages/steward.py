"""Pages of stewards and auditors: progress, agreement, users, assignment, release, and the audit trail."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from chaffinch.errors import ConfigError
from chaffinch.web.pages.handlers import Form, form_endpoint, page_endpoint
from chaffinch.web.pages.render import page
from chaffinch.web.review import judging, releasing
from chaffinch.web.review.desk import Desk, require
from chaffinch.web.review.store import trail, users
from chaffinch.web.review.store.users import ROLES, User

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_LAST = 200  # entries of the audit trail on its page; the file has all


def routes(desk: Desk) -> list[BaseRoute]:
    """Return the routes of the steward's and auditor's pages and forms."""
    station = _StewardPages(desk)
    return [
        Route("/tasks", page_endpoint(station.tasks)),
        Route("/agreement", page_endpoint(station.agreement)),
        Route("/audit", page_endpoint(station.audit)),
        Route("/audit.jsonl", page_endpoint(station.audit_file)),
        Route("/guideline", page_endpoint(station.guideline)),
        Route("/users", form_endpoint(station.add_user), methods=["POST"]),
        Route("/assign", form_endpoint(station.assign), methods=["POST"]),
        Route("/release", form_endpoint(station.release), methods=["POST"]),
    ]


def progress_page(desk: Desk, request: Request, user: User, *, released: dict[str, Any] | None = None) -> Response:
    """Return the page that shows how many notes are done, by state and by reader."""
    found = judging.progress(desk)
    with desk.project.database.read() as connection:
        people = users.list_users(connection)
    return page(
        "progress", user=user, csrf=request.state.session.csrf, project=desk.project.config.name, progress=found,
        counts=found.counts, people=people, roles=ROLES, message=request.query_params.get("did", ""), released=released,
        idle=desk.project.config.idle_minutes, shortest=users.SHORTEST_PASSWORD,
    )  # fmt: skip


class _StewardPages:
    """The handlers, which share the desk."""

    def __init__(self, desk: Desk) -> None:
        """Keep the desk, through which the project is read and changed."""
        self.desk = desk

    def _common(self, request: Request, user: User) -> dict[str, Any]:
        """Return the values that all pages of the steward need: user, CSRF token, project's name, idle minutes."""
        config = self.desk.project.config
        csrf = request.state.session.csrf
        return {"user": user, "csrf": csrf, "project": config.name, "idle": config.idle_minutes}

    def tasks(self, request: Request, user: User) -> Response:
        """Return the page of notes and their readers, filtered by the query; its table for htmx; only stewards."""
        state, reader = (request.query_params.get(name, "") for name in ("state", "reader"))
        state = state if state in judging.STATES else ""
        rows = judging.list_notes(self.desk, user, state=state, reader=reader)
        with self.desk.project.database.read() as connection:
            readers = [one.name for one in users.list_users(connection) if one.role == "reader"]
        name = "parts/tasks_rows" if request.headers.get("hx-request") else "tasks"
        chosen = {"state": state, "reader": reader}
        return page(
            name, rows=rows, states=judging.STATES, readers=readers, chosen=chosen, **self._common(request, user)
        )

    def agreement(self, request: Request, user: User) -> Response:
        """Return the page of agreement between readers, by pair and category; Forbidden for readers."""
        require(user, "steward", "auditor", "adjudicator")
        pairs = judging.agreement(self.desk)
        rows = [
            {
                "pair": pair, "notes": one.notes, "kappa": one.kappa(), "total": one.total,
                "categories": [(name, spans, one.kappa(name)) for name, spans in sorted(one.spans.items())],
            }
            for pair, one in sorted(pairs.items())
        ]  # fmt: skip
        return page("agreement", rows=rows, **self._common(request, user))

    def audit(self, request: Request, user: User) -> Response:
        """Check the audit trail, and return the page of its last entries; only stewards and auditors."""
        require(user, "steward", "auditor")
        database = self.desk.project.database
        with database.read() as connection:
            lines = list(trail.lines(connection))
        entries, last = trail.check(lines, database.key)
        shown_lines = lines[-_LAST:][::-1]
        return page("audit", lines=shown_lines, entries=entries, last=last, **self._common(request, user))

    def audit_file(self, request: Request, user: User) -> Response:
        """Return the whole audit trail as a JSON-lines download; only stewards and auditors."""
        require(user, "steward", "auditor")
        with self.desk.project.database.read() as connection:
            content = b"".join(msgspec.json.encode(line) + b"\n" for line in trail.lines(connection))
        headers = {"content-disposition": 'attachment; filename="audit.jsonl"'}
        return Response(content, media_type="application/jsonl", headers=headers)

    def guideline(self, request: Request, user: User) -> Response:
        """Return the page of the types to mark, and what a release does with each."""
        policy = self.desk.project.policy
        labels = [(name, policy.rule(name).operator) for name in self.desk.project.config.labels]
        return page("guideline", policy=policy, labels=labels, **self._common(request, user))

    def add_user(self, request: Request, user: User, form: Form) -> Response:
        """Add the user of a form, and redirect to the progress page; only stewards; ConfigError for a bad quota."""
        require(user, "steward")
        quota = form.get("quota", "").strip()
        if quota and not quota.isdecimal():
            raise ConfigError("a quota is a number of notes")
        with self.desk.project.database.change(user.name) as change:
            users.add_user(
                change, form.get("name", ""), form.get("role", ""), password=form.get("password", ""),
                quota=int(quota) if quota else None,
            )  # fmt: skip
        return RedirectResponse("/?did=user", 303)

    def assign(self, request: Request, user: User, form: Form) -> Response:
        """Assign free notes to readers, and redirect to the progress page; only stewards."""
        judging.assign_notes(self.desk, user)
        return RedirectResponse("/?did=assign", 303)

    def release(self, request: Request, user: User, form: Form) -> Response:
        """Write released/NAME.jsonl, and return the progress page; ConfigError for a bad name; only stewards."""
        name = form.get("name", "")
        if not _NAME.fullmatch(name):
            raise ConfigError("the name of a release has letters, digits, hyphens and underscores, 61 at most")
        require(user, "steward")
        folder = self.desk.project.folder / "released"
        folder.mkdir(mode=0o700, exist_ok=True)
        manifest = releasing.release_notes(self.desk, user, folder / f"{name}.jsonl")
        done = {"name": f"released/{name}.jsonl", "manifest": manifest}
        return progress_page(self.desk, request, user, released=done)
