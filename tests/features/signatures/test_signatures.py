"""Signatures: a golden table checked by hand, one category each, idempotence, back-off, packs as data."""

from __future__ import annotations

import pickle
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch import languages
from chaffinch.errors import ConfigError, DataError
from chaffinch.features import signatures as oov
from chaffinch.features.signatures import CATEGORIES, FLAGS, MARK, ORDER, add_flags, back_off, category, pack, signature
from chaffinch.text.tokens import token_offsets

EN, ES, DE = pack("en"), pack("es"), pack("de")

GOLDEN = """
en .            PUNCT|.|run=1
en ...          PUNCT|.|run=3+
en --           PUNCT|-|run=2
en ?!           PUNCT|?|run=2
en |            PUNCT|bar|run=1
en =            PUNCT|=|run=1
en ‹            PUNCT|‹|run=1
en ²            PUNCT|²|run=1
en ½            PUNCT|½|run=1
en 😀           PUNCT|😀|run=1
en 12/03/1998   DATE|00/00/0000|fields=3|year=4|month=1
en 12/3         DATE|00/0|fields=2|year=0|month=1
en 3-4-98       DATE|0-0-00|fields=3|year=2|month=1
en 45/60        DATE|00/00|fields=2|year=0|month=0
en 25/31/98     DATE|00/00/00|fields=3|year=2|month=0
en 1998-03-12   DATE|0000-00-00|fields=3|year=4|month=1
en 3/1998       DATE|0/0000|fields=2|year=4|month=1
en '80s         DATE|'00s|fields=1|year=2|month=0
en ’80s         DATE|'00s|fields=1|year=2|month=0
en 80's         DATE|00s|fields=1|year=2|month=0
en 1980s        DATE|0000s|fields=1|year=4|month=0
en eighties     DATE|decade|fields=1|year=0|month=0
en '98          DATE|'00|fields=1|year=2|month=0
en March        DATE|Mon|fields=1|year=0|month=1
en Sept.        DATE|Mon.|fields=1|year=0|month=1
en 12-Mar-1998  DATE|00-Mon-0000|fields=3|year=4|month=1
en 12Mar98      DATE|00Mon00|fields=3|year=2|month=1
en Mar-98       DATE|Mon-00|fields=2|year=2|month=1
en Mar-12       DATE|Mon-00|fields=2|year=0|month=1
en Mar'12       DATE|Mon'00|fields=2|year=2|month=1
es enero        DATE|Mon|fields=1|year=0|month=1
es 12-mar-98    DATE|00-Mon-00|fields=3|year=2|month=1
de 12.3.1998    DATE|00.0.0000|fields=3|year=4|month=1
de 80er         DATE|00s|fields=1|year=2|month=0
de März         DATE|Mon|fields=1|year=0|month=1
en 555-1234     PHONE|000-0000|area=0|ext=0
en 617-555-1234 PHONE|000-000-0000|area=1|ext=0
en 617.555.1234 PHONE|000.000.0000|area=1|ext=0
en (617)555-1234 PHONE|(000)000-0000|area=1|ext=0
en 555-1234x12  PHONE|000-0000|area=0|ext=1
en 617-555-1234ext.4567 PHONE|000-000-0000|area=1|ext=1
en x12345       PHONE|x00000|area=0|ext=1
en +34912345678 PHONE|+00000000000|area=1|ext=0
es 912-345-678  PHONE|000-000-000|area=1|ext=0
de 0341/9712345 PHONE|0000/0000000|area=1|ext=0
en 5            NUM|digits=1|range=0|dec=0|thousands=0|pct=0
en 12           NUM|digits=2|range=12|dec=0|thousands=0|pct=0
en 13           NUM|digits=2|range=31|dec=0|thousands=0|pct=0
en 57           NUM|digits=2|range=89|dec=0|thousands=0|pct=0
en 90           NUM|digits=2|range=90+|dec=0|thousands=0|pct=0
en 120          NUM|digits=3|range=0|dec=0|thousands=0|pct=0
en 1900         NUM|digits=4|range=year|dec=0|thousands=0|pct=0
en 2036         NUM|digits=4|range=0|dec=0|thousands=0|pct=0
en 5551234      NUM|digits=7+|range=0|dec=0|thousands=0|pct=0
en 98.6         NUM|digits=2|range=0|dec=1|thousands=0|pct=0
en 12%          NUM|digits=2|range=12|dec=0|thousands=0|pct=1
en 1,234        NUM|digits=4|range=0|dec=0|thousands=1|pct=0
en 1,234,567.89 NUM|digits=7+|range=0|dec=1|thousands=1|pct=0
de 1,234        NUM|digits=1|range=0|dec=1|thousands=0|pct=0
de 1.234        NUM|digits=4|range=0|dec=0|thousands=1|pct=0
en ٣            NUM|digits=1|range=0|dec=0|thousands=0|pct=0
en 37947241ZGJ  ID|0{7-8}A{3}
en 3194S62727   ID|0{4}A{1}0{5-6}
en 123-45-6789  ID|0{3}-0{2}-0{4}
en 120/80       ID|0{3}/0{2}
en 1,2,3        ID|0{1},0{1},0{1}
en p53          ID|a{1}0{2}
en OCT4         ID|A{3}0{1}
en SEPT12       ID|A{4}0{2}
en 40years      ID|0{2}a{5-6}
en Ab|12=3      ID|A{1}a{1}*0{2}*0{1}
en j.roe3@x.org NET|email
en www.roe.com  NET|url
en roe.org/a    NET|url
en roe.org      NET|host
en 192.168.1.1  NET|host
en Smith        ALPHA|Cap|first=0|last=hi|city=hi|state=0|hospital=0|job=0|common=0|suf=0|len=5-8|hyphen=0
en Reading      ALPHA|Cap|first=0|last=lo|city=hi|state=0|hospital=0|job=0|common=1|suf=ing|len=5-8|hyphen=0
en Whittaker    ALPHA|Cap|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=er|len=9+|hyphen=0
en O'BRIEN      ALPHA|ALL|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=5-8|hyphen=0
en Patel-Nguyen ALPHA|Cap|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=9+|hyphen=1
en Welder       ALPHA|Cap|first=0|last=0|city=0|state=0|hospital=0|job=hi|common=1|suf=er|len=5-8|hyphen=0
en may          ALPHA|lower|first=lo|last=lo|city=0|state=0|hospital=0|job=0|common=1|suf=0|len=3-4|hyphen=0
en MGH          ALPHA|ALL|first=0|last=0|city=0|state=0|hospital=hi|job=0|common=0|suf=0|len=3-4|hyphen=0
en J            ALPHA|init|first=0|last=0|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=1-2|hyphen=0
en J.           ALPHA|init.|first=0|last=0|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=1-2|hyphen=0
en iPhone       ALPHA|Mixed|first=0|last=0|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=5-8|hyphen=0
en m²           ALPHA|lower|first=0|last=0|city=0|state=0|hospital=0|job=0|common=0|suf=0|len=1-2|hyphen=0
es Pérez        ALPHA|Cap|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=ez|len=5-8|hyphen=0
es enfermera    ALPHA|lower|first=0|last=0|city=0|state=0|hospital=0|job=hi|common=0|suf=ero|len=9+|hyphen=0
de Mueller      ALPHA|Cap|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=er|len=5-8|hyphen=0
de Klinik       ALPHA|Cap|first=0|last=0|city=0|state=0|hospital=hi|job=0|common=1|suf=0|len=5-8|hyphen=0
en john_04 ID|a{4}_0{2}
"""
ROWS = [line.split() for line in GOLDEN.strip().splitlines()]

