"""De-identification: find and replace identifiers, account for a release, and estimate remaining leaks.

>>> import chaffinch as cf
>>> find = cf.deid.detector()  # rules alone; with "deid-en", the packaged model
>>> [span.label for span in next(find([cf.Document.make("Seen by Dr. Penn on 3/4/1998.")])).layer("deid")]
['DOCTOR', 'DATE']
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaffinch.deid.detect.detector import detector
    from chaffinch.deid.detect.explain import explain
    from chaffinch.deid.detect.protocol import Detector
    from chaffinch.deid.keys import Secret
    from chaffinch.deid.policy import Policy
    from chaffinch.deid.synth.notes import notes
    from chaffinch.deid.training.adapt import SiteLesson, adapt
    from chaffinch.deid.training.learn import learn
    from chaffinch.jobs.deid import RunSettings as RunSettings
    from chaffinch.jobs.deid import StateTarget as StateTarget
    from chaffinch.jobs.deid import run as run

__all__ = ["Detector", "Policy", "Secret", "SiteLesson", "adapt", "detector", "explain", "learn", "notes"]

DEFAULT_POLICY = "safe-harbor"

# Where public names are; they are loaded when they are asked for, since a release needs neither training nor invented
# notes. `run` and its settings are in `jobs`, the layer above.
_MODULES = {
    "Detector": "deid.detect.protocol",
    "Policy": "deid.policy",
    "RunSettings": "jobs.deid",
    "Secret": "deid.keys",
    "SiteLesson": "deid.training.adapt",
    "StateTarget": "jobs.deid",
    "adapt": "deid.training.adapt",
    "detector": "deid.detect.detector",
    "explain": "deid.detect.explain",
    "learn": "deid.training.learn",
    "notes": "deid.synth.notes",
    "run": "jobs.deid",
}


def __dir__() -> list[str]:
    """Return the public names, and those that are loaded."""
    return sorted({*__all__, *globals()})


def __getattr__(name: str) -> Any:
    """Return a public name or a module of this package, loaded when it is asked for; AttributeError if neither."""
    if name in _MODULES:
        return getattr(import_module(f"chaffinch.{_MODULES[name]}"), name)
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
