"""The sections of `chaffinch show --html` for a class HMM: the climb, the classes, their states and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from chaffinch.cli.show.classhmm import YES_OR_NO, floor, no_examples
from chaffinch.cli.show.page import plot_objective
from chaffinch.models.classhmm.describe.report import POSITIONS, three_digits
from chaffinch.models.latent.describe_words import two_digits
from chaffinch.report import charts
from chaffinch.report.page import table

COLOURS = 8
WIDTH, GAP, TALL, FOOT = 26, 6, 36, 14  # pixels of the bars of positions


def sections(content: Mapping[str, Any]) -> list[str]:
    """Return the HTML sections of a class HMM: objective, table of classes, one section per class."""
    text = "The objective after each step: the likelihood that was asked for, less the penalty."
    out = [plot_objective(content["objective"], "Objective", "step", text)]
    if content["classes"]:
        out.append(_classes(content))
        out += [_class(klass, content) for klass in content["classes"]]
    return out


def _classes(content: Mapping[str, Any]) -> str:
    """Return the HTML section with the table of all classes, how to read it, and the held-out gain."""
    rows = []
    for klass in content["classes"]:
        single, words = klass["roles"]["single"], klass["roles"]["words"]
        figures = [f"{len(klass['states'])}", f"{klass['tokens']:,}", f"{klass['mentions']:,}"]
        figures += [_figure(single), _figure(words)]
        cells = "".join(f'<td class="number">{cell}</td>' for cell in figures)
        rows.append(f'<tr><th scope="row">{escape(klass["name"])}</th>{cells}<td>{_sign(klass)}</td></tr>')
    held = content["held_out"]
    gain = (
        f"Held-out text has a log-likelihood of {held['several']:.4f} per token with these states and of "
        f"{held['one']:.4f} with one state per class ({held['gain']:+.4f})."
        if held
        else "What more states do for held-out text was not measured."
    )
    text = (
        "A class has sub-structure if its states follow roles that were unknown in training (of persons: given "
        "name, family name, initial, by public lists; of others: abbreviation, common word, rare word), and if "
        "held-out text becomes likelier with them. NMI is the normalised mutual information of state and role on "
        "mentions of one token, where position cannot decide it; below it what 95 % "
        f"of random assignments stay under. {content['rule']} {gain}"
    )
    head = ("class", "states", "tokens", "mentions", "NMI", "NMI, each word once", "sub-structure")
    return f'<h2>Classes</h2><p>{escape(text)}</p><div class="text-table">{table(head, rows)}</div>'


def _figure(measure: Mapping[str, Any] | None) -> str:
    """Return an HTML cell with the NMI and the bound of 95 % of random assignments; a dash if not measured."""
    return (
        "–"
        if measure is None
        else f"{three_digits(measure['nmi'])}<br/><small>&lt; {three_digits(measure['high'])}</small>"
    )


def _sign(klass: Mapping[str, Any]) -> str:
    """Return an HTML mark that says whether a class has sub-structure: yes, no or unknown."""
    kind = {True: "yes", False: "no", None: "unknown"}[klass["substructure"]]
    return f'<span class="{kind}">{YES_OR_NO[klass["substructure"]]}</span>'


def _class(klass: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Return the HTML section of one class: verdict, table of its states, examples."""
    outside = klass["name"] == "O"
    rows = [_state(state, klass["name"], content) for state in klass["states"]]
    head = (
        "state",
        "tokens",
        "share",
        *(() if outside else ("place in the span",)),
        "words",
        "features",
        "followed by",
    )
    verdict = "" if outside else f'<p class="verdict">{_sign(klass)}{escape(klass["verdict"])}</p>'
    longer = klass["roles"]["longer"]
    if longer:
        verdict += (
            f"<p>Given the place in longer mentions, NMI is {three_digits(longer['nmi'])} on "
            f"{longer['mentions']:,} tokens (at random {three_digits(longer['mean'])}, "
            f"95 % below {three_digits(longer['high'])}).</p>"
        )
    examples = "" if outside else _examples(klass["examples"], content)
    return (
        f"<h2>{escape(klass['name'])}</h2>{verdict}<p>{escape(floor(content))}</p>"
        f'<div class="text-table">{table(head, rows)}</div>{examples}'
    )


def _state(state: Mapping[str, Any], klass: str, content: Mapping[str, Any]) -> str:
    """Return the HTML row of a state: tokens, share, places in spans (not for O), words, features, next states."""
    colour = _colour(state["number"])
    places = "" if klass == "O" else f'<td class="{colour}">{_places(state["name"], state["positions"])}</td>'
    words = " ".join(_lift(word) for word in state["words"]) or "–"
    features = "<br/>".join(_lift(feature) for feature in state["features"]) or "–"
    after = " ".join(
        f'<span class="pair">{escape(name)} <small>{two_digits(p)}</small></span>' for name, p in state["after"]
    )
    return (
        f'<tr><th scope="row"><span class="key {colour}">{escape(state["name"])}</span></th>'
        f'<td class="number">{state["tokens"]:,}</td><td>{charts.share(state["share"])}</td>{places}'
        f'<td class="words">{words}</td><td class="near">{features}</td><td class="near">{after}</td></tr>'
    )


def _lift(feature: Mapping[str, Any]) -> str:
    """Return a word or feature in HTML with its lift: how many times as often as in its class."""
    title = f"{feature['tokens']:,} tokens, {feature['lift']:.2f} times as often as in its class"
    return f'<span class="pair" title="{title}">{escape(feature["name"])} <small>×{feature["lift"]:.1f}</small></span>'


def _places(name: str, shares: Sequence[float]) -> str:
    """Return an SVG of small bars: the shares of a state's tokens that are first, inner, last or alone in a span."""
    bars = []
    for place, (position, share) in enumerate(zip(POSITIONS, shares, strict=True)):
        x, tall = place * (WIDTH + GAP), max(TALL * share, 1.0)
        bars.append(
            f'<rect x="{x}" y="{TALL - tall:.1f}" width="{WIDTH}" height="{tall:.1f}"><title>{position} {share:.1%}'
            f'</title></rect><text x="{x + WIDTH / 2}" y="{TALL + FOOT - 2}" text-anchor="middle">{position}</text>'
        )
    summary = ", ".join(f"{position} {share:.0%}" for position, share in zip(POSITIONS, shares, strict=True))
    width = len(POSITIONS) * (WIDTH + GAP) - GAP
    return (
        f'<svg class="places" viewBox="0 0 {width} {TALL + FOOT}" role="img"><title>{escape(name)}: {summary}</title>'
        f"{''.join(bars)}</svg>"
    )


def _examples(examples: Sequence[Sequence[Mapping[str, Any]]], content: Mapping[str, Any]) -> str:
    """Return an HTML list of example mentions, coloured by state; a sentence if there are none."""
    if not examples:
        return f"<p>{escape(no_examples(content))}</p>"
    items = ("".join(_part(piece) for piece in one) for one in examples)
    return f'<h3>Examples</h3><ul class="examples">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _part(piece: Mapping[str, Any]) -> str:
    """Return a piece of an example in HTML, in the colour of its state."""
    number = piece["number"]
    return f'<span class="part {_colour(number)}">{escape(piece["text"])}<sub>{number}</sub></span>'


def _colour(number: int) -> str:
    """Return the CSS class of a state's colour; colours repeat."""
    return f"s{(number - 1) % COLOURS + 1}"
