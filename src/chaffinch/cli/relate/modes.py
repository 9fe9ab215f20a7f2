"""The options of `chaffinch relate train` as settings, and the call that each mode is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import PhraseHMM
from chaffinch.relations import AnyExtractor, Extraction, Schema, train, train_documents, train_joint
from chaffinch.text import Document


class Given(NamedTuple):
    """What was asked for; None where nothing was."""

    mode: str
    views: tuple[str, ...] | None
    representation: str | None
    mask: bool | None
    layer: str | None
    floor: int | None
    seed: int


def settings_of(given: Given) -> Extraction:
    """The settings; ConfigError for an option that the mode has no use for."""
    options: dict[str, Any] = {"mode": given.mode, "layer": given.layer, "floor": given.floor, "seed": given.seed}
    if given.mode == "joint":
        if given.views is not None:
            raise ConfigError(
                "--view is of no use with --mode joint, where a phrase HMM reads the sentence; leave it out"
            )
        options["hmm"] = PhraseHMM(**_kept(representation=given.representation), seed=given.seed)
        return Extraction(**options, **_kept(mask=given.mask))
    if given.mask is not None:
        raise ConfigError(
            f"--mask and --no-mask are for --mode joint; with --mode {given.mode} entities are always given"
        )
    return Extraction(**options, **_kept(views=given.views, representation=given.representation))


def learnt(docs: Iterable[Document], schema: Schema, config: Extraction) -> AnyExtractor:
    """The extractor of the settings' mode."""
    if config.mode == "joint":
        return train_joint(docs, schema, config)
    return train_documents(docs, schema, config) if config.mode == "documents" else train(docs, schema, config)


def _kept(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
