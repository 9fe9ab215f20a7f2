"""The page of `chaffinch relate evaluate --html`: one file without script or text of documents, nothing loaded."""

from __future__ import annotations

from html import escape

from chaffinch.relations.evaluate.scoring import Outcome
from chaffinch.relations.schema import Schema
from chaffinch.report import charts
from chaffinch.report.page import page, table


def outcome_page(found: Outcome, schema: Schema, *, title: str) -> str:
    """Return an HTML page with the scores, their intervals, and the precision–recall curve."""
    figures = {"precision": found.precision, "recall": found.recall, "F1": found.f1, "AUC of candidates": found.auc}
    rows = [
        f'<tr><th scope="row">{name}</th><td>{figure.value:.3f}</td><td>{figure.low:.3f} to {figure.high:.3f}</td>'
        f"<td>{charts.bar(figure.value, (figure.low, figure.high), title=f'{name} {figure.value:.3f}')}</td></tr>"
        for name, figure in figures.items()
    ]
    curve = list(zip(found.curve.recall.tolist(), found.curve.precision.tolist(), strict=True))
    plot = charts.stairs(curve, title="Precision against recall", across="recall", up="precision") if curve else ""
    roles = ", ".join(f"{role} ({kind})" for role, kind in zip(schema.roles, schema.types, strict=True))
    facts = (
        f"<p>Roles: {escape(roles)}. {found.documents:,} documents, {found.stated:,} stated relations, "
        f"{found.candidates:,} candidates, {found.extracted:,} extracted at threshold {found.threshold:.3f}.</p>"
    )
    under = (
        "<p>Each step is a threshold; relations whose mentions share no sentence are in no candidate and stay missed, "
        "so the curve may end before recall 1.</p>"
    )
    head = ("", "value", "95 % interval", "")
    return page(title, [facts, table(head, rows), "<h2>Precision and recall</h2>", plot, under])
