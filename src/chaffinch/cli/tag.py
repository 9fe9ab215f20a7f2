"""`chaffinch tag`: documents in, the same documents with the spans a model finds out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chaffinch import bundle
from chaffinch.cli import frame
from chaffinch.cli.frame.results import TagResult
from chaffinch.cli.train import inputs
from chaffinch.cli.train.settings import Mode
from chaffinch.errors import ConfigError, ModelError
from chaffinch.jobs.annotate import annotate_documents
from chaffinch.loading import load
from chaffinch.models.tagger import Tagger
from chaffinch.text import Corpus, Document
from chaffinch.text.document import Splitter
from chaffinch.text.formats import Format, Losses, ReadOptions, by_name, output_format, write
from chaffinch.weak import WeakTagger, load_sources
from chaffinch.weak import load as load_weak

if TYPE_CHECKING:  # its lists are loaded when they are used
    from chaffinch.deid.detect.detector import HybridDetector

_VOTES = "joins votes and tags nothing by itself; use it with chaffinch weak aggregate --model"
_OTHER_VERBS = {
    "multihmm": _VOTES,
    "chmm": _VOTES,
    "relations": "extracts relations and tags nothing by itself; use it with chaffinch relate extract",
}
_HAND_SET = "The model learnt no alignment, so one set by hand was used; train --set align=recall learns one."

_UNCALIBRATED = (
    "The confidence of this model is not calibrated: take it as a rank, not as a chance. A model that is trained on "
    "two patients or more, with calibrate=true, is calibrated."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TagOptions:
    """The options of `chaffinch tag`."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a packaged model.")]
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, a folder, or a .gz, .zip or .tar.gz of them.")]
    output: frame.Out
    new_layer: frame.NewLayer = None
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Give each span the chance that it is right; says if uncalibrated.")
    ] = False
    bias: Annotated[
        list[str], typer.Option(metavar="LABEL=NUMBER", help="Added to a label's score: O=-1 finds more, O=1 less.")
    ] = field(default_factory=list)
    posteriors: Annotated[bool, typer.Option("--posteriors", help="Add each token's chances of every label.")] = False
    align: Annotated[
        Mode | None,
        typer.Option(help="Give a word one answer across a patient's documents; recall takes no label away."),
    ] = None
    sources: Annotated[
        Path | None, typer.Option(help="Models of `weak alternate`: sources the file lacks, or newer ones of a name.")
    ] = None
    text_alone: Annotated[
        bool,
        typer.Option("--text-alone", help="Models of `weak alternate`: use the text alone, no sources and no votes."),
    ] = False
    from_: frame.From = None
    to: Annotated[str | None, typer.Option("--to", help="Format of OUT; else by its suffix, else that of IN.")] = None
    group_by: frame.GroupBy = None
    text_column: frame.TextColumns = field(default_factory=list)
    id_column: frame.IdColumn = None
    patient_column: frame.PatientColumn = None
    lines: Annotated[
        bool | None,
        typer.Option("--lines/--prose", help="Take each line as a sentence, or find them; default: as in training."),
    ] = None
    documents: frame.Documents = None
    tag_names: frame.TagNames = ""
    strict: Annotated[bool, typer.Option("--strict", help="Fail, and write nothing, if anything is lost.")] = False
    workers: frame.Workers = "1"
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(TagOptions)
def tag_command(options: TagOptions) -> None:
    """chaffinch tag notes.cfm notes/ -o tagged.jsonl

    Find spans with a trained model. JSONL, Parquet and Label Studio keep the labels of the input beside the new ones;
    every other format holds one layer, and there the new labels replace those of the input. Plain text becomes brat
    (.txt and .ann) unless OUT or --to names another format. The output appears complete, or not at all.
    """
    leaning = _parse_bias(options.bias)
    workers = frame.count_workers(options.workers)
    if workers > 1 and options.align is not None:
        raise ConfigError("--align reads all documents of a patient together, in one process; leave out --workers")
    tagger = _load(options.model, options.sources, {
        "--confidence": options.confidence, "--bias": leaning, "--posteriors": options.posteriors,
        "--align": options.align,
    }, {"--sources": options.sources, "--text-alone": options.text_alone})  # fmt: skip
    layer = options.new_layer or tagger.layer
    how = ReadOptions(
        split=_choose_split(tagger, options.lines, options.quiet), max_chars=options.max_chars,
        columns=frame.columns_of(options),
        tag_names=frame.names_of_tags(options.tag_names), documents=frame.documents_of(options.documents),
    )  # fmt: skip
    corpus = frame.read_grouped(options.source, options.from_, how, options.group_by)
    _check_place(options.output, (options.source, Path(options.model)))
    form = _output_format(options.output, options.to, options.source, by_name(corpus.format))
    given = Corpus(lambda: _count_replaced(frame.progress(corpus, "documents", quiet=options.quiet), layer, how.losses))
    step = _AddSpans(replace(options, config=None), layer)
    tagged = step.annotate(tagger, given) if workers == 1 else annotate_documents(given, step, workers)
    tally = _Tally(layer)
    documents = tally.count(tagged)
    fitting = (_reduce_layers(doc, form, layer, how.losses) for doc in documents)
    losses = _write(fitting, options.output, form, how, strict=options.strict)
    confidence = _confidence(tagger) if options.confidence else None
    result = tally.result(corpus.format, form.name, options.align, confidence, dict(losses.counts))
    frame.emit(result, as_json=options.json, tables=[] if options.quiet else result.tables())
    frame.note_cut(how, quiet=options.quiet)
    if confidence == "uncalibrated":
        frame.note(_UNCALIBRATED, quiet=options.quiet)
    if options.align is not None and isinstance(tagger, Tagger) and tagger.aligner is None:
        frame.note(_HAND_SET, quiet=options.quiet)


