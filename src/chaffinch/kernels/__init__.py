"""Inference on arrays: chains of log-potentials, and cliques of repeated tokens. Nothing here knows a word.

Importing this room costs only numpy; the first call of a kernel loads the compiled code.
"""

from __future__ import annotations

from chaffinch.kernels.chain import forward_backward, group, log_partition, pair_marginals, project
from chaffinch.kernels.lattice import Active, Batch, Lattice, Path, Posterior, TagPosterior
from chaffinch.kernels.paths import best_paths, sample, viterbi

__all__ = [
    "Active",
    "Batch",
    "Lattice",
    "Path",
    "Posterior",
    "TagPosterior",
    "best_paths",
    "forward_backward",
    "group",
    "log_partition",
    "pair_marginals",
    "project",
    "sample",
    "viterbi",
]
