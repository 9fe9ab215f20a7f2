"""Keys on the pages of the station, states of a page that tests wait for, and messages that are held on their way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import Page, Route, expect

# Keys pressed one after the other before any queued event or answer comes: promises go on, nothing else does.
_TYPE_AHEAD = """async (keys) => {
  for (const key of keys) {
    const dialog = document.querySelector("dialog[open]");
    const target = dialog?.querySelector("input") ?? dialog ?? document.body;
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    for (let turn = 0; turn < 9; turn += 1) await null;
  }
}"""
# Queued events are dispatched before a timer of later fires.
_LET_EVENTS_COME = "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done, 0)), 0))"


def press(page: Page, *keys: str) -> None:
    """Press keys; each is handled by the page before the next."""
    for key in keys:
        page.keyboard.press(key)


def type_ahead(page: Page, *keys: str) -> None:
    """Press keys so fast that nothing that the page queued comes between them; then let it come."""
    page.evaluate(_TYPE_AHEAD, list(keys))
    let_events_come(page)


def let_events_come(page: Page) -> None:
    """Wait until the page has handled its queued events and answers, and has drawn a frame."""
    page.evaluate(_LET_EVENTS_COME)


def ready(page: Page) -> None:
    """Wait until a note is open and its keys work; while the page goes to the next one it is not ready."""
    page.wait_for_selector("body[data-ready]")


def settled(page: Page) -> None:
    """Wait until everything is acknowledged; the key of an edit has said before that it is not."""
    expect(page.locator("#saved")).to_have_attribute("data-state", "saved")


@contextmanager
def held(page: Page, pattern: str) -> Iterator[None]:
    """Hold the messages to addresses of this pattern until the block ends; one must be sent in the block."""
    waiting: list[Route] = []
    is_over = False

    def hold(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            waiting.append(route)

    page.route(pattern, hold)
    yield
    arrived(page, waiting, 1)
    is_over = True
    for route in waiting:
        route.continue_()


def arrived(page: Page, waiting: Sequence[Route], number: int) -> None:
    """Wait until this many messages are held."""
    while len(waiting) < number:
        page.wait_for_timeout(5)
