"""Forward-backward and Viterbi beside hmmlearn, on the same arrays, in one process, in tokens per CPU second.

K states, T tokens of a sequence, N tokens in all. Each measurement of ours alternates with one of the peer's; the
bar is the median of the ratios of neighbouring measurements. Both start from the same arrays of log emissions. The
peer's compiled functions are called directly, one call per sequence as in its own E-step and decoder; like its base
class it takes exponentials first where implementation="scaling" wants probabilities. All 4,000 sequences take their
turn, a block at a time; with many states the peer runs on the first of each block, since its rate does not depend on
their number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, forward_backward, viterbi

SHORTEST, LONGEST = 10, 40
ROUNDS, LEAST = 24, 0.1  # measurements of each, and CPU seconds of one at the least
SEQUENCES = 4000
BLOCK = 1000  # sequences of one measurement of ours; all blocks take their turn
PEER_BLOCK = {9: 1000, 140: 60, 280: 20}
FLOORS = {"forward_backward": {9: 4.0, 140: 15.0, 280: 15.0}, "viterbi": {9: 2.0, 140: 8.0, 280: 8.0}}
PIP = "pip install 'chaffinch[bench]'"


class Options(Protocol):
    """What every benchmark is given; this one needs no data."""

    data: Path | None
    only: str | None
    split: str
    seeds: int


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One random HMM and the log emissions of its sequences."""

    start: Floats  # (K,)
    trans: Floats  # (K, K)
    log_start: Floats
    log_trans: Floats
    log_emit: Floats  # (N, K)
    bounds: Ints  # (B+1,)

    def share(self, first: int, sequences: int) -> Problem:
        """So many sequences, from the first on."""
        bounds = self.bounds[first : first + sequences + 1]
        emit = self.log_emit[bounds[0] : bounds[-1]]
        return Problem(self.start, self.trans, self.log_start, self.log_trans, emit, bounds - bounds[0])

    def batch(self) -> Batch:
        """The sequences as our kernels take them."""
        return Batch(self.log_start, self.log_trans, self.log_emit, np.zeros(len(self.start)), self.bounds)


def run(options: Options) -> dict[str, Any]:
    """The JSON object of `chaffinch bench kernels`, but for the versions and the machine."""
    bars: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    peer = _peer()
    if peer is None:
        rows.append({"peer": "hmmlearn", "absent": PIP})
    for K in FLOORS["viterbi"]:
        if options.only not in (None, str(K)):
            continue
        problem = _problem(K, seed=K)
        for name in FLOORS:
            ours, theirs = _measure(name, problem, peer)
            rows.append(_row(name, K, "chaffinch", ours))
            if theirs:
                rows.append(_row(name, K, "hmmlearn", theirs))
                ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
                bars.append(_bar(f"{name}_{K}_ratio", ratios, "times", FLOORS[name][K], "higher"))
        bars.append(_bar(f"oracle_{K}_difference", [_difference(problem.share(0, 20))], "absolute", 1e-8, "lower"))
    return {"name": "kernels", "bars": bars, "rows": rows}


def _peer() -> ModuleType | None:
    try:
        from hmmlearn import _hmmc
    except ImportError:
        return None
    module: ModuleType = _hmmc
    return module


def _problem(K: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(SHORTEST, LONGEST + 1, SEQUENCES)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    start, trans = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)
    log_emit = np.log(rng.random((bounds[-1], K)) + 1e-3)
    return Problem(start, trans, np.log(start), np.log(trans), log_emit, bounds)


def _measure(name: str, problem: Problem, peer: ModuleType | None) -> tuple[list[float], list[float]]:
    """Tokens per CPU second of ours and of the peer's, measured in turn."""
    ours = forward_backward if name == "forward_backward" else viterbi
    theirs = _peer_learn if name == "forward_backward" else _peer_decode
    rates: tuple[list[float], list[float]] = ([], [])
    ours(problem.share(0, 10).batch())  # compiled, or loaded, before the clock starts
    for number in range(ROUNDS):
        first = number * BLOCK % SEQUENCES
        mine, few = problem.share(first, BLOCK), problem.share(first, PEER_BLOCK[len(problem.start)])
        rates[0].append(_rate(mine, partial(lambda one: ours(one.batch()), mine)))
        if peer is not None:
            rates[1].append(_rate(few, partial(theirs, few, peer)))
    return rates


