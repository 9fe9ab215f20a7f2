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
from chaffinch.models.alignment import Alignment
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.registry import KINDS, Config
from chaffinch.models.tagger import Tagger, load
from chaffinch.text.document import Splitter

METHODS = tuple(KINDS)

Mode: TypeAlias = Literal["recall", "balanced"]

# The methods that have an option, where not all have it; and what a user of another method should know.
_OWNERS = {
    **dict.fromkeys(("--scheme", "--stages", "--no-documents", "--features", "--before", "--start"), ("cascade",)),
    **dict.fromkeys(
        ("--published", "--floor", "--private", "--no-private", "--lexicon", "--clusters"),
        ("cascade", "hmmdp", "classhmm"),
    ),
    "--objective": ("cascade", "classhmm"),
    "--epochs": ("cascade", "hmmdp", "encoder"),
    "--encoder": ("encoder",),
    **dict.fromkeys(("--language", "--decode", "--untagged"), ("hmmdp", "classhmm")),
    **dict.fromkeys(("--subtags", "--emissions", "--no-discriminative", "--learn-priors"), ("hmmdp",)),
    **dict.fromkeys(("--states-per-class", "--word-features", "--kappa", "--evaluations"), ("classhmm",)),
}
_INSTEAD = {
    ("--scheme", "hmmdp"): "hmmdp always writes spans as IOB2 tags, so leave it out",
    ("--objective", "hmmdp"): "hmmdp has --no-discriminative",
    ("--stages", "hmmdp"): "hmmdp has --subtags",
    ("--stages", "classhmm"): "classhmm has --states-per-class",
    ("--no-documents", "hmmdp"): "hmmdp always reads each document once, so leave it out",
    ("--features", "hmmdp"): "hmmdp uses no layer as a feature, so leave it out",
    ("--features", "classhmm"): "classhmm uses no layer as a feature; --word-features chooses those of words",
    ("--before", "hmmdp"): "hmmdp uses no layer of another tagger, so leave it out",
    ("--start", "hmmdp"): "hmmdp learns from the beginning, so leave it out",
    ("--start", "classhmm"): "classhmm learns from the beginning, so leave it out",
    ("--epochs", "classhmm"): "classhmm has --evaluations",
    ("--language", "cascade"): "cascade needs no word lists, so leave it out",
    ("--subtags", "cascade"): "cascade has --stages",
    ("--subtags", "classhmm"): "classhmm has --states-per-class",
    ("--emissions", "cascade"): "cascade has --objective",
    ("--emissions", "classhmm"): "classhmm has --objective",
    ("--no-discriminative", "cascade"): "cascade has --objective",
    ("--no-discriminative", "classhmm"): "classhmm has --objective joint",
    ("--decode", "cascade"): "cascade decodes in one way, so leave it out",
    ("--learn-priors", "cascade"): "cascade has no priors, so leave it out",
    ("--states-per-class", "hmmdp"): "hmmdp has --subtags",
    ("--evaluations", "cascade"): "cascade has --epochs",
    ("--evaluations", "hmmdp"): "hmmdp has --epochs",
    ("--untagged", "cascade"): "cascade learns from labels alone, so leave it out",
}
_OF_SECOND_STAGE = ("--epochs", "--lexicon", "--clusters")  # of hmmdp: what its generative stage has no use for
_RESOURCES = ("--lexicon", "--clusters")
_NO_SETTING = (*_RESOURCES, "--before", "--start", "--published", "--untagged")
_FIXED = {"stages": "--stages", "scheme": "--scheme", "layers": "--features"}  # what --start cannot change


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
            owners = _OWNERS.get(option, METHODS)
            if method not in owners:
                hint = _INSTEAD.get((option, method), f"{method} has no use for it, so leave it out")
                *others, last = owners
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
        chosen = self._chosen()
        if before is not None:
            chosen["layers"] = tuple(step.layer for step in before.steps)
        if start is not None:
            return self._gone_on(start, chosen)
        kind, published = KINDS[self.method], "--published" in self.options
        base = kind.published() if published and not issubclass(kind, Encoder) else kind()
        if isinstance(base, ClassHMM):
            self._check_objective(chosen.get("objective", base.objective))
        if isinstance(base, HMMDP):
            self._check_stages(chosen.get("discriminative", base.discriminative))
        return replace(base, **chosen)

    def _chosen(self) -> dict[str, Any]:
        """The settings of the options given."""
        chosen: dict[str, Any] = {}
        for option, value in self.options.items():
            match option:
                case "--subtags":
                    chosen["outside"], chosen["inside"] = _subtags(value)
                case "--language":
                    chosen["language"] = _language(value)
                case "--features":
                    chosen["layers"] = tuple(value)
                case "--no-documents" | "--no-discriminative" | "--no-private":
                    chosen[option.removeprefix("--no-")] = False
                case "--floor" if self.method == "hmmdp":  # it holds words besides features
                    chosen["floor"] = chosen["min_patients"] = value
                case "--encoder":
                    chosen["folder"] = str(Path(value).resolve())
                case "--word-features":
                    chosen["features"] = value
                case _ if option not in _NO_SETTING:
                    chosen[option.removeprefix("--").replace("-", "_")] = value
        return chosen

    def _check_stages(self, discriminative: bool) -> None:
        if discriminative and self.options.get("--emissions") == "backoff":
            raise ConfigError("--emissions backoff is for the generative stage alone; give --no-discriminative as well")
        for option in () if discriminative else _OF_SECOND_STAGE:
            if option in self.options:
                cause = "--no-discriminative" if "--no-discriminative" in self.options else "--published"
                raise ConfigError(
                    f"{option} is for the discriminative stage, which {cause} leaves out; leave out {option}"
                )

    def _check_objective(self, objective: str) -> None:
        for option in _RESOURCES if objective != "crf" else ():
            if option in self.options:
                raise ConfigError(f"{option} is for --objective crf, got {objective}; leave out {option}")
        if "--untagged" in self.options and objective not in ("joint", "mix"):
            raise ConfigError(f"--untagged text says nothing to --objective {objective}; give --objective joint or mix")

    def _gone_on(self, start: Tagger, chosen: Mapping[str, Any]) -> Config:
        config = start.model.config
        if not isinstance(config, Cascade):
            raise ConfigError(f"--start goes on from a cascade, and this model is of {start.manifest.kind}; train anew")
        if "--published" in self.options:
            raise ConfigError("--start goes on with the settings of that model; leave out --published")
        for name, option in _FIXED.items():
            own = getattr(config, name)
            if chosen.get(name, own) != own:
                shown = ", ".join(own) or "none" if isinstance(own, tuple) else own
                raise ConfigError(
                    f"--start goes on from a model with {option} {shown}; leave out {option}, or train anew"
                )
        return replace(config, **chosen)


def layer_to_learn(layer: str | None, soft: str | None, chosen: Config) -> str | None:
    """The layer that holds the right spans; a document without it must not be learnt from its features."""
    features = chosen.layers if isinstance(chosen, Cascade) else ()
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
        return own or ("lines" if method == "hmmdp" else "prose")
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
