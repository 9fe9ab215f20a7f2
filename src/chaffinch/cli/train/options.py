"""What `chaffinch train` was asked for, checked: the settings of a method, how text is cut, what is read besides."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import read_phrases
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.core.methods import Material, Method
from chaffinch.models.registry import METHODS, Config, method_of
from chaffinch.models.tagger import Tagger, load
from chaffinch.text.document import Splitter

Mode: TypeAlias = Literal["recall", "balanced"]

# The settings that an option sets, where they are not called as it is; the first of them says which methods have it.
_SETTINGS = {
    "--subtags": ("outside", "inside"),
    "--features": ("layers",),
    "--floor": ("floor", "min_patients"),  # of features, and of words where a model holds them besides
    "--encoder": ("folder",),
    "--word-features": ("features",),
    **{f"--no-{name}": (name,) for name in ("documents", "discriminative", "private")},
}
_MATERIALS: Mapping[str, Material] = {
    "--lexicon": "resources", "--clusters": "resources", "--before": "layers", "--start": "model",
    "--untagged": "untagged",
}  # fmt: skip
_RESOURCES = ("--lexicon", "--clusters")
_PUBLISHED = "--published"


def owners(option: str) -> tuple[str, ...]:
    """Return the names of the methods that have an option of `chaffinch train`."""
    return tuple(name for name, method in METHODS.items() if _has_option(method, option))


def _has_option(method: Method, option: str) -> bool:
    if option in _MATERIALS:
        return _MATERIALS[option] in method.learns_from
    return hasattr(method.config, "published") if option == _PUBLISHED else method.has_setting(_settings(option)[0])


def _settings(option: str) -> tuple[str, ...]:
    """Return the names of the settings that an option sets."""
    return _SETTINGS.get(option, (option.removeprefix("--").replace("-", "_"),))


@dataclass(frozen=True, slots=True)
class Asked:
    """A method, and those of its options that were given."""

    method: str
    options: Mapping[str, Any]

    @classmethod
    def of(cls, method: str, options: Mapping[str, Any]) -> Asked:
        """What was asked for; an option that is None, False or empty was not given. ConfigError if it cannot be."""
        if method not in METHODS:
            raise ConfigError(f"unknown method {method!r}; {did_you_mean(method, METHODS)}")
        given = {name: own for name, own in options.items() if own is not None and own is not False and own != []}
        for option in given:
            able = owners(option)
            if method not in able:
                hint = METHODS[method].hints.get(option, f"{method} has no use for it, so leave it out")
                *others, last = able
                named = f"{', '.join(others)} and {last}" if others else last
                raise ConfigError(f"{option} is an option of --method {named}; {hint}")
        if "--start" in given:
            for option in _RESOURCES:
                if option in given:
                    raise ConfigError(
                        f"--start goes on with the lexicon and clusters of that model; leave out {option}"
                    )
        if "--before" in given and given.keys() & {"--features", "--start"}:
            raise ConfigError("--before brings its own layers; leave out --features and --start")
        return cls(method, given)

    def model(self, option: str) -> Tagger | None:
        """The tagger that an option names, if it was given."""
        return load(self.options[option]) if option in self.options else None

    def config(self, start: Tagger | None, before: Tagger | None) -> Config:
        """What was chosen, over the settings of the earlier model, of the publication, or our own."""
        method, chosen = METHODS[self.method], self._chosen()
        if before is not None:
            chosen["layers"] = tuple(step.layer for step in before.steps)
        if start is not None:
            base = self._earlier(start, chosen)
        else:
            base = method.config.published() if _PUBLISHED in self.options else method.config()
        config = replace(base, **chosen)
        unused = method.unused(config)
        for option in self.options:
            for name in (_MATERIALS.get(option, ""), *_settings(option)):
                if name in unused:
                    raise ConfigError(f"{option}: {unused[name]}")
        return config

    def _chosen(self) -> dict[str, Any]:
        """The settings of the options given."""
        chosen: dict[str, Any] = {}
        for option, value in self.options.items():
            names = _settings(option)
            match option:
                case "--subtags":
                    chosen |= zip(names, _subtags(value), strict=True)
                case "--language":
                    chosen[names[0]] = _language(value)
                case "--features":
                    chosen[names[0]] = tuple(value)
                case "--encoder":
                    chosen[names[0]] = str(Path(value).resolve())
                case "--floor":
                    kept = names[:1] if "--start" in self.options else names  # the words of an earlier model stay
                    chosen |= {name: value for name in kept if METHODS[self.method].has_setting(name)}
                case _ if option not in _MATERIALS and option != _PUBLISHED:
                    chosen[names[0]] = not option.startswith("--no-") and value
        return chosen

    def _earlier(self, start: Tagger, chosen: Mapping[str, Any]) -> Config:
        """The settings of the model to go on from; ConfigError if what was chosen cannot go on from it."""
        config, method = start.model.config, METHODS[self.method]
        kind = method_of(config)
        if kind is not method:
            remedy = f"give --method {kind.name}, or train anew" if "model" in kind.learns_from else "train anew"
            raise ConfigError(f"--start goes on from {method.title}, and this model is of {kind.name}; {remedy}")
        if _PUBLISHED in self.options:
            raise ConfigError("--start goes on with the settings of that model; leave out --published")
        for option in self.options:
            fixed = [name for name in _settings(option) if name in method.fixed and name in chosen]
            if any(chosen[name] != getattr(config, name) for name in fixed):
                shown = ",".join(_shown(getattr(config, name)) for name in fixed)
                raise ConfigError(
                    f"--start goes on from a model with {option} {shown}; leave out {option}, or train anew"
                )
        return config


def _shown(value: object) -> str:
    """Return a setting as a message says it."""
    return (", ".join(value) or "none") if isinstance(value, tuple) else str(value)


def layer_to_learn(layer: str | None, soft: str | None, chosen: Config) -> str | None:
    """The layer that holds the right spans; a document without it must not be learnt from its features."""
    features = getattr(chosen, "layers", ())
    if not features or soft is not None:
        return layer
    layer = layer or "gold"
    if layer in features:
        raise ConfigError(f"--features {layer} is the layer to be learnt; it cannot be a feature as well")
    return layer


def alignment_of(align: bool, mode: Mode | None, soft: str | None, asked: Asked) -> Alignment | None:
    """What was chosen of alignment, if it is to be learnt."""
    if not align:
        if mode is not None:
            raise ConfigError(f"--align-mode {mode} was given without --align; give --align as well")
        return None
    for option, given in (("--soft", soft is not None), ("--start", "--start" in asked.options)):
        if given:
            raise ConfigError(f"--align learns from spans, and from the beginning; leave out {option}, or --align")
    return Alignment(mode or "recall", seed=asked.options.get("--seed", 0))


def own_split(tagger: Tagger) -> Splitter | None:
    """How the documents that a tagger learnt from were cut, if its file says so."""
    found: Splitter | None = tagger.manifest.config.get("split")
    return found if found in ("lines", "prose") else None


def split_to_learn(lines: bool | None, method: str, start: Tagger | None) -> Splitter:
    """How to cut the documents to learn from: as was chosen, else as the earlier model, else as suits the method."""
    own = None if start is None else own_split(start)
    if lines is None:
        return own or METHODS[method].split
    chosen: Splitter = "lines" if lines else "prose"
    if own not in (None, chosen):
        raise ConfigError(f"--start goes on from a model that learnt from {own}; leave out --{chosen}, or train anew")
    return chosen


def with_split(tagger: Tagger, split: Splitter) -> Tagger:
    """The tagger, its manifest saying how the documents that it learnt from were cut."""
    config = {**tagger.manifest.config, "split": split}
    return replace(tagger, manifest=replace(tagger.manifest, config=config))


def phrases_of(given: Iterable[str]) -> dict[str, list[str]]:
    """The phrases of each label's files."""
    phrases: dict[str, list[str]] = {}
    for item in given:
        label, mark, file = item.partition("=")
        if not (label and mark and file):
            raise ConfigError(f"--lexicon {item!r} is not LABEL=FILE, such as DRUG=drugs.txt")
        phrases.setdefault(label, []).extend(read_phrases(file))
    return phrases


