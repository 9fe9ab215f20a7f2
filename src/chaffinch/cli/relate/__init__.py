"""`chaffinch relate`: relations between entities; learn, extract, evaluate, label from known tuples."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.results import DistantResult, ExtractResult
from chaffinch.cli.relate.evaluate_page import outcome_page
from chaffinch.cli.relate.modes import RelateOptions, settings_of, train_extractor
from chaffinch.cli.train import inputs
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs.annotate import ExtractRelations, annotate_documents
from chaffinch.relations import AnyExtractor, Schema, save
from chaffinch.relations.candidates import candidates
from chaffinch.relations.config import Mode
from chaffinch.relations.distant import label as label_known
from chaffinch.relations.distant import sample
from chaffinch.relations.evaluate.scoring import Outcome, score
from chaffinch.relations.features.vectors import VIEWS
from chaffinch.relations.storage import load
from chaffinch.text import Document
from chaffinch.text.formats import Losses, ReadOptions, output_format, read, write
from chaffinch.text.formats.base import write_text

relate_app = typer.Typer(help="Find relations between entities.", rich_markup_mode=None)

Source = Annotated[Path, typer.Argument(metavar="IN", help="Documents with entities, in any readable format.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `relate train` wrote.")]
Roles = Annotated[
    list[str],
    typer.Option("--role", metavar="ROLE[=TYPE]", help="A role, and the label of its entities; twice or more."),
]
Name = Annotated[str, typer.Option("--relation", metavar="NAME", help="The label of the relation in documents.")]
Symmetric = Annotated[bool, typer.Option("--symmetric", help="The roles are alike, as in protein-protein.")]
Precision = Annotated[
    float | None, typer.Option(help="Keep what reached this precision in cross-validation; default: the best F1.")
]


@relate_app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Print the help of `relate` if no command is given."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


Views = Annotated[
    list[str] | None,
    typer.Option(metavar="|".join(VIEWS), help="Features of a candidate; several times; default: all but contexts."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="With joint: a setting of the phrase HMM, pairing, labels, or published=phrase|pos|token 1|token 2.",
    ),
]


@relate_app.command("train", short_help="Learn an extractor from documents with relations.")
def train_command(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    relation: Name,
    role: Roles,
    symmetric: Symmetric = False,
    view: Views = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="|".join(get_args(Mode)),
            help="entities: judge tuples of given entities; joint: find the arguments; documents: relate concepts.",
        ),
    ] = "entities",
    representation: Annotated[
        str | None,
        typer.Option(
            metavar="auto|phrase|pos|token", help="What a segment is; auto chooses. Default: phrase; with joint, auto."
        ),
    ] = None,
    mask: Annotated[
        bool | None,
        typer.Option(
            "--mask/--no-mask",
            help="With joint: show the model which words are entities, or only the bare text.",
        ),
    ] = None,
    layer: frame.Layer = None,
    from_: frame.From = None,
    floor: Annotated[
        int | None,
        typer.Option(min=1, help="Keep words that this many documents use; default 2, below 500 documents 1."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
    set_: Settings = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch relate train abstracts/ -o loc.cfm --relation localises --role Protein --role Location

    Learn which tuples of entities in one sentence are related. The report has the figures of cross-validation over
    documents, beside those of a bag of words on the same folds, and says which words the model file holds.
    """
    inputs.check_model_path(output, (source,))
    views = tuple(view) if view else None
    options = RelateOptions(mode, views, representation, mask, layer, floor, seed, tuple(set_ or ()))
    extractor = train_extractor(
        _read(source, from_, max_chars, quiet), _schema(relation, role, symmetric), settings_of(options)
    )
    save(extractor, output)
    report = extractor.report
    assert report is not None  # noqa: S101  (it was trained just now)
    facts = {"mode": mode, **report.facts(), "threshold": extractor.threshold, "model": str(output)}
    frame.emit(facts, as_json=json, tables=[] if quiet else [str(report), f"threshold {extractor.threshold:.3f}"])


@relate_app.command("extract", short_help="Find relations in documents with a trained extractor.")
def extract_command(
    model: Model,
    source: Source,
    output: frame.Out,
    precision: Precision = None,
    explain: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write why, as one JSON object per relation.")
    ] = None,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of OUT; else by its suffix, else that of IN.")] = None,
    workers: frame.Workers = "1",
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch relate extract loc.cfm abstracts/ -o found.jsonl --precision 0.9

    Add the relations that the extractor finds between the entities of each sentence; they replace those of the same
    name. brat, PubTator, BioC and JSONL hold relations. The model file knows the mode it was trained in.
    """
    if output.resolve() in (source.resolve(), model.resolve()):
        raise ConfigError("the output is an input; name another place with -o")
    form = _choose_format(output, to, source, from_)  # before the work: a format that is not known ends it at once
    extractor = load(model) if precision is None else load(model).with_precision(precision)
    docs = _read(source, from_, max_chars, quiet)
    number_of_workers = frame.count_workers(workers)
    step = ExtractRelations(model, precision)
    found = list(
        extractor.annotate(docs) if number_of_workers == 1 else annotate_documents(docs, step, number_of_workers)
    )
    losses = _write(found, output, form)
    if explain is not None:
        _write_reasons(extractor, found, explain)
    number = sum(relation.label == extractor.schema.name for doc in found for relation in doc.relations)
    result = ExtractResult(
        documents=len(found), relations=number, threshold=round(extractor.threshold, 4), lost=dict(losses.counts)
    )
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


@relate_app.command("evaluate", short_help="Score extracted relations against stated ones.")
def evaluate_command(
    model: Model,
    source: Source,
    precision: Precision = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with the precision-recall curve.")] = None,
    fail_under: Annotated[float | None, typer.Option(help="Exit with code 4 if F1 is below this.")] = None,
    from_: frame.From = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch relate evaluate loc.cfm test/ --html report.html

    Extract relations from documents that state them, and score them; intervals come from a bootstrap over documents.
    """
    from chaffinch.errors import GateError

    frame.check_page(html, source)
    extractor = load(model) if precision is None else load(model).with_precision(precision)
    found = score(extractor, _read(source, from_, max_chars, quiet))
    if html is not None:
        write_text(html, outcome_page(found, extractor.schema, title=f"Relations: {extractor.schema.name}"))
    frame.emit(found.facts(), as_json=json, tables=[] if quiet else [frame.table_of(_score_rows(found))])
    if fail_under is not None and found.f1.value < fail_under:
        raise GateError(f"F1 is {found.f1.value:.3f}, below --fail-under {fail_under:g}")


