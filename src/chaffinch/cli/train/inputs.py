"""What `chaffinch train` reads and where it writes: layers, sentences, phrases, and the place of the model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import read_phrases
from chaffinch.models.registry import METHODS, Config
from chaffinch.models.tagger import Tagger
from chaffinch.text.document import Splitter


def choose_layer(layer: str | None, soft: str | None, chosen: Config) -> str | None:
    """Return `layer`, or "gold" if it is None and the config has feature layers; ConfigError if it is a feature too."""
    features = getattr(chosen, "layers", ())
    if not features or soft is not None:
        return layer
    layer = layer or "gold"
    if layer in features:
        raise ConfigError(f"--set layers={layer} is the layer to be learnt; it cannot be a feature as well")
    return layer


def split_of_training(tagger: Tagger) -> Splitter | None:
    """Return how a tagger's training documents were cut into sentences; None if its file does not say."""
    split: Splitter | None = tagger.manifest.config.get("split")
    return split if split in ("lines", "prose") else None


def choose_split(lines: bool | None, method: str, start: Tagger | None) -> Splitter:
    """Return "lines" or "prose": as asked (ConfigError if unlike the start model), else as that model or the method."""
    earlier = None if start is None else split_of_training(start)
    if lines is None:
        return earlier or METHODS[method].split
    chosen: Splitter = "lines" if lines else "prose"
    if earlier not in (None, chosen):
        raise ConfigError(
            f"--start goes on from a model that learnt from {earlier}; leave out --{chosen}, or train a new one"
        )
    return chosen


def record_split(tagger: Tagger, split: Splitter) -> Tagger:
    """Return the tagger with a manifest that records how its training documents were cut into sentences."""
    config = {**tagger.manifest.config, "split": split}
    return replace(tagger, manifest=replace(tagger.manifest, config=config))


def read_lexicon(assignments: Iterable[str]) -> dict[str, list[str]]:
    """Read phrase files given as LABEL=FILE; return {label: phrases}; ConfigError for another form."""
    phrases: dict[str, list[str]] = {}
    for item in assignments:
        label, mark, file = item.partition("=")
        if not (label and mark and file):
            raise ConfigError(f"--lexicon {item!r} is not LABEL=FILE, such as DRUG=drugs.txt")
        phrases.setdefault(label, []).extend(read_phrases(file))
    return phrases


def check_model_path(output: Path, inputs: Sequence[Path | None]) -> None:
    """Raise ConfigError, before any work, if a model cannot be written there, or the path is an input."""
    if any(path is not None and output.resolve() == path.resolve() for path in inputs):
        raise ConfigError("the output is an input; name another path with -o")
    if output.is_dir():
        raise ConfigError(f"{output} is a folder; a model is one file, such as {output / 'model.cfm'}")
    if output.exists() and not output.is_file():
        raise ConfigError(f"{output} is not a regular file; name another path with -o")
    if not output.parent.is_dir():
        raise ConfigError(f"the folder {output.parent} of the model file does not exist; make it first")
    try:
        tempfile.TemporaryFile(prefix=".chaffinch-", dir=output.parent).close()
    except OSError as error:
        raise ConfigError(f"nothing can be written in {output.parent} ({error.strerror}); choose another -o") from None
