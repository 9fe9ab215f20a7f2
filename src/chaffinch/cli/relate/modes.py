"""The options of `chaffinch relate train` as settings, and the call that each mode is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, get_type_hints

from chaffinch.checks import did_you_mean
from chaffinch.cli.train.settings import convert_setting, parse_assignments
from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import PhraseHMM
from chaffinch.relations import AnyExtractor, Extraction, Schema, train, train_documents, train_joint
from chaffinch.text import Document

# Settings of an extractor, beside those of its phrase HMM, that --set may change.
_OF_EXTRACTION = ("pairing", "labels")


class RelateOptions(NamedTuple):
    """The options of `relate train`; None where one was not given."""

    mode: str
    views: tuple[str, ...] | None
    representation: str | None
    mask: bool | None
    layer: str | None
    floor: int | None
    seed: int
    assignments: tuple[str, ...] = ()


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
        chosen = _joint_settings(options)
        return Extraction(**{**settings, **chosen, **_drop_none(mask=options.mask)})
    if options.assignments:
        raise ConfigError(f"--set is for --mode joint, which trains a phrase HMM; leave it out with {options.mode}")
    if options.mask is not None:
        raise ConfigError(
            f"--mask and --no-mask are for --mode joint; with --mode {options.mode} entities are always given"
        )
    return Extraction(**settings, **_drop_none(views=options.views, representation=options.representation))


def _joint_settings(options: RelateOptions) -> dict[str, Any]:
    """Return `hmm` and other settings of mode joint: --set over a published or default model; ConfigError if unfit.

    `published` starts from a model of the publication: its path, its order of pairing, and bare text unless --mask.
    """
    given: dict[str, Any] = dict(parse_assignments(options.assignments))
    published = given.pop("published", None)
    hints = get_type_hints(PhraseHMM)
    known = [*hints, *_OF_EXTRACTION, "published"]
    for key in given:
        if key not in known:
            raise ConfigError(f"--set {key}: a phrase HMM has no such setting; {did_you_mean(key, known)}")
    of_hmm = {key: convert_setting(key, value, hints[key]) for key, value in given.items() if key in hints}
    for option, name in ((options.representation, "representation"), (options.seed or None, "seed")):
        if option is not None and name in of_hmm:
            raise ConfigError(f"--set {name} and --{name} were both given; choose one")
    of_hmm = {"seed": options.seed, **of_hmm, **_drop_none(representation=options.representation)}
    others = {key: given[key] for key in _OF_EXTRACTION if key in given}
    if published is None:
        return {"hmm": PhraseHMM(**of_hmm), **others}
    if "representation" in of_hmm:
        raise ConfigError("--set published names the representation; leave out --representation")
    trainer = of_hmm.get("trainer", "ml")
    start = PhraseHMM.published(published, combined=bool(of_hmm.get("combined")), trainer=trainer)
    return {"hmm": replace(start, **of_hmm), "pairing": "order", "labels": "path", "mask": False, **others}


def train_extractor(docs: Iterable[Document], schema: Schema, config: Extraction) -> AnyExtractor:
    """Train the extractor of relations that the config's mode asks for, and return it."""
    if config.mode == "joint":
        return train_joint(docs, schema, config)
    return train_documents(docs, schema, config) if config.mode == "documents" else train(docs, schema, config)


def _drop_none(**options: Any) -> dict[str, Any]:
    """Return the keyword arguments whose values are not None, as a dict."""
    return {name: value for name, value in options.items() if value is not None}
