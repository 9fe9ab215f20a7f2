"""`chaffinch show`: what a model file holds, and the settings of a method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer
from rich.table import Table

from chaffinch.bundle import Bundle, find, load
from chaffinch.cli import frame
from chaffinch.cli.frame.results import SettingsResult, describe_privacy
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.core.methods import Method
from chaffinch.models.registry import METHODS
from chaffinch.text.formats.base import atomic_output, write_text

if TYPE_CHECKING:  # it loads compiled kernels, which other methods need not wait for
    from chaffinch.models.latent.describe_words import Subtag

LISTED = 40  # sub-tags that are listed by default
NAMED = 3  # tags that a hint names; it counts the others
_PARTS = {"reading0": "first reading", "reading1": "second reading"}
_BLOCKS = "▁▂▃▄▅▆▇█"
_LONGEST_FACT = 600  # characters of a value of the manifest that a terminal gets
_TEXT_SIGNATURES = 2  # in the table; the JSON and the page have all


class View(NamedTuple):
    """What a kind of model shows besides its manifest."""

    content: Mapping[str, Any]  # for JSON
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
    frame.check_page(page)
    if model in METHODS:
        _show_method(METHODS[model], as_json=json)
        return
    bundle = load(model)
    manifest: dict[str, Any] = msgspec.to_builtins(bundle.manifest)
    learnt, arrays = (
        _private_flag(bundle) | _learnt_facts(bundle) | {"bytes": find(model).stat().st_size},
        _arrays(bundle),
    )
    view = _view(Shown(bundle, model, subtags, klass))
    facts = {key.replace("_", " "): plain(value) for key, value in {**manifest, **learnt}.items()}
    if "private" in learnt:
        facts["private"] = describe_privacy(learnt["private"])
    facts = {key: value for key, value in {**facts, **view.facts}.items() if value is not None}
    if page is not None:
        from chaffinch.cli.show.page import html

        with atomic_output(page) as beside:
            content = {**facts, "features": learnt.get("features", {})}
            write_text(beside, html(Path(model).name, bundle.manifest, content, view.sections()))
        frame.note(f"wrote {page}", quiet=False)
    rows = _by_part(arrays) if view.by_part else arrays
    facts = {key: shorten_fact(value) for key, value in facts.items()}
    tables = [frame.facts_table(facts), "", *view.tables, frame.table_of(rows)]
    frame.emit(
        {**manifest, **learnt, **view.content, "arrays": arrays},
        as_json=json,
        tables=view.tables if view.alone else tables,
    )


show_command.__doc__ = (show_command.__doc__ or "").replace("METHOD_NAMES", ", ".join(METHODS))


def shorten_fact(value: object) -> object:
    """Return a manifest value for a terminal; one longer than the limit as text, cut, with a hint to --json."""
    words = str(value)
    return value if len(words) <= _LONGEST_FACT else words[: _LONGEST_FACT - 20].rstrip() + " … (all with --json)"


def _show_method(method: Method, *, as_json: bool) -> None:
    """Print a method's settings and those of every training run: as tables with their docs, or as JSON without."""
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
    """A model file to show: its name as typed, how many sub-tags to list, and the class to show alone."""

    bundle: Bundle
    name: str
    subtags: int | None  # None: the default number
    klass: str | None  # None: all classes


def _view(shown: Shown) -> View:
    """Return what `show` displays of a model of this kind; ConfigError if --class is unfit, ModelError if damaged."""
    kind = shown.bundle.manifest.kind
    if shown.klass is not None and kind != _WITH_CLASSES:
        raise ConfigError(f"--class is for class HMMs, and {shown.name} is a model of kind {kind}; leave it out")
    if kind in _VIEWS:
        return _VIEWS[kind](shown)
    method = METHODS.get(kind)
    if kind == _DETECTOR:
        return View({}, (), tuple, facts={"config": _describe_detector(shown.bundle)}, by_part=True)
    if method is None or method.describe is None:
        return View({}, (), tuple)
    try:
        content = method.describe(shown.bundle)
    except ModelError as error:
        raise ModelError(error.message, path=shown.name) from None
    return View(content, (), tuple, facts={key: plain(value) for key, value in content.items()}, by_part=True)


