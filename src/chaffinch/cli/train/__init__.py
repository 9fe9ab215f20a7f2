"""`chaffinch train`: labelled documents in, one model file out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from chaffinch.cli import common as frame
from chaffinch.cli.train import options as settings
from chaffinch.cli.train.options import Asked, owners
from chaffinch.cli.train.progress import dev_score, facts_of, live_line, summary
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.clusters import Clusters, learn
from chaffinch.features.lexicon import Lexicon
from chaffinch.features.word_types import WORD_SETS
from chaffinch.kernels.linear import Objective
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.classhmm.config import CHOICES as CLASS_CHOICES
from chaffinch.models.classhmm.config import KAPPA, ClassHMM
from chaffinch.models.core.labels import SCHEMES
from chaffinch.models.core.resources import Resources
from chaffinch.models.hmmdp.config import CHOICES, HMMDP
from chaffinch.models.registry import METHODS, Config
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Corpus, Document
from chaffinch.text.document import Splitter
from chaffinch.text.formats import Losses, ReadOptions, read
from chaffinch.text.identifiers import names_identifier

_MANY = "may be given several times."
_OBJECTIVES = tuple(dict.fromkeys((*get_args(Objective), *CLASS_CHOICES["objective"])))
_BY_LINES = ", ".join(name for name, method in METHODS.items() if method.split == "lines")
_EPOCHS = ", ".join(f"{METHODS[name].config().epochs} ({name})" for name in owners("--epochs"))
_EMPTY = "The model has no feature and will find nothing: give more documents, or lower --floor."
_ONE_PATIENT = "The model holds words that one patient alone used; before you share it, see --floor"
_IDENTIFIERS = "The model holds words of identifiers; share it only as you would the notes, or train it with --private."
_MEMORY = "An encoder may remember its training text, whatever words it holds; share it only as you would the text."
_NOT_ALIGNED = "The alignment that the earlier model learnt is not kept; to learn it, train anew with --align."


def _of(option: str, said: str) -> str:
    """Return the help of an option, which begins with the methods that have it."""
    return f"{', '.join(owners(option))}: {said}"


_OF_METHOD = (
    "published scheme epochs floor private seed lexicon clusters features before objective stages no_documents start"
    " language subtags emissions no_discriminative learn_priors decode states_per_class word_features kappa evaluations"
    " untagged encoder"
).split()  # the options that a method may refuse


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """What `chaffinch train` may be told."""

    source: Annotated[Path, typer.Argument(metavar="IN", help="Labelled documents, in any readable format.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")]
    method: Annotated[str, typer.Option(help=f"What to train: {', '.join(METHODS)}.")] = next(iter(METHODS))
    published: Annotated[bool, typer.Option("--published", help="Settings of the publication, not ours.")] = False
    dev: Annotated[Path | None, typer.Option(help="Labelled documents that decide when to stop.")] = None
    dev_fraction: Annotated[float | None, typer.Option(help="Share of IN's patients to hold out as dev.")] = None
    layer: frame.Layer = None
    soft: Annotated[str | None, typer.Option(help="Learn from the soft labels of this name instead.")] = None
    from_: frame.From = None
    dev_from: Annotated[str | None, typer.Option(help="Format of the dev documents.")] = None
    group: Annotated[str | None, typer.Option(help="Regular expression on the id; its group is the patient.")] = None
    groups: Annotated[Path | None, typer.Option(help="File of two columns: id and patient.")] = None
    lines: Annotated[
        bool | None,
        typer.Option(
            "--lines/--prose", help=f"Cut text at lines, or into sentences; default prose, of {_BY_LINES} lines."
        ),
    ] = None
    lexicon: Annotated[list[str] | None, typer.Option(metavar="LABEL=FILE", help=f"Phrases, one per line; {_MANY}")] = (
        None
    )
    clusters: Annotated[Path | None, typer.Option(help="Documents to learn word clusters from; no labels needed.")] = (
        None
    )
    scheme: Annotated[
        str | None, typer.Option(metavar="|".join(SCHEMES), help=_of("--scheme", "how spans become tags."))
    ] = None
    epochs: Annotated[
        int | None,
        typer.Option(help=f"Walks over the documents; default {_EPOCHS}."),
    ] = None
    floor: Annotated[
        int | None, typer.Option(help="Patients who must show a feature; default 2, under 20 patients 1.")
    ] = None
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--no-private", help="Learn no words from inside spans; default where labels name identifiers."
        ),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER",
            help=_of("--features", f"a layer to use as a feature; {_MANY}"),
        ),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help=_of("--before", "a tagger whose layers serve as features, such as genia.")),
    ] = None
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(_OBJECTIVES),
            help=f"cascade: {', '.join(get_args(Objective))}; classhmm: {', '.join(CLASS_CHOICES['objective'])}; "
            "default the first.",
        ),
    ] = None
    stages: Annotated[
        int | None,
        typer.Option(
            metavar="1|2",
            help=_of("--stages", "tag at once, or find spans, then name them."),
        ),
    ] = None
    no_documents: Annotated[
        bool,
        typer.Option(
            "--no-documents",
            help=_of("--no-documents", "read each document once, not twice."),
        ),
    ] = False
    start: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help=_of("--start", "go on from this model; not all learn new labels."),
        ),
    ] = None
    language: Annotated[
        str | None,
        typer.Option(
            metavar="en|es|de|FOLDER",
            help=_of("--language", f"word lists; default {HMMDP().language}."),
        ),
    ] = None
    subtags: Annotated[
        str | None,
        typer.Option(
            metavar="O,OTHERS",
            help=_of("--subtags", f"sub-tags of O, and of others; default {HMMDP().outside},{HMMDP().inside}."),
        ),
    ] = None
    emissions: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(CHOICES["emissions"]),
            help=_of("--emissions", "how words come about; default the first."),
        ),
    ] = None
    no_discriminative: Annotated[
        bool,
        typer.Option(
            "--no-discriminative", help=_of("--no-discriminative", "keep to the generative stage; quick, less exact.")
        ),
    ] = False
    learn_priors: Annotated[
        bool,
        typer.Option(
            "--learn-priors", help=_of("--learn-priors", "learn how even symbols and tags are spread; less exact.")
        ),
    ] = False
    decode: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(CHOICES["decode"]), help=_of("--decode", "how tags are chosen; default the first.")
        ),
    ] = None
    states_per_class: Annotated[
        int | None,
        typer.Option(
            help=_of("--states-per-class", f"hidden states of every class; default {ClassHMM().states_per_class}.")
        ),
    ] = None
    word_features: Annotated[
        str | None,
        typer.Option(metavar="|".join(WORD_SETS), help=_of("--word-features", "what a word shows; default rich.")),
    ] = None
    kappa: Annotated[
        float | None,
        typer.Option(
            help=_of("--kappa", f"penalty of large weights; default chosen on dev documents, else {KAPPA}."),
        ),
    ] = None
    evaluations: Annotated[
        int | None,
        typer.Option(
            help=_of("--evaluations", f"steps of learning; default {ClassHMM().evaluations}."),
        ),
    ] = None
    encoder: Annotated[
        Path | None,
        typer.Option(
            help=_of("--encoder", "a Hugging Face folder on this computer; default the packaged MiniLM."),
        ),
    ] = None
    untagged: Annotated[
        Path | None,
        typer.Option(
            help=_of("--untagged", "documents without labels, to learn from as well."),
        ),
    ] = None
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            help="Learn to give a word one answer across a patient's documents as well, "
            f"which trains {Alignment().folds} times more; see tag --align.",
        ),
    ] = False
    align_mode: Annotated[
        settings.Mode | None, typer.Option(help="Never take a label away (recall), or do (balanced).")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of all that is drawn; default 0.")] = None
    workers: Annotated[int, typer.Option(min=1, help="Threads; any number gives the same model.")] = 1
    notes: Annotated[str, typer.Option(help="Licence and attribution, kept in the model file.")] = ""
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None

    def of_method(self) -> dict[str, Any]:
        """Return what is settled by the method and its settings, by flag."""
        flags = {f"--{name.replace('_', '-')}": getattr(self, name) for name in _OF_METHOD}
        return {**flags, "--no-private": self.private is False}


@frame.takes(TrainOptions)
def train_command(options: TrainOptions) -> None:
    """chaffinch train notes/ -o notes.cfm --dev-fraction 0.1

    Trains a tagger on labelled documents and saves it as one file. Dev documents, if there are any, decide when to
    stop and are scored at the end. Ctrl-C stops early and saves the best model so far; a model that stood in the
    place of the new one stays until the new one is complete.
    """
    began = time.perf_counter()
    asked = Asked.of(options.method, options.of_method())
    settings.check_place(options.output, (options.source, options.dev, options.clusters, options.untagged))
    alignment = settings.alignment_of(options.align, options.align_mode, options.soft, asked)
    earlier, helper = asked.model("--start"), asked.model("--before")
    chosen = asked.config(earlier, helper)
    layer = settings.layer_to_learn(options.layer, options.soft, chosen)
    split = settings.split_to_learn(options.lines, options.method, earlier)
    how = ReadOptions("gold", split, options.max_chars)
    inputs = _Inputs(options.group, frame.read_groups(options.groups), how, options.quiet)
    phrases = settings.phrases_of(options.lexicon or ())
    share = _Share(options.dev, options.dev_from, options.dev_fraction)
    lesson = _Lesson(*_dev(inputs, share, options.source, options.from_, chosen.seed), layer, options.soft)
    lesson.check(alignment)
    known = None if earlier is not None else _resources(inputs, phrases, options.clusters, chosen)
    others = () if options.untagged is None else list(inputs.aside().walk(options.untagged, None, "untagged documents"))
    with live_line(quiet=options.quiet) as tell:
        tagger = train(
            lesson.documents, chosen, dev=lesson.held, layer=layer, soft=options.soft, untagged=others,
            resources=known, before=helper, start=earlier, align=alignment, workers=options.workers,
            progress=tell, notes=options.notes, name=None if earlier is None else earlier.layer,
        )  # fmt: skip
    settings.with_split(tagger, split).save(options.output)
    facts = lesson.facts(tagger, split, options.output)
    facts |= {"seconds": round(time.perf_counter() - began, 1), "lost": dict(inputs.how.losses.counts)}
    remarks = _remarks(facts, earlier, helper, asked_private=bool(options.private))
    _report(facts, remarks, options.output, as_json=options.json, quiet=options.quiet)


def _report(facts: Mapping[str, Any], remarks: Iterable[str], output: Path, *, as_json: bool, quiet: bool) -> None:
    """Says what was learnt; StoppedEarly if the user stopped it."""
    frame.emit(facts, as_json=as_json, tables=[] if quiet else summary(facts))
    for remark in remarks:
        frame.note(remark, quiet=quiet)
    if facts["interrupted"]:
        raise frame.StoppedEarly(f"stopped early; the best model so far is saved in {output}")


def _remarks(
    facts: Mapping[str, Any], earlier: Tagger | None, helper: Tagger | None, *, asked_private: bool
) -> Iterator[str]:
    """What a user should know besides the facts."""
    features, words = facts.get("features"), facts.get("symbols", {}).get("words", 0)
    private = facts.get("private", False)
    if "weights" in facts:
        yield _MEMORY
    elif features == 0 and "symbols" not in facts:
        yield _EMPTY
    elif not private and any(map(names_identifier, facts["labels"])):
        yield _IDENTIFIERS
    elif facts["vocabulary floor"] < 2 and (features or words) and not asked_private:
        yield f"{_ONE_PATIENT}." if private else f"{_ONE_PATIENT} and --private."
    if earlier is not None and earlier.aligner is not None:
        yield _NOT_ALIGNED
    own: Splitter | None = None if helper is None else settings.own_split(helper)
    if own not in (None, facts["sentences"]):
        yield f"The tagger of --before learnt from {own}, this one from {facts['sentences']}; --{own} would suit both."


@dataclass(frozen=True, slots=True)
class _Lesson:
    """Documents to learn from, those to judge by, and where their labels are: a layer of spans, or soft labels."""

    documents: list[Document]
    held: list[Document]
    layer: str | None
    soft: str | None

    def check(self, alignment: Alignment | None) -> None:
        """Refuses documents that could not teach what was asked for, before anybody waits for it."""
        number = len(self.held)
        if number and not any(doc.layer(self.layer) for doc in self.held):
            raise DataError(
                f"none of the {number} dev documents holds a span, so they can judge nothing; choose others"
            )
        patients = len({doc.patient for doc in self.documents})
        if alignment is not None and patients < 2:
            raise DataError(f"--align learns from two patients or more, and there is {patients}; leave out --align")

    def facts(self, tagger: Tagger, split: Splitter, output: Path) -> dict[str, Any]:
        """What the tagger learnt from these documents, and how well it does on those held out."""
        spans = 0 if self.soft else sum(len(doc.layer(self.layer)) for doc in self.documents)
        learnt = facts_of(tagger, self.documents, spans, output)
        return {**learnt, "sentences": split, "dev": dev_score(tagger, self.held, self.layer)}


@dataclass(frozen=True, slots=True)
class _Inputs:
    """How all the documents of this command are read."""

    group: str | None
    groups: Mapping[str, str] | None
    how: ReadOptions
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
    inputs: _Inputs, phrases: Mapping[str, Sequence[str]], clusters: Path | None, chosen: Config
) -> Resources:
    """Word clusters and phrases, where they were asked for."""
    words = None
    if clusters is not None:
        settings = Clusters(seed=chosen.seed, floor=getattr(chosen, "floor", None) or Clusters().floor)
        words = learn(inputs.aside().walk(clusters, None, "documents for clusters"), settings)
    return Resources(words, Lexicon.make(phrases) if phrases else None)
