"""What `chaffinch show` prints of models of weak supervision: sources and their weights, aggregator, students.

Words are counted, never shown: those of sources may be names, and some sources learnt theirs from documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rich.table import Table

from chaffinch.bundle import Bundle, State
from chaffinch.cli import frame
from chaffinch.cli.show import View, plain, printable
from chaffinch.errors import ModelError
from chaffinch.report.page import table

STUDENT = "student"
_HOW = {
    "adds": "labels of sources stay, the student adds others",
    "votes": "the student is one more source",
}
_LEARNT = {"lexicon": "names", "heads": "heads", "suffixes": "suffixes"}
_IN_FILE, _SUPPLIED, _VOTES = "in the file", "give it with --sources", "votes come with documents"


def view(bundle: Bundle, name: str) -> View:
    """Return the view of a weakly supervised tagger, or of an aggregator alone; ModelError if it cannot be read."""
    try:
        content = _tagger(bundle) if bundle.manifest.kind == "weak" else _aggregator(bundle.state)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        message = "its settings cannot be read; another version wrote it, so train it again"
        raise ModelError(message, path=name) from None
    worded = (key for key in content if key not in ("config", "sources", "rules"))
    facts = {key.replace("_", " "): plain(content[key]) for key in worded}
    if bundle.manifest.kind == "weak":
        facts["config"] = None  # the tables have all of it
    return View(content, list(_tables(content)), lambda: _sections(content), facts=facts, by_part=True)


def _aggregator(state: State) -> dict[str, Any]:
    """Return the content of an aggregator's view: sources with weights, embeddings, linking rules."""
    weights = _weights(state)
    content: dict[str, Any] = {
        "sources": [{"source": printable(name), **weights[name]} for name in state.strings["sources"]]
    }
    return content | _embeddings(state) | {"rules": _rules(state)}


def _tagger(bundle: Bundle) -> dict[str, Any]:
    """Return the content of a weak tagger's view: sources with kind, label, place, weights; aggregator, students."""
    config = bundle.manifest.config
    aggregator, how = config["aggregator"], config["how"]
    state, text = bundle.state.child("settle"), bundle.state.child("text")
    weights, kept = _weights(state), {source["name"]: source for source in config["sources"]}
    sources = [
        {
            "source": printable(name), "kind": kept.get(name, {}).get("kind", "-"),
            "label": printable(str(kept.get(name, {}).get("label", "-"))), "where": _where(name, kept, config),
            **weights.get(name, dict.fromkeys(("weight", "silence"), "-")),
        }
        for name in dict.fromkeys((*aggregator["sources"], *config["needs"], *kept, *config["supplied"]))
    ]  # fmt: skip
    brief = [{key: source[key] for key in ("name", "kind", "label") if key in source} for source in config["sources"]]
    return {
        "config": {**config, "sources": brief}, "sources": sources, "rules": _rules(state),
        "aggregator": {"method": aggregator["kind"], **aggregator["config"]}, **_embeddings(state),
        "students": list(_students(bundle)), "how": _HOW.get(how, how),
        **({"threshold": config["threshold"]} if how == "adds" else {}), "layer": config["layer"],
        "text_sources": {what: len(text.strings.get(key, ())) for key, what in _LEARNT.items()},
    }  # fmt: skip


def _where(name: str, kept: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return where a source is: in the file, the student, to be given with --sources, or in votes of the documents."""
    if name in kept:
        return _IN_FILE
    if name == STUDENT and config["how"] == "votes":
        return "the student"
    return _SUPPLIED if name in config["supplied"] else _VOTES


def _weights(state: State) -> dict[str, dict[str, Any]]:
    """Return {source: its weight and the weight of its silence} of a multi-source HMM; "-" where it has none."""
    names, weights = state.strings.get("sources", ()), _votes(state).child("weights").arrays
    if "sources" not in weights:
        return {name: {"weight": "-", "silence": "-"} for name in names}
    columns = (weights[what].round(4).tolist() for what in ("sources", "silence"))
    return {name: {"weight": a, "silence": b} for name, a, b in zip(names, *columns, strict=False)}


def _rules(state: State) -> list[dict[str, Any]]:
    """Return a row per linking rule: how often it is right to link tokens, and to keep them apart."""
    votes = _votes(state)
    links = votes.arrays.get("tables.links")
    if links is None:
        return []
    rows = zip(votes.strings["rules"], links.round(4).tolist(), strict=False)
    return [{"linking_rule": printable(name), "together": a, "apart": b} for name, (a, b) in rows]


def _votes(state: State) -> State:
    """Return the state that holds a multi-source HMM: this one, or its child in a conditional HMM."""
    return state if "weights.sources" in state.arrays else state.child("constant")


def _embeddings(state: State) -> dict[str, Any]:
    """Return {"embedder": a sentence on the embeddings needed} for a conditional HMM; {} for other aggregators."""
    mean = state.arrays.get("mean")
    return {} if mean is None else {"embedder": f"not in the file; {len(mean)} numbers for each token"}


def _students(bundle: Bundle) -> Iterator[str]:
    """Yield the names of a weak tagger's students: the first, a network on embeddings if any, then the others."""
    first, *rest = bundle.manifest.config["students"]
    yield first["kind"]
    into = bundle.arrays.get("network.into")
    if into is not None:
        yield f"network on embeddings of {into.shape[0]} numbers"
    for student in rest:
        stacked = any(str(layer).startswith(STUDENT) for layer in student["config"].get("layers", ()))
        yield f"{student['kind']} stacked on the others" if stacked else student["kind"]


def _tables(content: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield terminal tables of the sources and the linking rules, if there are any."""
    for key in ("sources", "rules"):
        if content[key]:
            yield frame.table_of(content[key])
            yield ""


def _sections(content: Mapping[str, Any]) -> Sequence[str]:
    """Return the HTML sections with the tables of sources and rules."""
    out = []
    for key, title in (("sources", "Sources"), ("rules", "Linking rules")):
        rows = ["".join(_cell(value) for value in row.values()) for row in content[key]]
        if rows:
            body = table(content[key][0], [f"<tr>{row}</tr>" for row in rows])
            out.append(f'<h2>{title}</h2><div class="text-table">{body}</div>')
    return out


def _cell(value: object) -> str:
    """Return a value as an HTML table cell; floats with 4 digits."""
    return f'<td class="number">{value:.4g}</td>' if isinstance(value, float) else f"<td>{escape(str(value))}</td>"
