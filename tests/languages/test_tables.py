"""Language data: every table of every folder can be read, and adding a folder is enough to add a language."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaffinch import languages
from chaffinch.deid.dates.shift import parse, shift
from chaffinch.errors import ConfigError

FOLDER = Path(languages.__file__).parent
TABLES = sorted(path.relative_to(FOLDER) for path in FOLDER.glob("*/**/*.toml"))


@pytest.mark.parametrize("path", TABLES, ids=str)
def test_every_table_is_one_that_a_loader_knows(path: Path) -> None:
    language, name = path.parts[0], str(Path(*path.parts[1:]).with_suffix(""))
    match name:
        case "pack":
            assert languages.pack(language).months
        case "calendar":
            calendar = languages.calendars()[language]
            assert (len(calendar.months), len(calendar.weekdays)) == (12, 7)
            assert all(1 <= place <= 12 for place in {**calendar.more_months, **calendar.more_short_months}.values())
            assert all(1 <= len(rule) <= 3 for rule in calendar.holidays.values())
        case "numbers":
            numbers = languages.number_words(language)
            assert list(map(len, (numbers.units, numbers.teens, numbers.tens, numbers.decades))) == [9, 10, 8, 8]
        case "cues":
            assert languages.cue_words(language).fields
        case "surrogates/name-parts":
            assert languages.table(language, name)["S"]["tails"]
        case _:
            lists = languages.words(language, name)
            assert lists
            assert all(len(set(words)) == len(words) for words in lists.values())


def test_a_language_without_a_file_has_no_words_of_its_kind() -> None:
    assert languages.cue_words("es").fields == {}
    assert "en" in languages.languages_with("cues.toml")
    assert languages.languages_with("nothing.toml") == ()


def test_a_wrong_table_names_the_file_and_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xx").mkdir()
    (tmp_path / "xx" / "cues.toml").write_text('fields = ["Patient"]\n')
    (tmp_path / "xx" / "pack.toml").write_text("")
    monkeypatch.setattr(languages, "_HERE", tmp_path)
    for cached in (languages.pack_names, languages.cue_words, languages.table):
        cached.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"languages/xx/cues.toml: .*fields"):
            languages.cue_words("xx")
    finally:
        monkeypatch.undo()
        for cached in (languages.pack_names, languages.cue_words, languages.table):
            cached.cache_clear()


def test_of_a_word_that_languages_share_the_lowest_rank_is_meant() -> None:
    assert list(languages.calendars())[:3] == ["en", "es", "de"]
    assert shift("Jan 4, 1998", -31) == "Dec 4, 1997"
    assert shift("den 4. Jan 1998", -31) == "den 4. Dez 1997"
    read = parse("Mar-04", language="es")
    assert read is not None
    assert read.points[0].year == 2004
