"""`chaffinch show`: what a model file says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from chaffinch.bundle import Bundle, load
from chaffinch.cli import frame

_PARTS = {"reading0": "first reading", "reading1": "second reading"}


def show_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a packaged model.")],
    json: frame.Json = False,
    config: frame.Config = None,
) -> None:
    """chaffinch show phi.cfm

    Prints a model's manifest: method, settings, labels, where it was trained, vocabulary floor, metrics, versions.
    """
    bundle = load(Path(model))
    manifest: dict[str, Any] = msgspec.to_builtins(bundle.manifest)
    arrays = [
        {
            "array": name,
            "type": str(array.dtype),
            "shape": "×".join(map(str, array.shape)) or "-",
            "bytes": array.nbytes,
        }
        for name, array in sorted(bundle.arrays.items())
    ]
    arrays += [
        {"array": name, "type": "strings", "shape": str(len(words)), "bytes": sum(len(word.encode()) for word in words)}
        for name, words in sorted(bundle.strings.items())
    ]
    learnt = _learnt(bundle)
    facts = {key.replace("_", " "): _plain(value) for key, value in {**manifest, **learnt}.items()}
    frame.emit(
        {**manifest, **learnt, "arrays": arrays},
        as_json=json,
        tables=[frame.facts_table(facts), "", frame.table_of(arrays)],
    )


def _learnt(bundle: Bundle) -> dict[str, Any]:
    """Of a tagger: the features of each part, and how scores become probabilities."""
    features = {
        _PARTS.get(name.removesuffix(".keys"), name.removesuffix(".keys")): len(keys)
        for name, keys in sorted(bundle.arrays.items())
        if name.endswith(".keys")
    }
    facts: dict[str, Any] = {"features": features} if features else {}
    if "calibration" in bundle.arrays:
        names = ("scale", "slope", "intercept")
        facts["calibration"] = dict(zip(names, bundle.arrays["calibration"].round(4).tolist(), strict=False))
    return facts


def _plain(value: object) -> object:
    match value:
        case dict():
            return ", ".join(f"{key} {_plain(item)}" for key, item in value.items()) or "-"
        case list() | tuple():
            return ", ".join(str(_plain(item)) for item in value) or "-"
        case "":
            return "-"
    return value
