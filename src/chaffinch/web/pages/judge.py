"""Pages and messages of an adjudicator: notes whose readers differ, and their differences in two columns."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chaffinch.web.pages import wire
from chaffinch.web.pages.handlers import message_endpoint, number_of, page_endpoint
from chaffinch.web.pages.render import embed, page
from chaffinch.web.review import judging
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.differences import Difference, Reason
from chaffinch.web.review.domain.marks import Mark
from chaffinch.web.review.store.users import User

_AROUND = 90  # characters before and after a difference


def routes(desk: Desk) -> tuple[list[BaseRoute], list[BaseRoute]]:
    """Return the adjudicator's routes: those of pages, and those of messages of scripts."""
    station = _JudgePages(desk)
    pages: list[BaseRoute] = [Route("/cases/{number:int}", page_endpoint(station.case))]
    base = "/review/cases/{number:int}"
    messages: list[BaseRoute] = [
        Route(f"{base}/settle", message_endpoint(station.settle), methods=["POST"]),
        Route(f"{base}/close", message_endpoint(station.close), methods=["POST"]),
    ]
    return pages, messages


def cases_page(desk: Desk, request: Request, user: User) -> Response:
    """Return the page that lists the notes waiting for an adjudicator."""
    return page(
        "cases", user=user, csrf=request.state.session.csrf, project=desk.project.config.name,
        rows=judging.cases(desk, user), idle=desk.project.config.idle_minutes,
    )  # fmt: skip


class _JudgePages:
    """The handlers, which share the desk."""

    def __init__(self, desk: Desk) -> None:
        """Keep the desk, through which the project is read and changed."""
        self.desk = desk

    def case(self, request: Request, user: User) -> Response:
        """Return the page of a note whose readers differ, with all differences and what is settled of them."""
        case = judging.open_case(self.desk, user, number_of(request))
        text = case.note.document.text
        rows = [_difference_row(text, one) for one in case.differences]
        settled = {key: msgspec.to_builtins(one) for key, one in case.settled.items()}
        message = {
            "number": case.note.number,
            "settled": settled,
            "labels": wire.label_rows(self.desk, case.note),
            "reasons": list(get_args(Reason)),
            "done": case.assignment.done,
        }
        return page(
            "case", user=user, csrf=request.state.session.csrf, project=self.desk.project.config.name, rows=rows,
            case=embed(message), number=case.note.number, left=case.left, idle=self.desk.project.config.idle_minutes,
        )  # fmt: skip

    def settle(self, request: Request, user: User, body: bytes) -> Any:
        """Store the adjudicator's decision on a difference; answer with how many differences are left."""
        message = wire.decode(body, wire.SettleMessage)
        return {"left": judging.settle_difference(self.desk, user, number_of(request), message.settlement)}

    def close(self, request: Request, user: User, body: bytes) -> Any:
        """Close the case of a note; answer {"next": number of the next note, or None}; `body` is unused."""
        judging.close_case(self.desk, user, number_of(request))
        waiting = judging.cases(self.desk, user)
        return {"next": waiting[0][0] if waiting else None}


def _difference_row(text: str, difference: Difference) -> dict[str, Any]:
    """Return {key, start, end, sides} of a difference; each side is (text, label) pieces, with some text around it."""
    begin, end = max(0, difference.start - _AROUND), min(len(text), difference.end + _AROUND)
    sides = [_pieces(text, begin, end, marks) for marks in (difference.first, difference.second)]
    return {"key": difference.key, "start": difference.start, "end": difference.end, "sides": sides}


def _pieces(text: str, begin: int, end: int, marks: tuple[Mark, ...]) -> list[tuple[str, str]]:
    """Return (text, label) of the pieces of text[begin:end], in order; the label is "" between marks."""
    pieces, position = [], begin
    for mark in marks:
        pieces += [(text[position : mark.start], ""), (text[mark.start : mark.end], mark.label)]
        position = mark.end
    return [*pieces, (text[position:end], "")]
