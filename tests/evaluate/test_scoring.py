"""The calls people make: evaluate and compare, their text and their JSON."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError
from chaffinch.evaluate import SCHEMES, TABLES, Pair, Pairs, compare, evaluate, score
from chaffinch.text import Document, Span
from tests.evaluate.strategies import TEXT, layers, note, pairs

CORPORA = st.lists(st.tuples(layers(), layers()), min_size=1, max_size=5)


def sides(corpus: list[tuple[list[Span], list[Span]]]) -> tuple[list[Document], list[Document]]:
    gold = [note(TEXT, a, number=str(i)) for i, (a, _) in enumerate(corpus)]
    return gold, [note(TEXT, b, number=str(i), layer="system") for i, (_, b) in enumerate(corpus)]


@given(CORPORA, st.randoms(use_true_random=False))
def test_the_order_of_documents_changes_no_score(
    corpus: list[tuple[list[Span], list[Span]]], shuffler: random.Random
) -> None:
    gold, found = sides(corpus)
    before = evaluate(gold, found, scheme=SCHEMES, intervals=False).as_dict()
    shuffler.shuffle(gold)
    shuffler.shuffle(found)
    after = evaluate(gold, found, scheme=SCHEMES, intervals=False).as_dict()
    for name in TABLES:  # means over documents are sums in another order
        assert after[name]["micro"] == pytest.approx(before[name]["micro"], abs=1e-12)
        assert after[name]["macro"] == pytest.approx(before[name]["macro"], abs=1e-12)
        assert after[name]["labels"] == before[name]["labels"]
    assert after["leakage"] == before["leakage"]


@given(pairs())
def test_a_perfect_system_is_perfect_in_every_scheme(one: Pair) -> None:
    report = score(Pairs((Pair(one.document, one.gold, one.gold),)), scheme=("strict", "relaxed", "exact", "token"))
    for table in report.tables:
        assert table.micro.f1 == (1.0 if table.micro.gold else 0.0)  # a blank is no token
        assert all(label.f1 == 1.0 for label in table.labels.values())


@given(CORPORA)
def test_every_scheme_counts_consistently(corpus: list[tuple[list[Span], list[Span]]]) -> None:
    for table in evaluate(*sides(corpus), scheme=SCHEMES, intervals=False).tables:
        for _, one in table.rows():
            assert 0.0 <= min(one.precision, one.recall, one.f1) <= max(one.precision, one.recall, one.f1) <= 1.0
            if table.name not in ("i2b2_relaxed", "i2b2_hipaa_relaxed", "meddocan_merged"):
                assert (one.tp + one.fn, one.tp + one.fp) == (one.gold, one.predicted)


def example() -> tuple[list[Document], list[Document]]:
    gold = [note("Ann, 61", [Span(0, 3, "NAME"), Span(5, 7, "AGE")], number=str(i)) for i in range(4)]
    found = [[Span(0, 3, "NAME")], [Span(0, 3, "NAME"), Span(5, 7, "NAME")], [Span(5, 7, "AGE")], []]
    return gold, [note("Ann, 61", spans, number=str(i)) for i, spans in enumerate(found)]


def test_the_json_has_the_promised_shape() -> None:
    plain = evaluate(*example(), scheme=("strict", "i2b2_strict")).as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["i2b2"] == plain["i2b2_strict"]
    facts = {"documents", "missing", "extra", "intervals", "layer", "predicted_layer", "disjoint_labels"}
    assert plain.keys() == {"strict", "i2b2", "i2b2_strict", *facts}
    assert plain["strict"].keys() == {"micro", "macro", "labels"}
    keys = {"precision", "recall", "f1", "tp", "fp", "fn", "gold", "predicted"}
    keys |= {"precision_interval", "recall_interval", "f1_interval"}
    for one in (plain["strict"]["micro"], plain["strict"]["macro"], plain["strict"]["labels"]["AGE"]):
        assert one.keys() == keys
        low, high = one["recall_interval"]
        assert 0 <= low <= one["recall"] <= high <= 1
    # NAME: 2 of 4 found, 1 false: P 2/3, R 1/2, F 4/7. AGE: 1 of 4 found: P 1, R 1/4, F 2/5. Macro F1 is their mean.
    assert plain["strict"]["macro"]["f1"] == pytest.approx((4 / 7 + 2 / 5) / 2)
    assert plain["strict"]["micro"]["f1"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 5))


def test_the_layout_of_the_text() -> None:
    layout = re.sub(r"(?<!F)\d", "#", str(evaluate(*example())))
    assert layout == (
        "strict              precision                 recall                     F1    gold  predicted\n"
        "AGE       #.### (#.###–#.###)    #.### (#.###–#.###)    #.### (#.###–#.###)       #          #\n"
        "NAME      #.### (#.###–#.###)    #.### (#.###–#.###)    #.### (#.###–#.###)       #          #\n"
        "----------------------------------------------------------------------------------------------\n"
        "micro     #.### (#.###–#.###)    #.### (#.###–#.###)    #.### (#.###–#.###)       #          #\n"
        "macro     #.### (#.###–#.###)    #.### (#.###–#.###)    #.### (#.###–#.###)       #          #\n"
        "\n"
        "documents: #, missing documents: #, extra documents: #\n"
        "intervals: ##%, #,### draws of documents, seed #"
    )


def test_the_same_seed_gives_the_same_report() -> None:
    assert evaluate(*example(), seed=3) == evaluate(*example(), seed=3)
    assert evaluate(*example(), seed=3) != evaluate(*example(), seed=4)


def test_compare_says_what_only_one_system_has_right() -> None:
    gold, first = example()
    second = [note("Ann, 61", [Span(5, 7, "AGE")], number=str(i)) for i in range(4)]
    found = compare(gold, first, second)
    # First: NAME 0, NAME 1, AGE 2. Second: AGE 0 to 3. Both: AGE 2. Neither: NAME 2, NAME 3.
    assert (found.only_first, found.only_second, found.both, found.neither) == (2, 3, 1, 2)
    assert found.difference.value == pytest.approx(found.first.micro.f1 - found.second.micro.f1)
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    assert "2 by the first only, 3 by the second only" in str(found)


def test_compare_of_a_system_with_itself() -> None:
    gold, first = example()
    for scheme in SCHEMES:
        found = compare(gold, first, first, scheme=scheme)
        assert (found.difference.value, found.difference.p, found.only_first, found.only_second) == (0.0, 1.0, 0, 0)


def test_compare_by_an_official_scheme_needs_documents_that_both_predicted() -> None:
    gold, first = example()
    assert compare(gold, first[:3], first[1:], scheme="i2b2").documents == 2
    with pytest.raises(DataError, match="both systems"):
        compare(gold, first[:2], first[2:], scheme="i2b2")


@pytest.mark.parametrize("scheme", ["strikt", ["strict", "fuzzy"], []])
def test_an_unknown_scheme_is_refused(scheme: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="choose one of strict, relaxed"):
        evaluate(*example(), scheme=scheme)
