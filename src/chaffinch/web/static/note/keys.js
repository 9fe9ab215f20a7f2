// Keys and pointer of the note.

import { isTaken, releaseFocus } from "./dialog.js";

// Signs that need AltGr or Shift on some keyboards have a second key.
const ALIASES = { ",": "[", ".": "]", ";": "{", ":": "}" };
// With Alt held, macOS turns keys into signs; the position of the key tells what was meant.
const CODES = { BracketLeft: "[", BracketRight: "]", Comma: "[", Period: "]", Semicolon: "{" };

function keyOf(event) {
  if (event.altKey && !"[]{}".includes(event.key) && !event.getModifierState("AltGraph") && CODES[event.code]) {
    const base = CODES[event.code];
    return event.shiftKey ? { "[": "{", "]": "}", "{": "}" }[base] : base;
  }
  return ALIASES[event.key] ?? event.key;
}

export function bindKeys(station) {
  const lines = (step) => (event) => moveLine(station, step, event.shiftKey);
  const sideways = (step) => (event) => {
    if (event.altKey) station.cursor.moveCharacter(step, event.shiftKey);
    else station.cursor.moveToken(step, event.shiftKey);
    station.point();
  };
  const resize = (edge, step) => (event) => station.resize(edge, step, event.altKey);
  const actions = {
    n: () => station.nextMark(1), p: () => station.nextMark(-1), a: () => station.accept(), v: () => station.acceptInSight(),
    x: () => station.remove(), X: () => station.removeIdentical(), t: () => station.chooseLabel(), m: () => station.chooseLabel(),
    A: () => station.everywhere(), u: () => station.undo(), U: () => station.redo(), o: () => station.changeView(),
    w: () => station.side.why(station), g: () => station.open("guideline"), "?": () => station.open("help"),
    r: () => station.reopen(), q: () => station.backToQueue(), Enter: () => station.done(),
    "[": resize("start", 1), "]": resize("end", 1), "{": resize("start", -1), "}": resize("end", -1),
    ArrowRight: sideways(1), ArrowLeft: sideways(-1), ArrowDown: lines(1), ArrowUp: lines(-1),
    Escape: () => {
      station.cursor.anchor = null;
      station.point();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    station.noteKey();
    if ((event.ctrlKey || event.metaKey) && !event.getModifierState("AltGraph")) {
      if (event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      if (station.leaving) return;
      if (event.shiftKey) station.redo();
      else station.undo();
      return;
    }
    const key = keyOf(event);
    const label = /^[1-9]$/.test(key) && station.task.labels.find((one) => one.key === key);
    const action = label ? () => station.setLabel(label.name) : actions[key];
    if (!action) return;
    event.preventDefault();
    if (station.leaving) {
      const reason = station.outbox.waiting.length ? "What you did is being saved" : "The next page is on its way";
      station.say(`${reason}; this key did nothing.`);
    }
    else if (key !== "Enter" || !event.repeat) action(event);
  });
  releaseFocus();
  bindPointer(station);
}

// The word in the next or previous line nearest to the cursor.
function moveLine(station, step, select) {
  const { cursor, paper } = station;
  const box = paper.range(...cursor.pointed).getBoundingClientRect();
  const height = parseFloat(getComputedStyle(paper.element).lineHeight) || 24;
  const x = cursor.column ?? box.left + 1;
  for (let lines = 1; lines <= 40; lines += 1) {
    const y = (step > 0 ? box.bottom - height / 2 : box.top + height / 2) + step * lines * height;
    if (y < 0 || y > innerHeight) {
      scrollBy({ top: step * innerHeight * 0.6, behavior: "instant" });
      return moveLine(station, step, select);
    }
    const position = document.caretPositionFromPoint?.(x, y);
    const place = position && paper.placeOf(position.offsetNode, position.offset);
    if (place === null || place === undefined) continue;
    const token = cursor.tokenAt(place);
    if ((step > 0 && token > cursor.token) || (step < 0 && token < cursor.token)) {
      cursor.moveToken(token - cursor.token, select);
      cursor.column = x;
      station.point();
      cursor.column = x;
      return undefined;
    }
    if (token === cursor.token && ((step > 0 && token === cursor.starts.length - 1) || (step < 0 && token === 0))) break;
  }
  return undefined;
}

function bindPointer(station) {
  station.paper.element.addEventListener("pointerup", () => {
    const selection = getSelection();
    if (!selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    const start = station.paper.placeOf(range.startContainer, range.startOffset);
    const end = station.paper.placeOf(range.endContainer, range.endOffset);
    if (start === null || end === null) return;
    station.cursor.moveTo(start);
    if (end > start) station.cursor.moveToken(station.cursor.tokenAt(end - 1) - station.cursor.token, true);
    selection.removeAllRanges();
    station.point({ reveal: false });
  });
}
