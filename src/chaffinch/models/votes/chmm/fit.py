"""Training of a conditional HMM, whose view of each source depends on the token's embedding.

Transitions and confusions of sources are tables for all tokens plus a linear layer on the token's embedding, learnt
without labels by generalised EM: exact posteriors, then a gradient step with these fixed.

T tokens, D numbers of an embedding, L tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Ints, log_partition
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.latent.layout import chunks, tokens_of
from chaffinch.models.votes.chmm import constant as bridge
from chaffinch.models.votes.chmm import layer as chmm_net
from chaffinch.models.votes.chmm.chain import Chain, evaluate_chain, expect, read_batch, warm_start_gradient
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.chmm.layer import Adam, Rows
from chaffinch.models.votes.chmm.model import Model, check
from chaffinch.models.votes.chmm.tables import (
    TokenInput,
    TokenTables,
    f1_of_tags,
    first_tables,
    maximise,
    observe,
    transition_mask,
)
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.model import VotePosterior

__all__ = ["CHMM", "Dev", "Model", "TokenTables", "VotePosterior", "fit"]

IMPOSSIBLE = -30.0  # first log-probability of the impossible: exp(-30) is negligible, and the bias stays finite
FLAT = 1e-6  # embedding columns with a smaller deviation are centred but not scaled


class Dev(NamedTuple):
    """Votes, embeddings (T, D) and gold tags (T,) of the documents that decide when to stop."""

    vote_matrix: VoteMatrix
    embeddings: Rows
    tags: Ints


def fit(
    vote_matrix: VoteMatrix,
    embeddings: Rows,
    config: CHMM | None = None,
    *,
    constant: bridge.Model | None = None,
    dev: Dev | None = None,
    watcher: Watcher | None = None,
) -> Model:
    """Return a model learnt from votes and embeddings (T, D), after an interrupt the best so far; DataError if unfit.

    `constant` is a MultiHMM model that was fitted before; without it the one of the settings is fitted first.
    An interrupt ends learning; the best model so far is kept.
    """
    config, watcher = config or CHMM(), watcher or Watcher()
    check(vote_matrix, embeddings, embeddings.shape[1] if embeddings.ndim == 2 else -1)
    if constant is None and config.constant is not None:
        constant = multihmm.fit(vote_matrix, config.constant, watcher=watcher)
    if constant is not None:
        config, vote_matrix = replace(config, constant=constant.config), constant.select_votes(vote_matrix)
    initial = Model(
        config,
        vote_matrix.names,
        vote_matrix.sources,
        constant,
        _constant_chain(vote_matrix, config, constant),
        *_mean_and_scale(embeddings),
    )
    task = _Task(vote_matrix, initial.observe(vote_matrix), initial.scale_rows(embeddings), dev, watcher)
    try:
        if constant is None:
            initial = _learn_tables(initial, task)
        if watcher.interrupted or not (config.weight > 0 and config.epochs):
            return initial
        return _learn_layers(initial, task)
    except KeyboardInterrupt:
        watcher.interrupted = True
        return initial


def _constant_chain(vote_matrix: VoteMatrix, config: CHMM, constant: bridge.Model | None) -> Chain:
    """Return the chain before training: tables of the constant HMM, or counted from a majority vote."""
    if constant is None:
        return _chain(first_tables(vote_matrix, observe(vote_matrix, config), config), vote_matrix, config)
    tables = bridge.tables_of(constant, vote_matrix, iid=config.iid)
    with np.errstate(divide="ignore"):
        base = TokenTables(bridge.may_follow(constant, iid=config.iid) + np.log(tables.moves), np.log(tables.votes))
    return Chain(tables, None, config.weight, base, False, bridge.ends(constant))


class _Task(NamedTuple):
    """The training data of one call of `fit`."""

    vote_matrix: VoteMatrix
    seen: TokenInput
    rows: Rows  # (T, D) scaled
    dev: Dev | None
    watcher: Watcher

    def parts(self, sentences: Ints, size: int) -> Iterator[tuple[Rows, TokenInput, Ints]]:
        """Yield (embeddings, votes, bounds) of `size` sentences at a time."""
        for first in range(0, len(sentences), size):
            yield self.part(sentences[first : first + size])

    def tiles(self, chain: Chain, sentences: Ints) -> Iterator[tuple[Rows, TokenInput, Ints]]:
        """Yield (embeddings, votes, bounds) of the sentences, in tiles that fit in memory."""
        yield from map(self.part, chunks(sentences, self.vote_matrix.bounds, chain.tile))

    def part(self, sentences: Ints) -> tuple[Rows, TokenInput, Ints]:
        """Return (embeddings, votes, bounds) of some sentences, by number."""
        tokens, bounds = tokens_of(self.vote_matrix.bounds, sentences)
        return self.rows[tokens], self.seen.part(tokens), bounds

    def likelihood(self, chain: Chain, sentences: Ints) -> float:
        """Return the log-likelihood, per token, of the votes on some sentences; 0 without any."""
        tokens = np.diff(self.vote_matrix.bounds)[sentences].sum()
        parts = [
            log_partition(read_batch(chain, evaluate_chain(chain, rows, seen), bounds)).sum()
            for rows, seen, bounds in self.tiles(chain, sentences)
        ]
        return float(sum(parts)) / max(int(tokens), 1)

    def score(self, model: Model, held: Ints) -> float | None:
        """Return a model's F1 on dev tags, else its log-likelihood per token of held-out votes; None without either."""
        if self.dev is not None:
            tags = model.posterior(self.dev.vote_matrix, self.dev.embeddings).tags
            return f1_of_tags(model.names, self.dev.vote_matrix.bounds, self.dev.tags, tags)
        return self.likelihood(model.chain, held) if len(held) else None


