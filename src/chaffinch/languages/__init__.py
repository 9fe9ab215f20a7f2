"""Languages: words for names, places, dates and labels, as data files in one folder per language.

    en/pack.toml           months, words for ages and decades, telephone masks, suffix classes
    en/lexicon-first.txt   word, tab, hi or lo; one file per lexicon of `LEXICA`, each of which may be missing
    en/common.txt          the common words, one per line; a tab and the rate per million may follow

These files are a pack, which taggers use. The others serve de-identification, and each may be missing:

    en/calendar.toml       months, weekdays, seasons, holidays and the small words of dates
    en/numbers.toml        words for numbers, and for people of an age (octogenarian)
    en/cues.toml           what line labels and section titles announce
    en/protected/*.txt     terms that identify nobody, such as drugs
    en/patterns/*.toml     words used by the patterns of names, places and professions
    en/surrogates/*        lists that surrogates are drawn from, and words that are kept in them

A word of a lexicon is `hi` if it is more than half a power of ten likelier there than in the language at large, else
`lo`: "Smith" is hi and "Reading" lo among last names. `recipes/languages.py` makes the packs en, es and de. To add a
language, add a folder with the same files; no code lists the languages.
"""

from __future__ import annotations

import gzip
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from chaffinch.errors import ConfigError

_T = TypeVar("_T")

LEXICA = ("first", "last", "city", "state", "hospital", "job")
NAMES = ("first", "last", "city")  # the lists that words may be hidden from
BUCKETS = ("hi", "lo")
SETTINGS, COMMON = "pack.toml", "common.txt"

_HERE = Path(__file__).parent
_CLASS_NAME = re.compile("[a-z]{1,12}")  # as fields of signatures allow
_PHONE_MASK = re.compile(r"[-+0(). /]+")


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """Data of a language for word signatures, all words in lower case. Made by `pack`."""

    name: str
    months: Mapping[str, int] = field(repr=False)  # full and short names; 1 to 12
    plain_months: frozenset[str] = field(repr=False)  # those that are a month without a capital: enero, but not may
    decades: frozenset[str] = field(repr=False)  # eighties
    decade_endings: frozenset[str] = field(repr=False)  # what follows the number: s, 's
    ages: frozenset[str] = field(repr=False)  # what follows an age: y, yo, year
    decimal: str  # the decimal mark; the other of "." and "," separates thousands
    phones: frozenset[str] = field(repr=False)  # masks such as 000-0000
    extension: re.Pattern[str] = field(repr=False)  # a number, a word such as x or ext, and the extension
    suffixes: Mapping[str, tuple[str, ...]] = field(repr=False)  # class, endings; the first class that fits counts
    lexica: Mapping[str, Mapping[str, str]] = field(repr=False)  # in the order of LEXICA; word, "hi" or "lo"
    common: frozenset[str] = field(repr=False)
    frequent: frozenset[str] = field(repr=False)  # the common words whose rate is above 0


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `pack.toml`."""

    months: list[list[str]]  # twelve lists, the full name first
    ages: list[str]
    suffixes: dict[str, list[str]]
    decimal: str = "."
    capital_months: bool = True  # months are written with a capital
    decades: list[str] = []
    decade_endings: list[str] = []
    phones: list[str] = []
    extensions: list[str] = []


@cache
def pack_names() -> tuple[str, ...]:
    """Return the names of the language packs that Chaffinch includes, sorted."""
    return tuple(sorted(path.parent.name for path in _HERE.glob(f"*/{SETTINGS}")))


def pack(name: str | Path, hidden: frozenset[str] = frozenset()) -> Pack:
    """Return the pack of a name, or of a folder with the same files, read once; ConfigError if there is neither.

    The name of an included pack takes precedence over a folder of that name: "./en" is the folder. The `hidden` words,
    which must be folded, are removed from the lists of names and cities, but not from the common words.

    >>> pack("es").months["enero"]
    1
    >>> "smith" in pack("en", frozenset(["smith"])).lexica["last"]
    False
    """
    folder = _HERE / name if isinstance(name, str) and name in pack_names() else Path(name)
    if not folder.is_dir():
        raise ConfigError(f"no language pack {str(name)!r}; name one of {', '.join(pack_names())}, or a folder")
    return _pack_without(folder.resolve(), hidden)


def hidden_words(words: Iterable[str]) -> frozenset[str]:
    """Return words and their parts, folded, for the argument `hidden` of `pack`.

    >>> sorted(hidden_words(["Mary Ann"]))
    ['ann', 'mary', 'mary ann']
    """
    return frozenset(fold(part) for word in words for part in (word, *word.split()))


@cache
def lines(language: str, name: str) -> tuple[str, ...]:
    """Return the lines of a shipped language's list but blank and "# " ones, such as "protected/drugs"; () without it.

    For instance `lines("en", "protected/drugs")`. A list may be a .txt or a .txt.gz.
    """
    path = _HERE / language / f"{name}.txt"
    if not path.exists() and not path.with_suffix(".txt.gz").exists():
        return ()
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".txt.gz").read_bytes())
    text = content.decode()
    found = text.splitlines()
    if "# " not in text and all(map(str.strip, found)):  # a long list has no line to leave out, and is not walked here
        return tuple(found)
    return tuple(line for line in found if line.strip() and not line.startswith("# "))


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `calendar.toml`: words in dates as they are written, in calendar order."""

    months: tuple[str, ...]  # January first
    weekdays: tuple[str, ...]  # Monday first
    short_months: tuple[str, ...] = ()
    short_weekdays: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()  # winter first
    short_seasons: tuple[str, ...] = ()
    rank: int = 100  # a word of several languages belongs to that of lowest rank, unless other words decide
    day_after_month: bool = False  # a number after a month may be a day
    spoken: str = ""  # a regular expression of small words that only dates of this language have
    more_months: dict[str, int] = {}  # other spellings, and their numbers from 1; likewise below
    more_short_months: dict[str, int] = {}
    more_weekdays: dict[str, int] = {}
    more_short_weekdays: dict[str, int] = {}
    more_seasons: dict[str, int] = {}
    more_short_seasons: dict[str, int] = {}
    holidays: dict[str, tuple[int, ...]] = {}


class NumberWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `numbers.toml`."""

    units: tuple[str, ...]  # one to nine
    teens: tuple[str, ...]  # ten to nineteen
    tens: tuple[str, ...]  # twenty to ninety
    decades: tuple[str, ...]  # twenties to nineties
    people: dict[str, int]  # octogenarian, 80


class CueWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `cues.toml`: words of line labels and section titles, by what they announce."""

    fields: dict[str, tuple[str, ...]]
    sections: dict[str, tuple[str, ...]]


@cache
def calendars() -> Mapping[str, Calendar]:
    """Return {language: calendar} of all languages that have one, in order of rank; ConfigError for a wrong file.

    >>> list(calendars())[:3]
    ['en', 'es', 'de']
    """
    by_language = {name: _load_typed(name, "calendar", Calendar) for name in languages_with("calendar.toml")}
    return dict(sorted(by_language.items(), key=lambda item: (item[1].rank, item[0])))


@cache
def number_words(language: str) -> NumberWords:
    """Return the words for numbers of a shipped language; FileNotFoundError without, ConfigError for a wrong file."""
    return _load_typed(language, "numbers", NumberWords)


@cache
def cue_words(language: str) -> CueWords:
    """Return the cues of a shipped language, empty if it has none; ConfigError if their file is wrong."""
    known = language in languages_with("cues.toml")
    return _load_typed(language, "cues", CueWords) if known else CueWords({}, {})


@cache
def words(language: str, name: str) -> Mapping[str, tuple[str, ...]]:
    """Return {name: list} of a shipped language's TOML file, such as "patterns/names"; FileNotFoundError without it."""
    lists = {key: value for key, value in table(language, name).items() if isinstance(value, list)}
    return msgspec.convert(lists, dict[str, tuple[str, ...]])