def _describe_detector(bundle: Bundle) -> str:
    """Return a sentence on the taggers, reader, rules and dial of a de-identification model."""
    config = bundle.manifest.config
    taggers = ", ".join(str(step["kind"]) for tagger in config["taggers"] for step in tagger["steps"])
    dial = config.get("dial", {})
    reached = max(dial.get("reached", ()), default=None)
    goes = "no dial" if reached is None else f"dial to a recall of {reached:.3f} on the notes it was set on"
    adapted = config.get("context", {}).get("adapted", 0)
    reader = f"; contextual reader adapted to {adapted:,} reviewed notes" if adapted else ""
    rules = "on" if config.get("rules", True) else "off"
    return f"taggers {taggers or 'none'}{reader}; patterns and lists {rules}; {goes}"


def _view_classes(shown: Shown) -> View:
    """Return the view of a class HMM, of one class if --class was given."""
    from chaffinch.cli.show.classhmm import view

    return view(shown.bundle, shown.name, shown.klass)


def _view_votes(shown: Shown) -> View:
    """Return the view of a weakly supervised tagger or an aggregator."""
    from chaffinch.cli.show.weak import view

    return view(shown.bundle, shown.name)


def _view_subtags(shown: Shown) -> View:
    """Return the view of an HMM with sub-tags; --subtags limits how many are listed."""
    bundle, name, subtags = shown.bundle, shown.name, shown.subtags
    states, listed = _describe_subtags(bundle, name), LISTED if subtags is None else subtags
    chosen = states if subtags is None else {**states, "subtags": states["subtags"][:listed]}

    def sections() -> Sequence[str]:
        """Return the sections of the HTML page on sub-tags."""
        from chaffinch.cli.show.page import of_subtags

        return of_subtags(states, listed, bundle.manifest.vocabulary_floor)

    return View(chosen, list(_tables(states, listed)), sections)


_WITH_CLASSES, _DETECTOR = "classhmm", "deid"
# Kinds of models whose tables and pages are richer than what a method says of a file.
_VIEWS: Mapping[str, Callable[[Shown], View]] = {
    "hmmdp": _view_subtags, _WITH_CLASSES: _view_classes, **dict.fromkeys(("weak", "multihmm", "chmm"), _view_votes)
}  # fmt: skip


def _arrays(bundle: Bundle) -> list[dict[str, Any]]:
    """Return {array, type, shape, bytes} of each array in a model file, then of each list of strings."""
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
    """Return {part, arrays, bytes} of each part of a model; an array's part is its name up to the first dot."""
    parts: dict[str, dict[str, Any]] = {}
    for array in arrays:
        name = str(array["array"]).split(".")[0]
        part = parts.setdefault(name, {"part": name, "arrays": 0, "bytes": 0})
        part["arrays"] += 1
        part["bytes"] += array["bytes"]
    return list(parts.values())


def _private_flag(bundle: Bundle) -> dict[str, bool]:
    """Return {"private": whether all taggers of the model are}; {} for models without that setting."""
    settings = bundle.manifest.config
    steps = [*(tagger["steps"][-1] for tagger in settings.get("taggers", ())), *settings.get("students", ())]
    configs = [settings, *(step["config"] for step in steps)]
    flags = [bool(config["private"]) for config in configs if "private" in config]
    return {"private": all(flags)} if flags else {}


def _learnt_facts(bundle: Bundle) -> dict[str, Any]:
    """Return a model's number of features by part, and its calibration (scale, slope, intercept), if it has them."""
    features = {
        _part_in_words(name.removesuffix(".keys")): len(keys)
        for name, keys in sorted(bundle.arrays.items())
        if name.endswith(".keys")
    }
    facts: dict[str, Any] = {"features": features} if features else {}
    if "calibration" in bundle.arrays:
        names = ("scale", "slope", "intercept")
        facts["calibration"] = dict(zip(names, bundle.arrays["calibration"].round(4).tolist(), strict=False))
    return facts


def _part_in_words(name: str) -> str:
    """Return a tagger part's name in words, with the prefix of a nested part; unknown names are unchanged."""
    outer, _, part = name.rpartition(".")
    return f"{outer} {_PARTS[part]}".strip() if part in _PARTS else name


def _describe_subtags(bundle: Bundle, name: str) -> dict[str, Any]:
    """Return an HMM-DP model's use per tag, hint, sub-tags by tokens, bound by pass; ModelError if damaged."""
    from chaffinch.models.hmmdp import describe as portrait
    from chaffinch.models.hmmdp import model as hmmdp_model

    try:
        model = hmmdp_model.Model.of(bundle.state)
    except ModelError as error:
        raise ModelError(error.message, path=name) from None
    used = portrait.use(model)
    found = sorted(portrait.subtags(model), key=lambda subtag: -subtag.tokens)
    return {
        "use": [
            {"tag": use.tag, "subtags": use.subtags, "in_use": use.effective, "perplexity": round(use.perplexity, 2),
             "tokens": round(use.tokens)}
            for use in used
        ],
        "hint": _hint([use.tag for use in used if use.full]),
        "subtags": [_subtag_content(subtag) for subtag in found],
        "bound": model.portrait.trace.round(3).tolist(),
    }  # fmt: skip