words = (
    st.text()
    | st.text("09aZé.,-_/'()+%@|=‹ x²", max_size=14)
    | st.from_regex(r"[\d/.,%A-Za-z'-]{1,12}", fullmatch=True)
)


@pytest.mark.parametrize(("language", "word", "symbol"), ROWS, ids=[f"{row[0]}-{row[1]}" for row in ROWS])
def test_golden_table(language: str, word: str, symbol: str) -> None:
    assert signature(word, pack(language)) == MARK + symbol
    assert category(word, pack(language)) == symbol.partition("|")[0]


@given(words)
def test_every_word_has_one_category_and_replacing_twice_changes_nothing(word: str) -> None:
    for language in (EN, ES, DE):
        symbol = signature(word, language)
        assert oov.is_symbol(symbol)
        assert signature(symbol, language) == symbol
        assert category(word, language) == category(symbol, language)
        assert category(word, language) in CATEGORIES


@given(words.filter(lambda word: not word.startswith(MARK)))
def test_categories_hold_what_they_say(word: str) -> None:
    found = category(word, EN)
    letters, digits = any(map(str.isalpha, word)), any(map(str.isdecimal, word))
    assert (found == "PUNCT") == (not letters and not digits)
    if found in ("PHONE", "NUM", "ID"):
        assert digits
    if found == "ALPHA":
        assert letters
        assert not digits


