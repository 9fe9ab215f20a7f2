"""The number of notes to read for a wanted upper bound."""

from __future__ import annotations

import math

from chaffinch.deid.leakage.bounds import leaking_upper
from chaffinch.errors import ConfigError

_LARGE = 10_000_000  # notes, more than anybody will read; the search for a size ends here


def sample_size(
    bound: float, confidence: float = 0.95, expected: int = 0, *, notes: int | None = None, recall: float = 1.0
) -> int:
    """Return the fewest notes to read to show a share ≤ `bound`, if `expected` leaks are found; ConfigError if none.

    `bound` is a share of notes. `notes` is the size of the corpus; without it the corpus is taken as infinite.
    The bound falls with every note read, so reading more never hurts.

    >>> sample_size(0.01), sample_size(0.01, expected=1), sample_size(0.01, notes=500)
    (299, 473, 196)
    """
    if not 0 < bound < 1 or not 0 < confidence < 1 or not 0 < recall <= 1:
        raise ConfigError(
            f"bound, confidence and recall must be between 0 and 1, got {bound}, {confidence} and {recall}"
        )
    if expected < 0 or (notes is not None and notes < 1):
        raise ConfigError(f"expected must be at least 0 and notes at least 1, got {expected} and {notes}")
    most = _LARGE if notes is None else notes
    if expected > most or not _is_enough(most, bound, confidence, expected, notes, recall):
        raise ConfigError(
            f"even reading all {most:,} notes would not show that at most {bound:g} leak, with {expected} found and "
            f"a reader who finds {recall:g} of the leaks; ask for a higher bound or less confidence"
        )
    low, high = max(expected, 1), most
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _is_enough(middle, bound, confidence, expected, notes, recall) else (middle + 1, high)
        )
    return low


def _is_enough(n: int, bound: float, confidence: float, found: int, notes: int | None, recall: float) -> bool:
    """Tell whether reading n notes and finding `found` leaks shows that at most `bound` of all notes leak."""
    if notes is not None:
        return leaking_upper(notes, n, found, recall=recall, alpha=1 - confidence) <= math.floor(bound * notes + 1e-9)
    from scipy.stats import binom

    # Clopper-Pearson: the bound holds if a corpus that leaks at the bound would have shown more leaks.
    return bool(binom.cdf(found, n, bound * recall) <= 1 - confidence)
