"""HTML pages: strings from data are escaped on every page that we write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lxml import etree

from chaffinch.bundle import Manifest
from chaffinch.cli.relate.evaluate_page import outcome_page
from chaffinch.cli.show import page as show_page
from chaffinch.cli.weak import analyse_page
from chaffinch.deid.policy import Policy
from chaffinch.deid.release import summary_page
from chaffinch.deid.release.patient import BANDS
from chaffinch.evaluate import html as evaluation_page
from chaffinch.evaluate import pair, score
from chaffinch.evaluate.ranking import Curve
from chaffinch.relations.evaluate.scoring import Figure, Outcome
from chaffinch.relations.schema import Schema
from chaffinch.report.page import facts, page, table
from chaffinch.text import Document, Span
from chaffinch.weak.analysis import analyse
from tests.weak.training.made_notes import notes

HOSTILE = "</style></title><script>alert('&amp;')</script>\"x"


def parsed(text: str) -> etree._Element:
    """The page by a forgiving parser, as a browser reads it."""
    return etree.fromstring(text, etree.HTMLParser())


def shown(text: str) -> str:
    return " ".join(map(str, parsed(text).itertext()))


def test_the_parts_of_a_page_are_escaped() -> None:
    boxes = facts({HOSTILE: HOSTILE, "plain": "1"}, warned=[HOSTILE])
    listed = table([HOSTILE, (HOSTILE, "n")], ["<tr><td>1</td></tr>"], kind="plain", caption=HOSTILE)
    text = page(HOSTILE, [boxes, "", listed], ".plain { color: red; }")
    root = parsed(text)
    assert not root.findall(".//script")
    assert root.findtext(".//h1") == root.findtext(".//title") == HOSTILE
    assert [cell.text for cell in root.iter("th")] == [HOSTILE, HOSTILE]
    assert [cell.text for cell in root.iter("dt")] == [HOSTILE, "plain"]
    assert root.find(".//dl/div[@class='bad']") is not None
    assert root.findtext(".//table[@class='plain']/caption") == HOSTILE
    assert "color: red" in (root.findtext(".//style") or "")


def test_a_table_without_headings_has_no_head() -> None:
    assert "<thead>" not in table([], ["<tr><td>1</td></tr>"])
    assert "class" not in table(["a"], []).replace('class="scroll"', "")


def of_evaluation() -> str:
    spans = [Span(0, 3, HOSTILE)]
    pairs = pair([Document.make("Ann came", id="1", layers={"gold": spans})], [Document.make("Ann came", id="1")])
    return evaluation_page(score(pairs), pairs, title=HOSTILE, with_text=True)


def of_model() -> str:
    told: dict[str, Any] = {HOSTILE: HOSTILE, "corpus": HOSTILE, "features": {HOSTILE: 3}}
    return show_page.html(HOSTILE, Manifest(HOSTILE, corpus=HOSTILE), told, [])


def of_sources() -> str:
    docs = [doc.with_layer(f"source:{HOSTILE}", [Span(0, 3, HOSTILE)]) for doc in notes(0, 6)]
    return analyse_page.html(analyse(docs), title=HOSTILE)


def of_relations() -> str:
    one = Figure(0.5, 0.4, 0.6)
    curve = Curve(np.array([0.5]), np.array([0.5]), np.array([0.5]), 0.5)
    found = Outcome(1, 1, 1, 1, 0.5, one, one, one, one, curve)
    return outcome_page(found, Schema(HOSTILE, (HOSTILE, "other"), (HOSTILE, HOSTILE)), title=HOSTILE)


def of_release() -> str:
    band = {name: 1 for name, _ in BANDS}
    category = {"leaks": 1.0, "per_note": 1.0, "per_1000": 1.0}
    manifest = {
        "documents": {"in": 2, "released": 1, "withheld": 1, "excluded": 0}, "withheld": {HOSTILE: 1},
        "excluded": {HOSTILE: 1}, "patients": 1,
        "without_patient": 1, "characters": 1, "tokens": 1, "replacements": 1,
        "labels": {HOSTILE: {"found": 1, "bands": band, "operators": {HOSTILE: 1}}},
        "over_redaction": {HOSTILE: 1},
        "expected_leaks": {
            "notes": 1, "per_note": 1.0, "per_1000": 1.0, "leaking_notes": 1.0, "categories": {HOSTILE: category},
        },
        "settings": {
            "model": {"name": HOSTILE, "digest": HOSTILE}, "policy": {"digest": HOSTILE}, "secret": HOSTILE,
            "ids": HOSTILE, "fields": [HOSTILE], "spans": True, "format": HOSTILE,
        },
        "versions": {HOSTILE: HOSTILE}, "chain": {"first": HOSTILE, "last": HOSTILE}, "lost": {HOSTILE: 1},
    }  # fmt: skip
    dial = {"asked": 0.9, "thresholds": {HOSTILE: 0.5}}
    return summary_page.html(manifest, Policy.read("safe-harbor"), title=HOSTILE, output=HOSTILE, dial=dial)


PAGES: list[Callable[[], str]] = [of_evaluation, of_model, of_sources, of_relations, of_release]


@pytest.mark.filterwarnings("ignore:sources that never speak")
@pytest.mark.parametrize("make", PAGES, ids=lambda make: make.__name__)
def test_names_from_elsewhere_are_text_on_every_page(make: Callable[[], str]) -> None:
    text = make()
    root = parsed(text)
    assert not root.findall(".//script")
    assert len(root.findall(".//style")) == 1
    assert root.findtext(".//h1") == HOSTILE
    assert "<script" not in text
    assert shown(text).count("alert('&amp;')") >= 3
    assert not [name for element in root.iter() for name in element.attrib if str(name).startswith(("on", "alert"))]
