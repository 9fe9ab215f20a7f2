"""`chaffinch show`: what a model file says about itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer
from rich.table import Table

from chaffinch.bundle import Bundle, find, load
from chaffinch.cli import common as frame
from chaffinch.cli.results import SettingsResult, describe_privacy
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.core.methods import Method
from chaffinch.models.registry import METHODS
from chaffinch.text.formats.base import replacing, write_text

if TYPE_CHECKING:  # it loads compiled kernels, which other methods need not wait for
    from chaffinch.models.latent.describe_words import Subtag

LISTED = 40  # sub-tags, unless told otherwise
NAMED = 3  # tags of a hint, which counts the others
_PARTS = {"reading0": "first reading", "reading1": "second reading"}
_BLOCKS = "▁▂▃▄▅▆▇█"
_TEXT_SIGNATURES = 2  # in the table; the JSON and the page have all


class View(NamedTuple):
    """What a kind of model shows besides its manifest."""

    told: Mapping[str, Any]  # for JSON
    tables: Sequence[Table | str]  # for a terminal
    sections: Callable[[], Sequence[str]]  # for the page
    alone: bool = False  # the tables are all that a terminal gets
    facts: Mapping[str, Any] = {}  # more lines of the manifest, in words; None leaves one out
    by_part: bool = False  # a terminal gets arrays summed by part: there are many


def show_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, a packaged model, or a method.")],
    subtags: Annotated[
        int | None,
        typer.Option(min=0, help=f"How many sub-tags to list, those of most tokens; default {LISTED}, in JSON all."),
    ] = None,
    klass: Annotated[
        str | None, typer.Option("--class", metavar="LABEL", help="Of a class HMM: show what one label's states are.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write all of it as one HTML file.")] = None,
    json: frame.Json = False,
    config: frame.Config = None,
) -> None:
    """chaffinch show phi.cfm

    Print a model's manifest: method, settings, labels, where it was trained, vocabulary floor, metrics, versions. For a
    method (METHOD_NAMES), list the settings that `train --set` takes.

    For an HMM with sub-tags, print also how many sub-tags each tag uses, what they emit, follow and precede, and the
    bound after each pass. For a class HMM, print whether its classes have sub-structure, with the evidence, and the
    objective after each step; with --class, what each state of a label emits, its position in spans, and examples cut
    by state. Words are those that as many patients used as the vocabulary floor says. For models of `weak`, print
    sources, their weights where known, aggregator, students and threshold, and no words.
    """
    if model in METHODS and not Path(model).exists():
        _show_method(METHODS[model], as_json=json)
        return
    bundle = load(model)
    manifest: dict[str, Any] = msgspec.to_builtins(bundle.manifest)
    learnt, arrays = _privacy(bundle) | _learnt(bundle) | {"bytes": find(model).stat().st_size}, _arrays(bundle)
    view = _view(Shown(bundle, model, subtags, klass))
    facts = {key.replace("_", " "): plain(value) for key, value in {**manifest, **learnt}.items()}
    if "private" in learnt:
        facts["private"] = describe_privacy(learnt["private"])
    facts = {key: value for key, value in {**facts, **view.facts}.items() if value is not None}
    if page is not None:
        from chaffinch.cli.show.page import html

        with replacing(page) as beside:
            told = {**facts, "features": learnt.get("features", {})}
            write_text(beside, html(Path(model).name, bundle.manifest, told, view.sections()))
        frame.note(f"wrote {page}", quiet=False)
    held = _by_part(arrays) if view.by_part else arrays
    tables = [frame.facts_table(facts), "", *view.tables, frame.table_of(held)]
    frame.emit(
        {**manifest, **learnt, **view.told, "arrays": arrays},
        as_json=json,
        tables=view.tables if view.alone else tables,
    )


show_command.__doc__ = (show_command.__doc__ or "").replace("METHOD_NAMES", ", ".join(METHODS))


def _show_method(method: Method, *, as_json: bool) -> None:
    """Print the settings of a method and of a training run."""
    from chaffinch.cli.train.settings import RunSettings, setting_rows

    parts = {method.name: method.config, "every method": RunSettings}
    rows = {name: setting_rows(settings) for name, settings in parts.items()}
    tables: list[Table | str] = []
    for name, settings in parts.items():
        about = " ".join(inspect.cleandoc(settings.__doc__ or "").split("\n\n>>>")[0].split(">>>")[0].split())
        tables += [frame.table_of(rows[name], title=f"Settings of {name}"), "", about, ""]
    result = SettingsResult(method=method.name, settings=rows[method.name], run_settings=rows["every method"])
    frame.emit(result, as_json=as_json, tables=tables[:-1])


class Shown(NamedTuple):
    """What is to be shown: a model file, by the name it was given, and perhaps so many sub-tags, or one class."""

    bundle: Bundle
    name: str
    subtags: int | None
    klass: str | None


def _view(shown: Shown) -> View:
    """Return what the model's kind shows: a view with tables and a page, or what its method says of the file."""
    kind = shown.bundle.manifest.kind
    if shown.klass is not None and kind != _WITH_CLASSES:
        raise ConfigError(f"--class is for class HMMs, and {shown.name} is a model of kind {kind}; leave it out")
    if kind in _VIEWS:
        return _VIEWS[kind](shown)
    method = METHODS.get(kind)
    if method is None or method.describe is None:
        return View({}, (), tuple)
    try:
        told = method.describe(shown.bundle)
    except ModelError as error:
        raise ModelError(error.message, path=shown.name) from None
    return View(told, (), tuple, facts={key: plain(value) for key, value in told.items()}, by_part=True)