def _hint(full: Sequence[str]) -> str:
    """Return advice to raise the number of sub-tags of the tags that use all of theirs; "" if there are none."""
    if not full:
        return ""
    named, others = full[:NAMED], len(full) - NAMED
    more = f" and {others} other tag{'' if others == 1 else 's'}" if others > 0 else ""
    return f"All sub-tags of {', '.join(named)}{more} are in use: a larger number may help (train --set inside=…)."


def _subtag_content(subtag: Subtag) -> dict[str, Any]:
    """Return a sub-tag's JSON: name, tag, number, tokens, share, and its words, signatures, neighbours with chances."""
    listed = {key: [[printable(name), round(value, 4)] for name, value in getattr(subtag, key)] for key in _LISTS}
    return {"name": subtag.name, "tag": subtag.tag, "number": subtag.number, "tokens": round(subtag.tokens, 1),
            "share": round(subtag.share, 4), **listed}  # fmt: skip


_LISTS = ("words", "signatures", "before", "after")


def printable(word: str) -> str:
    """Return a word with control characters, which could steer a terminal, replaced by U+FFFD."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in word)


def count_unlisted(total: int, listed: int) -> str:
    """Return a sentence on how many sub-tags are not listed; "" if all are."""
    return (
        f"{total - listed} of {total} sub-tags are not listed; --subtags {total} lists all." if listed < total else ""
    )


def _tables(states: Mapping[str, Any], listed: int) -> Iterator[Table | str]:
    """Yield terminal tables: use of sub-tags, a hint, the first `listed` sub-tags, and the bound as a sparkline."""
    yield frame.table_of(states["use"])
    yield from filter(None, [states["hint"]])
    yield ""
    if listed:
        yield frame.table_of([_subtag_row(subtag) for subtag in states["subtags"][:listed]])
    yield from filter(None, [count_unlisted(len(states["subtags"]), listed)])
    bound = states["bound"]
    if bound:
        passes = f"{len(bound)} pass{'' if len(bound) == 1 else 'es'}"
        yield ""
        yield f"bound  {bound[0]:,.0f} → {bound[-1]:,.0f} in {passes}  {sparkline(bound)}"
    yield ""


def _subtag_row(subtag: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table row of a sub-tag: tokens, share, likeliest words and signatures, neighbours."""
    from chaffinch.models.latent.describe_words import shorten_signature, two_digits

    near = {key: ", ".join(f"{name} {two_digits(value)}" for name, value in subtag[key]) for key in ("before", "after")}
    return {
        "sub-tag": subtag["name"],
        "tokens": round(subtag["tokens"]),
        "share": two_digits(subtag["share"]),
        "words": " ".join(word for word, _ in subtag["words"]),
        "signatures": "; ".join(shorten_signature(name) for name, _ in subtag["signatures"][:_TEXT_SIGNATURES]),
        **near,
    }


def sparkline(values: Sequence[float], most: int = 40) -> str:
    """Return the values as a line of block characters, at most `most`, evenly chosen; the lowest is one eighth high.

    >>> sparkline([-9, -5, -2])
    '▁▅█'
    """
    count = min(len(values), most)
    chosen = [values[round(index * (len(values) - 1) / max(count - 1, 1))] for index in range(count)]
    low, height = min(chosen, default=0.0), max(chosen, default=0.0) - min(chosen, default=0.0)
    return "".join(_BLOCKS[round((value - low) / height * (len(_BLOCKS) - 1)) if height else 0] for value in chosen)


def plain(value: object) -> object:
    """Return a value for a table cell: lists and dicts joined to text, "-" if empty; other values as they are."""
    match value:
        case dict():
            words = {key: plain(item) for key, item in value.items()}
            return ", ".join(f"{key} ({word})" if value[key] and isinstance(value[key], dict) else f"{key} {word}"
                             for key, word in words.items()) or "-"  # fmt: skip
        case list() | tuple():
            return ", ".join(str(plain(item)) for item in value) or "-"
        case "":
            return "-"
    return value
