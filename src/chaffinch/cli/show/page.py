"""The page of `chaffinch show --html`: one file without script, nothing loaded from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from chaffinch.bundle import Manifest
from chaffinch.cli.show import count_unlisted
from chaffinch.models.latent.describe_words import shorten_signature, two_digits
from chaffinch.report import charts
from chaffinch.report.page import facts as fact_boxes
from chaffinch.report.page import page, table

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 480, 200, 76, 36, 10  # pixels of the plot of the bound and its margins
BAR, GAP, TALL = 7, 2, 22  # pixels of a sub-tag's bar
MANY = 100.0  # from this ratio of tokens on, bars have a log scale

_MORE = """
.text-table th, .text-table td { text-align: left; }
.text-table td { white-space: normal; overflow-wrap: anywhere; }
.text-table td.number { text-align: right; white-space: nowrap; }
.text-table .bar { margin-left: 0; width: 5rem; }
.text-table tbody th { white-space: nowrap; }
.text-table svg { vertical-align: middle; }
.words { min-width: 13rem; }
.signatures { min-width: 19rem; }
.near { min-width: 9rem; }
.use { height: 1.375rem; margin: 0; }
.pair { white-space: nowrap; margin-right: .5rem; display: inline-block; }
.full { fill: var(--blue); }
.empty { fill: var(--line); }
.wide { max-width: 36rem; flex: 1 1 36rem; }
.s1 { --state: #0072b2; } .s2 { --state: #e69f00; } .s3 { --state: #009e73; } .s4 { --state: #cc79a7; }
.s5 { --state: #56b4e9; } .s6 { --state: #d55e00; } .s7 { --state: #b5a900; } .s8 { --state: #8a8f98; }
.part { background: color-mix(in srgb, var(--state) 20%, transparent); border-bottom: 3px solid var(--state);
  border-radius: .2rem .2rem 0 0; padding: .1rem .3rem; margin-right: .25rem; white-space: nowrap; color: var(--ink); }
.part sub { color: var(--soft); font-size: .75em; margin-left: .15em; }
.key { border-left: .35rem solid var(--state); padding-left: .4rem; white-space: nowrap; }
.examples { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .6rem 1.6rem; max-width: none; }
.examples li { margin: 0; }
.places { width: 8rem; height: 3.25rem; }
.places rect { fill: var(--state); }
.verdict { color: var(--ink); max-width: 60rem; }
.yes, .no, .unknown { display: inline-block; border-radius: .3rem; padding: 0 .5rem; margin-right: .5rem;
  border: 1px solid var(--line); font-weight: 600; color: var(--ink); }
.yes { border-color: #009e73; } .no { border-color: #d55e00; }
"""


def html(name: str, manifest: Manifest, facts: Mapping[str, Any], sections: Sequence[str]) -> str:
    """Return a model's HTML page: head, features by part, the sections of its kind, and a table of the facts."""
    return page(name, [_head(manifest), _features(facts.get("features", {})), *sections, _manifest(facts)], _MORE)


def of_subtags(states: Mapping[str, Any], listed: int, floor: int) -> list[str]:
    """Return the HTML sections of an HMM with sub-tags: use, the first `listed` sub-tags, bound."""
    more = count_unlisted(len(states["subtags"]), listed)
    text = "The bound on the log-likelihood after each pass. It may fall where sub-tags were merged or started again."
    return [
        plot_objective(states["bound"], "Bound", "pass", text),
        _use(states["use"], states["hint"], states["subtags"]),
        _subtags(states["subtags"][:listed], more, floor),
    ]


def _head(manifest: Manifest) -> str:
    """Return HTML boxes with method, documents, patients, labels and vocabulary floor."""
    shown = {"method": manifest.kind, "documents": manifest.documents, "patients": manifest.patients,
             "labels": len(manifest.labels), "vocabulary floor": manifest.vocabulary_floor}  # fmt: skip
    return fact_boxes({key: _text(value) for key, value in shown.items()})


def _manifest(facts: Mapping[str, Any]) -> str:
    """Return an HTML table of the manifest's facts; nested values are left out."""
    rows = [
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(_text(value))}</td></tr>'
        for key, value in facts.items()
        if not isinstance(value, dict)
    ]
    return f'<h2>Manifest</h2><div class="text-table">{table(("", "value"), rows)}</div>'


def _features(features: Mapping[str, int]) -> str:
    """Return an HTML table of the number of features per part, with bars; "" if there are none."""
    most = max(features.values(), default=0)
    rows = [
        f'<tr><th scope="row">{escape(part)}</th><td class="number">{count:,}</td>'
        f"<td>{charts.share(count / most if most else 0.0)}</td></tr>"
        for part, count in features.items()
    ]
    head = ("part", "features", "")
    return f'<h2>Features</h2><div class="text-table">{table(head, rows)}</div>' if rows else ""


def plot_objective(trace: Sequence[float], what: str, step: str, text: str) -> str:
    """Return an HTML section with a line plot of the trace by step; "" for fewer than two values."""
    if len(trace) < 2:
        return ""
    low, high = min(trace), max(trace)
    span = (high - low) or 1.0

    def x(step_number: int) -> float:
        """Return the horizontal position of a step in the plot."""
        return LEFT + WIDTH * step_number / (len(trace) - 1)

    def y(value: float) -> float:
        """Return the vertical position of a value in the plot."""
        return TOP + HEIGHT * (1 - (value - low) / span)

    ticks = []
    for part in range(5):
        value = low + span * part / 4
        ticks.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        ticks.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for at in sorted({round(part * (len(trace) - 1) / 5) for part in range(6)}):
        ticks.append(f'<text x="{x(at):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{at + 1}</text>')
    points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in enumerate(trace))
    dots = "".join(
        f'<circle class="dot" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3">'
        f"<title>{step} {at + 1}: {value:,.1f}</title></circle>"
        for at, value in enumerate(trace)
    )
    height = TOP + HEIGHT + BOTTOM
    drawing = (
        f'<svg class="plot" viewBox="0 0 {LEFT + WIDTH + 12} {height}" role="img">'
        f"<title>{what} after each {step}, from {trace[0]:,.0f} to {trace[-1]:,.0f}</title>{''.join(ticks)}"
        f'<text x="{LEFT + WIDTH / 2}" y="{height - 4}" text-anchor="middle">{step}</text>'
        f'<polyline class="curve" points="{points}"/>{dots}</svg>'
    )
    return f'<h2>Learning</h2><figure class="wide">{drawing}<figcaption>{text}</figcaption></figure>'


def _use(use: Sequence[Mapping[str, Any]], hint: str, subtags: Sequence[Mapping[str, Any]]) -> str:
    """Return the HTML section on the use of sub-tags: a row per tag with counts, perplexity and bars."""
    tokens: dict[str, list[tuple[str, float]]] = {}
    for subtag in subtags:
        tokens.setdefault(subtag["tag"], []).append((subtag["name"], subtag["tokens"]))
    sizes = [count for found in tokens.values() for _, count in found if count > 1]
    log = bool(sizes) and max(sizes) / min(sizes) > MANY
    rows = []
    for row in use:
        cells = (f"{row['subtags']:,}", f"{row['in_use']:,}", f"{row['perplexity']:.2f}", f"{row['tokens']:,}")
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        bars = _bars(tokens.get(row["tag"], ()), row["subtags"], max(sizes, default=1.0), log=log)
        rows.append(f'<tr><th scope="row">{escape(row["tag"])}</th>{numbers}<td>{bars}</td></tr>')
    scale = "on a log scale" if log else "on one scale"
    text = (
        "A sub-tag is in use if it has more than one token. Perplexity is the number of equally used sub-tags that "
        f"would be as spread. Bars are the tokens of each sub-tag, {scale} for all tags; grey ones are not in use."
    )
    warning = f'<p class="warn">{escape(hint)}</p>' if hint else ""
    head = ("tag", "sub-tags", "in use", "perplexity", "tokens", "tokens of each sub-tag")
    return f'<h2>Use of sub-tags</h2><p>{text}</p>{warning}<div class="text-table">{table(head, rows)}</div>'


def _bars(found: Sequence[tuple[str, float]], count: int, most: float, *, log: bool) -> str:
    """Return an SVG chart of `count` bars of tokens by sub-tag, in the order given, on a log scale if asked."""
    rects = []
    for place in range(count):
        name, tokens = found[place] if place < len(found) else ("", 0.0)
        share = math.log1p(tokens) / math.log1p(most) if log else tokens / most
        tall = max(TALL * min(share, 1.0), 2.0)
        title = f"<title>{escape(name)}: {tokens:,.0f} tokens</title>" if name else ""
        kind = "full" if tokens > 1 else "empty"
        rects.append(
            f'<rect class="{kind}" x="{place * (BAR + GAP)}" y="{TALL - tall:.1f}" width="{BAR}" height="{tall:.1f}">'
            f"{title}</rect>"
        )
    width = count * (BAR + GAP)
    return (
        f'<svg class="use" viewBox="0 0 {width} {TALL}" style="width:{width / 16:g}rem" role="img">'
        f"<title>{count} sub-tags</title>{''.join(rects)}</svg>"
    )


def _subtags(subtags: Sequence[Mapping[str, Any]], more: str, floor: int) -> str:
    """Return the HTML table of sub-tags: tokens, share, words, signatures, neighbours; `more` follows the text."""
    rows = []
    for subtag in subtags:
        near = (" ".join(_pair(name, p) for name, p in subtag[key]) for key in ("before", "after"))
        words = " ".join(_pair(word, p) for word, p in subtag["words"])
        signatures = "<br/>".join(
            f"{escape(shorten_signature(name))} <small>{two_digits(p)}</small>" for name, p in subtag["signatures"]
        )
        cells = "".join(f'<td class="near">{cell}</td>' for cell in near)
        rows.append(
            f'<tr><th scope="row">{escape(subtag["name"])}</th><td class="number">{subtag["tokens"]:,.0f}</td>'
            f'<td>{charts.share(subtag["share"])}</td><td class="words">{words}</td>'
            f'<td class="signatures">{signatures}</td>{cells}</tr>'
        )
    text = (
        "What each sub-tag means, as the generative stage learnt it: its likeliest words and signatures, what it "
        "follows (shares), and what it leads to (probabilities). Every word was used by at least "
        f"{floor} patient{'' if floor == 1 else 's'}."
    )
    head = ("sub-tag", "tokens", "share of its tag", "words", "signatures", "follows", "leads to")
    under = f"<p>{escape(more)}</p>" if more else ""
    return f'<h2>Sub-tags</h2><p>{text}</p>{under}<div class="text-table">{table(head, rows)}</div>'


def _pair(word: str, chance: float) -> str:
    """Return HTML of a word followed by its chance in small print."""
    return f'<span class="pair">{escape(word)} <small>{two_digits(chance)}</small></span>'


def _text(value: object) -> str:
    """Return a value as text, whole numbers with thousands separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
