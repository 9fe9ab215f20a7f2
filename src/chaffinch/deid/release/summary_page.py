"""The summary page of a release: documents in and out, findings, replacements, expected leaks. No text of documents."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from chaffinch.deid.kinds import HIPAA, kind_of
from chaffinch.deid.leakage import sample_size
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release.account import private_folder
from chaffinch.deid.release.patient import BANDS
from chaffinch.errors import ConfigError
from chaffinch.report import charts
from chaffinch.report.page import facts, page, table

_STYLE = """
dd { overflow-wrap: anywhere; }
.plain th, .plain td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.plain td.n, .plain th.n { text-align: right; white-space: nowrap; }
.plain th[scope=row], .plain thead th { white-space: nowrap; }
.kinds td:last-child, .kinds th:last-child, .kinds th:nth-child(3) { text-align: left; }
.kinds th small { display: block; font-weight: 400; }
.kinds td { vertical-align: middle; }
.kinds .bar { width: 8rem; margin: 0; }
.b0 { fill: var(--blue); } .b1 { fill: var(--blue); opacity: .6; } .b2 { fill: var(--blue); opacity: .3; }
.b3 { fill: var(--red); }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: .5rem 0; list-style: none;
  color: var(--soft); font-size: .9rem; }
.key svg { display: inline-block; width: .8rem; height: .8rem; vertical-align: -.05rem; margin-right: .35rem; }
pre { background: var(--band); border-radius: .4rem; padding: .7rem .9rem; margin: .6rem 0; overflow-x: auto;
  color: var(--ink); font-size: .9rem; max-width: 58rem; }
