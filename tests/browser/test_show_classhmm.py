"""The page of a class HMM in a real browser: it loads nothing, complains of nothing, and colours states apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from chaffinch.cli import main
from chaffinch.models.classhmm_config import ClassHMM
from chaffinch.models.tagger import train
from tests.browser.test_report import browser
from tests.models.notes import notes

__all__ = ["browser"]  # a fixture


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_of_a_class_hmm_stands_alone(browser: Browser, tmp_path: Path, dark: bool) -> None:
    model, page_file = tmp_path / "names.cfm", tmp_path / "names.html"
    train(notes(40), ClassHMM(3, objective="joint", evaluations=8, calibrate=False)).save(model)
    assert main(["show", str(model), "--html", str(page_file)]) == 0
    page = browser.new_page(color_scheme="dark" if dark else "light", viewport={"width": 700, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    assert requests == [page_file.as_uri()]
    assert complaints == []
    assert page.get_by_role("heading", name="NAME", exact=True).is_visible()
    assert page.get_by_role("rowheader", name="NAME/1", exact=True).is_visible()
    colours = page.eval_on_selector_all(".part", "all => all.map(one => getComputedStyle(one).borderBottomColor)")
    numbers = [own.split("\n")[-1][-1] for own in page.locator(".part").all_inner_texts()]
    assert len(set(zip(numbers, colours, strict=True))) == len(set(numbers)) > 1, "a state has its own colour"
    assert page.locator(".places rect").first.bounding_box()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    words, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert words != paper
    page.close()