@relate_app.command("distant", short_help="Label sentences that mention known tuples.")
def distant_command(
    source: Source,
    known: Annotated[Path, typer.Argument(metavar="TUPLES", help="Known tuples: a column per role, tabs between.")],
    output: frame.Out,
    relation: Name,
    role: Roles,
    symmetric: Symmetric = False,
    audit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write candidates to judge by hand, as columns.")
    ] = None,
    audit_size: Annotated[int, typer.Option(min=2, help="How many candidates to judge.")] = 100,
    layer: frame.Layer = None,
    from_: frame.From = None,
    to: Annotated[str | None, typer.Option("--to", help="Format of OUT; else by its suffix, else that of IN.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the audit sample.")] = 0,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch relate distant abstracts/ tuples.tsv -o noisy.jsonl --relation localises --role Protein --role Location

    Label every sentence that mentions all members of a known tuple as stating the relation. The audit file has
    candidates of both kinds, by document, sentence and offsets; the last column is for your judgement.
    """
    schema, form = _schema(relation, role, symmetric), _choose_format(output, to, source, from_)
    docs = label_known(_read(source, from_, max_chars, quiet), _read_tuples(known), schema, layer=layer)
    losses = _write(docs, output, form)
    if audit is not None:
        drawn = sample(docs, schema, audit_size, layer=layer, seed=seed)
        lines = ["document\tsentence\tlabelled\tspans\tstates the relation?"]
        for number, candidate in drawn:
            places = " ".join(f"{span.start}-{span.end}" for span in candidate.spans)
            lines.append(
                f"{docs[number].id}\t{candidate.sentence + 1}\t{'yes' if candidate.stated else 'no'}\t{places}\t"
            )
        write_text(audit, "".join(f"{line}\n" for line in lines))
    every = [candidate.stated for doc in docs for candidate in candidates(doc, schema, layer=layer)]
    result = DistantResult(documents=len(docs), candidates=len(every), labelled=sum(every), lost=dict(losses.counts))
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


def _schema(name: str, roles: Iterable[str], symmetric: bool) -> Schema:
    """Build the schema of a relation from its name and its roles, each given as ROLE or ROLE=TYPE."""
    parts = [role.partition("=") for role in roles]
    return Schema(name, tuple(part[0] for part in parts), tuple(part[2] or part[0] for part in parts), symmetric)


def _read(source: Path, form: str | None, max_chars: int, quiet: bool) -> Iterable[Document]:
    """Read documents lazily from a path, with a progress bar."""
    corpus = read(source, format=form, how=ReadOptions(max_chars=max_chars))
    return frame.progress(corpus, "documents", quiet=quiet)


def _choose_format(output: Path, to: str | None, source: Path, from_: str | None) -> str:
    """Return the name of the output's format: `to`, else by the suffix, else that of the input; or ConfigError."""
    try:
        return output_format(output, to).name
    except ConfigError:
        if to is not None:
            raise
        return from_ or read(source).format


def _write(docs: Iterable[Document], output: Path, form: str) -> Losses:
    """Write documents in a format; return what it could not keep."""
    with frame.name_unwritable(output):
        return write(docs, output, format=form)


def _read_tuples(path: Path) -> list[list[str]]:
    """Read known tuples: lines of names with tabs between, blank ones left out; DataError if not readable UTF-8."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        raise DataError("cannot be read as UTF-8; it must hold lines of: name, tab, name", path=path) from None
    return [[part.strip() for part in line.split("\t")] for line in lines if line.strip()]


def _write_reasons(extractor: AnyExtractor, docs: Iterable[Document], path: Path) -> None:
    """Write a JSON line per relation of the schema: document id, sentence, arguments' offsets, score and reasons."""
    import msgspec

    lines = []
    for doc in docs:
        for relation in doc.relations:
            if relation.label == extractor.schema.name:
                why = [reason._asdict() for reason in extractor.explain(doc, relation)]
                spans = {
                    part.role: [part.spans[0].start, part.spans[0].end] for part in relation.arguments if part.spans
                }
                place = extractor.sentence_of(doc, relation)._asdict()
                reasons = {
                    "document": doc.id, "sentence": place, "arguments": spans, "score": relation.score, "why": why
                }  # fmt: skip
                lines.append(msgspec.json.encode(reasons).decode())
    write_text(path, "".join(f"{line}\n" for line in lines))


def _score_rows(found: Outcome) -> list[dict[str, Any]]:
    """Return table rows of precision, recall, F1 and AUC, each with value and interval, rounded to 4 digits."""
    figures = {"precision": found.precision, "recall": found.recall, "F1": found.f1, "AUC": found.auc}
    return [
        {"what": name, "value": round(figure.value, 4), "low": round(figure.low, 4), "high": round(figure.high, 4)}
        for name, figure in figures.items()
    ]