@given(words, st.integers(0, 3))
def test_an_unseen_symbol_always_resolves(word: str, flags: int) -> None:
    symbol = add_flags(signature(word, EN), flags)
    steps = list(back_off(symbol))
    assert steps[0] == symbol
    assert steps[-1] == MARK + category(word, EN)
    assert len(set(steps)) == len(steps)
    fields = [set(step.split("|")[1:]) for step in steps]
    assert all(len(less) == len(more) - 1 and less < more for more, less in pairwise(fields))
    assert all(signature(step, EN) == step for step in steps)


def test_letters_drop_features_in_the_stated_order() -> None:
    symbol = add_flags(signature("Smith", EN), FLAGS["line"])
    steps = [set(step.split("|")) for step in back_off(symbol)]
    dropped = [next(iter(more - less)) for more, less in pairwise(steps)]
    names = "len=5-8 suf=0 line=1 hyphen=0 Cap job=0 hospital=0 state=0 first=0 city=hi last=hi common=0"
    assert dropped == names.split()
    shorter = [MARK + "NUM|digits=2|age=1", MARK + "NUM|age=1", MARK + "NUM"]
    assert list(back_off(shorter[0])) == shorter
    assert list(back_off(shorter[0], order=("age",))) == [shorter[0], MARK + "NUM|digits=2", MARK + "NUM"]


def test_the_order_knows_every_field_once() -> None:
    assert len(set(ORDER)) == len(ORDER)
    named = {name for row in ROWS for name in re.findall(r"\|([a-z]+)=", row[2])}
    assert named | set(FLAGS) | {"case", "mask", "kind", "char"} == set(ORDER)


def test_flags_count_where_they_apply() -> None:
    word, number, date = (signature(word, EN) for word in ("Smith", "57", "12/03"))
    assert add_flags(word, 1) == f"{word}|line=1"
    assert add_flags(number, 2) == f"{number}|age=1"
    assert [add_flags(word, 2), add_flags(number, 1), add_flags(date, 3), add_flags(word, 0)] == [
        word,
        number,
        date,
        word,
    ]
    assert add_flags(add_flags(number, 3), 3) == add_flags(number, 2)
    assert {"y", "yo", "year"} <= EN.ages
    assert "años" in ES.ages
    assert "jahre" in DE.ages


def test_rates_part_names_from_words() -> None:
    last, city = EN.lexica["last"], EN.lexica["city"]
    assert last["smith"] == "hi"
    assert last["reading"] == "lo"
    assert EN.lexica["first"].get("reading") != "hi"
    assert city.get("nitro") != "hi"
    assert ES.lexica["last"]["izquierdo"] == "lo"
    assert DE.lexica["last"]["kopf"] == "lo"
    assert ES.lexica["last"]["garcía"] == ES.lexica["last"]["garcia"] == "hi"


def test_an_age_is_a_number_of_its_own_and_the_words_around_it_decide() -> None:
    text = "at TLC for 40years"
    tokens = [text[start:end] for start, end in token_offsets(text).tolist()]
    assert tokens[-2:] == ["40", "years"]
    assert tokens[-1] in EN.ages


def test_the_empty_word_and_composed_accents() -> None:
    assert signature("", EN) == "‹PUNCT"
    assert list(back_off("‹PUNCT")) == ["‹PUNCT"]
    assert signature("Pe\u0301rez", ES) == signature("Pérez", ES)


@pytest.mark.parametrize("word", ["Smith", "", "‹", "‹Smith", "‹ALPHA|Smith", "‹ID|Smith", "‹NUMBER", "NUM"])
def test_what_is_no_symbol_is_refused_without_being_shown(word: str) -> None:
    assert not oov.is_symbol(word)
    with pytest.raises(DataError) as error:
        next(back_off(word))
    assert "Smith" not in str(error.value)


