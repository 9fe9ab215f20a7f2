"""The HTML report in a real browser: it loads nothing, complains of nothing, and shows its tables and charts."""

from __future__ import annotations

from pathlib import Path

from chaffinch.cli import main
from tests.browser.conftest import Opened

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_report_stands_alone(opened: Opened, tmp_path: Path) -> None:
    page_file = tmp_path / "report.html"
    assert main(["evaluate", str(EXAMPLES / "notes"), str(EXAMPLES / "model.jsonl"), "--html", str(page_file)]) == 0
    with opened(page_file) as page:
        assert page.locator("h1").inner_text() == "model.jsonl against notes"
        assert page.get_by_role("row", name="PATIENT").first.is_visible()
        assert page.locator("svg").count() > 20
