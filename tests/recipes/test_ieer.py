"""The IEER newswire."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import ieer

from chaffinch.errors import DataError
from chaffinch.text import Span
from tests.recipes.files import gz

STORY = """<IEER_DOC type="NEWSWIRE" fileid="">
<DOC>
<DOCNO> ZZZ1.1 </DOCNO>
<BODY>
<HEADLINE>
<b_enamex type="LOCATION">Ooville<e_enamex> rests
</HEADLINE>
<TEXT>
\t   Caf\xe9s of B&AMP;B on <b_timex type="DATE" alt="Sunday">a Sunday<e_timex> and
<b_enamex type="ORGANIZATION"><b_enamex type="ORGANIZATION" status="opt">Ooville<e_enamex> Books<e_enamex> &UR; x.
<ANNOTATION>
(END)
</ANNOTATION>
</TEXT>
</BODY>
</DOC>
<DOC>
<DOCNO> ZZZ1.2 </DOCNO>
<BODY>
<TEXT>
Six <b_numex type="PERCENT">3
percent<e_numex>
</TEXT>
</BODY>
</DOC>
</IEER_DOC>
"""


def test_the_body_without_its_tags_is_the_text(tmp_path: Path) -> None:
    first, second = ieer.read(gz(tmp_path / "ZZZ_1.gz", STORY, encoding="latin-1"))
    head = "\n\nOoville rests\n\n\n\t   "
    assert first.text == head + "Cafés of B&B on a Sunday and\nOoville Books &UR; x.\n\n(END)\n\n\n"
    assert first.id == "ZZZ1.1"
    day, books = len(head) + 16, len(head) + 29
    assert first.layer("gold") == (
        Span(2, 9, "LOCATION"),
        Span(day, day + 8, "DATE"),
        Span(books, books + 7, "ORGANIZATION"),
        Span(books, books + 13, "ORGANIZATION"),
    )
    assert [second.text[s.start : s.end] for s in second.layer("gold")] == ["3\npercent"]


def test_sections_and_optional_answers_are_kept(tmp_path: Path) -> None:
    first, _ = ieer.read(gz(tmp_path / "ZZZ_1.gz", STORY, encoding="latin-1"))
    texts = {name: first.text[start:end].strip() for name, start, end in first.meta["sections"]}
    assert texts["HEADLINE"] == "Ooville rests"
    assert texts["TEXT"].startswith("Cafés")
    assert texts["ANNOTATION"] == "(END)"
    assert [(first.text[a:b], label, extra) for a, b, label, extra in first.meta["extra"]] == [
        ("a Sunday", "DATE", {"alt": "Sunday"}),
        ("Ooville", "ORGANIZATION", {"status": "opt"}),
    ]


@pytest.mark.parametrize(
    ("good", "bad"),
    [("<e_timex>", ""), ('<b_numex type="PERCENT">', ""), ("<DOCNO> ZZZ1.2 </DOCNO>", ""), ("</HEADLINE>\n<TEXT>", "")],
)
def test_a_broken_story_is_refused(tmp_path: Path, good: str, bad: str) -> None:
    assert good in STORY
    with pytest.raises(DataError, match=r"ZZZ_1\.gz") as caught:
        list(ieer.read(gz(tmp_path / "ZZZ_1.gz", STORY.replace(good, bad), encoding="latin-1")))
    assert "Ooville" not in str(caught.value)