@pytest.mark.parametrize("piece", ["9", "a", "a-", "a.", "-", "A1", "é", "1,", "‹ID|-"])
def test_a_very_long_word_is_quick(piece: str) -> None:
    start = time.process_time()
    symbol = signature(piece * 100_000, EN)
    assert time.process_time() - start < 0.5
    assert len(symbol) < 150


def _write(folder: Path, **changed: str | bytes) -> Path:
    """A small pack in a folder; a file's content can be changed by its name without the ending."""
    months = ", ".join(f'["måned{n}", "m{n}"]' for n in "abcdefghijkl")
    files: dict[str, str | bytes] = {
        "pack.toml": f'months = [{months}]\nages = ["år"]\ncapital_months = false\n[suffixes]\nsen = ["sen"]\n',
        "lexicon-last.txt": "Hansen\thi\nby\tlo\n",
        "common.txt": "by\t120\nog\n",
    }
    for name, content in {
        **files,
        **{key.replace("__", "-").replace("_", "."): c for key, c in changed.items()},
    }.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_another_language_is_a_folder(tmp_path: Path) -> None:
    danish = pack(_write(tmp_path))
    assert danish is pack(str(tmp_path))
    fields = "ALPHA|Cap|first=0|last=hi|city=0|state=0|hospital=0|job=0|common=0|suf=sen|len=5-8|hyphen=0"
    assert signature("Hansen", danish) == MARK + fields
    assert "last=lo" in signature("by", danish)
    assert "common=1" in signature("by", danish)
    assert category("månedc", danish) == "DATE"
    assert category("555-1234", danish) == "ID"
    assert "hansen" not in repr(danish).lower()


BROKEN: dict[str, tuple[dict[str, str | bytes], str]] = {
    "toml": ({"pack_toml": "months = ["}, "pack.toml.*correct the TOML"),
    "months": ({"pack_toml": 'months = [["a"]]\nages = []\n[suffixes]\n'}, "pack.toml: months must be twelve lists.*1"),
    "missing": ({"pack_toml": "ages = []\n"}, "pack.toml.*missing required field.*shipped"),
    "unknown": ({"pack_toml": "colour = 1\n"}, "pack.toml.*colour"),
    "bucket": ({"lexicon__last_txt": "hansen\thigh\n"}, "lexicon-last.txt:1: .*tab and hi or lo.*high"),
    "phrase": (
        {"lexicon__last_txt": "hansen\thi\nvan dyk\thi\n"},
        "lexicon-last.txt:2: one word per line.*put each word",
    ),
    "lexicon": ({"lexicon__drug_txt": "aspirin\thi\n"}, "lexicon-drug.txt; the lexica are first, last"),
    "bytes": ({"common_txt": b"\xff"}, "common.txt: byte 1 is not UTF-8; save"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pack_says_what_to_mend(name: str, tmp_path: Path) -> None:
    changed, message = BROKEN[name]
    with pytest.raises(ConfigError, match=message):
        pack(_write(tmp_path, **changed))


def test_a_missing_file_or_pack_is_named(tmp_path: Path) -> None:
    (_write(tmp_path) / "common.txt").unlink()
    with pytest.raises(ConfigError, match=r"common.txt: cannot be read.*needs this file"):
        pack(tmp_path)
    with pytest.raises(ConfigError, match="'klingon'; name one of de, en, es, or a folder"):
        pack("klingon")


@pytest.mark.parametrize("name", languages.pack_names())
def test_shipped_packs_are_sorted_small_and_cross_processes(name: str) -> None:
    folder = Path(languages.__file__).parent / name
    files = sorted(folder.glob("*.txt"))
    assert len(files) == 1 + len(languages.LEXICA)
    for file in files:
        rows = file.read_text(encoding="utf-8").splitlines()
        assert rows == sorted(rows)
        assert len({row.partition("\t")[0] for row in rows}) == len(rows)
    assert sum(file.stat().st_size for file in files) < 1_024_000
    again = pickle.loads(pickle.dumps(pack(name)))
    assert all(signature(row[1], again) == signature(row[1], pack(name)) for row in ROWS)


def test_signatures_are_quick() -> None:
    seen = [row[1] for row in ROWS]
    start = time.process_time()
    for _ in range(50):
        for word in seen:
            signature(word, EN)
    assert (time.process_time() - start) / (50 * len(seen)) < 60e-6  # measured near 10; a shared core may be slow
