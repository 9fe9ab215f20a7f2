"""What a process of the service holds: models, policies and secrets by name, loaded once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaffinch import bundle
from chaffinch.checks import did_you_mean
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy, ready_policies
from chaffinch.errors import ConfigError
from chaffinch.loading import load
from chaffinch.models.tagger import Tagger
from chaffinch.relations.documents import DocumentExtractor
from chaffinch.relations.entities.extractor import Extractor
from chaffinch.relations.joint.extractor import JointExtractor
from chaffinch.relations.storage import AnyExtractor
from chaffinch.text import Document, Span
from chaffinch.weak import WeakTagger
from chaffinch.weak.aggregate import FittedAggregator
from chaffinch.web.problems import Problem

_TAGGERS = (Tagger, WeakTagger, HybridDetector)
_EXTRACTORS = (Extractor, JointExtractor, DocumentExtractor)

RULES = "rules"  # the name of the detector without a model
_WARM_UP = "Seen by Dr. Ann Penn on 3 March 1998; phone 617-555-0134."  # invented
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The models, policies and secrets of a service: names with files, or the names of packaged ones."""

    models: Mapping[str, str] = field(default_factory=lambda: {"deid-en": "deid-en"})
    policies: Mapping[str, str] = field(default_factory=dict)  # beside the packaged ones
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # names and files
    model: str | None = None  # the detector that requests use if they name none; by default the first
    policy: str = "safe-harbor"  # as above
    recall: float | None = None
    fast: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """Loaded models, policies and secrets. The rules alone are always there, as the detector "rules"."""

    models: Mapping[str, Any] = field(repr=False)
    policies: Mapping[str, Policy] = field(repr=False)
    secrets: Mapping[str, Secret] = field(repr=False)
    default_detector: str = RULES
    default_policy: str = "safe-harbor"

    @classmethod
    def load(cls, settings: EngineSettings) -> Engine:
        """Load everything that the settings name; raise ConfigError or ModelError if something cannot be loaded."""
        models = {name: _load_model(path, settings) for name, path in settings.models.items() if path != RULES}
        models[RULES] = detector(None, by_patient=True)
        detectors = [name for name, model in models.items() if isinstance(model, HybridDetector)]
        chosen = settings.model or detectors[0]
        if chosen not in detectors:
            raise ConfigError(f"model {chosen!r} finds no identifiers; {did_you_mean(chosen, detectors)}")
        policies = {name: Policy.read(name) for name in ready_policies()}
        policies |= {name: Policy.read(path) for name, path in settings.policies.items()}
        if settings.policy not in policies:
            raise ConfigError(f"there is no policy {settings.policy!r}; {did_you_mean(settings.policy, policies)}")
        secrets = {name: Secret.read(path) for name, path in settings.secrets.items()}
        return cls(models, policies, secrets, chosen, settings.policy)

    def warm_up(self) -> None:
        """Run every model once on a small text, so that kernels and lists are ready: a request has not the time."""
        note = Document.make(_WARM_UP, id="warm-up")
        for model in self.models.values():
            if isinstance(model, Tagger):
                list(model.annotate([note], confidence=True))
            elif isinstance(model, HybridDetector | WeakTagger):
                list(model.annotate([note]))
            elif isinstance(model, _EXTRACTORS):
                ends = [(token.start(), token.end()) for token in _WORD.finditer(_WARM_UP)]
                spans = [Span(*where, label) for where, label in zip(ends, model.schema.types, strict=False)]
                list(model.annotate([note.with_layer("gold", spans)]))

    def detector(self, name: str | None) -> HybridDetector:
        """Return the detector of this name, the default one for None; raise Problem if no detector has the name."""
        found: HybridDetector = self._model(name or self.default_detector, (HybridDetector,), "finds no identifiers")
        return found

    def tagger(self, name: str) -> Tagger | WeakTagger | HybridDetector:
        """Return the loaded tagger or detector of this name; raise Problem if there is none."""
        found: Tagger | WeakTagger | HybridDetector = self._model(name, _TAGGERS, "tags nothing")
        return found

    def aggregator(self, name: str) -> FittedAggregator:
        """Return the loaded aggregator of votes of this name; raise Problem if there is none."""
        model = self.models.get(name)
        aggregator = model.aggregator if isinstance(model, WeakTagger) else model
        if isinstance(aggregator, FittedAggregator):
            return aggregator
        raise self._refusal(name, "aggregates no votes", [n for n, m in self.models.items() if _aggregates(m)])

    def extractor(self, name: str) -> AnyExtractor:
        """Return the loaded extractor of relations of this name; raise Problem if there is none."""
        found: AnyExtractor = self._model(name, _EXTRACTORS, "extracts no relations")
        return found

    def policy(self, name: str | None) -> Policy:
        """Return the loaded policy of this name, the default one for None; raise Problem if there is none."""
        chosen = name or self.default_policy
        if chosen not in self.policies:
            raise _refuse_name("policy", self.policies)
        return self.policies[chosen]

    def secret(self, name: str | None) -> Secret | None:
        """Return the secret of this name, None for None; raise Problem if there is none."""
        if name is None:
            return None
        if name not in self.secrets:
            raise _refuse_name("secret", self.secrets)
        return self.secrets[name]

    def _model(self, name: str, kinds: tuple[type, ...], fault: str) -> Any:
        """Return the loaded model of this name; Problem if there is none or, worded as `fault`, of other kinds."""
        model = self.models.get(name)
        if isinstance(model, kinds):
            return model
        raise self._refusal(name, fault, [each for each, other in self.models.items() if isinstance(other, kinds)])

    def _refusal(self, name: str, fault: str, fit: Sequence[str]) -> Problem:
        """Return a Problem that lists the models `fit` for it: 404 if this one is not loaded, else 409 with `fault`."""
        if name not in self.models:
            return _refuse_name("model", fit)
        names = ", ".join(fit) or "none of the server's; start it with --model FILE"
        return Problem(409, "wrong_model", f"this model {fault}; choose one of: {names}")


def _aggregates(model: Any) -> bool:
    """Tell whether a model aggregates the votes of sources."""
    return isinstance(model, WeakTagger | FittedAggregator)


def _refuse_name(what: str, known: Iterable[str]) -> Problem:
    """Return a Problem (404) that says which names the server has, without the name that the client sent."""
    names = ", ".join(known) or f"none for this; start it with --{what}"
    return Problem(404, f"unknown_{what}", f"the server has no {what} of this name; it has: {names}")


def _load_model(path: str, settings: EngineSettings) -> Any:
    """Load the model at a path: one for de-identification as a detector that reads a patient's notes together."""
    if bundle.read_manifest(path).kind != "deid":
        return load(path)
    return detector(path, recall=settings.recall, by_patient=True, fast=settings.fast)


def files_by_name(given: Iterable[str]) -> dict[str, str]:
    """Parse "NAME=FILE" or "FILE" (named by its stem) into {name: file}; ConfigError for an empty part or a name twice.

    >>> files_by_name(["notes=models/a.cfm", "models/b.cfm", "genia"])
    {'notes': 'models/a.cfm', 'b': 'models/b.cfm', 'genia': 'genia'}
    """
    files: dict[str, str] = {}
    for each in given:
        name, mark, file = each.partition("=")
        name, file = (name, file) if mark else (Path(each).stem, each)
        if name in files or not name or not file:
            raise ConfigError(f"{each}: name or file is empty, or the name is given twice; write NAME=FILE")
        files[name] = file
    return files
