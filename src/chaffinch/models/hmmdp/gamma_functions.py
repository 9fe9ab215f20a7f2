"""The gamma function's relatives, from scipy at the first call: learning needs them, and reading documents does not.

To import scipy.special takes a tenth of the start of a short run.
"""

from __future__ import annotations

from typing import Any


def gammaln(x: Any) -> Any:
    """Return the log of the gamma function of each number."""
    from scipy.special import gammaln as of_each

    return of_each(x)


def digamma(x: Any) -> Any:
    """Return the derivative of `gammaln` at each number."""
    from scipy.special import digamma as of_each

    return of_each(x)


def polygamma(order: int, x: Any) -> Any:
    """Return the derivative of `digamma` of this order at each number."""
    from scipy.special import polygamma as of_each

    return of_each(order, x)


def betaln(a: Any, b: Any) -> Any:
    """Return the log of the beta function of each pair of numbers."""
    from scipy.special import betaln as of_each

    return of_each(a, b)
