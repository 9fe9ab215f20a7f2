"""The page of a class HMM in a real browser: it loads nothing, complains of nothing, and colours states apart."""

from __future__ import annotations

from pathlib import Path

from chaffinch.cli import main
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.tagger import train
from tests.browser.conftest import Opened
from tests.models.notes import notes


def test_the_page_of_a_class_hmm_stands_alone(opened: Opened, tmp_path: Path) -> None:
    model, page_file = tmp_path / "names.cfm", tmp_path / "names.html"
    train(notes(40), ClassHMM(3, objective="joint", evaluations=8, calibrate=False, private=False)).save(model)
    assert main(["show", str(model), "--html", str(page_file)]) == 0
    with opened(page_file) as page:
        assert page.get_by_role("heading", name="NAME", exact=True).is_visible()
        assert page.get_by_role("rowheader", name="NAME/1", exact=True).is_visible()
        colours = page.eval_on_selector_all(".part", "all => all.map(one => getComputedStyle(one).borderBottomColor)")
        numbers = [own.split("\n")[-1][-1] for own in page.locator(".part").all_inner_texts()]
        assert len(set(zip(numbers, colours, strict=True))) == len(set(numbers)) > 1, "a state has its own colour"
        assert page.locator(".places rect").first.bounding_box()
