"""The reference page of the service in a real browser, under the guard's policy: nothing is loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.process import serving


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_reference_page_shows_paths_and_types(browser: Browser, tmp_path: Path, scheme: str) -> None:
    with serving(tmp_path, "--model", "rules") as server:
        page = browser.new_page(color_scheme=scheme, viewport={"width": 700, "height": 900})  # type: ignore[arg-type]
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{server.url}/api/v1/docs", wait_until="load")
        assert page.get_by_role("heading", name="POST /api/v1/deidentify").is_visible()
        assert "Dr. Penn" in page.locator("#deidentify ~ pre").inner_text()
        page.locator("#deidentify ~ p a", has_text="DeidentifyRequest").click()
        assert page.url.endswith("#type-DeidentifyRequest")
        assert page.get_by_role("row", name="each_document_a_patient").is_visible()
        assert not page.get_by_text("Retry-After").first.is_visible()
        page.locator("#deidentify ~ details summary").click()
        page.locator("#deidentify ~ details").get_by_text("Retry-After").first.wait_for(state="visible")
        assert page.evaluate("getComputedStyle(document.querySelector('.top')).display") == "flex", "no style sheet"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
        assert all(each.startswith(f"{server.url}/api/v1/docs") for each in requests)
        assert complaints == []
        page.close()
