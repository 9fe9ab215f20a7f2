"""The reference page of the REST interface: its OpenAPI document as plain HTML, without scripts, for any browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Any

STYLE, ICON = "/docs/style.css", "/docs/icon.svg"  # below the prefix of the interface
# Keys of JSON Schema that limit a value, and what they count.
_LIMITS = {
    "minimum": "", "maximum": "", "minLength": " characters", "maxLength": " characters", "minItems": " items",
    "maxItems": " items",
}  # fmt: skip
_QUOTED = re.compile("`([^`]+)`")


def static_file(path: str) -> bytes:
    """Return a file that the page loads: the style sheet or the icon of all pages of the service."""
    return (resources.files("chaffinch.web") / "static" / path.rpartition("/")[2]).read_bytes()


def reference(document: Mapping[str, Any], prefix: str) -> str:
    """Return an OpenAPI document as a page, links under `prefix`: an entry per path, a table of fields per type."""
    operations = [
        (path, method.upper(), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    info, types = document["info"], document["components"]["schemas"]
    contents = "".join(
        f'<li><a href="#{escape(each["operationId"])}">{_code(f"{method} {path}")}</a> {escape(each["summary"])}</li>'
        for path, method, each in operations
    )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])} {escape(info["version"])}: REST interface</title>
<link rel="stylesheet" href="{escape(prefix + STYLE)}">
<link rel="icon" href="{escape(prefix + ICON)}">
<body>
<a class="skip" href="#main">To the content</a>
<header class="top"><span class="home">{escape(info["title"])}</span> <span>REST interface, version
{escape(info["version"])}</span>
<nav><a href="#paths">Paths</a> <a href="#types">Types</a> <a href="{escape(prefix)}/openapi.json">OpenAPI</a></nav>
</header>
<main id="main">
<h1>{escape(info["description"])}</h1>
<p>Bodies and answers are JSON. Where a token is needed, send <code>Authorization: Bearer TOKEN</code>;
<code>chaffinch serve</code> says which file holds it. Offsets are code points, the end is exclusive.</p>
<h2 id="paths">Paths</h2>
<ul>{contents}</ul>
{"".join(_entry(path, method, operation) for path, method, operation in operations)}
<h2 id="types">Types</h2>
{"".join(_type_entry(name, shape) for name, shape in types.items())}
</main>
</html>
"""


def _entry(path: str, method: str, operation: Mapping[str, Any]) -> str:
    """Return the entry of a path: what it does, its body with an example, its answer, and its refusals."""
    parts = [
        f'<h2 id="{escape(operation["operationId"])}">{_code(f"{method} {path}")}</h2>',
        *(f"<p>{_words(words)}</p>" for words in dict.fromkeys((operation["summary"], operation["description"]))),
        f"<p>{'A token is needed.' if operation['security'] else 'No token is needed.'}</p>",
    ]
    if "requestBody" in operation:
        ((_, body),) = operation["requestBody"]["content"].items()
        parts.append(f"<p>Body: {_type_of(body['schema'])}; for example:</p>")
        example = escape(json.dumps(body["example"], indent=2, ensure_ascii=False))
        parts.append(f'<pre class="card scroll"><code>{example}</code></pre>')
    responses = dict(operation["responses"])
    ((media_type, answer),) = responses.pop("200")["content"].items()
    parts.append(f"<p>Answer: {_type_of(answer['schema'])}, as <code>{escape(media_type)}</code>.</p>")
    rows = (
        (_code(status), escape(each["description"]), ", ".join(map(_code, each["headers"])))
        for status, each in responses.items()
    )
    parts.append(f"<details><summary>Refusals</summary>{_table(('status', 'why', 'headers'), rows)}</details>")
    return f"<section>{''.join(parts)}</section>"


def _type_entry(name: str, shape: Mapping[str, Any]) -> str:
    """Return the entry of a type: what it is, and its fields with their types and limits."""
    rows = (
        (_code(field), _type_of(each), _default(each, is_required=field in shape.get("required", ())))
        for field, each in shape.get("properties", {}).items()
    )
    table = _table(("field", "type", "if left out"), rows)
    words = "".join(f"<p>{_words(part)}</p>" for part in shape.get("description", "").split("\n\n"))
    return f'<section><h3 id="type-{escape(name)}">{escape(name)}</h3>{words}{table}</section>'


def _default(shape: Mapping[str, Any], *, is_required: bool) -> str:
    """Return what happens to a field that is left out."""
    return "refused" if is_required else _code(json.dumps(shape.get("default")))


def _type_of(shape: Mapping[str, Any]) -> str:
    """Return a JSON schema in words, with links to types that have a name."""
    if "$ref" in shape:
        name = escape(shape["$ref"].rpartition("/")[2])
        return f'<a href="#type-{name}">{name}</a>'
    if "anyOf" in shape:
        return " or ".join(map(_type_of, shape["anyOf"]))
    if "enum" in shape:
        return " or ".join(_code(json.dumps(each)) for each in shape["enum"])
    if shape.get("type") == "array":
        return f"list of {_type_of(shape['items'])}{_limits(shape)}"
    if isinstance(shape.get("additionalProperties"), dict):
        return f"object of {_type_of(shape['additionalProperties'])} by name"
    return f"{escape(shape.get('type', 'anything'))}{_limits(shape)}"


def _limits(shape: Mapping[str, Any]) -> str:
    """Return the limits of a schema in words, empty if it has none."""
    said = [
        f"{'at least' if key.startswith('min') else 'at most'} {shape[key]:,}{counted}"
        for key, counted in _LIMITS.items()
        if key in shape
    ]
    return f" ({', '.join(said)})" if said else ""


def _code(text: str) -> str:
    """Return text as code in HTML."""
    return f"<samp>{escape(text)}</samp>"


def _words(text: str) -> str:
    """Return a sentence in HTML, what it quotes as code."""
    return _QUOTED.sub(r"<samp>\1</samp>", escape(text))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; the cells of its rows are HTML already."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
