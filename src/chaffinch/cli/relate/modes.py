"""The options of `chaffinch relate train` as settings, and the call that each mode is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import PhraseHMM
from chaffinch.relations import AnyExtractor, Extraction, Schema, train, train_documents, train_joint
from chaffinch.text import Document


class RelateOptions(NamedTuple):
    """The options of `relate train`; None where one was not options."""

    mode: str
    views: tuple[str, ...] | None
    representation: str | None
    mask: bool | None
    layer: str | None
    floor: int | None
    seed: int


def settings_of(options: RelateOptions) -> Extraction:
    """Return the config of extraction for the options; raise ConfigError for an option that the mode does not use."""
    settings: dict[str, Any] = {
        "mode": options.mode,
        "layer": options.layer,
        "floor": options.floor,
        "seed": options.seed,
    }
    if options.mode == "joint":
        if options.views is not None:
            raise ConfigError(
                "--view is of no use with --mode joint, where a phrase HMM reads the sentence; leave it out"
            )
        settings["hmm"] = PhraseHMM(**_drop_none(representation=options.representation), seed=options.seed)
        return Extraction(**settings, **_drop_none(mask=options.mask))
    if options.mask is not None:
        raise ConfigError(
            f"--mask and --no-mask are for --mode joint; with --mode {options.mode} entities are always given"
        )
    return Extraction(**settings, **_drop_none(views=options.views, representation=options.representation))


def train_extractor(docs: Iterable[Document], schema: Schema, config: Extraction) -> AnyExtractor:
    """Train the extractor of relations that the config's mode asks for, and return it."""
    if config.mode == "joint":
        return train_joint(docs, schema, config)
    return train_documents(docs, schema, config) if config.mode == "documents" else train(docs, schema, config)


def _drop_none(**options: Any) -> dict[str, Any]:
    """Return the keyword arguments whose values are not None, as a dict."""
    return {name: value for name, value in options.items() if value is not None}
