"""Languages: words of names, places, dates and labels, as data in a folder per language. There is no list of languages.

    en/pack.toml           months, words for ages and decades, telephone masks, suffix classes
    en/lexicon-first.txt   word, tab, hi or lo; one file per lexicon of `LEXICA`, each of which may be missing
    en/common.txt          the common words, one per line; what follows a tab is for people (their rate per million)

These are a pack, which taggers use. The others serve de-identification, and each may be missing:

    en/calendar.toml       months, weekdays, seasons, holidays and the small words of dates
    en/numbers.toml        words for numbers, and for people of an age
    en/cues.toml           what labels of lines and titles of sections announce
    en/protected/*.txt     terms that identify nobody
    en/patterns/*.toml     words that patterns of names, places and professions know
    en/surrogates/*        lists that surrogates are drawn from, and words that they keep

A word of a lexicon is `hi` if it is more than half a power of ten likelier there than in the language at large, else
`lo`: "Smith" is hi and "Reading" lo among last names. `recipes/languages.py` makes the packs en, es and de. Another
language is another folder with the same files, and no code.
"""

from __future__ import annotations

import gzip
import re
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
_CLASS_NAME = re.compile("[a-z]{1,12}")
_PHONE_MASK = re.compile(r"[-+0(). /]+")


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """A language as the word signatures need it; all words are in lower case. Made by `pack`."""

    name: str
    months: Mapping[str, int] = field(repr=False)  # full and short names; 1 to 12
    plain_months: frozenset[str] = field(repr=False)  # those that are a month without a capital: enero, but not may
    decades: frozenset[str] = field(repr=False)  # eighties
    decade_endings: frozenset[str] = field(repr=False)  # what follows the number: s, 's
    ages: frozenset[str] = field(repr=False)  # what follows an age: y, yo, year
    decimal: str  # the decimal mark; the other of "." and "," parts thousands
    phones: frozenset[str] = field(repr=False)  # masks such as 000-0000
    extension: re.Pattern[str] = field(repr=False)  # a number, a word such as x or ext, and the extension
    suffixes: Mapping[str, tuple[str, ...]] = field(repr=False)  # class, endings; the first class that fits counts
    lexica: Mapping[str, Mapping[str, str]] = field(repr=False)  # in the order of LEXICA; word, "hi" or "lo"
    common: frozenset[str] = field(repr=False)
    frequent: frozenset[str] = field(repr=False)  # those of the common words whose rate is above 0


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
def shipped() -> tuple[str, ...]:
    """The names of the packs that come with Chaffinch."""
    return tuple(sorted(path.parent.name for path in _HERE.glob(f"*/{SETTINGS}")))


def pack(name: str | Path, hidden: frozenset[str] = frozenset()) -> Pack:
    """Return the pack of a name, or of a folder with the same files; each is read once.

    A name of a shipped pack wins over a folder of that name: "./en" is the folder. The lists of names and cities lack
    the `hidden` words, which must be folded; common words stay.

    >>> pack("es").months["enero"]
    1
    >>> "smith" in pack("en", frozenset(["smith"])).lexica["last"]
    False
    """
    folder = _HERE / name if isinstance(name, str) and name in shipped() else Path(name)
    if not folder.is_dir():
        raise ConfigError(f"no language pack {str(name)!r}; name one of {', '.join(shipped())}, or a folder")
    return _pack_without(folder.resolve(), hidden)


def hidden_words(words: Iterable[str]) -> frozenset[str]:
    """Return words and their parts as `pack` takes them to hide them, folded.

    >>> sorted(hidden_words(["Mary Ann"]))
    ['ann', 'mary', 'mary ann']
    """
    return frozenset(fold(part) for word in words for part in (word, *word.split()))


