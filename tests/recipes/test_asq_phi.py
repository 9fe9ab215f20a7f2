"""ASQ-PHI: values without offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import asq_phi

from chaffinch.errors import DataError
from chaffinch.text import Span
from tests.recipes.files import gz

TEXT = """===QUERY===
Ann L. of Mercy’s House, seen at OOH (MRN: #OOH-77); Ann L. again, not Ann Lee?
===PHI_TAGS===
{"identifier_type": "NAME", "value": "Ann L."}
{"identifier_type": "PLACE", "value": "Mercy's House"}
{"identifier_type": "PLACE", "value": "OOH"}
{"identifier_type": "MRN", "value": "#OOH-77"}

===QUERY===
What now?
===PHI_TAGS===

"""


def test_a_repeated_value_is_marked_each_time_and_one_inside_another_only_on_its_own(tmp_path: Path) -> None:
    first, second = asq_phi.read(gz(tmp_path / "data.txt.gz", TEXT))
    assert [(s.start, first.text[s.start : s.end], s.label) for s in first.layer("gold")] == [
        (0, "Ann L.", "NAME"),
        (10, "Mercy’s House", "PLACE"),
        (33, "OOH", "PLACE"),
        (43, "#OOH-77", "MRN"),
        (53, "Ann L.", "NAME"),
    ]
    assert first.meta["values"] == 4
    assert (second.id, second.text, second.layer("gold"), second.meta["values"]) == ("1", "What now?", (), 0)


def test_a_value_is_not_found_inside_a_word() -> None:
    assert asq_phi.place("Leeds, Lee", [("Lee", "NAME")]) == [Span(7, 10, "NAME")]


def test_the_longer_of_two_values_is_placed_first() -> None:
    spans = asq_phi.place("May 4, 2023 and 2023", [("2023", "YEAR"), ("May 4, 2023", "DATE")])
    assert sorted(spans) == [Span(0, 11, "DATE"), Span(16, 20, "YEAR")]


@pytest.mark.parametrize(
    "tags",
    ['{"identifier_type": "NAME", "value": "canary"}', '{"value": "What"}', "canary"],
)
def test_a_value_that_stands_nowhere_is_refused_with_its_line(tmp_path: Path, tags: str) -> None:
    file = gz(tmp_path / "data.txt.gz", TEXT.rstrip() + f"\n{tags}\n")
    with pytest.raises(DataError, match=r"data\.txt\.gz:(9|12)") as caught:
        list(asq_phi.read(file))
    assert "canary" not in str(caught.value)
