"""Templates with everything escaped, and static files that are known by name before the first request."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import Response

from chaffinch.web.problems import Problem

_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml"}
# With no-referrer, browsers send forms with the origin "null", and the guard could not tell them from another site's.
_REFERRER = "same-origin"
_FOREVER = "public, max-age=31536000, immutable"  # the address has a hash of all files


@cache
def _load_templates() -> jinja2.Environment:
    """Return the Jinja environment, cached; a missing value raises an error, it is never left empty."""
    loader = jinja2.PackageLoader("chaffinch.web.pages", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals["static"] = f"/static/{static_hash()}"
    environment.filters["duration"] = format_seconds
    return environment


def page(template: str, /, *, http_status: int = 200, **values: Any) -> Response:
    """Render the named template with values, and return it as an HTML response."""
    html = _load_templates().get_template(f"{template}.html").render(**values)
    return Response(html, http_status, {"referrer-policy": _REFERRER}, "text/html")


def embed(value: object) -> str:
    """Return a value as JSON that is safe inside a script element of type application/json.

    >>> embed("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def format_seconds(seconds: float | None) -> str:
    """Return a duration as minutes and seconds, like 3:07; a dash for None.

    >>> format_seconds(83)
    '1:23'
    """
    return "–" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@cache
def static_files() -> dict[str, bytes]:
    """Return {path below static: content} of all files of known types, read once."""
    found: dict[str, bytes] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        """Read the files of known types in a folder and below into `found`, by path."""
        for item in sorted(folder.iterdir(), key=lambda one: one.name):
            if item.is_dir():
                walk(item, f"{prefix}{item.name}/")
            elif any(item.name.endswith(suffix) for suffix in _TYPES):
                found[prefix + item.name] = item.read_bytes()

    walk(resources.files("chaffinch.web") / "static", "")
    return found


@cache
def static_hash() -> str:
    """Return the first 16 hex digits of a hash of all static files, a part of their address that changes with them."""
    whole = hashlib.sha256()
    for name, content in static_files().items():
        whole.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return whole.hexdigest()[:16]


async def static_file(request: Request) -> Response:
    """Answer with a static file, cached for ever; Problem 404 for a name that was not listed at the start."""
    content = static_files().get(request.path_params["name"])
    if content is None:
        raise Problem(404, "not_found", "no such path")
    suffix = "." + request.path_params["name"].rsplit(".", 1)[-1]
    return Response(content, media_type=_TYPES[suffix], headers={"cache-control": _FOREVER})
