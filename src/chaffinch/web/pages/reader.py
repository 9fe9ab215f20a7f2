"""Pages and messages of a reader: the queue and the note."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chaffinch.text.identifiers import CATEGORIES
from chaffinch.web.pages import wire
from chaffinch.web.pages.handlers import data_endpoint, message_endpoint, number_of, page_endpoint
from chaffinch.web.pages.render import embed, page
from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.preview import preview
from chaffinch.web.review.reading import OpenTask
from chaffinch.web.review.store.users import User
from chaffinch.web.review.why import explain_stretch


def routes(desk: Desk) -> tuple[list[BaseRoute], list[BaseRoute]]:
    """Return the reader's routes: those of pages, and those of messages of scripts."""
    station = _ReaderPages(desk)
    pages: list[BaseRoute] = [
        Route("/notes/{number:int}", page_endpoint(station.note)),
        Route("/notes/{number:int}/others/{other:int}", page_endpoint(station.other)),
    ]
    base = "/review/tasks/{number:int}"
    messages: list[BaseRoute] = [
        Route(base, data_endpoint(station.task)),
        Route(f"{base}/edits", message_endpoint(station.save), methods=["POST"]),
        Route(f"{base}/done", message_endpoint(station.finish), methods=["POST"]),
        Route(f"{base}/reopen", message_endpoint(station.reopen), methods=["POST"]),
        Route(f"{base}/identical", message_endpoint(station.identical), methods=["POST"]),
        Route(f"{base}/apply", message_endpoint(station.apply), methods=["POST"]),
        Route(f"{base}/why", message_endpoint(station.why), methods=["POST"]),
        Route(f"{base}/preview", message_endpoint(station.preview), methods=["POST"]),
    ]
    return pages, messages


def queue_page(desk: Desk, request: Request, user: User) -> Response:
    """Return the page of a reader's tasks by the query's status and category; its table alone for htmx."""
    status = request.query_params.get("status", "open")
    category = request.query_params.get("category", "")
    status = status if status in ("open", "done", "all") else "open"
    category = category if category in CATEGORIES else ""
    rows = reading.reader_queue(desk, user, status=status, category=category)
    counts = {name: len(reading.reader_queue(desk, user, status=name)) for name in ("open", "done")}
    name = "parts/queue_rows" if request.headers.get("hx-request") else "queue"
    return page(
        name, user=user, csrf=request.state.session.csrf, project=desk.project.config.name, rows=rows,
        counts=counts, chosen=status, category=category, categories=CATEGORIES,
        first=reading.next_task(desk, user), idle=desk.project.config.idle_minutes,
    )  # fmt: skip


class _ReaderPages:
    """The handlers, which share the desk."""

    def __init__(self, desk: Desk) -> None:
        """Keep the desk, through which the project is read and changed."""
        self.desk = desk

    def note(self, request: Request, user: User) -> Response:
        """Return the page on which a reader marks a note."""
        message = self._message(user, reading.open_task(self.desk, user, number_of(request)))
        return page(
            "note", user=user, csrf=request.state.session.csrf, project=self.desk.project.config.name,
            task=embed(message), number=message["number"], labels=message["labels"],
            idle=self.desk.project.config.idle_minutes, policy=self.desk.project.policy,
        )  # fmt: skip

    def other(self, request: Request, user: User) -> Response:
        """Return the page of another note of a task's patient, its text alone; the audit trail records the reading."""
        task, number = number_of(request), int(request.path_params["other"])
        text = reading.read_other(self.desk, user, task, number)
        return page(
            "other", user=user, csrf=request.state.session.csrf, project=self.desk.project.config.name, text=text,
            number=number, task=task,
        )  # fmt: skip

    def task(self, request: Request, user: User) -> Any:
        """Answer with another task's content, for the script of a page that is open already."""
        return self._message(user, reading.open_task(self.desk, user, number_of(request)))

    def _message(self, user: User, opened: OpenTask) -> dict[str, Any]:
        """Return a task with the patient's names, the reader's other notes of the patient, and the next task."""
        patient = reading.read_patient(self.desk, user, opened)
        names = [{"words": words, "times": times} for words, times in patient.names]
        others = [asdict(one) for one in patient.others]
        following = reading.next_task(self.desk, user, but=opened.assignment.id)
        return wire.task_message(self.desk, opened, {"names": names, "others": others, "next": following})

    def save(self, request: Request, user: User, body: bytes) -> Any:
        """Store the reader's edits; answer with their ids, the newest edit's number, and marks if changed elsewhere."""
        message = wire.decode(body, wire.EditsMessage)
        saved = reading.save_edits(
            self.desk, user, number_of(request), message.edits, head=message.head, seconds=message.seconds
        )
        return {"acknowledged": saved.acknowledged, "head": saved.head, "marks": msgspec.to_builtins(saved.marks)}

    def finish(self, request: Request, user: User, body: bytes) -> Any:
        """Mark a task as done, and answer with the number of the next, and of the one after it."""
        message = wire.decode(body, wire.DoneMessage)
        following = reading.finish_task(self.desk, user, number_of(request), seconds=message.seconds)
        return {"next": following, "after": following and reading.next_task(self.desk, user, but=following)}

    def reopen(self, request: Request, user: User, body: bytes) -> Any:
        """Open a task again that was done; answer with an empty object; `body` is unused."""
        reading.reopen_task(self.desk, user, number_of(request))
        return {}

    def identical(self, request: Request, user: User, body: bytes) -> Any:
        """Answer with how often a stretch's words are unmarked in the reader's other notes, by patient and project."""
        place = wire.decode(body, wire.StretchMessage)
        counts = reading.count_identical(self.desk, user, number_of(request), place.start, place.end)
        return {scope: asdict(count) for scope, count in counts.items()}

    def apply(self, request: Request, user: User, body: bytes) -> Any:
        """Suggest a mark wherever its words occur unmarked in the reader's other notes; answer with how often."""
        message = wire.decode(body, wire.ApplyMessage)
        count = reading.apply_identical(
            self.desk, user, number_of(request), message.mark, scope=message.scope, batch=message.id
        )
        return asdict(count)

    def why(self, request: Request, user: User, body: bytes) -> Any:
        """Answer with what the project's detector says of a stretch."""
        place = wire.decode(body, wire.StretchMessage)
        return asdict(explain_stretch(self.desk, user, number_of(request), place.start, place.end))

    def preview(self, request: Request, user: User, body: bytes) -> Any:
        """Answer with start, end, new text of what a release would replace by the stored marks; `body` is unused."""
        opened = reading.open_task(self.desk, user, number_of(request))
        return {"places": preview(self.desk, user, opened.note, opened.marks)}