code { overflow-wrap: anywhere; font-size: .92em; }
.ok { background: var(--band); color: var(--ink); border-left: .3rem solid var(--blue); padding: .6rem .9rem; }
.share { width: 5rem; }
.facts .bad { box-shadow: inset .3rem 0 0 #e69f00; }
.facts dd small { font-size: .85rem; }
"""
_RULES_ONLY = (
    "These figures come from rules, whose confidence was not calibrated on notes like yours: use them to rank notes by "
    "risk, not as a number of leaks."
)
_BELIEF = (
    "These figures are the detector's probabilities for the tokens that it did not flag. They show which notes to read "
    "first; they prove nothing, because a detector does not count what it cannot recognise."
)
_OVER = (
    "Words that were replaced and are, by the word lists of the language, of a class that names nobody. There is no "
    "gold here, so this is a hint: a surname may be an eponym, and a ward a label. <code>deid explain</code> says why "
    "a word was taken; <code>--allow</code> spares phrases."
)
_SAMPLING = (
    "A reliable number comes from a sample that somebody reads. The first command draws notes, the risky ones more "
    "often; the reader writes into the form how many identifiers are still there; the second command gives leaks per "
    "note and per 1,000 tokens with upper bounds that hold for the way in which the sample was drawn."
)
_SAMPLE_SIZES = (
    "If readers find nothing in this many notes drawn at random, at most this share of all notes leaks, with 95 % "
    "confidence and a reader who finds 95 of 100 leaks."
)
_IDS = {
    "kept": "those of the input",
    "numbers": "numbers in the order of the input",
    "pseudonyms": "pseudonyms drawn with the secret",
}


def html(manifest: Mapping[str, Any], policy: Policy, *, title: str, output: str, dial: Mapping[str, Any]) -> str:
    """Return the HTML summary of a release from its manifest; `output` is its name, `dial` the recall and thresholds.

    `dial` has "asked" (the requested recall, or None), "expected" and "promised" recall (or None), and "thresholds" by
    label, if the model has any.
    """
    sections = [
        _render_counts(manifest),
        _render_withheld(manifest, output),
        _render_excluded(manifest, output),
        _render_found(manifest),
        _render_over_redaction(manifest),
        _render_leaks(manifest, output),
        _render_settings(manifest, policy, dial),
        _render_policy(policy),
        _render_losses(manifest),
    ]
    return page(title, sections, _STYLE)


def _render_counts(manifest: Mapping[str, Any]) -> str:
    """Return HTML boxes of documents, patients, characters, replacements, leaks, and a note if patients are missing."""
    documents, leaks = manifest["documents"], manifest["expected_leaks"]
    counts = {
        "documents in": f"{documents['in']:,}",
        "released": f"{documents['released']:,}",
        "withheld": f"{documents['withheld']:,}",
        "excluded": f"{documents['excluded']:,}",
        "patients": f"{manifest['patients']:,}",
        "characters": f"{manifest['characters']:,}",
        "replacements": f"{manifest['replacements']:,}",
        "expected leaks per note": "not known" if leaks is None else f"{leaks['per_note']:.2g}",
    }
    alone = manifest["without_patient"]
    note = ""
    if alone:
        whose = "Every note is" if alone == documents["released"] else f"{alone:,} notes without a patient are each"
        note = (
            f"<p>{whose} treated as a separate patient: surrogates and date shifts of two notes do not agree. "
            "Name the patients with <code>--group-by</code>.</p>"
        )
    return facts(counts, warned={"withheld"} if documents["withheld"] else ()) + note


def _render_withheld(manifest: Mapping[str, Any], output: str) -> str:
    """Return the HTML section on withheld documents by reason, or a sentence that there are none."""
    if not manifest["withheld"]:
        return '<p class="ok">Nothing was withheld: every document that could be read is in the output.</p>'
    rows = [
        f'<tr><td>{escape(reason)}</td><td class="n">{number:,}</td></tr>'
        for reason, number in manifest["withheld"].items()
    ]
    number = manifest["documents"]["withheld"]
    return (
        f'<h2>Withheld</h2><p class="warn">{number:,} of {manifest["documents"]["in"]:,} documents are <b>not</b> in '
        f"the output. <code>{escape(private_folder(Path(output)).name)}/withheld.jsonl</code> says which.</p>"
        + table([("reason", ""), ("documents", "n")], rows, kind="plain")
    )


def _render_excluded(manifest: Mapping[str, Any], output: str) -> str:
    """Return the HTML section on excluded items by rule; "" if there are none."""
    if not manifest["excluded"]:
        return ""
    rows = [
        f'<tr><td>{escape(rule)}</td><td class="n">{number:,}</td></tr>'
        for rule, number in manifest["excluded"].items()
    ]
    return (
        "<h2>Excluded</h2><p>Items of the input that are no notes, by rule. "
        f"<code>{escape(private_folder(Path(output)).name)}/excluded.jsonl</code> lists them.</p>"
        + table([("rule", ""), ("items", "n")], rows, kind="plain")
    )


def _render_found(manifest: Mapping[str, Any]) -> str:
    """Return the HTML section on identifiers found, by label, band of confidence and operator; a warning if none."""
    if not manifest["labels"]:
        return (
            '<h2>Found and done</h2><p class="warn">No identifier was found in any note. Is this the right model?</p>'
        )
    head = [("kind", ""), ("found", ""), ("confidence", ""), *((name, "") for name, _ in BANDS), ("done", "")]
    rows = [_kind_row(label, facts) for label, facts in sorted(manifest["labels"].items(), key=_by_frequency)]
    key = "".join(
        f'<li><svg viewBox="0 0 10 10"><rect class="b{number}" width="10" height="10"/></svg>{escape(name)}</li>'
        for number, (name, _) in enumerate(BANDS)
    )
    return (
        "<h2>Found and done</h2><p>What was found, by kind; how sure the detector was; and what the policy did. "
        "Overlapping spans are counted as found, but replaced in parts, so the two numbers may differ.</p>"
        f'<ul class="key">{key}</ul>{table(head, rows, kind="kinds")}'
    )


def _render_over_redaction(manifest: Mapping[str, Any]) -> str:
    """Return the HTML section on replaced words of clinical classes that name nobody; "" if there are none."""
    counts = manifest["over_redaction"]
    if not counts:
        return ""
    rows = [f'<tr><td>{escape(name)}</td><td class="n">{number:,}</td></tr>' for name, number in counts.items()]
    return f"<h2>Perhaps over-redacted</h2><p>{_OVER}</p>" + table([("class", ""), ("words", "n")], rows, kind="plain")


def _by_frequency(entry: tuple[str, Mapping[str, Any]]) -> tuple[int, str]:
    """Return the sort key of (label, counts): most found first, then by name."""
    return -entry[1]["found"], entry[0]


def _kind_row(label: str, facts: Mapping[str, Any]) -> str:
    """Return the HTML table row of a label: found, chart of confidence, operators."""
    letter = kind_of(label).hipaa
    listing = "not on HIPAA's list" if letter is None else f"HIPAA {letter}"
    done = ", ".join(f"{operator} {number:,}" for operator, number in facts["operators"].items())
    title = HIPAA.get(letter or "", listing)
    cells = "".join(f"<td>{number:,}</td>" for number in facts["bands"].values())
    return (
        f'<tr><th scope="row" title="{escape(title)}">{escape(label)}<small>{escape(listing)}</small></th>'
        f"<td>{facts['found']:,}</td><td>{_band_chart(facts['bands'])}</td>{cells}<td>{escape(done)}</td></tr>"
    )


def _band_chart(bands: Mapping[str, int]) -> str:
    """Return an SVG bar with one part per band of confidence, as wide as its share, and a title of counts."""
    whole, left, parts = max(sum(bands.values()), 1), 0.0, []
    for number, count in enumerate(bands.values()):
        width = 120 * count / whole
        if count:
            parts.append(f'<rect class="b{number}" x="{left:.1f}" y="3" width="{width:.1f}" height="10"/>')
        left += width
    title = ", ".join(f"{name}: {count:,}" for name, count in bands.items())
    return f'<svg class="bar" viewBox="0 0 120 16" role="img"><title>{escape(title)}</title>{"".join(parts)}</svg>'


def _render_leaks(manifest: Mapping[str, Any], output: str) -> str:
    """Return the HTML section on expected leaks, and how to estimate what is left."""
    leaks = manifest["expected_leaks"]
    expected = "<p>The detector gives no probabilities, so there is no estimate of expected leaks.</p>"
    if leaks is not None:
        rules = manifest["settings"]["model"]["name"] == "rules"
        measures = {
            "identifier tokens per note": f"{leaks['per_note']:.3g}",
            "per 1,000 tokens": f"{leaks['per_1000']:.3g}",
            "notes with any": f"{leaks['leaking_notes']:,.0f} of {leaks['notes']:,}",
        }
        expected = f"{facts(measures)}<p>{_RULES_ONLY if rules else _BELIEF}</p>{_render_categories(leaks)}"
    name, number = escape(output), manifest["documents"]["released"]
    commands = (
        f"<pre>chaffinch deid sample {name} -o sample.json --notes {min(300, number)}\n"
        "chaffinch deid estimate sample.json sample.csv --recall 0.95 --planted 200</pre>"
    )
    sampling = f"<p>{_SAMPLING}</p>{commands}{_render_sample_sizes(number)}" if leaks is not None else ""
    return f"<h2>How much could still leak?</h2>{expected}{sampling}"


def _render_categories(leaks: Mapping[str, Any]) -> str:
    """Return an HTML table of expected leaks by category, most first; "" if no category has any."""
    by_category = {name: row for name, row in leaks["categories"].items() if row["leaks"] > 0}
    whole = sum(row["leaks"] for row in by_category.values())
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="n">{row["leaks"]:.3g}</td>'
        f'<td class="n">{row["per_note"]:.3g}</td><td>{charts.share(row["leaks"] / whole)}</td></tr>'
        for name, row in sorted(by_category.items(), key=lambda entry: -entry[1]["leaks"])
    ]
    head = [("category", ""), ("tokens expected", "n"), ("per note", "n"), ("share", "")]
    return table(head, rows, kind="plain") if rows else ""


def _render_sample_sizes(released: int) -> str:
    """Return an HTML table of notes to read and the upper bound shown if no leak is found; "" without rows."""
    rows = []
    for bound in (0.1, 0.05, 0.02, 0.01, 0.005):
        try:
            number = sample_size(bound, notes=released, recall=0.95) if released else 0
        except ConfigError:
            continue
        rows.append(f'<tr><td class="n">{number:,}</td><td class="n">{bound:.1%}</td></tr>')
    sizes = table([("notes read, no leak found", "n"), ("share of notes at most", "n")], rows, kind="plain")
    return f"<p>{_SAMPLE_SIZES}</p>{sizes}" if rows and released else ""


def _render_settings(manifest: Mapping[str, Any], policy: Policy, dial: Mapping[str, Any]) -> str:
    """Return the HTML table of the settings: model, dial, policy, secret's fingerprint, ids, format, versions."""
    settings, versions = manifest["settings"], manifest["versions"]
    recall = dial.get("asked")
    dial_text = f"set for a recall of {recall:g}" if recall is not None else "not set: the model's balanced setting"
    if dial.get("expected") is not None:
        dial_text += f"; {dial['expected']:.3f} expected, {dial['promised']:.3f} promised with 90 % confidence"
    thresholds = {label: level for label, level in dial.get("thresholds", {}).items() if label}
    levels = ", ".join(f"{label} {level:.3g}" for label, level in sorted(thresholds.items()))
    facts = {
        "model": f"{settings['model']['name']}\n{settings['model']['digest']}",
        "dial": "rules have none" if not thresholds and recall is None else dial_text,
        "flagged from a probability of": levels,
        "policy": f"{policy.name}\n{settings['policy']['digest']}",
        "secret": settings["secret"] or "none was needed",
        "ids": _IDS.get(settings["ids"], settings["ids"]),
        "released fields": ", ".join(settings["fields"]),
        "replacements marked": "yes" if settings["spans"] else "no",
        "format": settings["format"],
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "chain, first and last": f"\n{manifest['chain']['first']}\n{manifest['chain']['last']}",
    }
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>{_break_lines(str(value))}</td></tr>'
        for name, value in facts.items()
        if value
    ]
    return f"<h2>Settings</h2>{table([], rows, kind='plain')}"