def _view_classes(shown: Shown) -> View:
    from chaffinch.cli.show.classhmm import view

    return view(shown.bundle, shown.name, shown.klass)


def _view_votes(shown: Shown) -> View:
    from chaffinch.cli.show.weak import view

    return view(shown.bundle, shown.name)


def _view_subtags(shown: Shown) -> View:
    bundle, name, subtags = shown.bundle, shown.name, shown.subtags
    states, listed = _states(bundle, name), LISTED if subtags is None else subtags
    chosen = states if subtags is None else {**states, "subtags": states["subtags"][:listed]}

    def sections() -> Sequence[str]:
        from chaffinch.cli.show.page import of_subtags

        return of_subtags(states, listed, bundle.manifest.vocabulary_floor)

    return View(chosen, list(_tables(states, listed)), sections)


_WITH_CLASSES = "classhmm"
# Kinds of models whose tables and pages are richer than what a method says of a file.
_VIEWS: Mapping[str, Callable[[Shown], View]] = {
    "hmmdp": _view_subtags, _WITH_CLASSES: _view_classes, **dict.fromkeys(("weak", "multihmm", "chmm"), _view_votes)
}  # fmt: skip


def _arrays(bundle: Bundle) -> list[dict[str, Any]]:
    """Name, type, shape and size of all that the file holds."""
    arrays = [
        {
            "array": name,
            "type": str(array.dtype),
            "shape": "×".join(map(str, array.shape)) or "-",
            "bytes": array.nbytes,
        }
        for name, array in sorted(bundle.arrays.items())
    ]
    return arrays + [
        {"array": name, "type": "strings", "shape": str(len(words)), "bytes": sum(len(word.encode()) for word in words)}
        for name, words in sorted(bundle.strings.items())
    ]


