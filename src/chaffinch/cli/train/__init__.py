"""`chaffinch train`: labelled documents in, one model file out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.config_file import ConfigFile
from chaffinch.cli.frame.results import TrainResult
from chaffinch.cli.train import inputs
from chaffinch.cli.train.progress import dev_score, live_line, result_of
from chaffinch.cli.train.settings import TrainSettings
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.clusters import Clusters, learn
from chaffinch.features.lexicon import Lexicon
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.core.resources import Resources
from chaffinch.models.registry import METHODS, Config
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Corpus, Document
from chaffinch.text.formats import Losses, ReadOptions, read
from chaffinch.text.identifiers import names_identifier

_BY_LINES = ", ".join(name for name, method in METHODS.items() if method.split == "lines")
_EMPTY = "The model has no feature and will find nothing: give more documents, or a lower --set floor=1."
_ONE_PATIENT = "The model holds words that one patient alone used; before you share it, see --set floor=2"
_IDENTIFIERS = (
    "The model holds words of identifiers; share it only as you would the notes, or train it with --set private=true."
)
_MEMORY = "An encoder may remember its training text, whatever words it holds; share it only as you would the text."
_NOT_ALIGNED = "The alignment of the earlier model is not kept; to learn one, train a new model with align=recall."


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """The options of `chaffinch train`."""

    source: Annotated[Path, typer.Argument(metavar="IN", help="Labelled documents, in any readable format.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")]
    method: Annotated[str, typer.Option(help=f"What to train: {', '.join(METHODS)}.")] = next(iter(METHODS))
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|SHARE",
            help="Documents that decide when to stop, or a share of IN's patients to hold out for it.",
        ),
    ] = None
    layer: frame.Layer = None
    from_: frame.From = None
    group_by: frame.GroupBy = None
    lines: Annotated[
        bool | None,
        typer.Option(
            "--lines/--prose", help=f"Take each line as a sentence ({_BY_LINES}), or find sentences (the others)."
        ),
    ] = None
    documents: frame.Documents = None
    lexicon: Annotated[
        list[str], typer.Option(metavar="LABEL=FILE", help="Phrases of a label, one per line; several times.")
    ] = field(default_factory=list)
    start: Annotated[str | None, typer.Option(metavar="MODEL", help="Continue training from this model.")] = None
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, such as epochs=3; `chaffinch show METHOD` lists them; several times.",
        ),
    ] = field(default_factory=list)
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(TrainOptions)
def train_command(options: TrainOptions) -> None:
    """chaffinch train notes/ -o notes.cfm --dev 0.1 --set epochs=5

    Train a tagger on labelled documents and save it as one file. Ctrl-C stops early and saves the best model so far;
    an earlier model at that path stays until the new one is complete.
    """
    began = time.perf_counter()
    file: ConfigFile | None = options.config  # type: ignore[assignment]  # what the option's callback returns
    settings = TrainSettings.read(options.method, options.settings, file)
    run = settings.run
    dev = _Dev.parse(options.dev, run.dev_format)
    inputs.check_model_path(options.output, (options.source, dev.path, run.clusters, run.untagged_documents))
    earlier, helper = None if options.start is None else load(options.start), settings.helper()
    config, alignment = settings.config(earlier, helper, lexicon=bool(options.lexicon)), settings.alignment(earlier)
    layer = inputs.choose_layer(options.layer, run.soft, config)
    split = inputs.choose_split(options.lines, options.method, earlier)
    pattern, table = frame.read_group_by(options.group_by)
    reading = ReadOptions(
        "gold", split, run.max_chars, run.tag_names,
        documents=frame.documents_of(options.documents),
    )  # fmt: skip
    reader = _Reader(pattern, table, reading, options.quiet)
    phrases = inputs.read_lexicon(options.lexicon)
    documents, held = _split_dev(reader, dev, options.source, options.from_, config.seed)
    _check_documents(documents, held, layer, alignment)
    resources = None if earlier is not None else _resources(reader, phrases, run.clusters, config)
    untagged = run.untagged_documents
    others = () if untagged is None else list(reader.for_others().read(untagged, None, "untagged documents"))
    with live_line(quiet=options.quiet) as show:
        tagger = train(
            documents, config, dev=held, layer=layer, soft=run.soft, untagged=others, resources=resources,
            before=helper, start=earlier, align=alignment, workers=run.workers, progress=show, notes=run.notes,
            name=None if earlier is None else earlier.layer,
        )  # fmt: skip
    inputs.record_split(tagger, split).save(options.output)
    spans = 0 if run.soft else sum(len(doc.layer(layer)) for doc in documents)
    result = result_of(
        tagger, documents, options.output, spans=spans, sentences=split, dev=dev_score(tagger, held, layer),
        seconds=round(time.perf_counter() - began, 1), lost=dict(reader.options.losses.counts),
    )  # fmt: skip
    frame.emit(result, as_json=options.json, tables=[] if options.quiet else result.tables())
    frame.note_cut(reading, quiet=options.quiet)
    for remark in _remarks(result, earlier, helper, asked_private=bool(settings.chosen.get("private"))):
        frame.note(remark, quiet=options.quiet)
    if result.interrupted:
        raise frame.StoppedEarly(f"stopped early; the best model so far is saved in {options.output}")


def _remarks(
    result: TrainResult, earlier: Tagger | None, helper: Tagger | None, *, asked_private: bool
) -> Iterator[str]:
    """Yield remarks for stderr: words that identify, no calibration, alignment or sentences unlike an earlier model."""
    features, words = result.size.get("features"), result.size.get("symbols", {}).get("words", 0)
    private = bool(result.private)
    if "weights" in result.size:
        yield _MEMORY
    elif features == 0 and "symbols" not in result.size:
        yield _EMPTY
    elif not private and any(map(names_identifier, result.labels)):
        yield _IDENTIFIERS
    elif result.vocabulary_floor < 2 and (features or words) and not asked_private:
        yield f"{_ONE_PATIENT}." if private else f"{_ONE_PATIENT} and --set private=true."
    if not result.calibrated:
        why = "there is one patient" if result.patients < 2 else "the settings or the data do not allow it"
        yield f"Confidences are not calibrated, because {why}; take those of tag --confidence as ranks, not chances."
    if earlier is not None and earlier.aligner is not None:
        yield _NOT_ALIGNED
    split = None if helper is None else inputs.split_of_training(helper)
    if split not in (None, result.sentences):
        yield f"The tagger of `before` learnt from {split}, this one from {result.sentences}; --{split} suits both."


def _check_documents(
    documents: Sequence[Document], dev: Sequence[Document], layer: str | None, alignment: Alignment | None
) -> None:
    """Raise DataError, before training, if no dev document has a span, or alignment has fewer than two patients."""
    if dev and not any(doc.layer(layer) for doc in dev):
        raise DataError(f"none of the {len(dev)} dev documents holds a span, so they can judge nothing; choose others")
    patients = len({doc.patient for doc in documents})
    if alignment is not None and patients < 2:
        raise DataError(f"--set align learns from two patients or more, and there is {patients}; leave it out")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads all documents of this command in one way."""

    pattern: str | None  # --group-by
    table: Mapping[str, str] | None  # --group-by
    options: ReadOptions
    quiet: bool
    first: bool = True  # it reads IN, for which --group-by is meant

    def read(self, path: Path, form: str | None, what: str) -> Iterator[Document]:
        """Return the documents of a path, read lazily, with a progress bar named `what`."""
        corpus = read(path, format=form, how=self.options, group=self.pattern, groups=self.table, must_group=self.first)
        return frame.progress(corpus, what, quiet=self.quiet)

    def for_others(self) -> _Reader:
        """Return a reader for inputs other than IN: it reports no losses, and the options of IN need not fit."""
        return replace(self, options=replace(self.options, losses=Losses(), lenient=True), first=False)


