"""Inference on arrays: chains of log-potentials, and cliques of repeated tokens. No code here sees any text.

Importing this package imports only numpy; the first call of a kernel loads the compiled code.
"""

from __future__ import annotations

from chaffinch.kernels.cells import add_rows, sum_rows
from chaffinch.kernels.chain import forward_backward, group, log_partition, pair_marginals, project
from chaffinch.kernels.clique import Beliefs, Clique, Labelling, beliefs, best_labels, loopy_beliefs
from chaffinch.kernels.lattice import Active, Batch, Floats, Ints, Lattice, Path, Posterior, TagPosterior
from chaffinch.kernels.paths import best_paths, sample, viterbi

__all__ = [
    "Active",
    "Batch",
    "Beliefs",
    "Clique",
    "Floats",
    "Ints",
    "Labelling",
    "Lattice",
    "Path",
    "Posterior",
    "TagPosterior",
    "add_rows",
    "beliefs",
    "best_labels",
    "best_paths",
    "forward_backward",
    "group",
    "log_partition",
    "loopy_beliefs",
    "pair_marginals",
    "project",
    "sample",
    "sum_rows",
    "viterbi",
]
