"""The conditional HMM: many sources' votes to one soft label per token, by what its embedding says of the sources.

Transitions and confusions of sources are tables for all tokens plus a linear layer on the token's embedding, learnt
without labels by generalised EM: exact posteriors, then a step of gradient with these held.

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
from chaffinch.models.votes.chmm.chain import Chain, expect, lay, read_batch, towards
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.chmm.layer import Adam, Rows
from chaffinch.models.votes.chmm.model import Model, check
from chaffinch.models.votes.chmm.tables import (
    TokenInput,
    TokenTables,
    allowed,
    first_tables,
    maximise,
    observe,
    tagged_f1,
)
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.model import Result

__all__ = ["CHMM", "Dev", "Model", "Result", "TokenTables", "fit"]

IMPOSSIBLE = -30.0  # the log of what has no chance, for a layer to begin with
FLAT = 1e-6  # numbers that vary less are not scaled


class Dev(NamedTuple):
    """Votes, embeddings (T, D) and right tags (T,) of documents that decide when to stop."""

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
    """The model of votes on tokens with embeddings (T, D).

    `constant` is an HMM of many sources that was learnt elsewhere; without it the one of the settings is learnt first.
    An interrupt ends learning; the best till then is kept.
    """
    config, watcher = config or CHMM(), watcher or Watcher()
    check(vote_matrix, embeddings, embeddings.shape[1] if embeddings.ndim == 2 else -1)
    if constant is None and config.constant is not None:
        constant = multihmm.fit(vote_matrix, config.constant, watcher=watcher)
    if constant is not None:
        config, vote_matrix = replace(config, constant=constant.config), constant.fitting(vote_matrix)
    begun = Model(
        config,
        vote_matrix.names,
        vote_matrix.sources,
        constant,
        _constant_chain(vote_matrix, config, constant),
        *_spread(embeddings),
    )
    task = _Task(vote_matrix, begun.observe(vote_matrix), begun.scaled(embeddings), dev, watcher)
    try:
        if constant is None:
            begun = _counted(begun, task)
        return _learnt(begun, task) if config.weight > 0 and config.epochs else begun
    except KeyboardInterrupt:
        watcher.interrupted = True
        return begun


def _constant_chain(vote_matrix: VoteMatrix, config: CHMM, constant: bridge.Model | None) -> Chain:
    """The chain before anything is learnt here."""
    if constant is None:
        return _chain(first_tables(vote_matrix, observe(vote_matrix, config), config), vote_matrix, config)
    tables = bridge.tables_of(constant, vote_matrix, iid=config.iid)
    with np.errstate(divide="ignore"):
        base = TokenTables(bridge.may_follow(constant, iid=config.iid) + np.log(tables.moves), np.log(tables.votes))
    return Chain(tables, None, config.weight, base, False, bridge.ends(constant))


class _Task(NamedTuple):
    """What a run of `fit` learns from."""

    vote_matrix: VoteMatrix
    seen: TokenInput
    rows: Rows  # (T, D) scaled
    dev: Dev | None
    watcher: Watcher

    def parts(self, sentences: Ints, size: int) -> Iterator[tuple[Rows, TokenInput, Ints]]:
        """Embeddings, votes and bounds of so many of the sentences at a time."""
        for first in range(0, len(sentences), size):
            yield self.part(sentences[first : first + size])

    def tiles(self, chain: Chain, sentences: Ints) -> Iterator[tuple[Rows, TokenInput, Ints]]:
        """The same, of as many sentences as are read at once."""
        yield from map(self.part, chunks(sentences, self.vote_matrix.bounds, chain.tile))

    def part(self, sentences: Ints) -> tuple[Rows, TokenInput, Ints]:
        """Embeddings, votes and bounds of some sentences."""
        tokens, bounds = tokens_of(self.vote_matrix.bounds, sentences)
        return self.rows[tokens], self.seen.part(tokens), bounds

    def likelihood(self, chain: Chain, sentences: Ints) -> float:
        """The log-likelihood of the votes on some sentences, per token."""
        tokens = np.diff(self.vote_matrix.bounds)[sentences].sum()
        parts = [
            log_partition(read_batch(chain, lay(chain, rows, seen), bounds)).sum()
            for rows, seen, bounds in self.tiles(chain, sentences)
        ]
        return float(sum(parts)) / max(int(tokens), 1)

    def score(self, model: Model, held: Ints) -> float | None:
        """How good a model is: by dev tags, by held-out likelihood, or unknown."""
        if self.dev is not None:
            found = model.posterior(self.dev.vote_matrix, self.dev.embeddings).tags
            return tagged_f1(model.names, self.dev.vote_matrix.bounds, self.dev.tags, found)
        return self.likelihood(model.chain, held) if len(held) else None


def _counted(model: Model, task: _Task) -> Model:
    """The model with tables by EM."""
    config, everything = model.config, np.arange(len(task.vote_matrix.bounds) - 1)
    may = allowed(task.vote_matrix, config)
    for done in range(config.passes):
        found = [expect(model.chain, *own) for own in task.tiles(model.chain, everything)]
        if not found:
            break
        counts = TokenTables(*(sum(own) for own in zip(*(one.counts for one in found), strict=True)))
        tables = maximise(counts, may, config.prior, model.chain.tables)
        model = replace(model, chain=_chain(tables, task.vote_matrix, config))
        if task.watcher.tell is not None:
            loss = -sum(float(one.log_likelihood.sum()) for one in found) / max(len(task.vote_matrix), 1)
            task.watcher.tell(Progress("tables", done + 1, config.passes, loss))
    return model


def _learnt(model: Model, task: _Task) -> Model:
    """The model with layers by generalised EM: the best epoch, by dev tags or held-out votes, or the last."""
    config, rng = model.config, np.random.default_rng(model.config.seed)
    train, held = _split(task.vote_matrix, 0.0 if task.dev is not None else config.held_out, rng)
    R, L = model.chain.tables.moves.shape
    B = model.chain.tables.votes.size
    weights = chmm_net.begun(task.rows.shape[1], R * L, B, config.rank, rng, zero=config.offset)
    if not config.offset:  # where a warm start on squares ends; it goes on from here
        with np.errstate(divide="ignore"):
            logs = (np.maximum(np.log(own), IMPOSSIBLE).reshape(-1) for own in model.chain.tables)
            weights["moves bias"], weights["votes bias"] = logs
    weights = {name: own.astype(task.rows.dtype) for name, own in weights.items()}
    chain = model.chain._replace(weights=weights)
    adam = Adam(config.rate, 0.0)
    for _ in range(0 if config.offset else config.warm):
        for rows, seen, _ in task.parts(rng.permutation(train), config.batch):
            adam.step(weights, towards(chain, rows, seen))
    adam, last = Adam(config.rate, config.ridge), replace(model, chain=_copy(chain))
    score = task.score(last, held)
    best, at, tried = last, 0, -np.inf if score is None else score
    try:
        for epoch in range(1, config.epochs + 1):
            chain, loss = _epoch(chain, task, adam, train[rng.permutation(len(train))], config)
            last = replace(model, chain=_copy(chain))
            score = task.score(last, held)
            if score is not None and score > tried:
                best, at, tried = last, epoch, score
            if task.watcher.tell is not None:
                task.watcher.tell(Progress("layers", epoch, config.epochs, loss, score))
            if score is not None and epoch - at >= config.patience:
                break
    except KeyboardInterrupt:
        task.watcher.interrupted = True
    task.watcher.scores["epochs of layers"] = float(at if score is not None else config.epochs)
    return last if score is None else best


def _epoch(chain: Chain, task: _Task, adam: Adam, train: Ints, config: CHMM) -> tuple[Chain, float]:
    """The chain after one step per batch, its tables after all; and the loss per token, measured on the way."""
    total, tokens, counts = 0.0, 0, []
    for rows, seen, bounds in task.parts(train, config.batch):
        found = expect(chain, rows, seen, bounds)
        total, tokens = total - float(found.log_likelihood.sum()), tokens + len(rows)
        counts.append(found.counts)
        if chain.weights is not None and len(rows):
            adam.step(chain.weights, {name: own / len(rows) for name, own in found.slopes.items()})
    if config.weight < 1 and config.constant is None and counts:
        summed = TokenTables(*(sum(own) for own in zip(*counts, strict=True)))
        chain = chain._replace(tables=maximise(summed, allowed(task.vote_matrix, config), config.prior, chain.tables))
    return chain, total / max(tokens, 1)


def _chain(tables: TokenTables, vote_matrix: VoteMatrix, config: CHMM) -> Chain:
    """The chain of tables; with `offset` layers will add to their logs."""
    may = allowed(vote_matrix, config)
    base = TokenTables(np.where(may, 0.0, -np.inf), np.zeros((1, 1, 1)))
    if config.offset:
        with np.errstate(divide="ignore"):
            base = TokenTables(np.where(may, np.log(tables.moves), -np.inf), np.log(tables.votes))
    return Chain(tables, None, config.weight, base, config.voted_is_entity, np.zeros(tables.moves.shape[1]))


def _copy(chain: Chain) -> Chain:
    return chain._replace(weights={name: own.copy() for name, own in (chain.weights or {}).items()})


def _split(vote_matrix: VoteMatrix, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Sentences to learn from, and those of the share of documents that is held out."""
    N = len(vote_matrix.documents) - 1
    held = rng.permutation(N) < round(share * N)
    owner = np.searchsorted(vote_matrix.documents, vote_matrix.bounds[:-1], side="right") - 1
    out = held[np.minimum(owner, max(N - 1, 0))] if N else np.zeros(len(owner), np.bool_)
    return np.flatnonzero(~out), np.flatnonzero(out)


def _spread(embeddings: Rows) -> tuple[Rows, Rows]:
    """(D,) means and deviations; 1 where nothing varies."""
    D = embeddings.shape[1]
    mean = embeddings.mean(axis=0, dtype=np.float64) if len(embeddings) else np.zeros(D)
    scale = embeddings.std(axis=0, dtype=np.float64) if len(embeddings) else np.ones(D)
    return mean.astype(embeddings.dtype), np.where(scale > FLAT, scale, 1.0).astype(embeddings.dtype)