@cache
def lines(language: str, name: str) -> tuple[str, ...]:
    """Return the entries of a list of a shipped language, such as `lines("en", "protected/drugs")`.

    Blank lines and lines that begin with "# " are left out; a list may be a .txt or a .txt.gz. A list that a language
    does not have is empty.
    """
    path = _HERE / language / f"{name}.txt"
    if not path.exists() and not path.with_suffix(".txt.gz").exists():
        return ()
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".txt.gz").read_bytes())
    return tuple(line for line in content.decode().splitlines() if line.strip() and not line.startswith("# "))


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `calendar.toml`: words of dates as they are written, in their order."""

    months: tuple[str, ...]  # January first
    weekdays: tuple[str, ...]  # Monday first
    short_months: tuple[str, ...] = ()
    short_weekdays: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()  # winter first
    short_seasons: tuple[str, ...] = ()
    rank: int = 100  # a word of several languages is of the one with the lowest rank, unless other words tell
    day_after_month: bool = False  # a number after a month may be a day
    spoken: str = ""  # a regular expression of small words that stand in dates of this language alone
    more_months: dict[str, int] = {}  # other spellings, and their places from 1; the same for the following
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
    """The content of `cues.toml`: what labels of lines and titles of sections announce, by words of them."""

    fields: dict[str, tuple[str, ...]]
    sections: dict[str, tuple[str, ...]]


@cache
def calendars() -> Mapping[str, Calendar]:
    """Return the calendars of all languages that have one, by language, in order of rank.

    >>> list(calendars())[:3]
    ['en', 'es', 'de']
    """
    found = {name: _typed(name, "calendar", Calendar) for name in languages_with("calendar.toml")}
    return dict(sorted(found.items(), key=lambda item: (item[1].rank, item[0])))


@cache
def number_words(language: str) -> NumberWords:
    """Return the words for numbers of a shipped language."""
    return _typed(language, "numbers", NumberWords)


@cache
def cue_words(language: str) -> CueWords:
    """Return the cues of a shipped language; a language without any has no words."""
    known = language in languages_with("cues.toml")
    return _typed(language, "cues", CueWords) if known else CueWords({}, {})


@cache
def words(language: str, name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lists of words of a TOML file of a shipped language, such as `words("en", "patterns/names")`."""
    lists = {key: value for key, value in table(language, name).items() if isinstance(value, list)}
    return msgspec.convert(lists, dict[str, tuple[str, ...]])


@cache
def kept_words(name: str) -> frozenset[str]:
    """Return the words of a list of `surrogates/words.toml`, those of all languages together.

    >>> {"street", "calle", "strasse"} <= kept_words("streets")
    True
    """
    lists = [words(language, "surrogates/words") for language in languages_with("surrogates/words.toml")]
    return frozenset(word for known in lists for word in known.get(name, ()))


def languages_with(file: str) -> tuple[str, ...]:
    """Return the shipped languages whose folder has a file."""
    return tuple(name for name in shipped() if (_HERE / name / file).is_file())


