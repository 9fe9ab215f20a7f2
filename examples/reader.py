"""Plays the reader of a sample: what was left of the labelled identifiers of invented notes goes into the form.

python reader.py GOLD.jsonl RELEASED.private/documents.jsonl SAMPLE.csv > READ.csv
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import chaffinch as cf


def leaks(gold: str, released: str) -> dict[str, int]:
    """By the id of each released note, how many identifiers are still in it; both files have the notes in one order."""
    found = {}
    lines = [json.loads(line) for line in Path(released).read_text(encoding="utf-8").splitlines()]
    for doc, line in zip(cf.read(gold), lines, strict=True):
        gone = {at for start, end, *_ in line["replacements"] for at in range(start, end)}
        left = [
            span
            for span in doc.layer("gold")
            if any(doc.text[at].isalnum() and at not in gone for at in range(span.start, span.end))
        ]
        found[line["id"]] = len(left)
    return found


if __name__ == "__main__":
    counts = leaks(sys.argv[1], sys.argv[2])
    with Path(sys.argv[3]).open(encoding="utf-8", newline="") as form:
        rows = list(csv.DictReader(form))
    writer = csv.DictWriter(sys.stdout, rows[0].keys())
    writer.writeheader()
    writer.writerows({**row, "leaks": counts[row["id"]]} for row in rows)
