"""De-identification: find and replace identifiers, account for a release, and estimate remaining leaks.

>>> import chaffinch as cf
>>> find = cf.deid.detector()  # rules alone; with "deid-en", the packaged model
>>> [span.label for span in next(find([cf.Document.make("Seen by Dr. Penn on 3/4/1998.")])).layer("deid")]
['DOCTOR', 'DATE']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.explain import explain
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.synth.notes import notes
from chaffinch.deid.training.adapt import adapt
from chaffinch.deid.training.learn import learn

if TYPE_CHECKING:
    from chaffinch.jobs.deid import RunSettings as RunSettings
    from chaffinch.jobs.deid import StateTarget as StateTarget
    from chaffinch.jobs.deid import run as run

__all__ = ["Detector", "Policy", "Secret", "adapt", "detector", "explain", "learn", "notes"]


def __getattr__(name: str) -> Any:
    """Import `run` and its settings from `jobs`, the layer above, when first used; AttributeError for another name."""
    if name in ("run", "RunSettings", "StateTarget"):
        from chaffinch.jobs import deid

        return getattr(deid, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
