"""Reading and writing extractors: one model file of kind "relations"; its settings name the mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from chaffinch import bundle
from chaffinch.bundle import State
from chaffinch.bundle.state import Array
from chaffinch.errors import ModelError
from chaffinch.models.phrasehmm.fit import Model
from chaffinch.models.phrasehmm.selection import Platt
from chaffinch.relations.config import Extraction
from chaffinch.relations.documents import DocumentExtractor
from chaffinch.relations.entities.extractor import Extractor, HeldOutScores
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.features.vectors import FeatureColumns
from chaffinch.relations.joint.extractor import JointExtractor, PairingRule
from chaffinch.relations.schema import Schema

KIND = "relations"
HMM, MERGING = "hmm", "merging"  # parts of a file
AnyExtractor: TypeAlias = Extractor | JointExtractor | DocumentExtractor
Facts: TypeAlias = dict[str, Any]


def save(extractor: AnyExtractor, path: str | Path) -> AnyExtractor:
    """Write an extractor to one file; return it with its checksum in the manifest; ConfigError or ModelError."""
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
    """Return the extractor in a model file, without a report, which only training makes; or ModelError."""
    stored = bundle.load(path)
    if stored.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {stored.manifest.kind!r}, not an extractor of relations", path=path)
    with bundle.building(path):
        mode = stored.manifest.config["settings"]["mode"]
        return _joint(stored) if mode == "joint" else _documents(stored) if mode == "documents" else _entities(stored)


def _of_entities(extractor: Extractor) -> tuple[Facts, State]:
    """Return (manifest entries, arrays and strings) to store of an extractor between given entities."""
    facts = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
    }
    arrays = {"weights": extractor.weights.values.astype(np.float32), **_held_arrays(extractor.held)}
    return facts, State(arrays, dict(zip(extractor.columns.views, extractor.columns.names, strict=True)))


def _entities(stored: bundle.Bundle) -> Extractor:
    """Return an extractor between given entities from a model file; ValueError if weights and features differ."""
    facts = stored.manifest.config
    config = replace(Extraction.of(facts["settings"]), mode="entities")
    columns = FeatureColumns.of(config.views, [stored.strings[view] for view in config.views])
    weights = LogisticWeights(stored.arrays["weights"].astype(np.float64), float(facts["bias"]))
    if weights.values.shape != (len(columns),):
        raise ValueError("weights do not fit the features")
    calibration, threshold = PairCalibration(**facts["calibration"]), float(facts["threshold"])
    held, schema = _held_scores(stored.arrays), Schema(**facts["schema"])
    return Extractor(schema, config, columns, weights, calibration, threshold, held, None, stored.manifest)


def _of_documents(extractor: DocumentExtractor) -> tuple[Facts, State]:
    """Return (manifest entries, arrays and strings) to store of a document extractor and its sentence extractor."""
    facts, state = _of_entities(extractor.sentences)
    facts[MERGING] = {
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
        "missed": extractor.missed,
    }
    arrays = {"weights": extractor.weights.values, "centre": extractor.centre, "spread": extractor.spread}
    return facts, state.with_child(MERGING, State({**arrays, **_held_arrays(extractor.held)}))


def _documents(stored: bundle.Bundle) -> DocumentExtractor:
    """Return a document extractor, with its sentence extractor, from a model file; KeyError if something is missing."""
    facts, arrays = stored.manifest.config[MERGING], stored.state.child(MERGING).arrays
    weights = LogisticWeights(arrays["weights"], float(facts["bias"]))
    calibration, threshold = PairCalibration(**facts["calibration"]), float(facts["threshold"])
    return DocumentExtractor(
        _entities(stored), weights, arrays["centre"], arrays["spread"], calibration, threshold, _held_scores(arrays),
        int(facts["missed"]), None, stored.manifest,
    )  # fmt: skip


def _of_joint(extractor: JointExtractor) -> tuple[Facts, State]:
    """Return (manifest entries, arrays and the HMM's state) to store of a joint extractor."""
    facts = {
        "rule": extractor.rule._asdict() if extractor.rule else None,
        "threshold": extractor.threshold,
        "across": extractor.across,
        HMM: asdict(extractor.model.config),
    }
    arrays = _held_arrays(extractor.held)
    if extractor.calibration is not None:
        arrays["calibration"] = extractor.calibration.array()
    return facts, State(arrays).with_child(HMM, extractor.model.state())


def _joint(stored: bundle.Bundle) -> JointExtractor:
    """Return a joint extractor, with its HMM, from a model file; KeyError if something is missing."""
    facts = stored.manifest.config
    model = Model.of(stored.state.child(HMM, config=facts[HMM]))
    rule = PairingRule(**facts["rule"]) if facts["rule"] else None
    calibration = Platt.of(stored.arrays["calibration"]) if "calibration" in stored.arrays else None
    schema, config = Schema(**facts["schema"]), Extraction.of(facts["settings"])
    across, threshold = int(facts["across"]), float(facts["threshold"])
    return JointExtractor(
        schema, config, model, rule, calibration, across, threshold, _held_scores(stored.arrays), None, stored.manifest
    )


def _held_arrays(held: HeldOutScores) -> dict[str, Array]:
    """Return held-out scores as arrays of a model file."""
    return {"held.scores": held.scores, "held.right": held.right}


def _held_scores(arrays: Mapping[str, Any]) -> HeldOutScores:
    """Return the held-out scores that a model file's arrays hold."""
    return HeldOutScores(arrays["held.scores"], arrays["held.right"])
