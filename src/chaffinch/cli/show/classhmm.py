"""What `chaffinch show` prints of a class HMM: whether classes have sub-structure, and what their states are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from chaffinch.bundle import Bundle
from chaffinch.checks import nearest
from chaffinch.cli import frame
from chaffinch.cli.show import View, printable, sparkline
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.classhmm import model as classhmm_model
from chaffinch.models.classhmm.describe.report import POSITIONS, RULE, has_parts, three_digits, verdict
from chaffinch.models.latent.describe_words import two_digits

LISTED = (
    " The lists of names are also features of the set rich, where states can find them; other sets of features do not "
    "know them."
)
YES_OR_NO = {True: "yes", False: "no", None: "?"}


def view(bundle: Bundle, name: str, klass: str | None) -> View:
    """Return the view of a class HMM: all classes in brief, or with `klass` the details of that one alone."""
    content = states(bundle, name)
    if klass is not None:
        content = {**content, "classes": [_choose(content["classes"], klass)]}

    def sections() -> Sequence[str]:
        """Return the sections of the HTML page."""
        from chaffinch.cli.show.classhmm_page import sections

        return sections(content)

    tables = list(_tables(content)) if klass is None else list(_details(content))
    return View(content, tables, sections, alone=klass is not None)


def states(bundle: Bundle, name: str) -> dict[str, Any]:
    """Return a class HMM's objective, held-out gain and described classes as JSON content; ModelError if damaged."""
    try:
        model = classhmm_model.Model.of(bundle.state)
    except ModelError as error:
        raise ModelError(error.message, path=name) from None
    held_out = tuple(model.portrait.held_out.tolist())
    content: dict[str, Any] = {"objective": model.portrait.trace.round(3).tolist(), "held_out": {}, "classes": []}
    if len(held_out) == 2:
        several, one = held_out
        content["held_out"] = {"several": round(several, 5), "one": round(one, 5), "gain": round(several - one, 5)}
    if model.substructure is None:
        return content
    content |= {"rule": RULE + (LISTED if model.config.features == "rich" else "")}
    content |= {"patients": model.substructure.patients, "private": model.substructure.private}
    for klass in model.substructure.classes:
        judged = {"substructure": has_parts(klass, held_out), "verdict": verdict(klass, held_out)}
        content["classes"].append(_make_printable({**msgspec.to_builtins(klass), **judged}))
    return content


def _make_printable(value: Any) -> Any:
    """Return a nested value with control characters in strings replaced and numbers rounded."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {key: _make_printable(item) for key, item in value.items()}
        case list() | tuple():
            return [_make_printable(item) for item in value]
        case float():
            return round(value, 5)
    return value


def _choose(classes: Sequence[Mapping[str, Any]], klass: str) -> Mapping[str, Any]:
    """Return the described class of this name; raise ConfigError with the known names if there is none."""
    names = [each["name"] for each in classes]
    if klass in names:
        return classes[names.index(klass)]
    if not names:
        raise ConfigError("--class: this file does not describe its states; train the model again")
    near = nearest(klass, names)
    hint = "the model" if near is None else f"did you mean {near!r}? it"
    raise ConfigError(f"--class: there is no class {klass!r}; {hint} has {', '.join(names)}")


def _tables(content: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield terminal tables of all classes, a verdict for each but O, and the objective as a sparkline."""
    if content["classes"]:
        yield frame.table_of([_row(klass, content["held_out"]) for klass in content["classes"]])
        yield ""
        yield from (klass["verdict"] for klass in content["classes"] if klass["name"] != "O")
        yield content["rule"]
        names = [klass["name"] for klass in content["classes"] if klass["name"] != "O"]
        yield f"What the states of a class show: --class {names[0] if names else 'O'}, or --html for all."
        yield ""
    trace = content["objective"]
    if trace:
        steps = f"{len(trace)} step{'' if len(trace) == 1 else 's'}"
        yield f"objective  {trace[0]:,.0f} → {trace[-1]:,.0f} in {steps}  {sparkline(trace)}"
        yield ""


def _row(klass: Mapping[str, Any], held_out: Mapping[str, float]) -> dict[str, Any]:
    """Return the table row of a class: states, tokens, shares, NMI of states and roles, gain, sub-structure."""
    single, words = klass["roles"]["single"], klass["roles"]["words"]
    return {
        "class": klass["name"],
        "states": len(klass["states"]),
        "tokens": klass["tokens"],
        "shares": " ".join(two_digits(state["share"]) for state in klass["states"]),
        "NMI": three_digits(single["nmi"]) if single else "-",
        "at random, 95 % below": three_digits(single["high"]) if single else "-",
        "each word once": three_digits(words["nmi"]) if words else "-",
        "at random": three_digits(words["high"]) if words else "-",
        "held-out gain, all classes": f"{held_out['gain']:+.4f}" if held_out else "-",
        "sub-structure": YES_OR_NO[klass["substructure"]],
    }


def _details(content: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield terminal lines of the first class: verdict, table of its states, NMI, examples (not for O)."""
    klass = content["classes"][0]
    yield klass["verdict"]
    yield f"{content['rule']} {floor(content)}"
    yield ""
    yield frame.table_of([_state(state) for state in klass["states"]])
    longer = klass["roles"]["longer"]
    if longer:
        yield ""
        yield (
            f"Given the place in longer mentions, NMI of state and role is {three_digits(longer['nmi'])} on "
            f"{longer['mentions']:,} tokens (at random {three_digits(longer['mean'])}, "
            f"95 % below {three_digits(longer['high'])})."
        )
    if klass["name"] != "O":
        yield ""
        yield from (" | ".join(f"{piece['text']}/{piece['number']}" for piece in one) for one in klass["examples"])
        if not klass["examples"]:
            yield no_examples(content)


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table row of a state: tokens, share, positions in spans, words, features, next states."""
    shares = [two_digits(share) for share in state["positions"]] or ["-"] * len(POSITIONS)
    return {
        "state": state["name"],
        "tokens": state["tokens"],
        "share": two_digits(state["share"]),
        **dict(zip(POSITIONS, shares, strict=True)),
        "words": " ".join(word["name"] for word in state["words"]) or "-",
        "features": "; ".join(feature["name"] for feature in state["features"]) or "-",
        "followed by": ", ".join(f"{name} {two_digits(share)}" for name, share in state["after"]) or "-",
    }


def floor(content: Mapping[str, Any]) -> str:
    """Return a sentence on how many patients used each word shown, and what a private model leaves out."""
    count = content["patients"]
    sentence = f"Every word and example was used by at least {count} patient{'' if count == 1 else 's'}."
    return (
        f"{sentence} Words that are mostly in spans, and examples, are left out (private)."
        if content["private"]
        else sentence
    )


def no_examples(content: Mapping[str, Any]) -> str:
    """Return a sentence on why no examples are shown: the model is private, or too few patients share a mention."""
    return (
        "No examples: the model is private."
        if content["private"]
        else f"No examples: no mention was used by {content['patients']} patients."
    )
