"""`deid adapt --gold PROJECT`: a model learns from what people marked, and its table shows before and after."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.deid.detect.model import load
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.learn import SOURCE, learn
from chaffinch.text import Document, Span
from chaffinch.text.formats import write
from chaffinch.web.review import reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Edit, Mark
from tests.deid.training.lessons import QUICK
from tests.web.review.world import CANARY, make_project, task_of, user

pytestmark = pytest.mark.slow

PEOPLE = (("ann", "reader"), ("sue", "steward"))


def of_site(number: int, name: str) -> tuple[str, Span]:
    """Return a note that names someone in a form that only this site has, and where."""
    text = f"Wound clean, drain {number} out.\nwardlead ~ {name} ~ rounds done\n"
    return text, Span(text.index(name), text.index(name) + len(name), "DOCTOR")


def test_adapt_learns_from_the_closed_notes_of_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = synth.notes(12, 1, seed=3, style="varied")
    old = tmp_path / "old.cfm"
    learn([replace(doc, meta={**doc.meta, SOURCE: f"site-{doc.meta['site']}"}) for doc in drawn], lesson=QUICK).save(
        old
    )
    names = [f"{CANARY}{end}" for end in ("son", "ley", "worth", "by", "ham", "croft")]
    pairs = [of_site(number, name) for number, name in enumerate(names)]
    given = [
        Document.make(text, id=f"n{number}", group=f"p{number}", layers={"machine": ()})
        for number, (text, _) in enumerate(pairs)
    ]
    project = make_project(tmp_path, given, people=PEOPLE, readers=1, without_suggestions=0.2)
    desk, ann = Desk(project), user(project, "ann")
    place = tmp_path / "ours.cfm"
    notes = tmp_path / "notes.jsonl"
    write(given, notes)
    arguments = ["deid", "adapt", str(notes), "-o", str(place), "--model", str(old), "--gold", str(project.folder)]
    assert main(arguments) == 3, "no note is closed"
    assert "no closed note" in capsys.readouterr().err
    for number, (_, span) in enumerate(pairs[:5], start=1):
        task = task_of(project, "ann", number)
        edit = Edit(f"edit-{number:08d}", added=(Mark(span.start, span.end, span.label),))
        reading.save_edits(desk, ann, task, [edit])
        reading.finish_task(desk, ann, task)
    project.close()
    assert main([*arguments, "--json"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["notes"], result["reviewed"]) == (6, 5), "the open note is no gold"
    found = {row["kind"]: (row["before"], row["after"]) for row in result["found"]}
    assert found["DOCTOR"][1] > found["DOCTOR"][0], "what people marked is found"
    assert result["check"] is not None, "before and after are scored on patients that were not learnt from"
    assert CANARY not in printed.out + printed.err
    assert CANARY.encode() not in place.read_bytes()
    assert len(load(place).taggers) == 2
