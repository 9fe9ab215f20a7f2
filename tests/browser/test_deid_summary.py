"""The summary of a release in a real browser: it loads nothing, complains of nothing, and tells what was withheld."""

from __future__ import annotations

from pathlib import Path

from chaffinch.cli import main
from tests.browser.conftest import Opened
from tests.deid.releases import CANARY, note


def test_the_summary_of_a_release_stands_alone(opened: Opened, tmp_path: Path) -> None:
    notes, page_file = tmp_path / "notes", tmp_path / "summary.html"
    notes.mkdir()
    for number in range(8):
        (notes / f"{CANARY}-{number}.txt").write_text(note(number), encoding="utf-8")
    (notes / f"{CANARY}-9.txt").write_bytes(b"\xff")
    arguments = ["deid", str(notes), "-o", str(tmp_path / "clean"), "--model", "rules", "--html", str(page_file), "-q"]
    assert main(arguments) == 5
    assert CANARY not in page_file.read_text(encoding="utf-8")
    with opened(page_file) as page:
        assert page.locator("h1").inner_text() == "Release of notes"
        assert page.get_by_text("1 of 9 documents are not in the output").is_visible()
        row = page.get_by_role("row", name="DOCTOR")
        assert "tag 16" in row.first.inner_text()
        assert page.locator(".kinds svg.bar rect").first.bounding_box()
        assert page.get_by_text("chaffinch deid sample clean -o").is_visible()
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "at 400 pixels too"
