"""The page of a release: what went in and out, what was found and done, and what may be left. No text of documents."""

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

_MORE = """
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
    "These figures come from rules, whose confidence was never fitted on notes like yours: take them for an order of "
    "risk among notes, not for a number of leaks."
)
_BELIEF = (
    "These figures are the detector's own belief about the tokens that it left alone. They tell which notes to read "
    "first; they prove nothing, because what a detector is blind to, it does not count."
)
_READ = (
    "A number to stand by comes from a sample that somebody reads. The first command draws notes, the risky ones more "
    "often; the reader writes into the form how many identifiers are still there; the second command gives leaks per "
    "note and per 1,000 tokens with upper bounds that hold for the way in which the sample was drawn."
)
_OVER = (
    "If readers find nothing in so many notes drawn at random, at most this share of all notes leaks, with 95 % "
    "confidence and a reader who finds 95 of 100 leaks."
)
_IDS = {
    "kept": "those of the input",
    "numbers": "numbers in the order of the input",
    "pseudonyms": "pseudonyms by the secret",
}


def html(manifest: Mapping[str, Any], policy: Policy, *, title: str, output: str, dial: Mapping[str, Any]) -> str:
    """The page of a release; `output` is the name of what was written, `dial` says how it was set.

    `dial` has "asked" (a recall, or None) and "thresholds" by label, if the model has any.
    """
    sections = [
        _head(manifest), _withheld(manifest, output), _found(manifest), _left(manifest, output),
        _settings(manifest, policy, dial), _policy(policy), _not_kept(manifest),
    ]  # fmt: skip
    return page(title, sections, _MORE)


def _head(manifest: Mapping[str, Any]) -> str:
    documents, leaks = manifest["documents"], manifest["expected leaks"]
    counts = {
        "documents in": f"{documents['in']:,}",
        "released": f"{documents['released']:,}",
        "withheld": f"{documents['withheld']:,}",
        "patients": f"{manifest['patients']:,}",
        "characters": f"{manifest['characters']:,}",
        "replacements": f"{manifest['replacements']:,}",
        "expected leaks per note": "not known" if leaks is None else f"{leaks['per_note']:.2g}",
    }
    alone = manifest["without a patient"]
    note = ""
    if alone:
        whose = "Every note is" if alone == documents["released"] else f"{alone:,} notes without a patient are each"
        note = (
            f"<p>{whose} taken for a patient of its own: surrogates and date shifts of two notes do not agree. "
            "Say whose notes they are with <code>--group-by</code>.</p>"
        )
    return facts(counts, warned={"withheld"} if documents["withheld"] else ()) + note


def _withheld(manifest: Mapping[str, Any], output: str) -> str:
    if not manifest["withheld"]:
        return '<p class="ok">Nothing was withheld: every document of the input is in the output.</p>'
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


def _found(manifest: Mapping[str, Any]) -> str:
    if not manifest["labels"]:
        return (
            '<h2>Found and done</h2><p class="warn">No identifier was found in any note. Is this the right model?</p>'
        )
    head = [("kind", ""), ("found", ""), ("confidence", ""), *((name, "") for name, _ in BANDS), ("done", "")]
    rows = [_kind(label, facts) for label, facts in sorted(manifest["labels"].items(), key=_most)]
    key = "".join(
        f'<li><svg viewBox="0 0 10 10"><rect class="b{at}" width="10" height="10"/></svg>{escape(name)}</li>'
        for at, (name, _) in enumerate(BANDS)
    )
    return (
        "<h2>Found and done</h2><p>What was found, by kind; how sure the detector was; and what the policy did. Where "
        "spans overlap they are counted as found and done to in parts, so the two numbers may differ.</p>"
        f'<ul class="key">{key}</ul>{table(head, rows, kind="kinds")}'
    )


def _most(entry: tuple[str, Mapping[str, Any]]) -> tuple[int, str]:
    return -entry[1]["found"], entry[0]


def _kind(label: str, facts: Mapping[str, Any]) -> str:
    letter = kind_of(label).hipaa
    told = "not on HIPAA's list" if letter is None else f"HIPAA {letter}"
    done = ", ".join(f"{operator} {number:,}" for operator, number in facts["operators"].items())
    title = HIPAA.get(letter or "", told)
    cells = "".join(f"<td>{number:,}</td>" for number in facts["bands"].values())
    return (
        f'<tr><th scope="row" title="{escape(title)}">{escape(label)}<small>{escape(told)}</small></th>'
        f"<td>{facts['found']:,}</td><td>{_bands(facts['bands'])}</td>{cells}<td>{escape(done)}</td></tr>"
    )


def _bands(bands: Mapping[str, int]) -> str:
    """One bar, cut where confidence falls."""
    whole, at, parts = max(sum(bands.values()), 1), 0.0, []
    for number, count in enumerate(bands.values()):
        width = 120 * count / whole
        if count:
            parts.append(f'<rect class="b{number}" x="{at:.1f}" y="3" width="{width:.1f}" height="10"/>')
        at += width
    title = ", ".join(f"{name}: {count:,}" for name, count in bands.items())
    return f'<svg class="bar" viewBox="0 0 120 16" role="img"><title>{escape(title)}</title>{"".join(parts)}</svg>'


def _left(manifest: Mapping[str, Any], output: str) -> str:
    leaks = manifest["expected leaks"]
    shown = "<p>The detector gives no probabilities, so nothing is expected.</p>"
    if leaks is not None:
        rules = manifest["settings"]["model"]["name"] == "rules"
        measures = {
            "identifier tokens per note": f"{leaks['per_note']:.3g}",
            "per 1,000 tokens": f"{leaks['per_1000']:.3g}",
            "notes with any": f"{leaks['leaking_notes']:,.0f} of {leaks['notes']:,}",
        }
        shown = f"{facts(measures)}<p>{_RULES_ONLY if rules else _BELIEF}</p>{_categories(leaks)}"
    name, number = escape(output), manifest["documents"]["released"]
    commands = (
        f"<pre>chaffinch deid sample {name} -o sample.json --notes {min(300, number)}\n"
        "chaffinch deid estimate sample.json sample.csv --recall 0.95 --planted 200</pre>"
    )
    sampled = f"<p>{_READ}</p>{commands}{_sizes(number)}" if leaks is not None else ""
    return f"<h2>How much could still leak?</h2>{shown}{sampled}"


def _categories(leaks: Mapping[str, Any]) -> str:
    by = {name: row for name, row in leaks["categories"].items() if row["leaks"] > 0}
    whole = sum(row["leaks"] for row in by.values())
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="n">{row["leaks"]:.3g}</td>'
        f'<td class="n">{row["per_note"]:.3g}</td><td>{charts.share(row["leaks"] / whole)}</td></tr>'
        for name, row in sorted(by.items(), key=lambda entry: -entry[1]["leaks"])
    ]
    head = [("category", ""), ("tokens expected", "n"), ("per note", "n"), ("share", "")]
    return table(head, rows, kind="plain") if rows else ""


def _sizes(released: int) -> str:
    rows = []
    for bound in (0.1, 0.05, 0.02, 0.01, 0.005):
        try:
            number = sample_size(bound, notes=released, recall=0.95) if released else 0
        except ConfigError:
            continue
        rows.append(f'<tr><td class="n">{number:,}</td><td class="n">{bound:.1%}</td></tr>')
    sizes = table([("notes read, no leak found", "n"), ("share of notes at most", "n")], rows, kind="plain")
    return f"<p>{_OVER}</p>{sizes}" if rows and released else ""


def _settings(manifest: Mapping[str, Any], policy: Policy, dial: Mapping[str, Any]) -> str:
    own, versions = manifest["settings"], manifest["versions"]
    recall = dial.get("asked")
    turned = f"set for a recall of {recall:g}" if recall is not None else "not turned: the model's balanced setting"
    thresholds = {label: level for label, level in dial.get("thresholds", {}).items() if label}
    levels = ", ".join(f"{label} {level:.3g}" for label, level in sorted(thresholds.items()))
    facts = {
        "model": f"{own['model']['name']}\n{own['model']['digest']}",
        "dial": "rules have none" if not thresholds and recall is None else turned,
        "flagged from a chance of": levels,
        "policy": f"{policy.name}\n{own['policy']['digest']}",
        "secret": own["secret"] or "none was needed",
        "ids": _IDS.get(own["ids"], own["ids"]),
        "fields that go along": ", ".join(own["fields"]),
        "replacements marked": "yes" if own["spans"] else "no",
        "format": own["format"],
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "chain, first and last": f"\n{manifest['chain']['first']}\n{manifest['chain']['last']}",
    }
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>{_lines(str(value))}</td></tr>'
        for name, value in facts.items()
        if value
    ]
    return f"<h2>Settings</h2>{table([], rows, kind='plain')}"


def _lines(value: str) -> str:
    first, *hashes = value.split("\n")
    told = [escape(first)] if first else []
    return "<br/>".join([*told, *(f"<code>{escape(own)}</code>" for own in hashes)])


def _policy(policy: Policy) -> str:
    rows = [
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(_told(rule))}</td></tr>'
        for label, rule in [*policy.rules.items(), ("all others", policy.default)]
    ]
    about = f"<p>{escape(policy.about)}</p>" if policy.about else ""
    return f"<h2>Policy {escape(policy.name)}</h2>{about}{table([('type', ''), ('operator', '')], rows, kind='plain')}"


def _told(rule: PolicyRule) -> str:
    options = ", ".join(f"{name} = {value}" for name, value in rule.options)
    return f"{rule.operator} ({options})" if options else rule.operator


def _not_kept(manifest: Mapping[str, Any]) -> str:
    lost = manifest.get("not kept")
    if not lost:
        return ""
    rows = [f'<tr><td>{escape(name)}</td><td class="n">{number:,}</td></tr>' for name, number in lost.items()]
    return f"<h2>Not kept by the format</h2>{table([('what', ''), ('times', 'n')], rows, kind='plain')}"