@dataclass(frozen=True, slots=True)
class _AddSpans:
    """The step of the command: add the spans of a tagger of any kind, as the options say."""

    options: TagOptions
    layer: str

    def build(self) -> Callable[[Iterable[Document]], Iterable[Document]]:
        """Load the tagger in a worker, and return a function that adds the layer of spans to documents."""
        tagger = _load(self.options.model, self.options.sources, {}, {})
        return lambda docs: self.annotate(tagger, Corpus(lambda: iter(docs)))

    def annotate(self, tagger: Tagger | WeakTagger | HybridDetector, given: Corpus) -> Iterable[Document]:
        """Return the documents with the new layer, and if asked its posteriors, made by a tagger of any kind."""
        options, layer = self.options, self.layer
        if isinstance(tagger, WeakTagger):
            return tagger.annotate(given, layer=layer, text_alone=options.text_alone)
        if not isinstance(tagger, Tagger):
            return tagger.annotate(given, layer=layer, posteriors=options.posteriors)
        bias = _parse_bias(options.bias)
        tagged = tagger.annotate(given, layer=layer, confidence=options.confidence, bias=bias, align=options.align)
        return tagger.posteriors(tagged, name=layer) if options.posteriors else tagged


def _load(
    model: str, sources: Path | None, of_taggers: Mapping[str, object], of_weak: Mapping[str, object]
) -> Tagger | WeakTagger | HybridDetector:
    """Load a model that can tag; ConfigError for a given option that its kind lacks, ModelError if it cannot tag."""
    kind = bundle.read_manifest(model).kind
    if kind in _OTHER_VERBS:
        raise ModelError(f"is a model of kind {kind!r}, which {_OTHER_VERBS[kind]}", path=bundle.find(model))
    others = {"weak": of_taggers, "deid": {**of_taggers, **of_weak, "--posteriors": None}}.get(kind, of_weak)
    wrong = [name for name, value in others.items() if value]
    if wrong:
        what = {"weak": "one of `weak alternate`", "deid": "one of identifiers"}.get(
            kind, "no model of `weak alternate`"
        )
        raise ConfigError(f"{wrong[0]} does not go with this model, which is {what}; leave it out")
    tagger: Tagger | WeakTagger | HybridDetector = (
        load(model) if sources is None else load_weak(model, sources=load_sources(sources))
    )
    return tagger


def _confidence(tagger: Tagger | WeakTagger | HybridDetector) -> str:
    """Return "calibrated" if the tagger's confidence is calibrated, else "uncalibrated"."""
    return "calibrated" if isinstance(tagger, Tagger) and tagger.calibrated else "uncalibrated"


def _check_place(output: Path, inputs: Iterable[Path]) -> None:
    """Raise ConfigError, before any work, if the output is an input, or neither a file nor a folder."""
    if output.resolve() in [path.resolve() for path in inputs]:
        raise ConfigError("the output is an input; name another path with -o")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise ConfigError(f"{output} is neither a file nor a folder; name another path with -o")


