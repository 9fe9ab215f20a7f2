"""Extractors to disk and back: one model file of kind "relations"."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from chaffinch import bundle
from chaffinch.errors import ModelError
from chaffinch.relations.extract import Extractor, Scored
from chaffinch.relations.fitting import Calibration, Weights
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction
from chaffinch.relations.vectors import Columns

KIND = "relations"


def save(extractor: Extractor, path: str | Path) -> Extractor:
    """Writes an extractor as one file; the extractor comes back with the checksum in its manifest."""
    config = {
        "schema": asdict(extractor.schema),
        "settings": extractor.config.facts(),
        "calibration": asdict(extractor.calibration),
        "threshold": extractor.threshold,
        "bias": extractor.weights.bias,
    }
    arrays: dict[str, bundle.store.Array] = {
        "weights": extractor.weights.values.astype(np.float32),
        "held.scores": extractor.held.scores,
        "held.right": extractor.held.right,
    }
    names = dict(zip(extractor.columns.views, extractor.columns.names, strict=True))
    manifest = bundle.save(path, replace(extractor.manifest, config=config), arrays, names)
    return replace(extractor, manifest=manifest)


def load(path: str | Path) -> Extractor:
    """The extractor of a model file, or ModelError; it has no report, which stays with whoever trained it."""
    own = bundle.load(path)
    if own.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {own.manifest.kind!r}, not an extractor of relations", path=path)
    facts = own.manifest.config
    try:
        config = Extraction.of(facts["settings"])
        schema = Schema(**facts["schema"])
        columns = Columns.of(config.views, [own.strings[view] for view in config.views])
        weights = Weights(own.arrays["weights"].astype(np.float64), float(facts["bias"]))
        held = Scored(own.arrays["held.scores"], own.arrays["held.right"])
        calibration = Calibration(**facts["calibration"])
    except (KeyError, TypeError):
        raise ModelError("its settings are damaged; copy the file again, or train anew", path=path) from None
    return Extractor(schema, config, columns, weights, calibration, float(facts["threshold"]), held, None, own.manifest)
