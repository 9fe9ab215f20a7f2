"""Evaluation of spans: precision, recall, F1 and leakage with intervals, official schemes, one-file HTML reports."""

from chaffinch.evaluate.pairing import Pair, Pairs, pair, to_categories
from chaffinch.evaluate.report import html
from chaffinch.evaluate.results import Comparison, Report, Score, Table
from chaffinch.evaluate.schemes.tokens import Leakage, leakage
from chaffinch.evaluate.scoring import SCHEMES, TABLES, compare, compare_pairs, evaluate, score

__all__ = [
    "SCHEMES",
    "TABLES",
    "Comparison",
    "Leakage",
    "Pair",
    "Pairs",
    "Report",
    "Score",
    "Table",
    "compare",
    "compare_pairs",
    "evaluate",
    "html",
    "leakage",
    "pair",
    "score",
    "to_categories",
]