def _break_lines(value: str) -> str:
    """Return text lines in HTML: the first as text, the others, which are hashes, as code."""
    first, *hashes = value.split("\n")
    words = [escape(first)] if first else []
    return "<br/>".join([*words, *(f"<code>{escape(digest)}</code>" for digest in hashes)])


def _render_policy(policy: Policy) -> str:
    """Return an HTML table of the policy's rules."""
    rows = [
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(_describe_rule(rule))}</td></tr>'
        for label, rule in [*policy.rules.items(), ("all others", policy.default)]
    ]
    about = f"<p>{escape(policy.about)}</p>" if policy.about else ""
    return f"<h2>Policy {escape(policy.name)}</h2>{about}{table([('type', ''), ('operator', '')], rows, kind='plain')}"


def _describe_rule(rule: PolicyRule) -> str:
    """Return a rule as text: its operator's name with its options in brackets."""
    options = ", ".join(f"{name} = {value}" for name, value in rule.options)
    return f"{rule.operator} ({options})" if options else rule.operator


def _render_losses(manifest: Mapping[str, Any]) -> str:
    """Return the HTML section on what the output format could not hold; "" if nothing."""
    lost = manifest.get("lost")
    if not lost:
        return ""
    rows = [f'<tr><td>{escape(name)}</td><td class="n">{number:,}</td></tr>' for name, number in lost.items()]
    return f"<h2>Not kept by the format</h2>{table([('what', ''), ('times', 'n')], rows, kind='plain')}"
