"""`chaffinch weak alternate`: votes, or notes and sources, in; one model file with the tagger and its sources out."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from chaffinch.checks import did_you_mean
from chaffinch.cli import frame
from chaffinch.cli.train import inputs
from chaffinch.cli.weak.results import AlternateDevScore, AlternateResult, LoopScore, VoteEstimate
from chaffinch.cli.weak.votes import Set, Stopped, abort_on_sigint, method_of, settings_of
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.evaluate import Pair, Pairs, score
from chaffinch.models.registry import METHODS as TAGGERS
from chaffinch.models.registry import Config
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, read
from chaffinch.weak.aggregate import BY_NAME
from chaffinch.weak.analysis.results import Outlook
from chaffinch.weak.apply import apply
from chaffinch.weak.embedded import load_packaged_embedder
from chaffinch.weak.sources import Source, is_plain_data, layer_of, load_sources
from chaffinch.weak.tagger import WeakTagger
from chaffinch.weak.training.alternate import LAYER, Alternated, Published, Recipe, Watch, alternate
from chaffinch.weak.training.checkpoints import MODEL, RUN, Step
from chaffinch.weak.training.students import LINEAR, Student
from chaffinch.weak.votes import sources_of

_BARE = "The model does not bring its sources (give --sources), so tag needs documents with votes, or --text-alone."
_CODE = "Sources that are no plain data were not kept in the model; give them to tag with --sources: "
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run after its last finished step.")]


def alternate_command(
    notes: Annotated[Path, typer.Argument(metavar="VOTES|NOTES", help="Documents with votes, or without.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    sources: Annotated[
        Path | None, typer.Option("--sources", "-s", help="The sources, .toml or .py; kept in the model.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"How votes are joined: {', '.join(BY_NAME)}.")] = "multihmm",
    settings: Set = None,
    student: Annotated[
        str | None,
        typer.Option(help=f"What learns: {', '.join(TAGGERS)}, or two, as cascade,encoder; default: ours."),
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Documents with gold, for the threshold or the best loop.")] = None,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="Embeddings too: better, slower; extras.")] = False,
    loops: Annotated[
        int | None, typer.Option(min=1, help="Alternate training as published, with this number of loops.")
    ] = None,
    resume: Resume = False,
    from_: frame.From = None,
    group_by: frame.GroupBy = None,
    lines: frame.Lines = None,
    documents: frame.Documents = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak alternate votes.jsonl --sources sources.toml -o diseases.cfm

    Train a tagger without gold: aggregate the votes, then train students on the result; they add what the sources miss.
    The model file holds the tagger and its sources, for `chaffinch tag`. Dev documents have gold. With --loops,
    aggregator and student take turns. After Ctrl-C, the same command with --resume goes on from the last finished step.
    """
    began = time.perf_counter()
    inputs.check_model_path(output, (notes, sources, dev))
    aggregator, chosen = settings_of(method_of(method), settings or (), seed=seed), _parse_students(student, seed)
    found = () if sources is None else tuple(load_sources(sources))
    reading = ReadOptions(split=frame.split_of(lines), max_chars=max_chars, documents=frame.documents_of(documents))
    pattern, table = frame.read_group_by(group_by)
    voters = _Voters(found, quiet)
    docs = voters.ask(read(notes, format=from_, how=reading, group=pattern, groups=table), notes)
    others = replace(reading, lenient=True)
    held = [] if dev is None else voters.ask(read(dev, how=others, group=pattern, groups=table, must_group=False), dev)
    if dev is not None and not any(doc.layers.get("gold") for doc in held):
        raise DataError("has no span in a layer gold, so it can judge nothing; choose other dev documents", path=dev)
    folder = _steps_folder(output, resume=resume, quiet=quiet)
    if embeddings and loops is not None:
        raise ConfigError("--embeddings is for the recipe; with --loops choose --method chmm or --student encoder")
    embedder = load_packaged_embedder() if embeddings else None
    how = Recipe(embedder=embedder, seed=seed) if loops is None else Published(loops)
    with _keep_steps(folder), frame.live_line("joining votes", step_line, quiet=quiet) as tell:
        result = alternate(docs, aggregator, chosen, how=how, dev=held, sources=found, watch=Watch(tell, folder))
    result.tagger.save(output)
    shutil.rmtree(folder)
    summary = _summarise(result, output, held, seconds=round(time.perf_counter() - began, 1))
    frame.emit(summary, as_json=json, tables=[] if quiet else summary.tables())
    frame.note_cut(reading, quiet=quiet)
    frame.note(remarks := "\n".join(_remarks(found)), quiet=quiet or not remarks)


