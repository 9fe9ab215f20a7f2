"""Alternate training as published (CHMM-ALT): aggregator and student take turns, each learning from the other.

Phase I: the aggregator joins the votes, and the student learns from its soft labels. Phase II, loop by loop: the
student's distributions are one more source, the aggregator is fitted afresh, the student goes on learning. The state
after every loop is kept in a folder, if there is one: the same call goes on from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.cascade import Cascade
from chaffinch.models.methods import Config
from chaffinch.models.multihmm import MultiHMM
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document
from chaffinch.weak.alternate import LAYER, Alternated, Published, Turn, Watch, f1
from chaffinch.weak.alternate_votes import Fit, Settle, fit_votes, hardened
from chaffinch.weak.source_base import Source
from chaffinch.weak.students import LINEAR, Students, read, whole
from chaffinch.weak.vote_rules import Rule
from chaffinch.weak.votes import SOURCE, sources_of
from chaffinch.weak.weak_tagger import KIND, STUDENT, WeakTagger, with_student

STATE = "loops.json"


def published(
    docs: list[Document], aggregator: MultiHMM | Rule | Fit | None, student: Config | None, how: Published,
    dev: list[Document], sources: Sequence[Source], watch: Watch,
) -> Alternated:  # fmt: skip
    """The best loop on dev documents, or the last one."""
    if SOURCE + STUDENT in {name for doc in docs for name in doc.layers}:
        raise ConfigError(f"a source is called {STUDENT!r}, which is the name of the student; rename it")
    config = student or LINEAR
    folder = _Folder.of(watch.folder, docs, config, how)
    turns, taggers = folder.turns(), folder.taggers()
    voted, settle, fitted = docs, None, -1
    while len(turns) <= how.loops and not _patient_no_more(turns, how, dev):
        if settle is None:  # at the beginning, or where an interrupted run goes on
            voted = _with_student(docs, taggers[-1]) if taggers else docs
            settle = fit_votes(voted, aggregator)
        taggers.append(_taught(settle(voted, KIND), config, taggers[-1] if taggers else None, how))
        voted, fitted = _with_student(docs, taggers[-1]), len(turns)
        settle = fit_votes(voted, aggregator)
        turns.append(_turn(len(turns), settle, taggers[-1], dev))
        folder.keep(turns, taggers[-1])
        if watch.tell is not None:
            watch.tell(turns[-1])
    best = _best(turns) if dev else len(turns) - 1
    if settle is None or fitted != best:
        voted = _with_student(docs, taggers[best])
        settle = fit_votes(voted, aggregator)
    out = [doc.with_layer(LAYER, own.layer(KIND)) for doc, own in zip(docs, settle(voted, KIND), strict=True)]
    tagger = WeakTagger(
        settle, Students(taggers[best].labels, taggers[best]), how="votes", sources=tuple(sources),
        names=sources_of(docs),
    )  # fmt: skip
    return Alternated(tuple(out), tagger, tuple(turns), best)


def _taught(settled: Sequence[Document], config: Config, last: Tagger | None, how: Published) -> Tagger:
    """A student of the aggregator's soft labels; of its spans where it has none."""
    names = sorted({span.label for doc in settled for span in doc.layer(KIND)})
    if not names:
        raise DataError(f"no source labels a span in any of {len(settled)} documents; there is nothing to learn")
    ready = [doc if KIND in doc.soft else doc.with_soft(KIND, hardened(doc, KIND, names)) for doc in settled]
    if last is None or not how.continued or not isinstance(config, Cascade):
        return whole(train(ready, config, soft=KIND))
    slower = replace(
        config, epochs=max(1, config.epochs // 2), rate=config.rate / 2, aggressiveness=config.aggressiveness / 2
    )
    return whole(train(ready, slower, soft=KIND, start=last))


def _with_student(docs: Sequence[Document], tagger: Tagger) -> list[Document]:
    return with_student(docs, read(tagger, docs, tagger.labels), tagger.labels)


def _turn(loop: int, settle: Settle, tagger: Tagger, dev: Sequence[Document]) -> Turn:
    if not dev:
        return Turn(loop)
    gold = [doc.layer("gold") for doc in dev]
    alone = f1(gold, [own.spans for own in read(tagger, dev, tagger.labels)])
    return Turn(loop, f1(gold, [doc.layer(KIND) for doc in settle(_with_student(dev, tagger), KIND)]), alone)


def _best(turns: Sequence[Turn]) -> int:
    """The loop whose aggregator, with the student among its sources, is best on dev documents; of equals the first."""
    return max(range(len(turns)), key=lambda loop: (turns[loop].aggregator or 0.0, -loop))


def _patient_no_more(turns: Sequence[Turn], how: Published, dev: Sequence[Document]) -> bool:
    return bool(dev and turns) and len(turns) - 1 - _best(turns) >= how.patience


class _Folder:
    """The state after each loop: students as model files, and F1 by loop; both complete or not there at all."""

    def __init__(self, place: Path | None, print_: str) -> None:
        self.place, self.print = place, print_

    @classmethod
    def of(cls, place: str | Path | None, docs: Sequence[Document], config: Config, how: Published) -> _Folder:
        """The folder, made if need be; ConfigError if it holds a run with other documents or settings."""
        mark = hashlib.sha256(json.dumps([asdict(config), how.continued], sort_keys=True).encode())
        for doc in docs:
            for name in sorted(own for own in doc.layers if own.startswith(SOURCE)):
                mark.update(f"{name}{[(s.start, s.end, s.label) for s in doc.layers[name]]}".encode())
            mark.update(hashlib.sha256(doc.text.encode()).digest())
        folder = cls(None if place is None else Path(place), mark.hexdigest())
        if folder.place is not None:
            folder.place.mkdir(parents=True, exist_ok=True, mode=0o700)
            state = folder._state()
            if state and state["run"] != folder.print:
                raise ConfigError(f"{place} holds a run with other documents or settings; choose an empty folder")
        return folder

    def turns(self) -> list[Turn]:
        """The loops that are done."""
        state = self._state()
        return [Turn(**own) for own in state["turns"]] if state else []

    def taggers(self) -> list[Tagger]:
        """Their students."""
        return [] if self.place is None else [load(self.place / f"loop{turn.loop}.cfm") for turn in self.turns()]

    def keep(self, turns: Sequence[Turn], tagger: Tagger) -> None:
        """Keeps the last loop; an interrupt before the end leaves the loops before it."""
        if self.place is None:
            return
        tagger.save(self.place / f"loop{turns[-1].loop}.cfm")
        beside = self.place / f".{STATE}"
        beside.write_text(json.dumps({"run": self.print, "turns": [asdict(turn) for turn in turns]}))
        beside.replace(self.place / STATE)

    def _state(self) -> dict[str, Any]:
        if self.place is None or not (self.place / STATE).is_file():
            return {}
        return dict(json.loads((self.place / STATE).read_text()))
