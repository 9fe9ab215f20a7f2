"""One self-contained HTML page about an evaluation: no script, nothing loaded from elsewhere.

Without `with_text` it holds no word of any document and no document id, only labels, counts and offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from chaffinch.evaluate.bootstrap import Interval
from chaffinch.evaluate.mistakes import OUTSIDE, Case, Confusion, cases, confusion, kind_counts
from chaffinch.evaluate.pairing import Pairs
from chaffinch.evaluate.ranking import ScoredSpans, calibration, collect_scores, curve
from chaffinch.evaluate.results import Report, Table
from chaffinch.evaluate.schemes.tokens import Leakage, leakage
from chaffinch.evaluate.scoring import TABLES
from chaffinch.report import charts
from chaffinch.report.page import facts, page, table
from chaffinch.text import Document, Span

LISTED = 500  # mistakes listed one by one; the others are only counted. Raised, the page grows by a row for each
_CONTEXT = 40  # characters shown on either side of a mistake: about six words


def html(report: Report, pairs: Pairs, *, title: str = "Evaluation", with_text: bool = False) -> str:
    """Return a report's HTML page; `with_text` adds words around mistakes and a warning, else it holds no text.

    >>> from chaffinch.evaluate.pairing import pair
    >>> from chaffinch.evaluate.scoring import score
    >>> note = Document.make("Ann came", id="1", layers={"gold": [Span(0, 3, "NAME")]})
    >>> pairs = pair([note], [note])
    >>> html(score(pairs), pairs, title="Ward 7").startswith("<!doctype html>")
    True
    """
    found = cases(pairs)
    sections = [
        _facts_section(report, pairs),
        *map(_scores_section, report.tables),
        _kinds_section(found),
        _confusion_section(confusion(found)),
        _leakage_section(report.leakage or leakage(pairs)),
        _ranking_section(collect_scores(pairs)),
        _mistakes_section(found, [pair.document for pair in pairs], with_text=with_text),
    ]
    warning = '<p class="warn"><b>Contains document text.</b> Keep this file where the documents may be.</p>'
    return page(title, [warning if with_text else "", *sections])


def _facts_section(report: Report, pairs: Pairs) -> str:
    """Return HTML boxes with counts of documents, labels and spans, and notes on missing documents and intervals."""
    labels = {span.label for pair in pairs for span in (*pair.gold, *pair.predicted)}
    counts = {
        "documents": f"{report.documents:,}",
        "missing": f"{report.missing:,}",
        "extra": f"{report.extra:,}",
        "labels": f"{len(labels):,}",
        "gold spans": f"{sum(len(one.gold) for one in pairs):,}",
        "predicted spans": f"{sum(len(one.predicted) for one in pairs):,}",
    }
    notes = []
    if report.missing:
        notes.append("Missing documents had no prediction: they count as predicted empty, except in official schemes.")
    if report.extra:
        notes.append("Extra documents had no gold and are not scored.")
    if report.draws:
        drawn = f"{report.draws:,} draws of documents, seed {report.seed}"
        notes.append(f"Intervals are {report.level:.0%} percentile intervals from {drawn}.")
    return facts(counts) + "".join(f"<p>{note}</p>" for note in notes)


def _scores_section(scored: Table) -> str:
    """Return the HTML section of one scheme's table: its meaning, scores by label with intervals, counts, facts."""
    rows = []
    for label, score in scored.rows():
        cells = "".join(
            f"<td>{_value_html(value, interval)}{charts.bar(value, interval, title=_number_text(value, interval))}</td>"
            for value, interval in (
                (score.precision, score.precision_interval),
                (score.recall, score.recall_interval),
                (score.f1, score.f1_interval),
            )
        )
        counts = "".join(f"<td>{n:,}</td>" for n in (score.tp, score.fp, score.fn, score.gold, score.predicted))
        total = ' class="total"' if label in ("micro", "macro") and label not in scored.labels else ""
        rows.append(f'<tr{total}><th scope="row">{escape(label)}</th>{cells}{counts}</tr>')
    head = ("", "precision", "recall", "F1", "hits", "false", "missed", "gold", "predicted")
    measures = ", ".join(f"{escape(name)} {value:.4g}" for name, value in scored.facts.items())
    meaning = f"{TABLES[scored.name].meaning[:1].upper()}{TABLES[scored.name].meaning[1:]}."
    under = f"<p>{measures}</p>" if measures else ""
    return f"<h2>Scores: {escape(scored.name)}</h2><p>{escape(meaning)}</p>{table(head, rows)}{under}"


def _number_text(value: float, interval: Interval | None) -> str:
    """Return a score with its interval, if any, as text: "0.812, 0.790 to 0.833"."""
    return f"{value:.3f}" + ("" if interval is None else f", {interval[0]:.3f} to {interval[1]:.3f}")


def _value_html(value: float, interval: Interval | None) -> str:
    """Return a score in bold, with its interval, if any, in small print, as HTML."""
    between = "" if interval is None else f" <small>{interval[0]:.3f}–{interval[1]:.3f}</small>"
    return f"<b>{value:.3f}</b>{between}"


def _kinds_section(found: Sequence[Case]) -> str:
    """Return the HTML table of how many spans are right, missed, spurious or wrong in part, with shares."""
    rows = []
    for kind, number in kind_counts(found).items():
        part = number / max(len(found), 1)
        cells = f"<td>{number:,}</td><td>{part:.1%}</td><td>{charts.share(part)}</td>"
        rows.append(f'<tr><th scope="row">{kind}</th>{cells}</tr>')
    return f"<h2>Right and wrong</h2>{table(('spans', 'number', 'share', ''), rows)}"