def _by_part(arrays: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many arrays each part of a model has, and how large they are."""
    parts: dict[str, dict[str, Any]] = {}
    for own in arrays:
        name = str(own["array"]).split(".")[0]
        part = parts.setdefault(name, {"part": name, "arrays": 0, "bytes": 0})
        part["arrays"] += 1
        part["bytes"] += own["bytes"]
    return list(parts.values())


def _privacy(bundle: Bundle) -> dict[str, bool]:
    """Return whether the model, or each of the taggers it is made of, is private; nothing where that means nothing."""
    told = bundle.manifest.config
    steps = [*(tagger["steps"][-1] for tagger in told.get("taggers", ())), *told.get("students", ())]
    configs = [told, *(step["config"] for step in steps)]
    said = [bool(config["private"]) for config in configs if "private" in config]
    return {"private": all(said)} if said else {}


def _learnt(bundle: Bundle) -> dict[str, Any]:
    """Of a tagger: the features of each part, and how scores become probabilities."""
    features = {
        _part(name.removesuffix(".keys")): len(keys)
        for name, keys in sorted(bundle.arrays.items())
        if name.endswith(".keys")
    }
    facts: dict[str, Any] = {"features": features} if features else {}
    if "calibration" in bundle.arrays:
        names = ("scale", "slope", "intercept")
        facts["calibration"] = dict(zip(names, bundle.arrays["calibration"].round(4).tolist(), strict=False))
    return facts


def _part(name: str) -> str:
    """A part of a tagger in words; of a tagger within another, after that one's name."""
    within, _, own = name.rpartition(".")
    return f"{within} {_PARTS.get(own, own)}".strip() if own in _PARTS else name


def _states(bundle: Bundle, name: str) -> dict[str, Any]:
    """Of an HMM with sub-tags: their use by tag, all of them by tokens, the bound after each pass, and a hint."""
    from chaffinch.models.hmmdp import describe as portrait
    from chaffinch.models.hmmdp import model as hmmdp_model

    try:
        model = hmmdp_model.Model.of(bundle.state)
    except ModelError as error:
        raise ModelError(error.message, path=name) from None
    used = portrait.use(model)
    found = sorted(portrait.subtags(model), key=lambda own: -own.tokens)
    return {
        "use": [
            {"tag": own.tag, "sub-tags": own.subtags, "in use": own.effective, "perplexity": round(own.perplexity, 2),
             "tokens": round(own.tokens)}
            for own in used
        ],
        "hint": _hint([own.tag for own in used if own.full]),
        "subtags": [_told(own) for own in found],
        "bound": model.portrait.trace.round(3).tolist(),
    }  # fmt: skip


def _hint(full: Sequence[str]) -> str:
    """What to try where tags use all their sub-tags."""
    if not full:
        return ""
    named, others = full[:NAMED], len(full) - NAMED
    more = f" and {others} other tag{'' if others == 1 else 's'}" if others > 0 else ""
    return f"All sub-tags of {', '.join(named)}{more} are in use: a larger number may help (train --set inside=…)."


def _told(own: Subtag) -> dict[str, Any]:
    """A sub-tag as JSON has it."""
    listed = {key: [[printable(name), round(value, 4)] for name, value in getattr(own, key)] for key in _LISTS}
    return {"name": own.name, "tag": own.tag, "number": own.number, "tokens": round(own.tokens, 1),
            "share": round(own.share, 4), **listed}  # fmt: skip


_LISTS = ("words", "signatures", "before", "after")


def printable(word: str) -> str:
    """The word with signs that would steer a terminal replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in word)


def left_out(total: int, listed: int) -> str:
    """How many sub-tags are not listed, in words; empty if all are."""
    return (
        f"{total - listed} of {total} sub-tags are not listed; --subtags {total} lists all." if listed < total else ""
    )


def _tables(states: Mapping[str, Any], listed: int) -> Iterator[Table | str]:
    """The use of sub-tags, the sub-tags and the bound, for a terminal."""
    yield frame.table_of(states["use"])
    yield from filter(None, [states["hint"]])
    yield ""
    if listed:
        yield frame.table_of([_row(own) for own in states["subtags"][:listed]])
    yield from filter(None, [left_out(len(states["subtags"]), listed)])
    bound = states["bound"]
    if bound:
        passes = f"{len(bound)} pass{'' if len(bound) == 1 else 'es'}"
        yield ""
        yield f"bound  {bound[0]:,.0f} → {bound[-1]:,.0f} in {passes}  {sparkline(bound)}"
    yield ""


def _row(own: Mapping[str, Any]) -> dict[str, Any]:
    from chaffinch.models.latent.describe_words import brief, two

    near = {key: ", ".join(f"{name} {two(value)}" for name, value in own[key]) for key in ("before", "after")}
    return {
        "sub-tag": own["name"],
        "tokens": round(own["tokens"]),
        "share": two(own["share"]),
        "words": " ".join(word for word, _ in own["words"]),
        "signatures": "; ".join(brief(name) for name, _ in own["signatures"][:_TEXT_SIGNATURES]),
        **near,
    }


def sparkline(values: Sequence[float], most: int = 40) -> str:
    """The values as blocks, the lowest one eighth high; of many values so many, evenly spaced.

    >>> sparkline([-9, -5, -2])
    '▁▅█'
    """
    count = min(len(values), most)
    chosen = [values[round(place * (len(values) - 1) / max(count - 1, 1))] for place in range(count)]
    low, height = min(chosen, default=0.0), max(chosen, default=0.0) - min(chosen, default=0.0)
    return "".join(_BLOCKS[round((value - low) / height * (len(_BLOCKS) - 1)) if height else 0] for value in chosen)


def plain(value: object) -> object:
    """A value for one cell: lists and tables in words, "-" for nothing."""
    match value:
        case dict():
            words = {key: plain(item) for key, item in value.items()}
            return ", ".join(f"{key} ({own})" if value[key] and isinstance(value[key], dict) else f"{key} {own}"
                             for key, own in words.items()) or "-"  # fmt: skip
        case list() | tuple():
            return ", ".join(str(plain(item)) for item in value) or "-"
        case "":
            return "-"
    return value