@cache
def kept_words(name: str) -> frozenset[str]:
    """Return the words of the list `name` in every language's `surrogates/words.toml`, together; none if unknown.

    >>> {"street", "calle", "strasse"} <= kept_words("streets")
    True
    """
    lists = [words(language, "surrogates/words") for language in languages_with("surrogates/words.toml")]
    return frozenset(word for known in lists for word in known.get(name, ()))


def languages_with(file: str) -> tuple[str, ...]:
    """Return the shipped languages, sorted, whose folder has this file."""
    return tuple(name for name in pack_names() if (_HERE / name / file).is_file())


def _load_typed(language: str, name: str, kind: type[_T]) -> _T:
    """Return a shipped language's TOML file as `kind`; ConfigError if it does not fit, FileNotFoundError without."""
    try:
        return msgspec.convert(table(language, name), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"languages/{language}/{name}.toml: {error}; see the file of another language") from None


@cache
def table(language: str, name: str) -> dict[str, Any]:
    """Return the content of a shipped language's TOML file, such as "surrogates/name-parts"; FileNotFoundError."""
    return tomllib.loads((_HERE / language / f"{name}.toml").read_text(encoding="utf-8"))


def fold(word: str) -> str:
    """Return the word as the lists have it: lower case, with composed accents (NFC)."""
    lower = word.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFC", lower)


@cache
def _load(folder: Path) -> Pack:
    """Return the language pack of a folder, read once; ConfigError if its files are missing or not valid."""
    return build_pack(folder, read_files(folder))


@lru_cache(maxsize=4)
def _pack_without(folder: Path, hidden: frozenset[str]) -> Pack:
    """Return the pack of a folder without the hidden words in its lists of names; ConfigError if not valid."""
    whole = _load(folder)
    if not hidden:
        return whole
    fewer = {name: {word: rate for word, rate in whole.lexica[name].items() if word not in hidden} for name in NAMES}
    return replace(whole, lexica={**whole.lexica, **fewer})


def words_of(language: str, lexicon: str) -> frozenset[str]:
    """Return the folded words of one lexicon of a shipped language, empty if it has none; no other list is read."""
    path = _HERE / language / f"lexicon-{lexicon}.txt"
    return frozenset(_word_columns(path, _text(path))[0]) if path.exists() else frozenset()


def read_files(folder: Path) -> dict[str, str]:
    """Return the text of each file of a pack's folder, by name; ConfigError if one cannot be read."""
    names = [SETTINGS, COMMON, *sorted(path.name for path in folder.glob("lexicon-*.txt"))]
    return {name: _text(folder / name) for name in names}


def files_to_bundle(name: str) -> dict[str, tuple[str, ...]]:
    """Return the strings a model file must hold of a pack: names and texts of its files; {} if it is included."""
    if name in pack_names():
        return {}
    files = read_files(Path(name))
    return {"pack.names": tuple(files), "pack.texts": tuple(files.values())}


def from_bundle(name: str, strings: Mapping[str, tuple[str, ...]]) -> Pack:
    """Return the pack of a model file, from its strings if it has them, else by name; ConfigError if not valid."""
    files = dict(zip(strings.get("pack.names", ()), strings.get("pack.texts", ()), strict=False))
    return build_pack(Path(name), files) if files else pack(name)


def build_pack(folder: Path, files: Mapping[str, str]) -> Pack:
    """Return the pack of files, {name: text}, named as the folder; ConfigError if one is missing or not valid."""
    missing = {SETTINGS, COMMON} - files.keys()
    if missing:
        raise ConfigError(f"{folder}: {min(missing)} is missing; every language has it")
    settings = _settings(folder / SETTINGS, files[SETTINGS])
    names = [[fold(name) for name in month] for month in settings.months]
    unknown = files.keys() - {SETTINGS, COMMON, *(f"lexicon-{name}.txt" for name in LEXICA)}
    if unknown:
        raise ConfigError(f"{folder}: unknown {min(unknown)}; the lexica are {', '.join(LEXICA)}")
    common, rates = _word_columns(folder / COMMON, files[COMMON])
    return Pack(
        name=folder.name,
        months={name: number for number, month in enumerate(names, 1) for name in month},
        plain_months=frozenset(() if settings.capital_months else (month[0] for month in names)),
        decades=frozenset(map(fold, settings.decades)),
        decade_endings=frozenset(map(fold, settings.decade_endings)),
        ages=frozenset(map(fold, settings.ages)),
        decimal=settings.decimal,
        phones=frozenset(settings.phones),
        extension=_extension(settings.extensions),
        suffixes={name: tuple(map(fold, ends)) for name, ends in settings.suffixes.items()},
        lexica={name: _lexicon(folder / f"lexicon-{name}.txt", files) for name in LEXICA},
        common=frozenset(common),
        frequent=frozenset(word for word, rate in zip(common, rates, strict=True) if rate != "0"),
    )