def _confusion_section(found: Confusion) -> str:
    """Return the HTML matrix of gold by predicted labels; "" if there is none but "no span"."""
    if len(found.labels) == 1:
        return ""
    rows = []
    for i, (label, row) in enumerate(zip(found.labels, found.matrix.tolist(), strict=True)):
        total = max(sum(row), 1)
        cells = "".join(
            f'<td class="{"same" if i == j else "other"}" style="--v:{n / total:.2f}">{n or "·"}</td>'
            if (i, j) != (len(row) - 1, len(row) - 1)
            else "<td></td>"
            for j, n in enumerate(row)
        )
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    text = (
        f"Rows are gold, columns predicted; {OUTSIDE} is no span. Spans that overlap are matched, so wrong "
        "boundaries are on the diagonal too. Shading is the share of the row."
    )
    return f'<h2>Label confusion</h2><p>{text}</p><div class="matrix">{table(("gold", *found.labels), rows)}</div>'


def _leakage_section(found: Leakage) -> str:
    """Return the HTML section on identifying tokens that would stay if the predicted spans were removed."""
    (low, high), (few, many) = found.share_interval, found.rate_interval
    kept = 1 - found.leaked_characters / found.characters if found.characters else 0.0
    lines = [
        f"<b>{found.leaking:,}</b> of {found.documents:,} documents leak: {found.share:.1%} "
        f"(exact interval {low:.1%} to {high:.1%}).",
        f"<b>{found.leaked:,}</b> of {found.tokens:,} identifying tokens leak: {found.rate:,.1f} per 1,000 documents "
        f"(exact interval {few:,.1f} to {many:,.1f}); token recall {found.recall:.4f}, character recall {kept:.4f}.",
    ]
    rows = [
        f'<tr><th scope="row">{escape(label)}</th><td>{leaked:,}</td><td>{total:,}</td>'
        f"<td>{1 - leaked / total:.4f}</td></tr>"
        for label, (leaked, total) in found.labels.items()
    ]
    text = "If exactly the predicted spans were removed, whatever their labels:"
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<h2>Leakage</h2><p>{text}</p><ul>{items}</ul>{table(('gold label', 'leaked', 'tokens', 'recall'), rows)}"


def _ranking_section(found: ScoredSpans) -> str:
    """Return HTML charts of precision by recall and, for scores in 0–1, of calibration; "" if all scores are equal."""
    if not found.varies:
        return ""
    shape = curve(found)
    points = [(0.0, float(shape.precision[0])), *zip(shape.recall.tolist(), shape.precision.tolist(), strict=True)]
    drawn = charts.stairs(points, title="Precision against recall", across="recall", up="precision")
    figures = [f"<figure>{drawn}<figcaption>Average precision {shape.average_precision:.4f}</figcaption></figure>"]
    if found.scores.min() >= 0 and found.scores.max() <= 1:
        fit = calibration(found)
        dots = list(zip(fit.confidence.tolist(), fit.accuracy.tolist(), strict=True))
        across, up = "mean score of a span", "share of right spans"
        drawn = charts.scatter(dots, fit.spans.tolist(), title="Calibration", across=across, up=up)
        errors = f"Calibration error {fit.error:.4f}, Brier score {fit.brier:.4f}"
        figures.append(f"<figure>{drawn}<figcaption>{errors}</figcaption></figure>")
    text = (
        "Precision and recall when spans below a score are dropped; and whether a score can be read as a probability."
    )
    return f'<h2>Confidence</h2><p>{text}</p><div class="figures">{"".join(figures)}</div>'


def _mistakes_section(found: Sequence[Case], docs: Sequence[Document], *, with_text: bool) -> str:
    """Return the HTML table of the first `LISTED` mistakes, with words if `with_text`; "" without mistakes."""
    wrong = [case for case in found if case.kind != "right"]
    shown = wrong[:LISTED]
    head = ["document", "what", "gold", "predicted", *(["context"] if with_text else [])]
    rows = []
    for case in shown:
        cells = [str(case.document + 1), case.kind, _span_html(case.gold), _span_html(case.predicted)]
        cells += [_context_html(docs[case.document].text, case)] if with_text else []
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    text = "Documents are numbered in the order of gold; offsets count characters from 0, the end is not included."
    if with_text:
        text += " In the context, gold is underlined and predicted has a background."
    if len(wrong) > len(shown):
        text += f" The first {len(shown):,} of {len(wrong):,} are listed."
    return f'<h2>Mistakes</h2><p>{text}</p><div class="mistakes">{table(head, rows)}</div>' if wrong else ""


def _span_html(span: Span | None) -> str:
    """Return label and offsets of a span as HTML; a dash for None."""
    return "–" if span is None else f"{escape(span.label)} <small>[{span.start}, {span.end})</small>"


def _context_html(text: str, case: Case) -> str:
    """Return the mistake and `_CONTEXT` characters on both sides as HTML: gold underlined, predicted in colour."""
    spans = [span for span in (case.gold, case.predicted) if span is not None]
    low, high = max(0, case.start - _CONTEXT), min(len(text), max(s.end for s in spans) + _CONTEXT)
    cuts = sorted({low, high, *(edge for span in spans for edge in (span.start, span.end))})
    parts = []
    for a, b in pairwise(cuts):
        inside = [
            name
            for name, span in (("g", case.gold), ("p", case.predicted))
            if span is not None and span.start <= a < span.end
        ]
        words = escape(_visible(text[a:b]))
        parts.append(f'<mark class="{" ".join(inside)}">{words}</mark>' if inside else words)
    return f'<span class="text">{"…" if low else ""}{"".join(parts)}{"…" if high < len(text) else ""}</span>'


def _visible(text: str) -> str:
    """Return the text with control characters, but not tab and line feed, replaced by Unicode pictures of them."""
    return "".join(chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else c for c in text)
