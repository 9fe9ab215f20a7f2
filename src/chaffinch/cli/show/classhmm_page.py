"""The sections of `chaffinch show --html` for a class HMM: the climb, the classes, their states and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from chaffinch.cli.show.classhmm import YES_OR_NO, floor, no_examples
from chaffinch.cli.show.page import climb
from chaffinch.models.classhmm.describe.report import POSITIONS, three
from chaffinch.models.latent.describe_words import two
from chaffinch.report import charts
from chaffinch.report.page import table

COLOURS = 8
WIDTH, GAP, TALL, FOOT = 26, 6, 36, 14  # pixels of the bars of positions


def sections(told: Mapping[str, Any]) -> list[str]:
    """The sections of a class HMM."""
    text = "The objective after each step of the climb: the likelihood that was asked for, less the penalty."
    out = [climb(told["objective"], "Objective", "step", text)]
    if told["classes"]:
        out.append(_classes(told))
        out += [_class(own, told) for own in told["classes"]]
    return out


def _classes(told: Mapping[str, Any]) -> str:
    rows = []
    for own in told["classes"]:
        single, words = own["roles"]["single"], own["roles"]["words"]
        figures = [f"{len(own['states'])}", f"{own['tokens']:,}", f"{own['mentions']:,}"]
        figures += [_figure(single), _figure(words)]
        cells = "".join(f'<td class="number">{cell}</td>' for cell in figures)
        rows.append(f'<tr><th scope="row">{escape(own["name"])}</th>{cells}<td>{_sign(own)}</td></tr>')
    held = told["held_out"]
    gain = (
        f"Held-out text has a log-likelihood of {held['several']:.4f} per token with these states and of "
        f"{held['one']:.4f} with one state per class ({held['gain']:+.4f})."
        if held
        else "What more states do for held-out text was not measured."
    )
    text = (
        "A class has sub-structure if its states follow roles that learning was never told (given name, family name, "
        "initial, by public lists), and if held-out text becomes likelier with them. NMI is the normalised mutual "
        "information of state and role on mentions of one token, where position cannot decide it; below it what 95 % "
        f"of random assignments stay under. {told['rule']} {gain}"
    )
    head = ("class", "states", "tokens", "mentions", "NMI", "NMI, each word once", "sub-structure")
    return f'<h2>Classes</h2><p>{escape(text)}</p><div class="text-table">{table(head, rows)}</div>'


def _figure(measure: Mapping[str, Any] | None) -> str:
    return "–" if measure is None else f"{three(measure['nmi'])}<br/><small>&lt; {three(measure['high'])}</small>"


def _sign(own: Mapping[str, Any]) -> str:
    kind = {True: "yes", False: "no", None: "unknown"}[own["substructure"]]
    return f'<span class="{kind}">{YES_OR_NO[own["substructure"]]}</span>'


def _class(own: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    outside = own["name"] == "O"
    rows = [_state(state, own["name"], told) for state in own["states"]]
    head = (
        "state",
        "tokens",
        "share",
        *(() if outside else ("place in the span",)),
        "words",
        "features",
        "followed by",
    )
    said = "" if outside else f'<p class="verdict">{_sign(own)}{escape(own["verdict"])}</p>'
    longer = own["roles"]["longer"]
    if longer:
        said += (
            f"<p>Given the place in longer mentions, NMI is {three(longer['nmi'])} on {longer['mentions']:,} tokens "
            f"(at random {three(longer['mean'])}, 95 % below {three(longer['high'])}).</p>"
        )
    examples = "" if outside else _examples(own["examples"], told)
    return (
        f"<h2>{escape(own['name'])}</h2>{said}<p>{escape(floor(told))}</p>"
        f'<div class="text-table">{table(head, rows)}</div>{examples}'
    )


def _state(own: Mapping[str, Any], klass: str, told: Mapping[str, Any]) -> str:
    colour = _colour(own["number"])
    places = "" if klass == "O" else f'<td class="{colour}">{_places(own["name"], own["positions"])}</td>'
    words = " ".join(_lift(word) for word in own["words"]) or "–"
    features = "<br/>".join(_lift(feature) for feature in own["features"]) or "–"
    after = " ".join(f'<span class="pair">{escape(name)} <small>{two(p)}</small></span>' for name, p in own["after"])
    return (
        f'<tr><th scope="row"><span class="key {colour}">{escape(own["name"])}</span></th>'
        f'<td class="number">{own["tokens"]:,}</td><td>{charts.share(own["share"])}</td>{places}'
        f'<td class="words">{words}</td><td class="near">{features}</td><td class="near">{after}</td></tr>'
    )


def _lift(own: Mapping[str, Any]) -> str:
    title = f"{own['tokens']:,} tokens, {own['lift']:.2f} times as often as in its class"
    return f'<span class="pair" title="{title}">{escape(own["name"])} <small>×{own["lift"]:.1f}</small></span>'


def _places(name: str, shares: Sequence[float]) -> str:
    """Small bars: how often a state's tokens are first, inner, last, or alone."""
    bars = []
    for place, (position, share) in enumerate(zip(POSITIONS, shares, strict=True)):
        x, tall = place * (WIDTH + GAP), max(TALL * share, 1.0)
        bars.append(
            f'<rect x="{x}" y="{TALL - tall:.1f}" width="{WIDTH}" height="{tall:.1f}"><title>{position} {share:.1%}'
            f'</title></rect><text x="{x + WIDTH / 2}" y="{TALL + FOOT - 2}" text-anchor="middle">{position}</text>'
        )
    told = ", ".join(f"{position} {share:.0%}" for position, share in zip(POSITIONS, shares, strict=True))
    width = len(POSITIONS) * (WIDTH + GAP) - GAP
    return (
        f'<svg class="places" viewBox="0 0 {width} {TALL + FOOT}" role="img"><title>{escape(name)}: {told}</title>'
        f"{''.join(bars)}</svg>"
    )


def _examples(examples: Sequence[Sequence[Mapping[str, Any]]], told: Mapping[str, Any]) -> str:
    if not examples:
        return f"<p>{escape(no_examples(told))}</p>"
    items = ("".join(_part(piece) for piece in one) for one in examples)
    return f'<h3>Examples</h3><ul class="examples">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _part(piece: Mapping[str, Any]) -> str:
    number = piece["number"]
    return f'<span class="part {_colour(number)}">{escape(piece["text"])}<sub>{number}</sub></span>'


def _colour(number: int) -> str:
    return f"s{(number - 1) % COLOURS + 1}"
