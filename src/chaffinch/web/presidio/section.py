"""The section of Presidio's paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from chaffinch.deid.detect.entity_types import all_types
from chaffinch.web.api.operations import Operations
from chaffinch.web.api.work import Work
from chaffinch.web.presidio.analyze import LANGUAGES, NO_RECOGNIZERS, RECOGNIZER, analyze
from chaffinch.web.presidio.anonymize import anonymize, deanonymize
from chaffinch.web.presidio.bodies import read_object, refuse
from chaffinch.web.presidio.keyed import KEYED
from chaffinch.web.presidio.operators import ANONYMIZERS, DEANONYMIZERS
from chaffinch.web.problems import Problem, answer
from chaffinch.web.sections import Section

# Clients look for either service's words.
_UP = "Presidio Analyzer service is up; Presidio Anonymizer service is up (Chaffinch)"


def presidio_section(do: Operations) -> Section:
    """Return the section with the routes of Presidio's analyzer and anonymizer; only /health is open."""
    operators = sorted([*ANONYMIZERS, *KEYED])
    routes = [
        Route("/health", _health),
        Route("/analyze", partial(_analyze, do), methods=["POST"]),
        Route("/recognizers", partial(_list_for_language, lambda _: [RECOGNIZER])),
        Route("/supportedentities", partial(_list_for_language, lambda native: all_types(native=native))),
        Route("/anonymize", partial(_answer_in_queue, do, anonymize), methods=["POST"]),
        Route("/deanonymize", partial(_answer_in_queue, do, deanonymize), methods=["POST"]),
        Route("/anonymizers", partial(_answer_list, operators)),
        Route("/deanonymizers", partial(_answer_list, sorted(DEANONYMIZERS))),
    ]
    paths = tuple(route.path for route in routes)
    return Section("presidio", paths, routes, frozenset({"/health"}), error_response=_presidio_error)


def _presidio_error(problem: Problem, _: str) -> Response:
    """Return a failed request's answer as Presidio words it: {"error": message}, with the Problem's status."""
    return answer({"error": problem.message}, problem.status, problem.headers)


async def _health(_: Request) -> Response:
    """Answer that the service is up, in Presidio's words."""
    return HTMLResponse(_UP)


def _wants_native(request: Request) -> bool:
    """Tell whether the query asks for our names of types; Problem 400 if `labels` is something else."""
    labels = request.query_params.get("labels", "presidio")
    if labels not in ("presidio", "native"):
        raise refuse("labels must be 'presidio' or 'native'", 400)
    return labels == "native"


async def _analyze(do: Operations, request: Request) -> Response:
    """Answer a request to Presidio's /analyze: read its JSON body, and return the results as JSON."""
    return answer(await analyze(do, await read_object(request), native=_wants_native(request)))


async def _list_for_language(names: Callable[[bool], Sequence[str]], request: Request) -> Response:
    """Answer with `names`, Presidio's or ours by the query's `labels`; Problem 500 for an unsupported language."""
    if request.query_params.get("language", LANGUAGES[0]) not in LANGUAGES:
        raise refuse(NO_RECOGNIZERS, 500)
    return answer(names(_wants_native(request)))


async def _answer_list(names: Sequence[str], _: Request) -> Response:
    """Answer any request with the given list of names."""
    return answer(names)


async def _answer_in_queue(do: Operations, operate: Callable[[Any, dict[str, Any]], Any], request: Request) -> Response:
    """Run an operation on the request's JSON body in the work queue, and answer with its result."""
    body = await read_object(request)

    def run(_: Sequence[Any]) -> list[Any]:
        """Run the operation on the body."""
        return [operate(do.engine, body)]

    text = body.get("text")
    return answer(await do.queue.submit(Work(run, None, 1, len(text) if isinstance(text, str) else 0)))