def _rate(problem: Problem, call: Callable[[], object]) -> float:
    """Tokens per CPU second, over at least `LEAST` of them."""
    before, calls = time.process_time(), 0
    while calls == 0 or time.process_time() - before < LEAST:
        call()
        calls += 1
    return float(calls * problem.bounds[-1] / (time.process_time() - before))


def _peer_learn(problem: Problem, peer: ModuleType) -> object:
    """What hmmlearn's E-step does for implementation="scaling", without its bookkeeping."""
    pairs, log_z = np.zeros_like(problem.trans), 0.0
    for lo, hi in zip(problem.bounds[:-1], problem.bounds[1:], strict=True):
        emit = np.exp(problem.log_emit[lo:hi])
        one, forward, scale = peer.forward_scaling(problem.start, problem.trans, emit)
        backward = peer.backward_scaling(problem.start, problem.trans, emit, scale)
        states = forward * backward
        states /= states.sum(axis=1, keepdims=True)
        pairs += peer.compute_scaling_xi_sum(forward, problem.trans, backward, emit)
        log_z += one
    return log_z, pairs


def _peer_decode(problem: Problem, peer: ModuleType) -> object:
    score = 0.0
    for lo, hi in zip(problem.bounds[:-1], problem.bounds[1:], strict=True):
        score += peer.viterbi(problem.start, problem.trans, problem.log_emit[lo:hi])[0]
    return score


def _difference(problem: Problem) -> float:
    """The largest difference of log Z, state marginals and pair sums from a log-space recursion in plain numpy."""
    post = forward_backward(problem.batch())
    worst, pairs = 0.0, np.zeros_like(problem.trans)
    for b, (lo, hi) in enumerate(zip(problem.bounds[:-1], problem.bounds[1:], strict=True)):
        log_z, states, own = _log_space(problem, int(lo), int(hi))
        pairs += own
        worst = max(worst, abs(log_z - post.log_z[b]), float(np.abs(states - post.states[lo:hi]).max()))
    return max(worst, float(np.abs(pairs - post.pairs).max()))


def _log_space(problem: Problem, lo: int, hi: int) -> tuple[float, Floats, Floats]:
    emit, trans = problem.log_emit[lo:hi], problem.log_trans
    forward, backward = np.empty_like(emit), np.zeros_like(emit)
    forward[0] = problem.log_start + emit[0]
    for t in range(1, len(emit)):
        forward[t] = emit[t] + np.logaddexp.reduce(forward[t - 1][:, None] + trans, axis=0)
    for t in range(len(emit) - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(trans + emit[t + 1] + backward[t + 1], axis=1)
    log_z = float(np.logaddexp.reduce(forward[-1]))
    pairs = np.zeros_like(trans)
    for t in range(len(emit) - 1):
        pairs += np.exp(forward[t][:, None] + trans + emit[t + 1] + backward[t + 1] - log_z)
    return log_z, np.exp(forward + backward - log_z), pairs


def _row(name: str, K: int, system: str, rates: list[float]) -> dict[str, Any]:
    low, middle, high = np.percentile(rates, (10, 50, 90))
    values = {"tokens_per_cpu_second": round(middle), "low": round(low), "high": round(high)}
    return {"task": name, "states": K, "system": system, **values}


def _bar(name: str, values: list[float], unit: str, floor: float, better: str) -> dict[str, Any]:
    low, middle, high = (float(x) for x in np.percentile(values, (10, 50, 90)))
    return {
        "id": name,
        "value": middle,
        "low": low,
        "high": high,
        "unit": unit,
        "floor": floor,
        "goal": floor,
        "better": better,
    }