def _write(documents: Iterable[Document], output: Path, form: Format, how: ReadOptions, *, strict: bool) -> Losses:
    """Write the documents; return what the format lost; ChaffinchError if the output cannot be written.

    Columns that were named keep their names, unless spans are offsets into several of them.
    """
    keep = bool(how.columns) and len(how.columns.texts) <= 1
    with frame.name_unwritable(output):
        return write(documents, output, format=form.name, strict=strict, losses=how.losses, keep_columns=keep)


def _choose_split(tagger: Tagger | WeakTagger | HybridDetector, lines: bool | None, quiet: bool) -> Splitter:
    """Return "lines" or "prose": as `lines` says, else as in training; note on stderr if the two differ."""
    learnt = inputs.split_of_training(tagger) if isinstance(tagger, Tagger) else None
    if lines is None:
        return learnt or "prose"
    chosen = frame.split_of(lines)
    if learnt not in (None, chosen):
        frame.note(
            f"The model learnt from {learnt}, and --{chosen} cuts text otherwise; expect more errors.", quiet=quiet
        )
    return chosen


def _parse_bias(assignments: Iterable[str]) -> dict[str, float]:
    """Parse --bias LABEL=NUMBER into {label: number added to its score}; raise ConfigError if it is malformed."""
    bias = {}
    for item in assignments:
        label, _, number = item.rpartition("=")
        try:
            bias[label] = float(number)
        except ValueError:
            label = ""
        if not label or not math.isfinite(bias[label]):
            raise ConfigError(f"--bias {item!r} is not LABEL=NUMBER, such as O=-1 (finds more)")
    return bias


def _output_format(output: Path, to: str | None, source: Path, input_format: Format) -> Format:
    """Return --to's format, else the input's if the suffix fits, else by suffix; ConfigError if --to holds no spans."""
    if to:
        form = by_name(to)
        if form.can.layers == "none":
            raise ConfigError(f"{to} cannot hold spans; choose another format, such as --to brat or --to jsonl")
        return form
    if input_format.can.annotated_as:
        input_format = by_name(input_format.can.annotated_as)
    usual = ("",) if input_format.folder else ("", source.suffix, *input_format.suffixes)
    return input_format if output.suffix in usual else output_format(output)


def _count_replaced(documents: Iterable[Document], layer: str, losses: Losses) -> Iterator[Document]:
    """Yield the documents; count as a loss each that already has a layer of the new layer's name."""
    for doc in documents:
        losses.add("layers with the name of the new one", layer in doc.layers)
        yield doc


def _reduce_layers(doc: Document, form: Format, layer: str, losses: Losses) -> Document:
    """Return the document as the format can hold it, with the new layer as "gold" if it holds one; count losses."""
    if form.can.span_sources:
        return doc
    spans = tuple(replace(span, source="") for span in doc.layers[layer])
    if form.can.layers == "many":
        return replace(doc, layers={**doc.layers, layer: spans})
    votes = {name: layered for name, layered in doc.layers.items() if form.can.votes and name.startswith("source:")}
    losses.add("layers other than the new one", len(doc.layers.keys() - votes.keys() - {layer}))
    return replace(doc, layers={**votes, "gold": spans})


class _Tally:
    """Count documents and the spans found in them as they pass."""

    def __init__(self, layer: str) -> None:
        """Start all counts of this layer at zero."""
        self.layer, self.labels = layer, Counter[str]()
        self.documents = self.characters = self.tokens = self.grouped = 0
        self.groups: set[str] = set()

    def count(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents unchanged, and count them, their characters, tokens, patients and labels of the layer."""
        for doc in documents:
            self.documents += 1
            self.characters += len(doc.text)
            self.tokens += len(doc.tokens)
            self.grouped += doc.group is not None
            self.groups.add(doc.patient)
            self.labels.update(span.label for span in doc.layers[self.layer])
            yield doc

    def result(
        self, source: str, form: str, align: str | None, confidence: str | None, lost: dict[str, int]
    ) -> TagResult:
        """Return the counts as the command's result; those of patients only if spans were aligned."""
        return TagResult(
            from_=source,
            to=form,
            align=align,
            confidence=confidence,
            patients=None if align is None else len(self.groups),
            documents_with_patient=None if align is None else self.grouped,
            documents=self.documents,
            characters=self.characters,
            tokens=self.tokens,
            spans=self.labels.total(),
            labels=dict(sorted(self.labels.items())),
            lost=lost,
        )
