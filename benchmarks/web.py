"""The page of a note in Chromium, by its own clock: opened, an edit echoed, the next note, scrolled.

The notes have 100,000 characters and 500 suggestions, with emoji, combining characters and CRLF at the start. Every
figure is `performance.now` in the page, the median of 20: from the start of the navigation until keys work; from a key
until the frame that shows its edit; from Enter until the next note is there, with the message to the server; and the
longest task while scrolling through the note. Other work on the machine counts in full.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

ROUNDS = 20
CHARACTERS, SPANS = 100_000, 500
PASSWORD = "a finch in the hand"  # noqa: S105  (of a project that is removed at the end)
_START = "Zoë O\u2019Neil 🧑‍⚕️ cafe\u0301 👍🏽 was seen.\r\n"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_GOALS = {"web_open_ms": 150, "web_echo_ms": 50, "web_next_note_ms": 200, "web_longest_task_ms": 50}

# One edit: from the key until the frame after it was drawn.
_ECHO = """async (key) => {
  const before = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  await new Promise((done) => requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel();
    port1.onmessage = done; port2.postMessage(0); }));
  return performance.now() - before;
}"""
_NEXT = """async () => {
  const open = station.marks.open;
  if (open.length) station.edit("accept", open, open.map((mark) => ({ ...mark, confirmed: true })));
  await station.outbox.empty();
  await new Promise((done) => setTimeout(done, 900));
  const task = station.task.task;
  const before = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  while (station.task.task === task) await new Promise((done) => setTimeout(done, 1));
  document.body.getBoundingClientRect();
  return performance.now() - before;
}"""
_SCROLL = """async () => {
  let longest = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
  });
  observer.observe({ type: "longtask", buffered: false });
  for (let top = 0; top < document.documentElement.scrollHeight; top += 400) {
    scrollTo({ top, behavior: "instant" });
    await new Promise((done) => requestAnimationFrame(done));
  }
  await new Promise((done) => setTimeout(done, 100));
  observer.disconnect();
  return longest;
}"""


class Options(Protocol):
    """What `chaffinch bench` hands over."""

    @property
    def data(self) -> Path | None: ...


def run(_options: Options) -> dict[str, Any]:
    """Medians of 20 in the page, in milliseconds; the longest task is a maximum."""
    program = shutil.which("chromium")
    if program is None:
        return {"bars": [], "rows": [{"absent": "chromium", "install": "apt-get install chromium"}]}
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        with served(Path(folder) / "project") as base, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
            figures = measure(browser.new_page(viewport={"width": 1280, "height": 860}), base)
            browser.close()
    return {"bars": [_bar(name, values) for name, values in figures.items()], "rows": []}


def _bar(name: str, values: list[float]) -> dict[str, Any]:
    """Return a bar: the median, or the greatest of the longest tasks."""
    value = max(values) if name == "web_longest_task_ms" else statistics.median(values)
    return {
        "id": name, "value": round(value, 1), "low": round(min(values), 1), "high": round(max(values), 1),
        "unit": "ms", "floor": _GOALS[name], "goal": _GOALS[name], "better": "lower",
    }  # fmt: skip


def measure(page: Any, base: str) -> dict[str, list[float]]:
    """Return the figures of all rounds by name."""
    page.goto(f"{base}/login")
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#resume")
    address = base + page.locator("#resume").get_attribute("href")
    opened = []
    for _ in range(ROUNDS):
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        opened.append(page.evaluate("() => performance.getEntriesByName('ready')[0].startTime"))
    echoed = [page.evaluate(_ECHO, "12"[turn % 2]) for turn in range(ROUNDS)]
    longest = [page.evaluate(_SCROLL) for _ in range(3)]
    following = [page.evaluate(_NEXT) for _ in range(ROUNDS)]
    return {
        "web_open_ms": opened, "web_echo_ms": echoed, "web_next_note_ms": following, "web_longest_task_ms": longest
    }  # fmt: skip


def make_project(folder: Path) -> None:
    """Make a project of long notes with one reader."""
    from chaffinch.deid.keys import Secret
    from chaffinch.web.review.desk import Desk
    from chaffinch.web.review.importing import import_notes, read_layer_notes
    from chaffinch.web.review.judging import assign_notes
    from chaffinch.web.review.project import ProjectConfig, create_project
    from chaffinch.web.review.store.users import add_user

    key = Secret.new()
    key.write(folder / "project.key")
    project = create_project(folder / "project", ProjectConfig("Bench", readers=1, key_file="../project.key"), key)
    with project.database.change("bench") as change:
        add_user(change, "ann", "reader", password=PASSWORD)
        steward = add_user(change, "sue", "steward", password=PASSWORD)
    import_notes(project, read_layer_notes(map(long_note, range(ROUNDS + 2)), "machine"), "bench")
    assign_notes(Desk(project), steward)
    project.close()


def long_note(number: int) -> Any:
    """Return a note of 100,000 characters with 500 suggestions."""
    from chaffinch.text import Document, Span

    text, spans = _START, []
    filler = "No fever, chills or rigors. Wound clean and dry. Tolerating diet.\r\n"
    for index in range(SPANS):
        line = f"Day {index} of {number}: discussed with Farrow{index} and the team, plan unchanged.\r\n"
        place = len(text) + line.index("Farrow")
        spans.append(Span(place, place + len(f"Farrow{index}"), "DOCTOR", 0.8, "cascade"))
        text += line
        while len(text) < CHARACTERS * (index + 1) / SPANS:
            text += filler
    return Document.make(text, id=f"n{number}", group=f"p{number}", layers={"machine": spans})


@contextmanager
def served(project: Path) -> Iterator[str]:
    """Yield the address of a server in a process of its own."""
    command = [sys.executable, "-m", "chaffinch", "serve", str(project), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = "" if server.stderr is None else server.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found is None:
            raise RuntimeError("the server did not start")
        yield found[0]
    finally:
        server.terminate()
        server.wait()
