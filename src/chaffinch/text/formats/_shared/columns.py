"""Choice of the columns of a table, or of the fields of records: named by the user, or by name and content.

A column is taken for the text without being named only if it alone is called like one and no other column holds texts
that are far longer. What is not sure is refused, with the names of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaffinch.checks import nearest
from chaffinch.errors import ConfigError, DataError
from chaffinch.text.columns import BETWEEN, ColumnChoice, Columns
from chaffinch.text.formats.base import Entry

TEXT_NAMES = ("text", "note", "note_text", "report", "content")
ID_NAMES = ("id", "note_id", "doc_id", "row_id")
PATIENT_NAMES = ("group", "patient", "patient_id", "subject_id")
SAMPLE = 50  # rows that are looked at
_PROSE = 20  # words of a cell, on average, from which a column may hold notes
_FAR_LONGER = 3  # times as many words


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The names of the columns that are no meta fields; `patient` is None if no column names it for sure."""

    texts: tuple[str, ...]
    id: str | None
    patient: str | None

    def join(self, row: Mapping[str, Any], form: str, fields: Iterable[str]) -> tuple[str, Columns]:
        """Return (a row's text cells joined, their offsets); TypeError if one is no text; None beside others is "".

        `form` is the name of the format, and `fields` are the names of meta fields that are columns; both are kept.
        """
        texts = [row.get(name) for name in self.texts]
        if len(texts) > 1:
            texts = ["" if text is None else text for text in texts]
        ends, place = [], 0
        for name, text in zip(self.texts, texts, strict=True):
            place += len(text)  # type: ignore[arg-type]  # a cell that is no text raises TypeError
            ends.append((name, place))
            place += len(BETWEEN)
        return BETWEEN.join(texts), Columns(form, tuple(ends), self.id, self.patient, tuple(fields))  # type: ignore[arg-type]  # as above


def choose_columns(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    wanted: ColumnChoice,
    *,
    show: bool = True,
    ids_are: Sequence[str] = ID_NAMES,
) -> ChosenColumns:
    """Return the columns of text, id and patient, by name and content; ConfigError if that of the text is not sure.

    `rows` are a sample. With `show`, messages may list the names of the columns: they are surely names. `ids_are` are
    the names that columns of ids have.
    """
    listed = _list_names(names, show=show)
    texts = tuple(_find_named(name, names, "--text-column", listed, show=show) for name in wanted.texts)
    if len(set(texts)) < len(texts):
        raise ConfigError("--text-column names a column twice; name it once")
    if not texts:
        texts = (_find_text(names, rows, listed),)
    if wanted.id is not None:
        name: str | None = _find_named(wanted.id, names, "--id-column", listed, show=show)
    else:
        name = next((column for known in ids_are for column in names if _fold(column) == known), None)
    return ChosenColumns(texts, None if name in texts else name, _find_patient(names, rows, wanted, listed, show=show))


def choose_for_files(
    files: Sequence[Entry], choose: Callable[[Entry], ChosenColumns]
) -> dict[int, ChosenColumns | str]:
    """Return {file index: its columns, or the message why not}; ConfigError if `choose` refuses all files."""
    found: dict[int, ChosenColumns | str] = {}
    refused: list[ConfigError] = []
    for index, file in enumerate(files):
        try:
            found[index] = choose(file)
        except ConfigError as error:
            found[index] = str(error)
            refused.append(ConfigError(f"{file.where}: {error}"))
        except DataError as error:  # reading the file says the same
            found[index] = error.message
    if refused and len(refused) == len(found):
        raise refused[0]
    return found


def _find_named(name: str, names: Sequence[str], option: str, listed: str, *, show: bool) -> str:
    """Return the column `name` of `names`, exactly or else in any case; ConfigError, with `option`, unless one fits."""
    exact = [column for column in names if column == name]
    same = exact or [column for column in names if _fold(column) == _fold(name)]
    if len(same) == 1:
        return same[0]
    near = nearest(name, names) if show else None
    hint = "" if near is None else f"did you mean {near!r}? "
    what = "there is no such column" if not same else "several columns are called so, apart from capitals"
    raise ConfigError(f"{option} {name!r}: {what}; {hint}{listed}")


def _find_text(names: Sequence[str], rows: Sequence[Mapping[str, Any]], listed: str) -> str:
    """Return the one column with a usual name for texts and long enough cells; ConfigError if none or several.

    Our own files call it "text": beside it, a short column of another such name ("note") is a remark.
    """
    called = [column for column in names if _fold(column) in TEXT_NAMES]
    words = {column: _mean_words(column, rows) for column in names}
    left = [
        column
        for column in called
        if not any(words[other] >= max(_PROSE, _FAR_LONGER * words[column]) for other in names if other != column)
        and (words[column] or not any(words[other] for other in called))
    ]
    ours = [column for column in left if _fold(column) == TEXT_NAMES[0]]
    if len(ours) == 1 and all(words[column] < _PROSE for column in left if column not in ours):
        left = ours
    if len(left) == 1:
        return left[0]
    if not called:
        why = f"no column is called {', '.join(TEXT_NAMES)}"
    elif not left:
        why = "the column that is called like a text is far shorter than another"
    else:
        why = "several columns are called like a text"
    raise ConfigError(f"{why}; name it with --text-column NAME, here or in `chaffinch convert`; {listed}")


def _find_patient(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], wanted: ColumnChoice, listed: str, *, show: bool
) -> str | None:
    """Return the patient's column: the user's, else the first with a usual name, else None; or ConfigError.

    ConfigError if there are several usual names whose cells differ in a row, unless one of them is "group".
    """
    if wanted.patient is not None:
        return _find_named(wanted.patient, names, "--patient-column", listed, show=show)
    called = [column for known in PATIENT_NAMES for column in names if _fold(column) == known]
    if len(called) > 1 and _fold(called[0]) != "group":
        filled = [{str(row[column]) for column in called if row.get(column) not in (None, "")} for row in rows]
        if any(len(values) > 1 for values in filled):
            raise ConfigError(
                "several columns are called like the patient, and they differ; name one with --patient-column NAME; "
                + listed
            )
    return called[0] if called else None


def _mean_words(column: str, rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean number of words of a column's text cells, 0 without any; lists, objects, blanks are left out."""
    texts = [value for row in rows if isinstance(value := row.get(column), str) and value.strip()]
    prose = [text for text in texts if not text.lstrip().startswith(("[", "{"))]
    return sum(len(text.split()) for text in prose) / len(prose) if prose else 0.0


def _list_names(names: Sequence[str], *, show: bool) -> str:
    """Return a clause that lists the names of all columns, or with show=False only says their number."""
    if not show:
        return f"there are {len(names)} columns, whose names may be no names at all"
    return f"the columns are {', '.join(map(repr, names))}"


def _fold(name: str) -> str:
    """Return a column's name in lower case without surrounding blanks."""
    return name.strip().lower()
