"""Parts of HTML pages: each page is one file without script that loads nothing from elsewhere.

Titles, column headings, names and values of facts are escaped here; callers must escape the cells of a table's rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from html import escape

from chaffinch.report.style import CSS


def page(title: str, sections: Iterable[str], css: str = "") -> str:
    """Return an HTML page of sections, without empty ones; `css` is added to the common style sheet.

    >>> page("A < B", ["<p>Hello</p>", ""]).count("<h1>A &lt; B</h1>")
    1
    """
    name, body = escape(title), "\n".join(filter(None, sections))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{name}</title><style>{CSS}{css}</style></head>\n"
        f"<body><main><h1>{name}</h1>\n{body}\n</main></body></html>\n"
    )


def facts(values: Mapping[str, str], *, warned: Collection[str] = ()) -> str:
    """Return an HTML row of boxes, each with a name and a value, escaped; those in `warned` are marked."""
    boxes = "".join(
        f"<div{' class=bad' if name in warned else ''}><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in values.items()
    )
    return f'<dl class="facts">{boxes}</dl>'


def table(
    head: Iterable[str | tuple[str, str]], rows: Iterable[str], *, kind: str = "", caption: str = ""
) -> str:  # fmt: skip
    """Return an HTML table of class `kind` that scrolls sideways; `rows` are HTML, headings and caption are escaped.

    A heading is a text, or a pair of text and class; without headings there is no head.
    """
    pairs = [(name, "") if isinstance(name, str) else name for name in head]
    cells = "".join(f'<th scope="col"{f" class={style}" if style else ""}>{escape(name)}</th>' for name, style in pairs)
    top = f"<thead><tr>{cells}</tr></thead>" if pairs else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    of_kind = f' class="{kind}"' if kind else ""
    body = "\n".join(rows)
    return f'<div class="scroll"><table{of_kind}>{title}{top}\n<tbody>{body}</tbody></table></div>'