def _settings(path: Path, text: str) -> _Settings:
    """Return the settings in a language's TOML; ConfigError, with the path, unless all of them are valid."""
    try:
        settings = msgspec.convert(tomllib.loads(text), _Settings)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}; correct the TOML") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}; see the packs that are shipped") from None
    if len(settings.months) != 12 or not all(month and all(month) for month in settings.months):
        raise ConfigError(f"{path}: months must be twelve lists of names, got {len(settings.months)}")
    if settings.decimal not in (".", ","):
        raise ConfigError(f'{path}: decimal must be "." or ",", got {settings.decimal!r}')
    for name, endings in settings.suffixes.items():
        if not _CLASS_NAME.fullmatch(name) or not endings or not all(endings):
            raise ConfigError(f"{path}: suffix class {name!r} needs a name of 1 to 12 letters a-z, and endings")
    for mask in settings.phones:
        if not _PHONE_MASK.fullmatch(mask):
            raise ConfigError(f"{path}: telephone mask {mask!r}; write 0 for each digit, and + ( ) - . / or spaces")
    return settings


def _extension(words: list[str]) -> re.Pattern[str]:
    """Return a pattern of (number or nothing), an extension word, (extension); one that never matches if no words."""
    if not words:
        return re.compile("(?!)")
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(.*?[\d)])?[\s,;]*(?:{either})[.:#\s]*(\d{{1,6}})", re.IGNORECASE)


def _lexicon(path: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Return {word: hi or lo}, hi if it has both; {} if the file is missing; ConfigError for another bucket."""
    words, buckets = _word_columns(path, files.get(path.name, ""))
    wrong = next((number for number, bucket in enumerate(buckets) if bucket not in BUCKETS), None)
    if wrong is not None:
        number, _, bucket = list(_rows(path, files[path.name]))[wrong]
        raise ConfigError(f"{path}:{number}: a word is followed by a tab and hi or lo, got {bucket!r}")
    buckets = list(map(sys.intern, buckets))  # two values, and not one for each word
    table = dict(zip(words, buckets, strict=True))
    table.update((word, bucket) for word, bucket in zip(words, buckets, strict=True) if bucket == "hi")
    return table


def _word_columns(path: Path, text: str) -> tuple[list[str], list[str]]:
    """Return the folded words of a list, and what follows each after a tab; ConfigError as of `_rows`.

    A list that is a word, a tab and another word on each line, as shipped ones are, is cut at once, which is fast.
    """
    parts = text.split()
    if "\n".join(map("\t".join, zip(parts[::2], parts[1::2], strict=False))) == text.rstrip("\n"):
        return fold("\n".join(parts[::2])).split("\n") if parts else [], parts[1::2]
    rows = list(_rows(path, text))
    return [word for _, word, _ in rows], [rest for _, _, rest in rows]


def _rows(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, folded word, rest after the tab) of lines that are not blank; ConfigError for two words."""
    for number, line in enumerate(text.split("\n"), start=1):
        word, _, rest = line.strip("\r").partition("\t")
        if not word.strip():
            continue
        if len(word.split()) > 1:
            raise ConfigError(f"{path}:{number}: one word per line, got {len(word.split())}; put each word on a line")
        yield number, fold(word.strip()), rest.strip()


def _text(path: Path) -> str:
    """Return the text of a file; raise ConfigError if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); a language pack needs this file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
