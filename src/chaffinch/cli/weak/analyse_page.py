"""The page of `chaffinch weak analyse --html`: one file without script or text of documents, nothing loaded."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from chaffinch.report import charts
from chaffinch.report.page import facts, page, table
from chaffinch.weak.analysis.results import ALL, Analysis, Level, Measure, Row, SourceFacts, cell, format_score, percent

_MORE = """
.sources th, .sources td:nth-child(2) { text-align: left; }
.sources td { vertical-align: middle; }
.sources tbody th { vertical-align: middle; }
.sources .bar { width: 5rem; }
.sources .all td, .sources .all th { background: var(--band); }
.listed td, .listed th { text-align: right; }
.listed th:first-child, .listed td:first-child { text-align: left; }
.listed td:first-child { white-space: normal; overflow-wrap: anywhere; }
.matrix td { font-size: .8rem; }
.matrix caption { text-align: left; font-weight: 600; padding-bottom: .3rem; color: var(--ink); }
.matrix th { font-weight: 500; }
.maps { display: flex; flex-wrap: wrap; gap: 1.5rem 2.5rem; align-items: flex-end; }
.maps .scroll { flex: 0 1 auto; min-width: 0; max-width: 100%; }
"""
_SEEN = (
    "Estimates come from an HMM of many sources that learns from the votes alone. It takes sources that are wrong "
    "together for right, and cannot see what none of them speaks of: read them as an upper end. Agreement is the share "
    "of the spans of single sources, where others speak too, that a vote of those others has as well. Gold on a few "
    "dozen documents settles the question."
)
_SPANS = (
    "Coverage is the share of all spans proposed; overlap and conflict are shares of the source's own spans: another "
    "source votes there too; another one has another label or other ends, or says that it is no entity."
)
_TOKENS = "Coverage is the share of all tokens; overlap and conflict are shares of the tokens that the source votes on."
_CONFUSION = (
    "What each source does at a token, as estimated: the row is the true label, the column what it does. Blue is "
    "right, orange is wrong, silence has no colour."
)
_DEPENDENCE = (
    "The share of the row's votes that the column repeats beyond what the labels explain, which the other sources "
    "tell. Sources that depend on others count less (weight)."
)
_DOCUMENTS = "The documents by their ids; a span in conflict is one that another source wants otherwise."


def html(found: Analysis, *, title: str) -> str:
    """Return the HTML page of an analysis of sources: result, tables by spans and tokens, confusions, dependence."""
    sections = [
        _head(found), _result(found), _table(found, "spans"), _table(found, "tokens"), _confusions(found),
        _dependence(found), _documents(found),
    ]  # fmt: skip
    return page(title, sections, _MORE)


def _head(found: Analysis) -> str:
    """Return HTML boxes with counts of documents, tokens, votes, disputes and sources."""
    return facts({
        "documents": f"{found.documents:,}", "without any vote": f"{found.without:,}", "tokens": f"{found.tokens:,}",
        "tokens voted on": percent(found.voted), "disputed labels": percent(found.disputed),
        "contested spans": percent(found.contested), "sources": f"{len(found.sources):,}",
    })  # fmt: skip


def _result(found: Analysis) -> str:
    """Return the HTML section on the aggregated result: estimated scores, and scores by gold if there is any."""
    seen = found.outlook
    measures = {
        "spans": f"{seen.spans:,}", "estimated precision": cell(seen.precision), "estimated recall": cell(seen.recall),
        "estimated F1": cell(seen.f1), "agreement of sources": cell(seen.agreement),
    }  # fmt: skip
    checked = ""
    if seen.checked is not None:
        scores = seen.checked
        checked = (
            f'<p class="warn">By the gold of {scores.documents:,} documents: precision '
            f"{format_score(scores.precision, scores.precision_interval)}, recall "
            f"{format_score(scores.recall, scores.recall_interval)}, F1 "
            f"{format_score(scores.f1, scores.f1_interval)}.</p>"
        )
    return f"<h2>The joint result</h2>{facts(measures)}{checked}<p>{escape(_SEEN)}</p>"


def _table(found: Analysis, level: Level) -> str:
    """Return the HTML section with the table of all sources at one level, tokens or spans."""
    gold = found.outlook.checked is not None
    head = ["source", "label", level, "coverage", "overlap", "conflict", "precision", "recall"]
    head += ["true precision", "true recall"] if gold else []
    rows = [_row(source, row, level, gold) for source in found.sources for row in _rows_of(source, level)]
    text = _SPANS if level == "spans" else _TOKENS
    title = "Sources by spans" if level == "spans" else "Sources by tokens"
    return f"<h2>{title}</h2><p>{escape(text)}</p>{table([*head, 'weight'], rows, kind='sources')}"


def _rows_of(source: SourceFacts, level: Level) -> list[Row]:
    """Return a source's rows that have counts at this level; the total only if it has several labels."""
    alone = sum(row.label not in (ALL, "O") for row in source.rows) == 1
    rows = [row for row in source.rows if level == "tokens" or row.spans is not None]
    return [row for row in rows if row.label != ALL or not alone]


