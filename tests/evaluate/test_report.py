"""The HTML page: well formed, closed to the outside, silent about the text unless asked."""

from __future__ import annotations

import re

from lxml import etree

from chaffinch.evaluate import SCHEMES, Pairs, html, pair, score
from chaffinch.evaluate.report import LISTED
from chaffinch.text import Span
from tests.evaluate.strategies import note

CANARY = "Quillfeather"
LABEL = '<b title="x">&'


def example() -> Pairs:
    text = f"seen by {CANARY}\x00 & <i>Sons</i>, 61"
    spans = [Span(8, 20, "NAME"), Span(len(text) - 2, len(text), LABEL)]
    gold = [note(text, spans, number=f"{CANARY}-{i}") for i in range(5)]
    found = [
        note(text, [Span(8, 14 + i, "NAME", 0.5 + i / 10), Span(8, 20, LABEL, 0.3)], number=f"{CANARY}-{i}")
        for i in range(4)
    ]
    return pair(gold, found)


def page(*, with_text: bool = False, title: str = "Ward <7>") -> str:
    pairs = example()
    return html(score(pairs, scheme=SCHEMES), pairs, title=title, with_text=with_text)


def parse_page(text: str) -> etree._Element:
    """The page as XML: every tag closed, every attribute quoted, every character escaped."""
    doctype, _, rest = text.partition("\n")
    assert doctype == "<!doctype html>"
    return etree.fromstring(rest)


def test_every_tag_is_closed_and_every_character_escaped() -> None:
    for with_text in (False, True):
        root = parse_page(page(with_text=with_text))
        assert root.findtext("head/title") == "Ward <7>"
        assert LABEL in {"".join(map(str, cell.itertext())) for cell in root.iter("th")}
        assert not list(root.iter("b[@title]"))


def test_nothing_is_loaded_from_elsewhere() -> None:
    for with_text in (False, True):
        text = page(with_text=with_text)
        assert not re.search(r"https?:|src=|href=|url\(|@import|<script|<link|<iframe|\son\w+=", text)


def test_no_word_and_no_id_of_a_document_is_shown_unless_asked() -> None:
    silent, open_ = page(), page(with_text=True)
    assert not re.search("Quill|feather|Sons|seen", silent)
    assert CANARY in "".join(map(str, parse_page(open_).itertext()))
    assert f"{CANARY}-" not in open_  # ids stay out of both
    assert "Contains document text" in open_
    assert "Contains document text" not in silent


def test_a_hostile_text_is_shown_as_text() -> None:
    text = page(with_text=True)
    assert "&lt;i&gt;Sons" in text
    assert "\x00" not in text
    assert "\u2400" in text


def test_the_layout() -> None:
    pairs = example()
    root = parse_page(html(score(pairs, scheme=("strict", "binary")), pairs))
    assert [heading.text for heading in root.iter("h1", "h2")] == [
        *("Evaluation", "Scores: strict", "Scores: binary", "Right and wrong", "Label confusion"),
        *("Leakage", "Confidence", "Mistakes"),
    ]
    heads = [[cell.text for cell in head.iter("th")] for head in root.iter("thead")]
    assert heads == [
        [None, "precision", "recall", "F1", "hits", "false", "missed", "gold", "predicted"],
        [None, "precision", "recall", "F1", "hits", "false", "missed", "gold", "predicted"],
        ["spans", "number", "share", None],
        ["gold", LABEL, "NAME", "O"],
        ["gold label", "leaked", "tokens", "recall"],
        ["document", "what", "gold", "predicted"],
    ]
    assert [title.text for title in root.iterfind(".//figure//svg/title")] == [
        "Precision against recall",
        "Calibration",
    ]
    assert all(svg.find("title") is not None for svg in root.iter("svg"))


def test_the_numbers_of_the_page_are_those_of_the_report() -> None:
    pairs = example()
    report = score(pairs)
    rows = [[str(part) for part in row.itertext()] for row in parse_page(html(report, pairs)).iter("tr")]
    micro = next(row for row in rows if row[0] == "micro")
    assert f"{report.micro.recall:.3f}" in micro
    assert report.micro.recall_interval is not None
    assert " {:.3f}–{:.3f}".format(*report.micro.recall_interval) in "".join(micro)
    counts = (report.micro.tp, report.micro.fp, report.micro.fn, report.micro.gold, report.micro.predicted)
    assert micro[-5:] == [str(n) for n in counts]


def test_charts_appear_only_where_scores_vary_and_are_probabilities() -> None:
    gold = [note("Ann Lee", [Span(0, 3, "N")])]
    flat = pair(gold, gold)
    assert "<figure" not in html(score(flat), flat)
    wild = pair(gold, [note("Ann Lee", [Span(0, 3, "N", 7.0), Span(4, 7, "N", -2.0)])])
    text = html(score(wild), wild)
    assert (text.count("<figure>"), "Calibration" in text) == (1, False)


def test_nothing_at_all_is_still_a_page() -> None:
    empty = pair([note("", [])], [note("", [])])
    parse_page(html(score(empty, scheme=SCHEMES), empty))


def test_long_lists_are_cut_and_say_so() -> None:
    text = "x " * 600
    many = pair([note(text, [Span(2 * i, 2 * i + 1, "N") for i in range(LISTED + 7)])], [note(text, [])])
    assert f"The first {LISTED} of {LISTED + 7} are listed." in html(score(many, intervals=False), many)
