"""`chaffinch train`: labelled documents in, one model file out."""

from __future__ import annotations

import difflib
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.cli import frame
from chaffinch.cli.learning import dev_score, facts_of, live_line, summary
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.clusters import Clusters, learn
from chaffinch.features.lexicon import Lexicon, read_phrases
from chaffinch.models.cascade_config import Cascade
from chaffinch.models.labels import SCHEMES
from chaffinch.models.resources import Resources
from chaffinch.models.tagger import KIND, Tagger, load, train
from chaffinch.text import Corpus, Document
from chaffinch.text.formats import Losses, Reading, read

METHODS = (KIND,)

_FIXED = {
    "stages": "--stages",
    "scheme": "--scheme",
    "layers": "--features",
}  # what going on from a model cannot change
_MANY = "may be given several times."
_EMPTY = "The model has no feature and will find nothing: give more documents, or lower --floor."
_WARNING = "The model holds words that one patient alone used; before you share it, see --floor and --private."


class StoppedEarly(Exception):  # noqa: N818  (no error: the model is saved)
    """The user stopped learning; what was learnt so far is saved."""


def train_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Labelled documents, in any readable format.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    method: Annotated[str, typer.Option(help=f"What to train: {', '.join(METHODS)}.")] = METHODS[0],
    published: Annotated[bool, typer.Option("--published", help="Settings of the publication, not ours.")] = False,
    dev: Annotated[Path | None, typer.Option(help="Labelled documents that decide when to stop.")] = None,
    dev_fraction: Annotated[float | None, typer.Option(help="Share of IN's patients to hold out as dev.")] = None,
    layer: frame.Layer = None,
    soft: Annotated[str | None, typer.Option(help="Learn from the soft labels of this name instead.")] = None,
    from_: frame.From = None,
    dev_from: Annotated[str | None, typer.Option(help="Format of the dev documents.")] = None,
    group: Annotated[str | None, typer.Option(help="Regular expression on the id; its group is the patient.")] = None,
    groups: Annotated[Path | None, typer.Option(help="File of two columns: id and patient.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Take every line as a sentence.")] = False,
    lexicon: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=FILE", help=f"Phrases, one per line; {_MANY}")
    ] = None,
    clusters: Annotated[
        Path | None, typer.Option(help="Documents to learn word clusters from; no labels needed.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(metavar="LAYER", help=f"A layer to use as a feature; {_MANY}")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A tagger whose layers serve as features, such as genia.")
    ] = None,
    objective: Annotated[str | None, typer.Option(metavar="pa|crf", help="Margin (default) or likelihood.")] = None,
    scheme: Annotated[str | None, typer.Option(metavar="|".join(SCHEMES), help="How spans become tags.")] = None,
    stages: Annotated[
        int | None, typer.Option(metavar="1|2", help="Tag at once, or find spans, then name them.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Walks over the documents; default {Cascade().epochs}.")] = None,
    floor: Annotated[
        int | None, typer.Option(help="Patients who must show a feature; default 2, under 20 patients 1.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Learn no words from inside spans.")] = False,
    no_documents: Annotated[bool, typer.Option("--no-documents", help="Read each document once, not twice.")] = False,
    start: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Go on from this model; labels may be new.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all that is drawn; default 0.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Threads; any number gives the same model.")] = 1,
    notes: Annotated[str, typer.Option(help="Licence and attribution, kept in the model file.")] = "",
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch train notes/ -o notes.cfm --dev-fraction 0.1

    Trains a tagger on labelled documents and saves it as one file. Dev documents, if there are any, decide when to
    stop and are scored at the end. Ctrl-C stops early and saves the best model so far; a model that stood in the
    place of the new one stays until the new one is complete.
    """
    began = time.perf_counter()
    _check_method(method)
    _check_place(output, [path for path in (source, dev, clusters) if path is not None])
    earlier = None if start is None else load(start)
    if earlier is not None and (lexicon or clusters):
        raise ConfigError(
            "--start goes on with the lexicon and clusters of that model; leave --lexicon and --clusters out"
        )
    given = {
        "objective": objective, "scheme": scheme, "stages": stages, "epochs": epochs, "floor": floor, "seed": seed,
        "layers": tuple(features or ()) or None, "private": private or None,
        "documents": False if no_documents else None,
    }  # fmt: skip
    helper = None if before is None else load(before)
    if helper is not None:
        if earlier is not None or features:
            raise ConfigError("--before brings its own layers; leave out --features and --start")
        given["layers"] = tuple(step.layer for step in helper.steps)
    chosen = _settings(given, earlier, published=published)
    if chosen.layers and soft is None:
        layer = layer or "gold"  # else a document without gold would be learnt from its features
        if layer in chosen.layers:
            raise ConfigError(f"--features {layer} is the layer to be learnt; it cannot be a feature as well")
    inputs = _Inputs(group, frame.read_groups(groups), Reading("gold", "lines" if lines else "prose", max_chars), quiet)
    phrases = _phrases(lexicon or ())
    documents, held = _dev(inputs, _Share(dev, dev_from, dev_fraction), source, from_, chosen.seed)
    if held and not any(doc.layer(layer) for doc in held):
        raise DataError(f"none of the {len(held)} dev documents holds a span, so they can judge nothing; choose others")
    known = None if earlier is not None else _resources(inputs, phrases, clusters, chosen)
    with live_line(quiet=quiet) as tell:
        tagger = train(
            documents, chosen, dev=held, layer=layer, soft=soft, resources=known, before=helper, start=earlier,
            workers=workers, progress=tell, name=KIND if earlier is None else earlier.layer,
            corpus=source.resolve().name, notes=notes,
        )  # fmt: skip
    tagger.save(output)
    spans = 0 if soft else sum(len(doc.layer(layer)) for doc in documents)
    seconds = round(time.perf_counter() - began, 1)
    facts = {**facts_of(tagger, documents, spans, output), "dev": dev_score(tagger, held, layer), "seconds": seconds}
    facts["lost"] = dict(inputs.how.losses.counts)
    frame.emit(facts, as_json=json, tables=[] if quiet else summary(facts))
    if not facts["features"]:
        frame.note(_EMPTY, quiet=quiet)
    if facts["interrupted"]:
        raise StoppedEarly(f"stopped early; the best model so far is saved in {output}")
    if facts["features"] and facts["vocabulary floor"] < 2 and not chosen.private:
        frame.note(_WARNING, quiet=quiet)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """How all the documents of this command are read."""

    group: str | None
    groups: Mapping[str, str] | None
    how: Reading
    quiet: bool

    def walk(self, path: Path, form: str | None, what: str) -> Iterator[Document]:
        corpus = read(path, format=form, how=self.how, group=self.group, groups=self.groups)
        return frame.progress(corpus, what, quiet=self.quiet)

    def aside(self) -> _Inputs:
        """The same with an account of losses of its own; that of IN is the one to report."""
        return replace(self, how=replace(self.how, losses=Losses()))


@dataclass(frozen=True, slots=True)
class _Share:
    """Where dev documents come from: a path and its format, or a share of the patients."""

    path: Path | None
    form: str | None
    fraction: float | None

    def __post_init__(self) -> None:
        if self.path is not None and self.fraction is not None:
            raise ConfigError("--dev and --dev-fraction were both given; choose one")
        if self.fraction is not None and not 0 < self.fraction < 1:
            raise ConfigError(f"--dev-fraction must lie between 0 and 1, got {self.fraction}")


def _dev(
    inputs: _Inputs, share: _Share, source: Path, form: str | None, seed: int
) -> tuple[list[Document], list[Document]]:
    """The documents to learn from, and those to judge by."""
    documents = list(inputs.walk(source, form, "documents"))
    if share.path is not None:
        return documents, list(inputs.aside().walk(share.path, share.form, "dev documents"))
    if share.fraction is None:
        return documents, []
    patients = len({doc.patient for doc in documents})
    if patients < 2:
        raise DataError("has fewer than two patients, so none can be held out; leave --dev-fraction out", path=source)
    first, second = Corpus.of(documents).split(1 - share.fraction, by="group", seed=seed)
    return list(first), list(second)


def _resources(
    inputs: _Inputs, phrases: Mapping[str, Sequence[str]], clusters: Path | None, chosen: Cascade
) -> Resources:
    """Word clusters and phrases, where they were asked for."""
    words = None
    if clusters is not None:
        settings = Clusters(seed=chosen.seed, floor=Clusters().floor if chosen.floor is None else chosen.floor)
        words = learn(inputs.aside().walk(clusters, None, "documents for clusters"), settings)
    return Resources(words, Lexicon.make(phrases) if phrases else None)


def _check_method(method: str) -> None:
    if method not in METHODS:
        near = difflib.get_close_matches(method, METHODS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(METHODS)}"
        raise ConfigError(f"unknown method {method!r}; {hint}")


def _check_place(output: Path, inputs: Sequence[Path]) -> None:
    """Refuses a place where the model could not be saved, before anybody waits for it."""
    if any(output.resolve() == path.resolve() for path in inputs):
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


def _settings(given: Mapping[str, Any], start: Tagger | None, *, published: bool) -> Cascade:
    """What was chosen, over the settings of the earlier model, of the publication, or our own."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if start is None:
        return replace(Cascade.published() if published else Cascade(), **chosen)
    if published:
        raise ConfigError("--start goes on with the settings of that model; leave out --published")
    for name, option in _FIXED.items():
        own = getattr(start.model.config, name)
        if chosen.get(name, own) != own:
            shown = ", ".join(own) or "none" if isinstance(own, tuple) else own
            raise ConfigError(f"--start goes on from a model with {option} {shown}; leave out {option}, or train anew")
    return replace(start.model.config, **chosen)


def _phrases(given: Iterable[str]) -> dict[str, list[str]]:
    """The phrases of each label's files."""
    phrases: dict[str, list[str]] = {}
    for item in given:
        label, mark, file = item.partition("=")
        if not (label and mark and file):
            raise ConfigError(f"--lexicon {item!r} is not LABEL=FILE, such as DRUG=drugs.txt")
        phrases.setdefault(label, []).extend(read_phrases(file))
    return phrases