@dataclass(frozen=True, slots=True)
class _Dev:
    """Where dev documents come from: a path and its format, or a share of the patients."""

    path: Path | None
    form: str | None
    share: float | None

    @classmethod
    def parse(cls, value: str | None, form: str | None) -> _Dev:
        """Parse --dev: a path, or a share of the patients unless a file has that name; ConfigError if not in (0, 1)."""
        if value is None or Path(value).exists():
            return cls(None if value is None else Path(value), form, None)
        try:
            share = float(value)
        except ValueError:
            return cls(Path(value), form, None)  # reading it says what is wrong
        if not 0 < share < 1:
            raise ConfigError(f"--dev as a share of the patients must lie between 0 and 1, got {value}")
        return cls(None, form, share)


def _split_dev(
    reader: _Reader, dev: _Dev, source: Path, form: str | None, seed: int
) -> tuple[list[Document], list[Document]]:
    """Return (training, dev) documents: dev of its path, by a share of patients, or none; DataError for one patient."""
    documents = list(reader.read(source, form, "documents"))
    if dev.path is not None:
        return documents, list(reader.for_others().read(dev.path, dev.form, "dev documents"))
    if dev.share is None:
        return documents, []
    patients = len({doc.patient for doc in documents})
    if patients < 2:
        raise DataError("has fewer than two patients, so none can be held out; leave --dev out", path=source)
    first, second = Corpus.of(documents).split(1 - dev.share, by="group", seed=seed)
    return list(first), list(second)


def _resources(
    reader: _Reader, phrases: Mapping[str, Sequence[str]], clusters: Path | None, config: Config
) -> Resources:
    """Return clusters learnt from the documents of `clusters`, if given, and the lexicon of the phrases, if any."""
    words = None
    if clusters is not None:
        settings = Clusters(seed=config.seed, floor=getattr(config, "floor", None) or Clusters().floor)
        words = learn(reader.for_others().read(clusters, None, "documents for clusters"), settings)
    return Resources(words, Lexicon.make(phrases) if phrases else None)
