"""Fields of notes that are released as they are: refused if they hold dates or identifiers that the policy hides.

Before a release the name and the values of a field are judged by rules; while a note is released, its fields are
compared with the identifiers that were found in it, and a note whose field repeats one is withheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaffinch.deid.detect.admission import PATIENT_COLUMNS, column_key, find_label
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.policy import Policy
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document

_ID_COLUMNS = ("id", "note_id", "doc_id", "row_id", "document_id", "encounter_id", "visit_id", "file", "filename")
_MOST_VALUES = 10_000  # distinct values of a field that are judged; more would cost more time than they tell
_LONGEST = 400  # characters of a value that are judged
_SHORTEST = 2  # letters and digits of a value that is compared with identifiers: fewer are equal by chance


@dataclass(slots=True)
class KeptField:
    """A field that is to be released, and what its values showed so far; `option` is the caller's name of the option.

    With `keep_ids`, ids and patients are released too, so that a field may hold them.
    """

    name: str
    policy: Policy
    keep_ids: bool
    option: str
    found: int = 0
    same: int = 0  # notes whose id or patient is the value
    _judged: set[str] = field(default_factory=set, repr=False)

    def see(self, doc: Document) -> None:
        """Count and judge the field's values in a note; ConfigError if one is an identifier that the policy hides."""
        if self.name not in doc.meta:
            return
        self.found += 1
        for value in texts_of(doc.meta[self.name]):
            self.same += value in (doc.id, doc.group)
            if value and value not in self._judged and len(self._judged) < _MOST_VALUES:
                self._judged.add(value)
                self._judge(value[:_LONGEST])

    def check(self) -> None:
        """After all notes, raise ConfigError if the field's name tells of identifiers, or all its values are ids."""
        named = column_key(self.name) in (*PATIENT_COLUMNS, *_ID_COLUMNS)
        if not self.keep_ids and (named or self.same == self.found > 0):
            self._refuse("the ids of notes or patients")
        label = find_label(self.name)
        kind = None if label is None else kind_of(label)
        direct = kind is not None and kind.hipaa is not None and kind.name not in ("AGE", "DATE")
        if label is not None and kind is not None and direct and self.policy.hides(label):
            self._refuse(f"{kind.name}, by its name")

    def _judge(self, value: str) -> None:
        """Raise ConfigError if a value holds an identifier, a high age or a birth date that the policy hides."""
        for span in patterns.find(Document.make(value)):
            if self.policy.hides(span.label):
                self._refuse(f"{kind_of(span.label).name}, by a value")
        label = find_label(self.name)
        limit = None if label is None or kind_of(label).name != "AGE" else self.policy.age_limit("DATE")
        if limit is not None and value.isdecimal() and int(value) > limit.years:
            self._refuse(f"ages over {limit.years}, by a value")
        born = label is not None and kind_of(label).name == "DATE" and self.policy.hides(label)
        if born and not (value.isdecimal() and len(value) == 4):
            self._refuse("DATE, by its name")

    def _refuse(self, what: str) -> None:
        """Raise ConfigError that says that the field holds `what`, and what to do."""
        raise ConfigError(
            f"{self.option} {self.name!r} holds {what}, and policy {self.policy.name} hides those in the notes; leave "
            "it out, or give a policy that keeps them"
        )


def check_fields(fields: Mapping[str, Any], hidden: Iterable[str]) -> None:
    """Raise DataError if a released field equals an identifier that was hidden in the note, ignoring case."""
    if not fields:
        return
    identifiers = {_plain(text) for text in hidden}
    for value in fields.values():
        for text in texts_of(value):
            if sum(map(str.isalnum, text)) >= _SHORTEST and _plain(text) in identifiers:
                raise DataError("a field that would be released repeats an identifier of the note; leave it out")


def texts_of(value: object) -> list[str]:
    """Return all texts and numbers of a value as strings, those inside lists and dicts too; no None or bool."""
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in texts_of(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in texts_of(inner)]
    return [] if value is None or isinstance(value, bool) else [str(value).strip()]


def _plain(text: str) -> str:
    """Return a text in folded case with single blanks, for comparison."""
    return " ".join(text.casefold().split())
