"""Bodies of requests that the description of the interface shows; the names and notes are invented."""

from __future__ import annotations

from typing import Any

_NOTE = {"id": "n1", "patient": "p1", "text": "Seen by Dr. Penn on 3/4/1998."}
_ABSTRACT = "The gene is active in copper toxicosis."
_NAMED = "RPT-1 is found in the nucleus."

DETECT: dict[str, Any] = {"documents": [_NOTE]}
DEIDENTIFY: dict[str, Any] = {"documents": [_NOTE], "policy": "safe-harbor"}
TAG: dict[str, Any] = {"documents": [{"id": "a1", "text": _ABSTRACT}], "model": "genia"}
AGGREGATE: dict[str, Any] = {
    "documents": [
        {
            "text": _ABSTRACT,
            "votes": {
                "list": [{"start": 22, "end": 28, "label": "Disease"}],
                "suffix": [{"start": 22, "end": 38, "label": "Disease"}],
            },
        }
    ],
    "rule": "longest-span",
}
RELATE: dict[str, Any] = {
    "documents": [
        {
            "text": _NAMED,
            "spans": [{"start": 0, "end": 5, "label": "Protein"}, {"start": 22, "end": 29, "label": "Location"}],
        }
    ],
    "model": "localises",
}
EXPLAIN: dict[str, Any] = {"document": {"text": _NOTE["text"]}, "top": 3}