def _row(source: SourceFacts, row: Row, level: Level, gold: bool) -> str:
    """Return the HTML table row of a source and label; `gold` adds the true precision and recall."""
    measure: Measure | None = row.spans if level == "spans" else row.tokens
    assert measure is not None  # noqa: S101  (rows without spans are not shown)
    values = [measure.coverage, measure.overlap, measure.conflict, measure.precision, measure.recall]
    values += [measure.true_precision, measure.true_recall] if gold else []
    cells = "".join(f"<td>{cell(value)}{_bar(value)}</td>" for value in values)
    first = row is _rows_of(source, level)[0]
    weight = cell(source.weight) if first else ""
    name = escape(source.name) if first else ""
    kind = ' class="all"' if row.label == ALL else ""
    return (
        f'<tr{kind}><th scope="row">{name}</th><td>{escape(row.label)}</td><td>{measure.votes:,}</td>{cells}'
        f"<td>{weight}</td></tr>"
    )


def _bar(value: float | None) -> str:
    """Return an SVG bar of a share between 0 and 1; "" for None."""
    return "" if value is None else charts.share(min(max(value, 0.0), 1.0))


def _confusions(found: Analysis) -> str:
    """Return the HTML section with a heat map per source; "" if no source has one."""
    maps = [_map(source, found.labels) for source in found.sources if source.confusion]
    if not maps:
        return ""
    return f'<h2>What sources do</h2><p>{escape(_CONFUSION)}</p><div class="maps">{"".join(maps)}</div>'


def _map(source: SourceFacts, labels: Sequence[str]) -> str:
    """Return the HTML heat map of a source: chances of each vote, or silence, by true label as estimated."""
    kinds = ("O", *labels)
    rows = []
    for place, chances in enumerate(source.confusion):
        cells = []
        for column, chance in enumerate(chances):
            kind = "" if not column else "same" if column - 1 == place else "other"
            title = f"{kinds[place]}: {('silent', *kinds)[column]} {chance:.2%}"
            shade = f' class="{kind}" style="--v:{chance:.3f}"' if kind else ""
            cells.append(f'<td{shade} title="{escape(title)}">{_short(chance)}</td>')
        rows.append(f'<tr><th scope="row">{escape(kinds[place])}</th>{"".join(cells)}</tr>')
    return table(("", "silent", *kinds), rows, kind="matrix", caption=source.name)


def _dependence(found: Analysis) -> str:
    """Return the HTML matrix of the share of each source's votes that others repeat; "" for fewer than two."""
    if len(found.dependent) < 2:
        return ""
    rows = []
    for a, name in enumerate(found.dependent):
        cells = [
            "<td></td>"
            if a == b
            else f'<td class="other" style="--v:{value:.3f}" title="{escape(f"{name} by {other}: {value:.1%}")}">'
            f"{_short(value)}</td>"
            for b, (other, value) in enumerate(zip(found.dependent, found.dependence[a], strict=True))
        ]
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>')
    matrix = table(("", *found.dependent), rows, kind="matrix")
    return f"<h2>Dependence</h2><p>{escape(_DEPENDENCE)}</p>{matrix}"


def _documents(found: Analysis) -> str:
    """Return the HTML table of the documents with most disagreement; "" if there are none."""
    if not found.disagreements:
        return ""
    rows = [
        f"<tr><td>{escape(document.id)}</td><td>{document.spans:,}</td><td>{document.tokens:,}</td><td>{document.voted:,}</td></tr>"
        for document in found.disagreements
    ]
    head = ("document", "spans in conflict", "disputed tokens", "voted tokens")
    return f"<h2>Most disagreement</h2><p>{escape(_DOCUMENTS)}</p>{table(head, rows, kind='listed')}"


def _short(value: float) -> str:
    """Return a share with two decimals and no leading zero; "" for what rounds to zero.

    >>> _short(0.456), _short(0.001)
    ('.46', '')
    """
    return "" if value < 0.005 else f"{value:.2f}".removeprefix("0")
