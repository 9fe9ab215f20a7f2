"""Extractors to disk and back: one model file of kind "relations", whose settings say the mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from chaffinch import bundle
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.phrasehmm.fit import Model, PhraseHMM
from chaffinch.models.phrasehmm.selection import Platt
from chaffinch.relations.config import Extraction
from chaffinch.relations.documents import DocumentExtractor
from chaffinch.relations.entities.extractor import Extractor, Scored
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.features.vectors import Columns
from chaffinch.relations.joint.extractor import JointExtractor, PairingRule
from chaffinch.relations.schema import Schema

KIND = "relations"
HMM, MERGING = "hmm.", "merging."  # what names of arrays begin with
AnyExtractor: TypeAlias = Extractor | JointExtractor | DocumentExtractor
Facts: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, bundle.store.Array]
Strings: TypeAlias = dict[str, tuple[str, ...]]


def save(extractor: AnyExtractor, path: str | Path) -> AnyExtractor:
    """Writes an extractor as one file; the extractor comes back with the checksum in its manifest."""
    if isinstance(extractor, JointExtractor):
        facts, arrays, strings = _of_joint(extractor)
    elif isinstance(extractor, DocumentExtractor):
        facts, arrays, strings = _of_documents(extractor)
    else:
        facts, arrays, strings = _of_entities(extractor)
    config = {"schema": asdict(extractor.schema), "settings": extractor.config.facts(), **facts}
    return replace(extractor, manifest=bundle.save(path, replace(extractor.manifest, config=config), arrays, strings))


def load(path: str | Path) -> AnyExtractor:
    """The extractor of a model file, or ModelError; it has no report, which stays with whoever trained it."""
    own = bundle.load(path)
    if own.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {own.manifest.kind!r}, not an extractor of relations", path=path)
    try:
        mode = own.manifest.config["settings"]["mode"]
        return _joint(own) if mode == "joint" else _documents(own) if mode == "documents" else _entities(own)
    except (KeyError, TypeError, ValueError, ConfigError):
        raise ModelError("its settings are damaged; copy the file again, or train anew", path=path) from None


def _of_entities(extractor: Extractor) -> tuple[Facts, Arrays, Strings]:
    facts = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
    }
    arrays = {"weights": extractor.weights.values.astype(np.float32), **_held(extractor.held)}
    return facts, arrays, dict(zip(extractor.columns.views, extractor.columns.names, strict=True))


def _entities(own: bundle.Bundle) -> Extractor:
    facts = own.manifest.config
    config = replace(Extraction.of(facts["settings"]), mode="entities")
    columns = Columns.of(config.views, [own.strings[view] for view in config.views])
    weights = LogisticWeights(own.arrays["weights"].astype(np.float64), float(facts["bias"]))
    if weights.values.shape != (len(columns),):
        raise ValueError("weights do not fit the features")
    calibration, threshold = PairCalibration(**facts["calibration"]), float(facts["threshold"])
    held, schema = _scored(own.arrays), Schema(**facts["schema"])
    return Extractor(schema, config, columns, weights, calibration, threshold, held, None, own.manifest)


def _of_documents(extractor: DocumentExtractor) -> tuple[Facts, Arrays, Strings]:
    facts, arrays, strings = _of_entities(extractor.sentences)
    facts["merging"] = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
        "missed": extractor.missed,
    }
    own = {"weights": extractor.weights.values, "centre": extractor.centre, "spread": extractor.spread}
    merging = {**own, **_held(extractor.held)}
    return facts, arrays | {MERGING + name: array for name, array in merging.items()}, strings


def _documents(own: bundle.Bundle) -> DocumentExtractor:
    facts, arrays = own.manifest.config["merging"], _prefixed(own.arrays, MERGING)
    weights = LogisticWeights(arrays["weights"], float(facts["bias"]))
    calibration, threshold = PairCalibration(**facts["calibration"]), float(facts["threshold"])
    return DocumentExtractor(
        _entities(own), weights, arrays["centre"], arrays["spread"], calibration, threshold, _scored(arrays),
        int(facts["missed"]), None, own.manifest,
    )  # fmt: skip


def _of_joint(extractor: JointExtractor) -> tuple[Facts, Arrays, Strings]:
    facts = {
        "rule": extractor.rule._asdict() if extractor.rule else None,
        "threshold": extractor.threshold,
        "across": extractor.across,
        "hmm": asdict(extractor.model.config),
    }
    arrays, strings = extractor.model.arrays()
    out = {HMM + name: array for name, array in arrays.items()} | _held(extractor.held)
    if extractor.calibration is not None:
        out["calibration"] = extractor.calibration.array()
    return facts, out, {HMM + name: words for name, words in strings.items()}


def _joint(own: bundle.Bundle) -> JointExtractor:
    facts = own.manifest.config
    model = Model.of(PhraseHMM(**facts["hmm"]), _prefixed(own.arrays, HMM), _prefixed(own.strings, HMM))
    rule = PairingRule(**facts["rule"]) if facts["rule"] else None
    calibration = Platt.of(own.arrays["calibration"]) if "calibration" in own.arrays else None
    schema, config = Schema(**facts["schema"]), Extraction.of(facts["settings"])
    across, threshold = int(facts["across"]), float(facts["threshold"])
    return JointExtractor(
        schema, config, model, rule, calibration, across, threshold, _scored(own.arrays), None, own.manifest
    )


def _held(own: Scored) -> Arrays:
    return {"held.scores": own.scores, "held.right": own.right}


def _scored(arrays: Mapping[str, Any]) -> Scored:
    return Scored(arrays["held.scores"], arrays["held.right"])


def _prefixed(own: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in own.items() if name.startswith(prefix)}