def check_place(output: Path, inputs: Sequence[Path | None]) -> None:
    """Refuses a place where the model could not be saved, before anybody waits for it."""
    if any(path is not None and output.resolve() == path.resolve() for path in inputs):
        raise ConfigError("the output is an input; name another place with -o")
    if output.is_dir():
        raise ConfigError(f"{output} is a folder; a model is one file, such as {output / 'model.cfm'}")
    if output.exists() and not output.is_file():
        raise ConfigError(f"{output} is not an ordinary file, and a model would take its place; name another with -o")
    if not output.parent.is_dir():
        raise ConfigError(f"the folder {output.parent} of the model file does not exist; make it first")
    try:
        tempfile.TemporaryFile(prefix=".chaffinch-", dir=output.parent).close()
    except OSError as error:
        raise ConfigError(f"nothing can be written in {output.parent} ({error.strerror}); choose another -o") from None


def _subtags(given: str) -> tuple[int, int]:
    """How many sub-tags O has, and how many every other tag."""
    parts = given.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--subtags {given!r} is not O,OTHERS, two numbers of at least 1, such as 8,2")
    return int(parts[0]), int(parts[1])


def _language(given: str) -> str:
    """The name of a pack of word lists, or the whole path of its folder, which is found again from anywhere."""
    from chaffinch.languages import pack, shipped

    pack(given)  # refuses what is none, before documents are read
    return given if given in shipped() else str(Path(given).resolve())