def _learn_tables(model: Model, task: _Task) -> Model:
    """Return the model with tables learnt by EM on all sentences, up to an interrupt, before there are layers."""
    config, everything = model.config, np.arange(len(task.vote_matrix.bounds) - 1)
    may = transition_mask(task.vote_matrix, config)
    try:
        for done in range(config.passes):
            posteriors = [expect(model.chain, *tile) for tile in task.tiles(model.chain, everything)]
            if not posteriors:
                break
            counts = TokenTables(*(sum(tables) for tables in zip(*(post.counts for post in posteriors), strict=True)))
            tables = maximise(counts, may, config.prior, model.chain.tables)
            model = replace(model, chain=_chain(tables, task.vote_matrix, config))
            if task.watcher.tell is not None:
                loss = -sum(float(post.log_likelihood.sum()) for post in posteriors) / max(len(task.vote_matrix), 1)
                task.watcher.tell(Progress("tables", done + 1, config.passes, loss))
    except KeyboardInterrupt:
        task.watcher.interrupted = True
    return model


def _learn_layers(model: Model, task: _Task) -> Model:
    """Return the model with layers learnt by generalised EM: its best epoch, if scored, else its last.

    An interrupt ends learning and is noted in the watcher.
    """
    config, rng = model.config, np.random.default_rng(model.config.seed)
    train, held = _split(task.vote_matrix, 0.0 if task.dev is not None else config.held_out, rng)
    R, L = model.chain.tables.moves.shape
    B = model.chain.tables.votes.size
    weights = chmm_net.initial_weights(task.rows.shape[1], R * L, B, config.rank, rng, zero=config.offset)
    if not config.offset:  # the optimum of a warm start on squares; the warm start continues from it
        with np.errstate(divide="ignore"):
            logs = (np.maximum(np.log(table), IMPOSSIBLE).reshape(-1) for table in model.chain.tables)
            weights["moves bias"], weights["votes bias"] = logs
    weights = {name: array.astype(task.rows.dtype) for name, array in weights.items()}
    chain = model.chain._replace(weights=weights)
    adam = Adam(config.rate, 0.0)
    for _ in range(0 if config.offset else config.warm):
        for rows, seen, _ in task.parts(rng.permutation(train), config.batch):
            adam.step(weights, warm_start_gradient(chain, rows, seen))
    adam, last = Adam(config.rate, config.ridge), replace(model, chain=_copy(chain))
    score = task.score(last, held)
    best, best_epoch, best_score = last, 0, -np.inf if score is None else score
    try:
        for epoch in range(1, config.epochs + 1):
            chain, loss = _epoch(chain, task, adam, train[rng.permutation(len(train))], config)
            last = replace(model, chain=_copy(chain))
            score = task.score(last, held)
            if score is not None and score > best_score:
                best, best_epoch, best_score = last, epoch, score
            if task.watcher.tell is not None:
                task.watcher.tell(Progress("layers", epoch, config.epochs, loss, score))
            if score is not None and epoch - best_epoch >= config.patience:
                break
    except KeyboardInterrupt:
        task.watcher.interrupted = True
    task.watcher.scores["epochs of layers"] = float(best_epoch if score is not None else config.epochs)
    return last if score is None else best


