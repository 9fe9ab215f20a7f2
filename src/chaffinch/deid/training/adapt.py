"""Adaptation of a model to the notes of a site, with or without labels.

    notes  →  patterns, model, known words and protected terms vote  →  aggregated votes
           →  each tagger trains further  →  the taggers, and a new dial
    reviewed notes  →  invented identifiers in place of theirs  →  the contextual reader learns further, if asked

Silence is an abstention: a token without a vote, of which the old model is not sure that it is O, has no label for the
new tagger. The tagger learns from generated notes as well, so that it forgets nothing. T tokens, L tags, the first of
which is O.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chaffinch.deid.detect import cues
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.detect.model import Model, upper_if_caseless
from chaffinch.deid.detect.token_scores import token_flags
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.learn import (
    GOLD,
    LOWEST,
    DetectorLesson,
    ProgressCallback,
    dial_samples,
    learn,
    with_lists,
    with_training_labels,
)
from chaffinch.deid.training.reader import adapt_reader
from chaffinch.errors import ConfigError, DataError
from chaffinch.models import tagger
from chaffinch.models.core.labels import Fitted, Labels, pieces_of
from chaffinch.models.registry import METHODS, Config, method_of
from chaffinch.models.tagger import Tagger
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document, Soft, Span, resolve
from chaffinch.weak import aggregate
from chaffinch.weak.votes import SOURCE

FEWEST = 2  # notes to adapt to
# The chance of O from which the old model, or the votes, are sure of it. Lowered, more tokens are learnt as O, missed
# identifiers among them; raised, fewer ordinary words are learnt from.
SURE_OF_O = 0.98
# A word becomes a known name if it was found as one in at least KNOWN_TIMES notes, and in at least KNOWN_SHARE of the
# notes with it. Lower values repeat more names, and more mistakes.
KNOWN_TIMES, KNOWN_SHARE = 2, 0.6
EPOCHS = 4  # of further training; more fit the votes closer
REPLAYED = 60  # patients of generated notes, with three notes each; fewer forget more, more take longer
HELD_OUT = 4  # every fourth patient's notes set the dial
FEWEST_PATIENTS = 4  # with reviewed notes, to set the dial on these alone, and to check: else a fold learns from one
_VOTED, _TARGET = "votes joined", "told"


@dataclass(frozen=True, slots=True, repr=False)
class SiteLesson:
    """What a model learns beside the notes of a site, and whether its reader learns from reviewed ones.

    `replay` are notes with gold that prevent forgetting; by default generated ones. The reader needs the extra neural.
    """

    replay: Sequence[Document] | None = None
    reader: bool = False

    def draw_replay(self, seed: int, lists: WordLists) -> list[Document]:
        """Return the notes that prevent forgetting; by default generated ones, without hidden words of the lists."""
        if self.replay is not None:
            return list(self.replay)
        return list(synth.notes(REPLAYED, 3, seed=seed + 1, style="varied", hidden=lists.hidden))


def adapt(
    notes: Sequence[Document],
    model: Model | None,
    *,
    gold: Sequence[Document] | None = None,
    lesson: SiteLesson | None = None,
    language: str | None = None,
    seed: int = 0,
    lists: WordLists | None = None,
    tell: ProgressCallback | None = None,
) -> Model:
    """Return the model trained further on unlabelled and reviewed (`gold`) notes; without a model, one of `gold` alone.

    Without a model, train on reviewed notes alone, in any language; `language` names word lists to use. The dial is set
    on reviewed notes, joined by generated ones if few patients have any; without, on the aggregated votes of held-out
    notes and on generated ones. A contextual reader learns from reviewed notes if the lesson says so; else it stays as
    it is. The dials with it and without it are both set. No pattern hit is lost: rules count beside any model. `lists`
    are the word lists of rules and taggers, by default the whole ones.
    """
    known_lists, plan = lists or word_lists(), lesson or SiteLesson()
    reviewed = [_only_gold(doc) for doc in gold or ()]
    if model is None:
        whole = DetectorLesson.for_other_languages(language)
        return learn(_require_identifiers(reviewed), seed=seed, tell=tell, lesson=whole, lists=known_lists)
    if language is not None:
        raise ConfigError(
            "language names word lists for training without a model; leave out language, or leave out the model"
        )
    if not model.taggers:
        raise DataError("this model has no tagger to adapt; adapt deid-en, or give reviewed notes and no model")
    if plan.reader and model.context is None:
        raise ConfigError("this model has no contextual reader to adapt; adapt deid-en, or keep the reader out of it")
    for old in model.taggers:
        if not _adapts(old.model.config):
            able = [method.name for method in METHODS.values() if _adapts(method.config())]
            kind = old.manifest.kind
            raise DataError(f"a {kind} cannot train further; adapt deid-en, or a model of {' or '.join(able)}")
    # What patterns find always counts: votes of one site are too few to overrule them.
    model = replace(with_lists(model, known_lists), overrules=False)
    reviewed_ids = {doc.id for doc in reviewed}
    unreviewed = [doc for doc in notes if doc.id not in reviewed_ids]
    if len(unreviewed) + len(reviewed) < FEWEST:
        raise DataError(f"there are {len(unreviewed) + len(reviewed)} notes; give at least {FEWEST} to adapt to")
    again, as_written = plan.draw_replay(seed, known_lists), reviewed
    if model.rules:
        unreviewed, reviewed, again = (
            [upper_if_caseless(doc) for doc in docs] for docs in (unreviewed, reviewed, again)
        )
    labelled = [*label_by_votes(unreviewed, model, known_lists), *_label_by_gold(reviewed, known_lists)]
    replayed = _label_by_gold(map(_only_gold, again), known_lists)
    fit = _FurtherTraining(model, seed, tell, known_lists, tuple(as_written) if plan.reader else ())
    first, held_out = fit.hold_out(labelled, replayed, as_written)  # the reader has its dial for notes as they are
    final = replace(fit([*labelled, *replayed]), dial=fit.fit_dial(first, held_out, reviewed), checksum="")
    if final.context is None:
        return final
    fast = fit.fit_dial(first.fast(), held_out, reviewed)  # what the reader's absence needs
    return replace(final, context=replace(final.context, fast_dial=fast))


def _adapts(config: Config) -> bool:
    """Tell whether models with these settings can train further on soft labels, and have the setting `private`."""
    method = method_of(config)
    return method.learns("soft", config) and method.learns("model", config) and method.has_setting("private")


@dataclass(frozen=True, slots=True)
class _FurtherTraining:
    """Further training of the taggers of a model, and of its reader where it has notes for it."""

    model: Model
    seed: int
    tell: ProgressCallback | None
    lists: WordLists
    for_reader: tuple[Document, ...] = ()  # reviewed notes as they are written

    def __call__(self, docs: Sequence[Document], left_out: Collection[str] = ()) -> Model:
        """Return the model trained further on the documents; patients `left_out` are kept from the reader as well."""
        taggers, context = tuple(self._train(old, docs) for old in self.model.taggers), self.model.context
        notes = [doc for doc in self.for_reader if doc.patient not in left_out]
        if context is not None and notes:
            context = adapt_reader(context, notes, seed=self.seed, tell=self.tell)
        return replace(self.model, taggers=taggers, context=context, checksum="")

    def _train(self, old: Tagger, docs: Sequence[Document]) -> Tagger:
        """Train a tagger further; mask labels it does not have, unless its method learns new labels."""
        config: Any = replace(old.model.config, epochs=EPOCHS, seed=self.seed, private=True)
        if not method_of(config).new_labels:
            docs = [doc.with_soft(_TARGET, _keep_labels(doc.soft[_TARGET], old.labels)) for doc in docs]
        return tagger.train(docs, config, soft=_TARGET, start=old, progress=self.tell)

    def hold_out(
        self, labelled: Sequence[Document], replayed: Sequence[Document], reviewed: Sequence[Document]
    ) -> tuple[Model, list[Document]]:
        """Train on part of the documents; return that model, and held-out documents to fit the dial on.

        These are of reviewed patients if there are any; generated notes are among them if these are few.
        """
        patients = sorted({doc.patient for doc in reviewed or labelled})
        held_out = set(patients[::HELD_OUT]) if len({doc.patient for doc in labelled}) > 1 else set()
        some = [doc for number, doc in enumerate(replayed) if number % HELD_OUT]
        model = self([*(doc for doc in labelled if doc.patient not in held_out), *some], held_out)
        by_id = {doc.id: doc for doc in reviewed}
        tested = [doc for doc in labelled if doc.patient in held_out]
        if by_id:
            tested = [by_id[doc.id] for doc in tested if doc.id in by_id]
        tells = len({doc.patient for doc in reviewed}) >= FEWEST_PATIENTS and any(doc.layer(GOLD) for doc in tested)
        others = [] if by_id and tells else replayed[::HELD_OUT]
        return model, [*tested, *others]

    def fit_dial(self, model: Model, docs: Sequence[Document], reviewed: Sequence[Document]) -> dial.Dial:
        """Return a dial fitted on documents that the model did not learn from, by their gold, else by their votes.

        If all are reviewed, it also says what to expect, and promises, on notes of the site's other patients.
        """
        by_gold = {doc.id for doc in reviewed}
        samples = [
            sample if doc.id in by_gold or _TARGET not in doc.soft else _only_labelled(sample, doc.soft[_TARGET])
            for doc, sample in zip(docs, dial_samples(model, docs, model.labels, self.lists), strict=True)
        ]
        if all(doc.id in by_gold for doc in docs):
            return dial.fit_by_group(samples, [doc.patient for doc in docs], model.labels, lowest=LOWEST)
        return dial.fit(dial.DialSample.join(samples), model.labels, lowest=LOWEST)


def _keep_labels(soft: Soft, names: Sequence[str]) -> Soft:
    """Return the soft labels with the tags of these labels only; tokens that may have another label are left open."""
    known = np.array([tag == "O" or tag[2:] in names for tag in soft.labels])
    open_rows = soft.values[:, ~known].sum(axis=1) > 0
    labels = tuple(tag for tag, keep in zip(soft.labels, known.tolist(), strict=True) if keep)
    return Soft(labels, np.where(open_rows[:, None], 0.0, soft.values[:, known]))


def _only_labelled(sample: dial.DialSample, soft: Soft) -> dial.DialSample:
    """Return the sample of the tokens with a soft label, as gold those whose likeliest label is not O."""
    rows = soft.values.sum(axis=1) > 0
    right = soft.values.argmax(axis=1) > 0
    return dial.DialSample(sample.chances[rows], sample.types[rows], sample.ruled[rows], right[rows])


def label_by_votes(notes: Sequence[Document], model: Model, lists: WordLists) -> list[Document]:
    """Return the notes with cues and with soft labels from aggregated votes; rows of zeros are abstentions."""
    if not notes:
        return []
    bare = [replace(doc, layers={}, soft={}, relations=()) for doc in notes]
    found = list(HybridDetector(model, lists=lists)(bare))
    ready = _with_known([_votes(*pair, lists) for pair in zip(cues.with_cues(bare, lists), found, strict=True)], lists)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about sources that never vote
        aggregated = aggregate(ready, MultiHMM(), layer=_VOTED)
    return [_label_tokens(*pair) for pair in zip(aggregated, found, strict=True)]


def _votes(doc: Document, found: Document, lists: WordLists) -> Document:
    """Return the document with layers of votes by patterns, model, repeats and sure protected terms (label O)."""
    votes = {"patterns": list(doc.layers[patterns.LAYER])}
    votes["model"] = [span for span in found.layers[LAYER] if span.source in ("model", "dial")]
    votes["repeats"] = [span for span in found.layers[LAYER] if span.source in ("alignment", "repeat")]
    votes["protected"] = [span for span in lists.find_protected(doc) if span.score == 1.0]
    for name, spans in votes.items():
        doc = doc.with_layer(SOURCE + name, with_training_labels(spans))
    return doc


def _with_known(docs: Sequence[Document], lists: WordLists) -> list[Document]:
    """Return the documents with votes for title-cased words found as names in two notes or more and most with them."""
    found, seen = Counter[tuple[str, str]](), Counter[str]()
    for doc in docs:
        spans = [*doc.layers[SOURCE + "model"], *doc.layers[SOURCE + "patterns"]]
        names = [span for span in spans if kind_of(span.label).is_proper_name]
        label = {word: span.label for span in names for word in doc.text[span.start : span.end].split()}
        inside = token_flags(doc, names)
        words = doc.words()
        seen.update({word for word in words if _may_be_known(word, lists)})
        found.update(
            {(word, label[word]) for word, named in zip(words, inside, strict=True) if named and word in label}
        )
    known = {
        word: label
        for (word, label), times in found.items()
        if times >= KNOWN_TIMES and times >= KNOWN_SHARE * seen[word] and _may_be_known(word, lists)
    }
    return [doc.with_layer(SOURCE + "known", _find_known(doc, known)) for doc in docs]


def _may_be_known(word: str, lists: WordLists) -> bool:
    """Tell whether a word may be learnt as a known name: title-cased, three letters or more, and a possible name."""
    return len(word) > 2 and word.istitle() and word.isalpha() and lists.is_name(word)


def _find_known(doc: Document, known: Mapping[str, str]) -> Iterator[Span]:
    """Yield a span for each token that is in `known`, with its label there."""
    for start, end in doc.tokens.tolist():
        label = known.get(doc.text[start:end])
        if label:
            yield Span(start, end, label)


def _label_tokens(doc: Document, found: Document) -> Document:
    """Return the document with one-hot labels by its votes: identifiers, O where sure; zeros where in doubt."""
    soft, sure = doc.soft[_VOTED], found.soft[LAYER].values[:, 0] >= SURE_OF_O
    voted = np.zeros(len(doc.tokens), np.bool_)
    for name, spans in doc.layers.items():
        if name.startswith(SOURCE):
            voted |= token_flags(doc, spans)
    best = soft.values.argmax(axis=1)
    rows = np.zeros_like(soft.values)
    rows[np.arange(len(best)), best] = 1.0
    rows[(best == 0) & ~sure & ~voted] = 0.0
    rows[(best == 0) & voted & ~sure & (soft.values[:, 0] < SURE_OF_O)] = 0.0
    return doc.with_layer(GOLD, doc.layers[_VOTED]).with_soft(_TARGET, Soft(soft.labels, rows))


def _label_by_gold(docs: Iterable[Document], lists: WordLists) -> list[Document]:
    """Return the documents with cues and with their gold spans as soft labels."""
    ready = [doc.with_layer(GOLD, with_training_labels(doc.layers[GOLD])) for doc in cues.with_cues(docs, lists)]
    names = tuple(sorted({span.label for doc in ready for span in doc.layers[GOLD]}))
    labels, numbers = Labels(names, "IOB2"), {name: number for number, name in enumerate(names)}
    known = np.eye(len(labels.tags))
    out = []
    for doc in ready:
        tags = labels.encode(pieces_of(doc, doc.layers[GOLD], numbers, Fitted()), len(doc.tokens))
        out.append(doc.with_soft(_TARGET, Soft(labels.tags, known[tags])))
    return out


def _only_gold(doc: Document) -> Document:
    """Return the document with its gold or only layer as "gold", overlaps resolved, and nothing else."""
    return replace(doc, layers={GOLD: resolve(doc.layer(), "longest")}, soft={}, relations=())


def _require_identifiers(reviewed: Sequence[Document]) -> Sequence[Document]:
    """Return the reviewed notes; raise DataError if none has an identifier."""
    if not any(doc.layers[GOLD] for doc in reviewed):
        raise DataError("there is no reviewed note with an identifier; without a model, give notes with a gold layer")
    return reviewed
