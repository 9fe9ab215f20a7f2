"""The packaged model: it has a reader, `fast` leaves it out, and its dials say what to expect."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from chaffinch.deid.detect.detector import UNLEARNT, HybridDetector, detector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import RECALLS
from chaffinch.models.hmmdp.model import Model as HMMDPModel
from chaffinch.text import Document

NOTE = "seen today by doctor penn of saint anselm ward, born june third nineteen fifty two, phone five five five oh one"


@cache
def packaged() -> Model:
    return load("deid-en")


def test_the_packaged_model_has_a_reader_and_fast_leaves_it_out() -> None:
    assert packaged().context is not None
    fast = detector("deid-en", fast=True)
    assert fast.model.context is None
    assert fast.model.taggers
    whole = detector("deid-en")
    chances = [1.0 - find.soft_labels([Document.make(NOTE)]).values[:, 0] for find in (whole, fast)]
    assert (abs(chances[0] - chances[1]) > 0.001).any()  # the reader has a say


def test_types_whose_patterns_are_not_overruled_are_those_that_reader_and_glance_lack() -> None:
    model = packaged()
    assert model.context is not None
    assert model.glance is not None
    assert set(model.labels) - {"FAMILY"} - set(model.context.reader.names) == UNLEARNT  # to them, family are PATIENT
    assert not UNLEARNT & set(model.glance.glance.names)


def test_tables_that_only_portraits_need_stay_as_small_as_in_the_file() -> None:
    steps = [step.model for tagger in packaged().taggers for step in tagger.steps]
    (chain,) = [model for model in steps if isinstance(model, HMMDPModel)]
    assert chain.latent is not None
    assert {table.dtype for table in chain.tables.emit} == {np.dtype(np.float16)}
    assert {table.dtype for table in chain.tables[:3]} == {np.dtype(float)}


def test_the_glance_has_a_say_without_the_reader_alone() -> None:
    docs = [Document.make(NOTE)]
    changed = [
        (
            HybridDetector(model).soft_labels(docs).values
            != HybridDetector(replace(model, glance=None)).soft_labels(docs).values
        ).any()
        for model in (packaged().fast(), packaged())
    ]
    assert changed == [True, False]


@pytest.mark.parametrize("fast", [False, True])
def test_its_dial_expects_more_of_higher_settings_and_promises_less_than_it_expects(*, fast: bool) -> None:
    dial = packaged().fast().dial if fast else packaged().dial
    assert dial.notes >= 200
    assert dial.groups >= 10
    seen = [dial.outlook(recall) for recall in (None, *RECALLS)]
    expected = [each.expected for each in seen if each.expected is not None]
    assert len(expected) == len(seen)
    assert expected == sorted(expected)
    assert all(each.promised is not None and each.promised < (each.expected or 0.0) for each in seen)


def test_the_reader_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from chaffinch.deid.detect.detector import detector; from chaffinch.text import Document\n"
        "(doc,) = detector('deid-en')([Document.make('Seen by Dr. Penn on 3/4/1998.')])\n"
        "print(sorted({span.label for span in doc.layer('deid')}), {'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['DATE', 'DOCTOR'] set()"
