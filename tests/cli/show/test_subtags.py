"""`chaffinch show` of models with sub-tags: text, JSON and one HTML page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.cli.show import sparkline
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.hmmdp import describe as portrait
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.tagger import Tagger, train
from tests.models.notes import notes

CHAIN = HMMDP(4, 2, min_count=2, passes=6, discriminative=False)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return train(notes(40), CHAIN, corpus="invented")


@pytest.fixture(scope="module")
def model(tagger: Tagger) -> Model:
    assert isinstance(tagger.model, Model)
    return tagger.model


@pytest.fixture(scope="module")
def file(tagger: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "notes.cfm"
    tagger.save(path)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def lines_of(printed: str, first: str) -> list[str]:
    """The lines of the table whose header begins so, without the header."""
    lines = printed.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith(first))
    return lines[begin + 1 : lines.index("", begin)]


def test_json_has_all_of_it(file: Path, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(shown(capsys, file, "--json"))
    assert (result["kind"], result["corpus"], result["vocabulary_floor"]) == ("hmmdp", "invented", 2)
    assert result["bound"] == model.portrait.trace.round(3).tolist()
    expected = {own.name: own for own in portrait.subtags(model)}
    assert {own["name"] for own in result["subtags"]} == set(expected)
    tokens = [own["tokens"] for own in result["subtags"]]
    assert tokens == sorted(tokens, reverse=True)
    assert sum(tokens) == pytest.approx(sum(row["tokens"] for row in result["use"]), abs=3)
    for own in result["subtags"]:
        found = expected[own["name"]]
        assert (own["tag"], own["number"]) == (found.tag, found.number)
        for key in ("words", "signatures", "before", "after"):
            assert [name for name, _ in own[key]] == [name for name, _ in getattr(found, key)]
            assert [share for _, share in own[key]] == pytest.approx([s for _, s in getattr(found, key)], abs=1e-4)
    for row, used in zip(result["use"], portrait.use(model), strict=True):
        assert (row["tag"], row["subtags"], row["in_use"]) == (used.tag, used.subtags, used.effective)
        assert row["perplexity"] == pytest.approx(used.perplexity, abs=0.01)
    full = [own.tag for own in portrait.use(model) if own.full]
    assert len(full) > 4
    named = f"{', '.join(full[:3])} and {len(full) - 3} other tags"
    assert result["hint"] == f"All sub-tags of {named} are in use: a larger number may help (train --set inside=…)."
    few = json.loads(shown(capsys, file, "--json", "--subtags", "3"))
    assert few["subtags"] == result["subtags"][:3]


def test_text_lists_tags_subtags_and_the_bound(file: Path, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    printed = shown(capsys, file)
    tags = lines_of(printed, "tag  ")
    for row, used in zip(tags, portrait.use(model), strict=False):
        found = row.split()
        assert (found[0], found[1], found[2]) == (used.tag, str(used.subtags), str(used.effective))
    assert tags[-1].startswith("All sub-tags of ")
    rows = lines_of(printed, "sub-tag  ")
    most = max(portrait.subtags(model), key=lambda own: own.tokens)
    assert rows[0].split()[:2] == [most.name, str(round(most.tokens))]
    assert most.words[0][0] in rows[0]
    trace = model.portrait.trace
    assert f"bound  {trace[0]:,.0f} → {trace[-1]:,.0f} in {len(trace)} passes  {sparkline(trace.tolist())}" in printed
    assert "vocabulary floor  2" in printed
    assert "tables.trans" in printed


def test_the_list_of_subtags_is_cut_and_says_so(file: Path, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    total = len(model.portrait.mass)
    printed = shown(capsys, file, "--subtags", "2")
    rows = lines_of(printed, "sub-tag  ")
    assert sum(re.match(r"\S+[₀-₉]", row) is not None for row in rows) == 2
    assert rows[-1] == f"{total - 2} of {total} sub-tags are not listed; --subtags {total} lists all."
    assert "not listed" not in shown(capsys, file, "--subtags", str(total))
    none = shown(capsys, file, "--subtags", "0")
    assert f"{total} of {total} sub-tags are not listed" in none
    assert "sub-tag  " not in none
    assert main(["show", str(file), "--subtags", "-1"]) == 2


def test_no_hint_where_a_subtag_is_unused(tagger: Tagger, model: Model, tmp_path: Path, capsys: Any) -> None:
    one = np.zeros(len(model.portrait.mass))
    one[0] = 10
    path = tmp_path / "m.cfm"
    replace(tagger, model=replace(model, portrait=replace(model.portrait, mass=one))).save(path)
    assert json.loads(shown(capsys, path, "--json"))["hint"] == ""
    assert "All sub-tags" not in shown(capsys, path)


class _Page(HTMLParser):
    """The elements of a page, and whether all of them are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    assert not {tag for tag, _ in page.seen} & {"script", "link", "img", "iframe", "object", "base", "form", "a"}
    assert not {key for _, own in page.seen for key in own} & {"src", "href", "xlink:href", "srcset", "action"}
    assert not any(key.startswith("on") for _, own in page.seen for key in own)
    assert not re.search(r"url\(|@import|https?:", path.read_text(encoding="utf-8"))
    return page