def _typed(language: str, name: str, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(table(language, name), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"languages/{language}/{name}.toml: {error}; see the file of another language") from None


@cache
def table(language: str, name: str) -> dict[str, Any]:
    """Return the content of a TOML file of a shipped language, such as `table("en", "surrogates/name-parts")`."""
    return tomllib.loads((_HERE / language / f"{name}.toml").read_text(encoding="utf-8"))


def fold(word: str) -> str:
    """The word as it stands in the lists: lower case, accents joined to their letters."""
    lower = word.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFC", lower)


@cache
def _load(folder: Path) -> Pack:
    return made(folder, texts(folder))


@lru_cache(maxsize=4)
def _pack_without(folder: Path, hidden: frozenset[str]) -> Pack:
    whole = _load(folder)
    if not hidden:
        return whole
    fewer = {name: {word: rate for word, rate in whole.lexica[name].items() if word not in hidden} for name in NAMES}
    return replace(whole, lexica={**whole.lexica, **fewer})


def texts(folder: Path) -> dict[str, str]:
    """The files of a pack's folder, by name."""
    names = [SETTINGS, COMMON, *sorted(path.name for path in folder.glob("lexicon-*.txt"))]
    return {name: _text(folder / name) for name in names}


def luggage(name: str) -> dict[str, tuple[str, ...]]:
    """What a model file must hold of a pack: the files of one that does not come with Chaffinch."""
    if name in shipped():
        return {}
    files = texts(Path(name))
    return {"pack.names": tuple(files), "pack.texts": tuple(files.values())}


def unpacked(name: str, strings: Mapping[str, tuple[str, ...]]) -> Pack:
    """The pack of a model file."""
    files = dict(zip(strings.get("pack.names", ()), strings.get("pack.texts", ()), strict=False))
    return made(Path(name), files) if files else pack(name)


def made(folder: Path, files: Mapping[str, str]) -> Pack:
    """The pack of those files; the folder is named in errors."""
    chosen = _settings(folder / SETTINGS, files[SETTINGS])
    names = [[fold(name) for name in month] for month in chosen.months]
    unknown = files.keys() - {SETTINGS, COMMON, *(f"lexicon-{name}.txt" for name in LEXICA)}
    if unknown:
        raise ConfigError(f"{folder}: unknown {min(unknown)}; the lexica are {', '.join(LEXICA)}")
    return Pack(
        name=folder.name,
        months={name: number for number, month in enumerate(names, 1) for name in month},
        plain_months=frozenset(() if chosen.capital_months else (month[0] for month in names)),
        decades=frozenset(map(fold, chosen.decades)),
        decade_endings=frozenset(map(fold, chosen.decade_endings)),
        ages=frozenset(map(fold, chosen.ages)),
        decimal=chosen.decimal,
        phones=frozenset(chosen.phones),
        extension=_extension(chosen.extensions),
        suffixes={name: tuple(map(fold, ends)) for name, ends in chosen.suffixes.items()},
        lexica={name: _lexicon(folder / f"lexicon-{name}.txt", files) for name in LEXICA},
        common=frozenset(word for _, word, _ in _rows(folder / COMMON, files[COMMON])),
        frequent=frozenset(word for _, word, rate in _rows(folder / COMMON, files[COMMON]) if rate != "0"),
    )


def _settings(path: Path, text: str) -> _Settings:
    """The settings, checked."""
    try:
        chosen = msgspec.convert(tomllib.loads(text), _Settings)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}; mend the TOML") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}; see the packs that are shipped") from None
    if len(chosen.months) != 12 or not all(month and all(month) for month in chosen.months):
        raise ConfigError(f"{path}: months must be twelve lists of names, got {len(chosen.months)}")
    if chosen.decimal not in (".", ","):
        raise ConfigError(f'{path}: decimal must be "." or ",", got {chosen.decimal!r}')
    for name, endings in chosen.suffixes.items():
        if not _CLASS_NAME.fullmatch(name) or not endings or not all(endings):
            raise ConfigError(f"{path}: suffix class {name!r} needs a name of 1 to 12 letters a-z, and endings")
    for mask in chosen.phones:
        if not _PHONE_MASK.fullmatch(mask):
            raise ConfigError(f"{path}: telephone mask {mask!r}; write 0 for each digit, and + ( ) - . / or spaces")
    return chosen


def _extension(words: list[str]) -> re.Pattern[str]:
    """The pattern of a number with an extension; its groups are the number, which may be missing, and the extension."""
    if not words:
        return re.compile("(?!)")
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(.*?[\d)])?[\s,;]*(?:{either})[.:#\s]*(\d{{1,6}})", re.IGNORECASE)


def _lexicon(path: Path, files: Mapping[str, str]) -> dict[str, str]:
    """The words of a lexicon with their buckets; of two rows of one word, hi counts. A missing file has no words."""
    buckets: dict[str, str] = {}
    for number, word, bucket in _rows(path, files.get(path.name, "")):
        if bucket not in BUCKETS:
            raise ConfigError(f"{path}:{number}: a word is followed by a tab and hi or lo, got {bucket!r}")
        if buckets.get(word) != "hi":
            buckets[word] = bucket
    return buckets


def _rows(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """Number, word and rest of each line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        word, _, rest = line.strip("\r").partition("\t")
        if not word.strip():
            continue
        if len(word.split()) > 1:
            raise ConfigError(f"{path}:{number}: one word per line, got {len(word.split())}; list the words apart")
        yield number, fold(word.strip()), rest.strip()


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); a language pack needs this file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
