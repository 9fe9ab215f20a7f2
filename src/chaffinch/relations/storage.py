"""Extractors to disk and back: one model file of kind "relations", whose settings say the mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from chaffinch import bundle
from chaffinch.bundle import State
from chaffinch.bundle.state import Array
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.phrasehmm.fit import Model
from chaffinch.models.phrasehmm.selection import Platt
from chaffinch.relations.config import Extraction
from chaffinch.relations.documents import DocumentExtractor
from chaffinch.relations.entities.extractor import Extractor, Scored
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.features.vectors import Columns
from chaffinch.relations.joint.extractor import JointExtractor, PairingRule
from chaffinch.relations.schema import Schema

KIND = "relations"
HMM, MERGING = "hmm", "merging"  # parts of a file
AnyExtractor: TypeAlias = Extractor | JointExtractor | DocumentExtractor
Facts: TypeAlias = dict[str, Any]


def save(extractor: AnyExtractor, path: str | Path) -> AnyExtractor:
    """Writes an extractor as one file; the extractor comes back with the checksum in its manifest."""
    if isinstance(extractor, JointExtractor):
        facts, state = _of_joint(extractor)
    elif isinstance(extractor, DocumentExtractor):
        facts, state = _of_documents(extractor)
    else:
        facts, state = _of_entities(extractor)
    config = {"schema": asdict(extractor.schema), "settings": extractor.config.facts(), **facts}
    manifest = replace(extractor.manifest, config=config)
    return replace(extractor, manifest=bundle.save(path, manifest, state.arrays, state.strings))


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


def _of_entities(extractor: Extractor) -> tuple[Facts, State]:
    facts = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
    }
    arrays = {"weights": extractor.weights.values.astype(np.float32), **_held(extractor.held)}
    return facts, State(arrays, dict(zip(extractor.columns.views, extractor.columns.names, strict=True)))


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


def _of_documents(extractor: DocumentExtractor) -> tuple[Facts, State]:
    facts, state = _of_entities(extractor.sentences)
    facts[MERGING] = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
        "missed": extractor.missed,
    }
    arrays = {"weights": extractor.weights.values, "centre": extractor.centre, "spread": extractor.spread}
    return facts, state.with_child(MERGING, State({**arrays, **_held(extractor.held)}))


def _documents(own: bundle.Bundle) -> DocumentExtractor:
    facts, arrays = own.manifest.config[MERGING], own.state.child(MERGING).arrays
    weights = LogisticWeights(arrays["weights"], float(facts["bias"]))
    calibration, threshold = PairCalibration(**facts["calibration"]), float(facts["threshold"])
    return DocumentExtractor(
        _entities(own), weights, arrays["centre"], arrays["spread"], calibration, threshold, _scored(arrays),
        int(facts["missed"]), None, own.manifest,
    )  # fmt: skip


def _of_joint(extractor: JointExtractor) -> tuple[Facts, State]:
    facts = {
        "rule": extractor.rule._asdict() if extractor.rule else None,
        "threshold": extractor.threshold,
        "across": extractor.across,
        HMM: asdict(extractor.model.config),
    }
    arrays = _held(extractor.held)
    if extractor.calibration is not None:
        arrays["calibration"] = extractor.calibration.array()
    return facts, State(arrays).with_child(HMM, extractor.model.state())


def _joint(own: bundle.Bundle) -> JointExtractor:
    facts = own.manifest.config
    model = Model.of(own.state.child(HMM, config=facts[HMM]))
    rule = PairingRule(**facts["rule"]) if facts["rule"] else None
    calibration = Platt.of(own.arrays["calibration"]) if "calibration" in own.arrays else None
    schema, config = Schema(**facts["schema"]), Extraction.of(facts["settings"])
    across, threshold = int(facts["across"]), float(facts["threshold"])
    return JointExtractor(
        schema, config, model, rule, calibration, across, threshold, _scored(own.arrays), None, own.manifest
    )


def _held(own: Scored) -> dict[str, Array]:
    return {"held.scores": own.scores, "held.right": own.right}


def _scored(arrays: Mapping[str, Any]) -> Scored:
    return Scored(arrays["held.scores"], arrays["held.right"])