@dataclass(frozen=True, slots=True)
class _Voters:
    """The sources that vote on documents without votes."""

    sources: tuple[Source, ...]
    quiet: bool

    def ask(self, corpus: Any, path: Path) -> list[Document]:
        """Return documents with votes; run sources if a layer is missing, note their errors; DataError if no votes."""
        docs = list(frame.progress(corpus, "documents", quiet=self.quiet))
        layers = [layer_of(source) for source in self.sources]
        if self.sources and not all(name in doc.layers for doc in docs for name in layers):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a source's warning may quote the document
                voted = apply(self.sources, docs)
            if voted.report.faulty_sources:
                frame.note(f"Sources with errors: {', '.join(voted.report.faulty_sources)}.", quiet=self.quiet)
            for tally in voted.report.sources:
                for hint in tally.hints:
                    frame.note(f"The source {tally.name!r}: {hint}.", quiet=self.quiet)
            docs = list(voted)
        if not sources_of(docs):
            raise DataError("has no votes; give --sources, or run chaffinch weak apply first", path=path)
        return docs


def _parse_students(names: str | None, seed: int) -> Student:
    """Return the one or two students named, our default for None; raise ConfigError if unknown or more."""
    if names is None:
        return replace(LINEAR, seed=seed)
    found = list[Config]()
    for name in map(str.strip, names.split(",")):
        if name not in TAGGERS:
            raise ConfigError(f"--student {name!r} is unknown; {did_you_mean(name, TAGGERS)}")
        found.append(TAGGERS[name].config(seed=seed))
    if len(found) > 2:
        raise ConfigError(f"--student takes one method or two, got {len(found)}")
    return found[0] if len(found) == 1 else (found[0], found[1])


def _steps_folder(output: Path, *, resume: bool, quiet: bool) -> Path:
    """Return the path OUTPUT.steps of finished steps; delete an earlier run's unless resumed, note if there is none."""
    folder = output.with_name(output.name + ".steps")
    if (folder / RUN).is_file() and not resume:
        shutil.rmtree(folder)
    if resume and not folder.exists():
        frame.note("No earlier run was interrupted here; this one starts from the beginning.", quiet=quiet)
    return folder


@contextmanager
def _keep_steps(folder: Path) -> Iterator[None]:
    """Turn Ctrl-C in the block into StoppedEarly with advice on --resume; remove the folder if it has no step."""
    try:
        with warnings.catch_warnings(), abort_on_sigint():
            warnings.simplefilter("ignore")  # sources that never speak are no news at every loop
            yield
    except Stopped:
        if not _remove_if_empty(folder):
            raise KeyboardInterrupt from None
        raise frame.StoppedEarly(f"interrupted; what is done is kept in {folder}: go on with --resume") from None
    except ChaffinchError:
        _remove_if_empty(folder)
        raise


def _remove_if_empty(folder: Path) -> bool:
    """Delete the folder of steps if no step is finished; return whether one is."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if names == {RUN}:
        shutil.rmtree(folder)
    return any(name.endswith(MODEL) for name in names)


def step_line(step: Step) -> str:
    """Return a line on the training step just finished: name, number, dev F1.

    >>> step_line(Step("student fold", 2, 5)), step_line(Step("loop", 1, 2, 0.8514))
    ('student fold 2/5 done', 'loop 1/2 done · dev F1 0.851')
    """
    count = f" {step.number}/{step.total}" if step.total else ""
    return f"{step.name}{count} done" + ("" if step.score is None else f" · dev F1 {step.score:.3f}")


def _summarise(result: Alternated, output: Path, dev: Sequence[Document], *, seconds: float) -> AlternateResult:
    """Return the result of `weak alternate`: counts, estimated and dev scores, seconds."""
    tagger = result.tagger
    return AlternateResult(
        model=str(output),
        documents=len(result.documents),
        sources=len(tagger.names),
        labels=list(tagger.labels),
        spans=sum(len(doc.layers[LAYER]) for doc in result.documents),
        threshold=tagger.threshold if tagger.how == "adds" else None,
        loops=[LoopScore(loop=turn.loop, aggregator=turn.aggregator, student=turn.student) for turn in result.turns],
        best_loop=result.best if result.turns else None,
        dev=_score(tagger, dev) if dev else None,
        estimated=None if result.outlook is None else _estimate(result.outlook),
        megabytes=round(output.stat().st_size / 1e6, 3),
        seconds=seconds,
    )


def _score(tagger: WeakTagger, dev: Sequence[Document]) -> AlternateDevScore:
    """Return micro precision, recall and F1, with the interval of F1, of a tagger on dev documents."""
    pairs = [
        Pair(doc, doc.layers.get("gold", ()), tagged.layers[tagger.layer])
        for doc, tagged in zip(dev, tagger.annotate(dev), strict=True)
    ]
    scores = score(Pairs(tuple(pairs))).micro
    return AlternateDevScore(
        documents=len(dev),
        precision=scores.precision,
        recall=scores.recall,
        f1=scores.f1,
        f1_interval=scores.f1_interval,
    )


def _estimate(outlook: Outlook) -> VoteEstimate:
    """Return estimated precision, recall, F1 and agreement of the aggregated votes, computed without gold."""
    return VoteEstimate(precision=outlook.precision, recall=outlook.recall, f1=outlook.f1, agreement=outlook.agreement)


def _remarks(sources: Sequence[Source]) -> Iterator[str]:
    """Yield remarks for stderr: there are no sources, or some contain code, so that the model cannot hold them."""
    if not sources:
        yield _BARE
    code = [source.name for source in sources if not is_plain_data(source)]
    if code:
        yield _CODE + ", ".join(code) + "."
