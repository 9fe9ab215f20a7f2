"""SemEval-2010 task 8."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import semeval

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from tests.recipes.files import gz

TEXT = (
    '7\t""Ah," said the <e1>cook</e1>. "My <e2>soup bowl</e2>!""\r\n'
    "Content-Container(e2,e1)\r\n"
    "Comment: invented\r\n"
    "\r\n"
    '8\t"<e1>Rain</e1> and <e2>wind</e2>"\r\n'
    "Other\r\n"
    "Comment:\r\n"
    "\r\n"
)


def test_direction_says_which_span_fills_which_role(tmp_path: Path) -> None:
    first, second = semeval.read(gz(tmp_path / "TRAIN_FILE.TXT.gz", TEXT))
    assert first.text == '"Ah," said the cook. "My soup bowl!"'
    cook, bowl = Span(15, 19, "e1"), Span(25, 34, "e2")
    assert first.layer("gold") == (cook, bowl)
    assert first.relations == (
        Relation("Content-Container", (Argument("Content", (bowl,)), Argument("Container", (cook,)))),
    )
    assert first.sentences.tolist() == [[0, 36]]  # one sentence, although it has a full stop inside
    assert dict(first.meta) == {"split": "train", "label": "Content-Container(e2,e1)", "comment": "invented"}
    assert (second.id, second.relations, second.meta["label"]) == ("8", (), "Other")


def test_the_file_name_tells_the_split_and_other_files_are_passed_over(tmp_path: Path) -> None:
    gz(tmp_path / "TEST_FILE_FULL.TXT.gz", TEXT)
    (tmp_path / "README.txt").write_text("1 about this corpus")
    assert {doc.meta["split"] for doc in semeval.read(tmp_path)} == {"test"}


@pytest.mark.parametrize(
    ("good", "bad"), [("Other", "Perhaps"), ("<e2>wind</e2>", "wind"), ('8\t"', '8 "'), ("Container(e2,e1)", "")]
)
def test_a_broken_item_is_refused_with_its_line(tmp_path: Path, good: str, bad: str) -> None:
    assert good in TEXT
    with pytest.raises(DataError, match=r"TRAIN\.TXT\.gz:\d") as caught:
        list(semeval.read(gz(tmp_path / "TRAIN.TXT.gz", TEXT.replace(good, bad))))
    assert "wind" not in str(caught.value)
