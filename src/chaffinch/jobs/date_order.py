"""The date order of a release job: what was asked for, or what a sample of its notes tells, before any is released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from chaffinch.deid.dates.order import MOST_CONTRARY, count_orders, find_numeric_dates, settle_order
from chaffinch.deid.dates.points import Order
from chaffinch.deid.release.patient import Release
from chaffinch.errors import ConfigError
from chaffinch.text.document import uncut_documents
from chaffinch.text.formats import Unit
from chaffinch.text.view import plain_text

SAMPLE_NOTES, SAMPLE_CHARACTERS = 1000, 5_000_000  # the first notes, up to either; more cost time before a release


def settle_date_order(release: Release, units: Iterable[Unit], option: str, known: Order | None = None) -> Release:
    """Return the release; if its date order is "auto", with `known` or one counted in `units`; ConfigError if unfit.

    An order that is `known` of earlier releases is taken, and nothing is counted.

    Raise ConfigError if an order is given that has no effect, or another than that of the policy. `option` is the
    caller's name of the setting.
    """
    orders = release.policy.date_orders
    if release.date_order != "auto":
        if not orders:
            raise ConfigError(f"policy {release.policy.name} shifts no dates, so {option} has no effect; leave it out")
        if others := sorted(orders - {"auto", release.date_order}):
            raise ConfigError(
                f"{option} is {release.date_order}, but policy {release.policy.name} has order = {others[0]!r}; "
                "give one of them"
            )
        return release
    if "auto" not in orders:
        return release
    return replace(release, counted_order=known or count_order(map(_text_of, units)))


def count_order(texts: Iterable[str]) -> Order | None:
    """Return the day–month order of nearly all unambiguous numeric dates in the first texts; None if mixed or none."""
    votes: Counter[Order] = Counter()
    characters = 0
    for text in islice(texts, SAMPLE_NOTES):
        if characters >= SAMPLE_CHARACTERS:
            break
        characters += len(text)
        votes += count_orders(find_numeric_dates(plain_text(text)))
    return settle_order(votes, most_contrary=MOST_CONTRARY)


def _text_of(unit: Unit) -> str:
    """Parse a unit, and return its text; empty if it cannot be read."""
    try:
        with uncut_documents():
            return unit.read().text
    except Exception:  # it is read again later, and then withheld with the reason
        return ""
