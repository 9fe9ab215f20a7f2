"""SemEval-2010 task 8: one relation between two nominals in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from chaffinch.errors import DataError
from chaffinch.text import Argument, Document, Relation, Span
from recipes.corpora._common import files, one_sentence

_SENTENCE = re.compile(r'(\d+)\t"(.*)"')
_MARKED = re.compile(r"(.*)<e1>(.+)</e1>(.*)<e2>(.+)</e2>(.*)")
_LABEL = re.compile(r"(\w+)-(\w+)\((e[12]),(e[12])\)")


def read(path: Path) -> Iterator[Document]:
    """One document per sentence, with the spans e1 and e2 and at most one relation.

    The quotation marks around a sentence and the tags are no part of the text. "Component-Whole(e2,e1)" becomes a
    relation "Component-Whole" whose first argument has the role Component and is e2, the second the role Whole and
    is e1; "Other" is no relation. `meta` has the split, from the file's name, the label as the file has it, and the
    annotator's comment.
    """
    for file in files(path, lambda entry: _SENTENCE.match(_first_line(entry.head())) is not None, "SemEval file"):
        split = "test" if "TEST" in file.name.upper() else "train"
        lines = file.lines()
        for number, line in lines:
            if line.strip():
                try:
                    yield _document(line, _next(lines), _next(lines), split)
                except DataError as error:
                    raise error.at(file.where, number) from None


def _first_line(head: bytes) -> str:
    return head.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")


def _next(lines: Iterator[tuple[int, str]]) -> str:
    return next(lines, (0, ""))[1].strip()


def _document(line: str, label: str, comment: str, split: str) -> Document:
    numbered = _SENTENCE.fullmatch(line)
    marked = _MARKED.fullmatch(numbered[2]) if numbered else None
    if numbered is None or marked is None:
        raise DataError("expected a number, a tab and a sentence in quotation marks with <e1> before <e2>")
    before, first, between, second, after = marked.groups()
    start = len(before) + len(first) + len(between)
    ends = {
        "e1": Span(len(before), len(before) + len(first), "e1"),
        "e2": Span(start, start + len(second), "e2"),
    }
    return one_sentence(
        before + first + between + second + after,
        id=numbered[1],
        gold=list(ends.values()),
        relations=_relations(label, ends),
        meta={"split": split, "label": label, "comment": comment.removeprefix("Comment:").strip()},
    )


def _relations(label: str, ends: dict[str, Span]) -> list[Relation]:
    if label == "Other":
        return []
    named = _LABEL.fullmatch(label)
    if named is None:
        raise DataError("the line after a sentence must be Other or a relation such as Cause-Effect(e1,e2)")
    arguments = (Argument(named[1], (ends[named[3]],)), Argument(named[2], (ends[named[4]],)))
    return [Relation(f"{named[1]}-{named[2]}", arguments)]