def test_the_page_stands_alone(file: Path, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "model.html"
    assert main(["show", str(file), "--html", str(target), "--subtags", "5"]) == 0
    assert f"wrote {target}" in capsys.readouterr().err
    page = read_page(target)
    classes = [own.get("class") for _, own in page.seen]
    assert classes.count("dot") == len(model.portrait.trace)
    assert classes.count("full") + classes.count("empty") == len(model.portrait.mass)
    assert classes.count("full") == sum(own.effective for own in portrait.use(model))
    assert classes.count("signatures") == 5
    assert f"{len(model.portrait.mass) - 5} of {len(model.portrait.mass)} sub-tags are not listed" in page.text
    for text in (
        "notes.cfm",
        "vocabulary floor",
        "invented",
        "Use of sub-tags",
        "All sub-tags of",
        "at least 2 patients",
    ):
        assert text in page.text
    assert "prefers-color-scheme: dark" in target.read_text()


def test_words_are_escaped(tagger: Tagger, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = ("<script>alert(1)</script>", "[/b]", "a\x1b[31mb")
    words = tuple(evil[n % 3] for n in range(len(model.symbols.words)))
    path, target = tmp_path / "m.cfm", tmp_path / "m.html"
    replace(tagger, model=replace(model, symbols=replace(model.symbols, words=words))).save(path)
    printed = shown(capsys, path, "--html", target)
    assert "[/b]" in printed
    assert "\x1b" not in printed
    assert "<script>" in read_page(target).text


def test_the_page_of_a_cascade_has_its_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "c.cfm", tmp_path / "c.html"
    train(notes(12), Cascade(epochs=1)).save(path)
    printed = shown(capsys, path, "--html", target)
    assert "sub-tag" not in printed
    page = read_page(target)
    assert "Use of sub-tags" not in page.text
    count = json.loads(shown(capsys, path, "--json"))["features"]["first reading"]
    assert f"first reading{count:,}" in page.text


def test_a_model_that_does_not_fit_together_is_named(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = bundle.load(file)
    arrays = {name: own for name, own in found.arrays.items() if name != "mass"}
    bundle.save(tmp_path / "broken.cfm", found.manifest, arrays, found.strings)
    assert main(["show", str(tmp_path / "broken.cfm")]) == 3
    assert "broken.cfm: its settings cannot be read" in capsys.readouterr().err


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([-3.0]) == "▁"
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert sparkline([0.0, 7.0, 3.0]) == "▁█▄"
    assert sparkline([float(n) for n in range(400)], most=8) == "▁▂▃▄▅▆▇█"
