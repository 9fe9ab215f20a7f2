"""Training of phrase HMMs for relations: the grammar of a sentence in the states of a hidden Markov model.

A positive model of sentences that state the relation, with states for its arguments, and a null model of the others. A
sentence is read by both; the relation is found where the positive model is likelier and its best path visits a state of
every domain, or where the best path of the combined model does. Learning is counting; then, if the settings ask for it
and held-out groups gain, raising the probability of the right labels given the words.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Ints
from chaffinch.models.phrasehmm import estimate as estimates
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.discriminative import Pairs, train
from chaffinch.models.phrasehmm.encoding import Sentence, Symbols, check, text_of
from chaffinch.models.phrasehmm.model import Model, check_domains
from chaffinch.models.phrasehmm.states import NONE, NULL, POSITIVE, States, zones_of

__all__ = ["Model", "PhraseHMM", "Sentence", "fit"]

log = logging.getLogger("chaffinch.models")

PATIENCE = 2  # epochs without a gain on held-out groups after which training ends; higher tries longer
TUNING_SPLITS = 3  # random splits over which weights are scored; more is steadier and slower
FACTORS = {"emission_m": (0.1, 1.0, 10.0, 100.0, 400.0), "transition_m": (0.3, 1.0, 3.0, 10.0)}  # of the usual weights


def fit(
    sentences: Sequence[Sentence], domains: Sequence[str], config: PhraseHMM | None = None, *,
    groups: Sequence[str] | None = None,
) -> Model:  # fmt: skip
    """Return a phrase HMM learnt from sentences, positive if a segment has a label; DataError unless both kinds occur.

    `groups` names the document or patient of each sentence: whole groups are held out. Domain a of
    `domains` has the label `1 << a`.
    """
    config, names = config or PhraseHMM(), check_domains(domains)
    check(sentences, len(names))
    keys = [str(n) for n in range(len(sentences))] if groups is None else list(groups)
    if len(keys) != len(sentences):
        raise DataError(f"{len(keys)} groups for {len(sentences)} sentences; give each sentence one")
    kept = _select_training(sentences, config)
    sentences, keys = [sentences[n] for n in kept], [keys[n] for n in kept]
    if not (config.tune or config.trainer != "ml"):
        return _fit_by_counting(sentences, names, config)
    if not config.held_out:
        return _fit_fixed_epochs(sentences, names, config)
    inside, outside = split(keys, config.held_out, config.seed)
    parts = [[sentences[n] for n in numbers] for numbers in (inside, outside)]
    if not all(_has_both_classes(part) for part in parts):
        log.warning("too few groups to hold some out: weights are not tuned and the trainer is not used")
        return _fit_by_counting(sentences, names, config)
    if config.tune:
        config = _tune(sentences, keys, names, config)
    if config.trainer == "ml":
        return _fit_by_counting(sentences, names, config)
    return _fit_discriminative(sentences, parts, names, config)


def _select_training(sentences: Sequence[Sentence], config: PhraseHMM) -> Ints:
    """Return the numbers of sentences to learn from; with `balance` as many negative as positive; or DataError."""
    positive = np.array([sentence.positive for sentence in sentences], np.bool_)
    filled = np.array([len(sentence.types) > 0 for sentence in sentences], np.bool_)
    good, bad = np.flatnonzero(positive & filled), np.flatnonzero(~positive & filled)
    if not len(good) or not len(bad):
        missing, need = ("positive", "labels on its arguments") if not len(good) else ("negative", "no label at all")
        raise DataError(f"there is no {missing} sentence to learn from; give at least one with {need}")
    if config.balance and len(bad) > len(good):
        bad = np.random.default_rng(config.seed).choice(bad, len(good), replace=False)
    return np.sort(np.concatenate([good, bad]))


def _has_both_classes(sentences: Sequence[Sentence]) -> bool:
    """Tell whether there are positive and negative sentences."""
    return {sentence.positive for sentence in sentences} == {True, False}


def _layout(sentences: Sequence[Sentence], domains: tuple[str, ...], config: PhraseHMM) -> States:
    """Return the states for all (sub-model, type, label, zone) that the sentences show, each `states` times."""
    seen: set[tuple[int, str, int, int]] = set()
    for sentence in sentences:
        if not sentence.positive:
            seen.update((NULL, kind, 0, NONE) for kind in sentence.types)
            continue
        zones = zones_of(np.array(sentence.labels), zones=config.zones).tolist()
        seen.update((POSITIVE, *row) for row in zip(sentence.types, sentence.labels, zones, strict=True))
    return States.of(seen, domains, config.states, config.inner_states if config.hierarchical else 0)


def _fit_by_counting(sentences: Sequence[Sentence], domains: tuple[str, ...], config: PhraseHMM) -> Model:
    """Return the model of maximum likelihood, smoothed, of the sentences."""
    states, symbols = _layout(sentences, domains, config), Symbols.of(sentences, config)
    text = text_of(sentences, states, symbols, masked=config.entities, learning=True)
    estimate = estimates.fit_tables(states, text, symbols.sizes, config, np.random.default_rng(config.seed))
    return Model(config, states, symbols, estimate.tables)


def _tune(sentences: Sequence[Sentence], keys: Sequence[str], domains: tuple[str, ...], config: PhraseHMM) -> PhraseHMM:
    """Return the settings with the emission and transition weights, tried in turn, that make held-out labels likeliest.

    The joint likelihood of words and labels is not used: it favours states that know the words of their type well and
    separate positive from negative sentences badly.
    """
    cuts = [split(keys, config.held_out, config.seed + n) for n in range(TUNING_SPLITS)]

    def score(tried: PhraseHMM) -> float:
        """Return the held-out conditional log-likelihood of settings, summed over the splits."""
        total = 0.0
        for parts in cuts:
            inside, outside = ([sentences[n] for n in numbers] for numbers in parts)
            if _has_both_classes(inside):
                model = _fit_by_counting(inside, domains, tried)
                total += _pairs(model, outside).log_conditional(model.tables)
        return total

    for name, usual in (("emission_m", config.emission_weight), ("transition_m", config.transition_weight)):
        tried = [replace(config, **{name: factor * usual}) for factor in FACTORS[name]]  # type: ignore[arg-type]  # floats
        config = tried[int(np.argmax([score(candidate) for candidate in tried]))]
    return replace(config, tune=False)


def _pairs(model: Model, sentences: Sequence[Sentence]) -> Pairs:
    """Return the sentences with their correct and all paths, as the discriminative trainers need them."""
    text = text_of(sentences, model.states, model.symbols, masked=model.config.entities, learning=True)
    return Pairs.of(model.states, text)


def _fit_fixed_epochs(sentences: Sequence[Sentence], domains: tuple[str, ...], config: PhraseHMM) -> Model:
    """Return the model after all `epochs` of the trainer; nothing is held out."""
    model = _fit_by_counting(sentences, domains, config)
    *_, tables = train(model.tables, _pairs(model, sentences), config)
    return replace(model, tables=tables, kept=config.epochs)


def _fit_discriminative(
    sentences: Sequence[Sentence], parts: Sequence[Sequence[Sentence]], domains: tuple[str, ...], config: PhraseHMM
) -> Model:
    """Return the model of all sentences after as many epochs as held-out ones (`parts[1]`) gain from, or none."""
    begin = _fit_by_counting(parts[0], domains, config)
    judge = _pairs(begin, parts[1])
    scores = [judge.log_conditional(begin.tables)]
    for tables in train(begin.tables, _pairs(begin, parts[0]), config):
        scores.append(judge.log_conditional(tables))
        if len(scores) - 1 - int(np.argmax(scores)) >= PATIENCE:
            break
    kept, model = int(np.argmax(scores)), _fit_by_counting(sentences, domains, config)
    tables = model.tables
    if kept:
        *_, tables = train(tables, _pairs(model, sentences), replace(config, epochs=kept))
    log.info("held-out groups kept %d epochs of %s training", kept, config.trainer)
    return replace(model, tables=tables, held_out=np.array(scores) / max(len(judge.usable), 1), kept=kept)


def split(groups: Sequence[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Return (numbers to learn from, to hold out): whole groups, about `share` of these, one held out at least."""
    names = sorted(set(groups))
    drawn = np.random.default_rng(seed).permutation(len(names))[: max(round(share * len(names)), 1)]
    out = {names[n] for n in drawn.tolist()}
    inside = [n for n, name in enumerate(groups) if name not in out]
    return inside, [n for n, name in enumerate(groups) if name in out]
