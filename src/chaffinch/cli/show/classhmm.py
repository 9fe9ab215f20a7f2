"""What `chaffinch show` tells of a class HMM: whether classes have sub-structure, and what their states are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from chaffinch.bundle import Bundle
from chaffinch.checks import nearest
from chaffinch.cli import common as frame
from chaffinch.cli.show import View, printable, sparkline
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.classhmm import model as classhmm_model
from chaffinch.models.classhmm.describe.report import POSITIONS, RULE, has_parts, three, verdict
from chaffinch.models.latent.describe_words import two

LISTED = (
    " The lists of names are also features of the set rich, where states can find them; other sets of features do not "
    "know them."
)
YES_OR_NO = {True: "yes", False: "no", None: "?"}


def view(bundle: Bundle, name: str, klass: str | None) -> View:
    """What a class HMM shows; of one class, if it is named."""
    told = states(bundle, name)
    if klass is not None:
        told = {**told, "classes": [_chosen(told["classes"], klass)]}

    def sections() -> Sequence[str]:
        from chaffinch.cli.show.classhmm_page import sections

        return sections(told)

    tables = list(_tables(told)) if klass is None else list(_details(told))
    return View(told, tables, sections, alone=klass is not None)


def states(bundle: Bundle, name: str) -> dict[str, Any]:
    """All that is told of the classes, ready for JSON."""
    try:
        model = classhmm_model.Model.of(bundle.state)
    except ModelError as error:
        raise ModelError(error.message, path=name) from None
    held_out = tuple(model.portrait.held_out.tolist())
    told: dict[str, Any] = {"objective": model.portrait.trace.round(3).tolist(), "held_out": {}, "classes": []}
    if len(held_out) == 2:
        several, one = held_out
        told["held_out"] = {"several": round(several, 5), "one": round(one, 5), "gain": round(several - one, 5)}
    if model.substructure is None:
        return told
    told |= {"rule": RULE + (LISTED if model.config.features == "rich" else "")}
    told |= {"patients": model.substructure.patients, "private": model.substructure.private}
    for own in model.substructure.classes:
        judged = {"substructure": has_parts(own, held_out), "verdict": verdict(own, held_out)}
        told["classes"].append(_printed({**msgspec.to_builtins(own), **judged}))
    return told


def _printed(value: Any) -> Any:
    """The same with every string fit for a terminal."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {key: _printed(item) for key, item in value.items()}
        case list() | tuple():
            return [_printed(item) for item in value]
        case float():
            return round(value, 5)
    return value


def _chosen(classes: Sequence[Mapping[str, Any]], klass: str) -> Mapping[str, Any]:
    names = [own["name"] for own in classes]
    if klass in names:
        return classes[names.index(klass)]
    if not names:
        raise ConfigError("--class: this file does not describe its states; train the model anew")
    near = nearest(klass, names)
    hint = "the model" if near is None else f"did you mean {near!r}? it"
    raise ConfigError(f"--class: there is no class {klass!r}; {hint} has {', '.join(names)}")


def _tables(told: Mapping[str, Any]) -> Iterator[Table | str]:
    """The classes, the verdicts and the objective, for a terminal."""
    if told["classes"]:
        yield frame.table_of([_row(own, told["held_out"]) for own in told["classes"]])
        yield ""
        yield from (own["verdict"] for own in told["classes"] if own["name"] != "O")
        yield told["rule"]
        names = [own["name"] for own in told["classes"] if own["name"] != "O"]
        yield f"What the states of a class show: --class {names[0] if names else 'O'}, or --html for all."
        yield ""
    trace = told["objective"]
    if trace:
        steps = f"{len(trace)} step{'' if len(trace) == 1 else 's'}"
        yield f"objective  {trace[0]:,.0f} → {trace[-1]:,.0f} in {steps}  {sparkline(trace)}"
        yield ""


def _row(own: Mapping[str, Any], held_out: Mapping[str, float]) -> dict[str, Any]:
    """A class in the table of classes."""
    single, words = own["roles"]["single"], own["roles"]["words"]
    return {
        "class": own["name"],
        "states": len(own["states"]),
        "tokens": own["tokens"],
        "shares": " ".join(two(state["share"]) for state in own["states"]),
        "NMI": three(single["nmi"]) if single else "-",
        "at random, 95 % below": three(single["high"]) if single else "-",
        "each word once": three(words["nmi"]) if words else "-",
        "at random": three(words["high"]) if words else "-",
        "held-out gain, all classes": f"{held_out['gain']:+.4f}" if held_out else "-",
        "sub-structure": YES_OR_NO[own["substructure"]],
    }


def _details(told: Mapping[str, Any]) -> Iterator[Table | str]:
    """One class: what its states show, where they stand, and examples."""
    own = told["classes"][0]
    yield own["verdict"]
    yield f"{told['rule']} {floor(told)}"
    yield ""
    yield frame.table_of([_state(state) for state in own["states"]])
    longer = own["roles"]["longer"]
    if longer:
        yield ""
        yield (
            f"Given the place in longer mentions, NMI of state and role is {three(longer['nmi'])} on "
            f"{longer['mentions']:,} tokens (at random {three(longer['mean'])}, 95 % below {three(longer['high'])})."
        )
    if own["name"] != "O":
        yield ""
        yield from (" | ".join(f"{piece['text']}/{piece['number']}" for piece in one) for one in own["examples"])
        if not own["examples"]:
            yield no_examples(told)


def _state(own: Mapping[str, Any]) -> dict[str, Any]:
    shares = [two(share) for share in own["positions"]] or ["-"] * len(POSITIONS)
    return {
        "state": own["name"],
        "tokens": own["tokens"],
        "share": two(own["share"]),
        **dict(zip(POSITIONS, shares, strict=True)),
        "words": " ".join(word["name"] for word in own["words"]) or "-",
        "features": "; ".join(feature["name"] for feature in own["features"]) or "-",
        "followed by": ", ".join(f"{name} {two(share)}" for name, share in own["after"]) or "-",
    }


def floor(told: Mapping[str, Any]) -> str:
    """Whose words are told, in words."""
    count = told["patients"]
    said = f"Every word and example was used by at least {count} patient{'' if count == 1 else 's'}."
    return (
        f"{said} Words that stand mostly in spans, and examples, are left out (private)." if told["private"] else said
    )


def no_examples(told: Mapping[str, Any]) -> str:
    """Why there is no example."""
    return (
        "No examples: the model is private."
        if told["private"]
        else f"No examples: no mention was used by {told['patients']} patients."
    )
