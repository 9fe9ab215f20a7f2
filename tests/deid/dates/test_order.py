"""The order of day and month: the note's dates decide, then the patient's, then the job's; else nobody guesses."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from chaffinch.deid.dates.order import DateOrder, count_orders, find_numeric_dates, settle_order
from chaffinch.deid.dates.points import Order
from chaffinch.deid.dates.shift import days_for
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
from chaffinch.errors import ConfigError
from chaffinch.jobs import deid
from chaffinch.text import Document
from tests.deid.releases import SECRET, detector

SURROGATES = Policy.read("i2b2-surrogate")
FORMS = {"mdy": "%m/%d/%Y", "dmy": "%d/%m/%Y"}


def shifted(text: str, patient: str, order: str) -> str:
    """Return a date as it must come out, if it is read in an order."""
    month, day, year = (int(text[i:j]) for i, j in ((0, 2), (3, 5), (6, 10)))
    if order == "dmy":
        month, day = day, month
    moved = date(year, month, day) + timedelta(days_for(SECRET, patient))
    return moved.strftime(FORMS[order])


def released(notes: list[str], **how: Any) -> list[Released]:
    docs = [NumberedDocument(i, Document.make(text, id=f"n{i}", group="p")) for i, text in enumerate(notes)]
    made = release(docs, Release(SURROGATES, SECRET, **how), detector())
    return [one for one in made if isinstance(one, Released)]


@pytest.mark.parametrize("order", ["mdy", "dmy"])
def test_an_ambiguous_date_is_read_in_the_order_of_the_job(order: DateOrder) -> None:
    for how in ({"date_order": order}, {"counted_order": order}):
        (note,) = released(["on 03/04/1998."], **how)
        assert note.text == f"on {shifted('03/04/1998', 'p', order)}."
        assert [place[3] for place in note.places] == ["shift"]


def test_without_an_order_an_ambiguous_date_is_a_tag_and_counted() -> None:
    first, second = released(["on 03/04/1998.", "seen 05/06/1999."])
    assert [first.text, second.text] == ["on [DATE].", "seen [DATE]."]
    assert [place[3] for place in (*first.places, *second.places)] == ["ambiguous", "ambiguous"]


def test_a_patients_own_dates_overrule_the_job() -> None:
    first, second = released(["on 03/04/1998.", "on 25/12/1997."], date_order="mdy")
    assert first.text == f"on {shifted('03/04/1998', 'p', 'dmy')}."
    assert second.text == f"on {shifted('25/12/1997', 'p', 'dmy')}."


def test_a_note_overrules_its_patient_and_a_patient_of_both_orders_decides_nothing() -> None:
    notes = ["on 03/04/1998, 25/12/1997.", "on 12/25/1997, 03/04/1998.", "on 03/04/1998."]
    first, second, third = released(notes)
    assert first.text.startswith(f"on {shifted('03/04/1998', 'p', 'dmy')}")
    assert second.text.endswith(f"{shifted('03/04/1998', 'p', 'mdy')}.")
    assert third.text == "on [DATE]."


def test_votes_and_what_they_settle() -> None:
    assert count_orders(["03/04/1998", "25/12/1997", "12/25/1997", "x" * 1000]) == Counter(dmy=1, mdy=1)
    assert find_numeric_dates("1.2.2003, 1/2/03; 1-2-2003.") == ["1.2.2003", "1/2/03", "1-2-2003"]
    assert find_numeric_dates("219-09-9999, 10.0.0.1, 1/2-2003, 123/4/1999, v1.2.30a") == []
    assert settle_order(Counter()) is None
    few: Counter[Order] = Counter({"mdy": 19, "dmy": 1})
    more: Counter[Order] = Counter({"mdy": 18, "dmy": 2})
    assert settle_order(few, most_contrary=0.05) == "mdy"
    assert settle_order(more, most_contrary=0.05) is None


def run(folder: Path, notes: list[str], **how: Any) -> tuple[list[str], dict[str, Any]]:
    given = folder / "notes"
    given.mkdir()
    for number, text in enumerate(notes):
        (given / f"n{number}.txt").write_text(text, encoding="utf-8")
    manifest = deid.run(
        given, folder / "out", detector(), policy=SURROGATES, secret=SECRET, each_note_a_patient=True, **how
    )
    return sorted(path.read_text(encoding="utf-8") for path in (folder / "out").iterdir()), manifest


def test_auto_counts_over_the_notes_before_the_first_is_released(tmp_path: Path) -> None:
    texts, manifest = run(tmp_path, ["first 03/04/1998.", "second 25/12/1997."])
    assert texts[0] == f"first {shifted('03/04/1998', 'n0', 'dmy')}."
    assert manifest["settings"]["date_order"] == {"asked": "auto", "counted": "dmy"}


def test_auto_without_evidence_counts_tags_in_the_manifest(tmp_path: Path) -> None:
    texts, manifest = run(tmp_path, ["first 03/04/1998.", "second 05/06/1997."])
    assert texts == ["first [DATE].", "second [DATE]."]
    assert manifest["settings"]["date_order"] == {"asked": "auto", "counted": None}
    assert manifest["labels"]["DATE"]["operators"] == {"ambiguous": 2}


def test_an_order_that_is_asked_for_is_in_the_manifest_and_counts_nothing(tmp_path: Path) -> None:
    texts, manifest = run(
        tmp_path, ["first 03/04/1998.", "second 25/12/1997."], settings=deid.RunSettings(date_order="mdy")
    )
    assert texts[0] == f"first {shifted('03/04/1998', 'n0', 'mdy')}."
    assert manifest["settings"]["date_order"] == {"asked": "mdy", "counted": None}


def test_an_order_without_effect_or_against_the_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("on 03/04/1998", encoding="utf-8")
    with pytest.raises(ConfigError, match="shifts no dates, so date_order has no effect"):
        deid.run(tmp_path / "n.txt", tmp_path / "out", detector(), settings=deid.RunSettings(date_order="dmy"))
    policy = Policy.parse('name = "x"\n[rules]\nDATE = { operator = "shift", order = "dmy" }\n')
    with pytest.raises(ConfigError, match="has order = 'dmy'"):
        deid.run(
            tmp_path / "n.txt", tmp_path / "out", detector(), policy=policy, secret=SECRET,
            settings=deid.RunSettings(date_order="mdy"),
        )  # fmt: skip
    with pytest.raises(ConfigError, match="date_order"):
        Release(SURROGATES, SECRET, date_order="ymd")  # type: ignore[arg-type]  # refused when it runs
    assert not (tmp_path / "out").exists()