def _epoch(chain: Chain, task: _Task, adam: Adam, train: Ints, config: CHMM) -> tuple[Chain, float]:
    """Take an Adam step per batch, then update tables that are learnt; return (chain, loss per token)."""
    total, tokens, counts = 0.0, 0, []
    for rows, seen, bounds in task.parts(train, config.batch):
        post = expect(chain, rows, seen, bounds)
        total, tokens = total - float(post.log_likelihood.sum()), tokens + len(rows)
        counts.append(post.counts)
        if chain.weights is not None and len(rows):
            adam.step(chain.weights, {name: slope / len(rows) for name, slope in post.slopes.items()})
    if config.weight < 1 and config.constant is None and counts:
        summed = TokenTables(*(sum(tables) for tables in zip(*counts, strict=True)))
        chain = chain._replace(
            tables=maximise(summed, transition_mask(task.vote_matrix, config), config.prior, chain.tables)
        )
    return chain, total / max(tokens, 1)


def _chain(tables: TokenTables, vote_matrix: VoteMatrix, config: CHMM) -> Chain:
    """Return a chain of these tables without layers; with `offset`, layers will add to the tables' logs."""
    may = transition_mask(vote_matrix, config)
    base = TokenTables(np.where(may, 0.0, -np.inf), np.zeros((1, 1, 1)))
    if config.offset:
        with np.errstate(divide="ignore"):
            base = TokenTables(np.where(may, np.log(tables.moves), -np.inf), np.log(tables.votes))
    return Chain(tables, None, config.weight, base, config.voted_is_entity, np.zeros(tables.moves.shape[1]))


def _copy(chain: Chain) -> Chain:
    """Return the chain with copies of its layers' weights."""
    return chain._replace(weights={name: array.copy() for name, array in (chain.weights or {}).items()})


def _split(vote_matrix: VoteMatrix, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return (sentences to learn from, sentences of a random `share` of documents to hold out), as numbers."""
    N = len(vote_matrix.documents) - 1
    held = rng.permutation(N) < round(share * N)
    document = np.searchsorted(vote_matrix.documents, vote_matrix.bounds[:-1], side="right") - 1
    out = held[np.minimum(document, max(N - 1, 0))] if N else np.zeros(len(document), np.bool_)
    return np.flatnonzero(~out), np.flatnonzero(out)


def _mean_and_scale(embeddings: Rows) -> tuple[Rows, Rows]:
    """Return means and standard deviations of columns (D,); 1 in place of a deviation of about 0."""
    D = embeddings.shape[1]
    mean = embeddings.mean(axis=0, dtype=np.float64) if len(embeddings) else np.zeros(D)
    scale = embeddings.std(axis=0, dtype=np.float64) if len(embeddings) else np.ones(D)
    return mean.astype(embeddings.dtype), np.where(scale > FLAT, scale, 1.0).astype(embeddings.dtype)
