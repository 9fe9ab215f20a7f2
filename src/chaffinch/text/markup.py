"""HTML of values in notebooks: everything is escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from chaffinch.text.span import resolve

if TYPE_CHECKING:
    from chaffinch.text.document import Document

_MOST = 20_000  # characters of a document that a notebook shows; more make it slow
# Okabe-Ito, light enough for black letters; a label has one of them by the order of labels, and is named beside it.
_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00")


def plain_html(text: str) -> str:
    """Return the text, escaped, in a <pre> element.

    >>> plain_html("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(text)}</pre>"


def document_html(doc: Document) -> str:
    """Return a document's first `_MOST` characters as HTML, once per layer, its spans marked, of overlaps the longest.

    >>> from chaffinch.text import Document, Span
    >>> "<mark" in document_html(Document.make("Dr. Penn", layers={"gold": [Span(4, 8, "DOCTOR")]}))
    True
    """
    if not doc.layers:
        return _block("", escape(doc.text[:_MOST]) + _rest(doc))
    return "".join(_block(name, _mark_spans(doc, name) + _rest(doc)) for name in doc.layers)


def _mark_spans(doc: Document, layer: str) -> str:
    """Return the first `_MOST` characters as HTML, a layer's spans as <mark>; of overlaps the longest is shown."""
    labels = sorted({span.label for span in doc.layers[layer]})
    pieces, at = [], 0
    for span in resolve(doc.layers[layer]):
        if span.end > _MOST:
            break
        colour = _COLOURS[labels.index(span.label) % len(_COLOURS)]
        title = f"{span.label} [{span.start}, {span.end}) {span.score:.3f}"
        pieces += [
            escape(doc.text[at : span.start]),
            f'<mark style="background:{colour};color:#000" title="{escape(title)}">',
            f"{escape(doc.text[span.start : span.end])} <small>{escape(span.label)}</small></mark>",
        ]
        at = span.end
    return "".join(pieces) + escape(doc.text[at:_MOST])


def _rest(doc: Document) -> str:
    """Return a paragraph on how many characters are not shown; "" if all are."""
    left = len(doc.text) - _MOST
    return f"<p><em>… and {left:,} characters more</em></p>" if left > 0 else ""


def _block(name: str, body: str) -> str:
    """Return a <div> of HTML with the layer's name above it, if it has one."""
    head = f"<strong>{escape(name)}</strong>" if name else ""
    return f'<div>{head}<div style="white-space:pre-wrap">{body}</div></div>'
