// The page of an adjudicator: one difference at a time, a side by a key, a reason by a letter.
import { chooseLabel } from "./note/chooser.js";
import { ask, isTaken, releaseFocus, showRows } from "./note/dialog.js";
import { watchIdle } from "./note/lock.js";
import { newId } from "./note/marks.js";
import { Outbox, showState } from "./note/outbox.js";
import { post } from "./note/server.js";

const data = JSON.parse(document.getElementById("case").textContent);
const rows = [...document.querySelectorAll(".difference")];
const categories = new Map(data.labels.map(({ name, category }) => [name, category]));
const LETTERS = { missed: "m", "no-identifier": "i", boundary: "b", type: "t", guideline: "g", other: "o" };
const WORDS = { first: "first reader", second: "second reader", neither: "neither", other: "another type" };
const CHOICES = { 1: "first", 2: "second", 0: "neither" };
const settled = new Map(Object.entries(data.settled));
let position = 0;
let leaving = false; // for the next note: until it is there, keys are for nothing

for (const mark of document.querySelectorAll("mark.m")) mark.classList.add(`c-${(categories.get(mark.dataset.label) ?? "OTHER").toLowerCase()}`);

const outbox = new Outbox({
  name: `settlements-${data.number}`,
  send: async ([settlement]) => {
    await post(`/review/cases/${data.number}/settle`, { settlement });
    return { acknowledged: [settlement.id], head: 0 };
  },
  onState: (state) => showState(document.getElementById("saved"), state),
  onOthers: () => {},
  onLock: (code) => (code === "idle" ? lock() : location.assign("/login")),
});
const lock = watchIdle(() => outbox.resume());
for (const settlement of outbox.waiting) settled.set(settlement.difference, settlement);
outbox.flush();

const say = (words) => (document.getElementById("live").textContent = words);

function show() {
  rows.forEach((row, index) => {
    row.classList.toggle("here", index === position);
    const one = settled.get(row.dataset.key);
    row.classList.toggle("settled", Boolean(one));
    const kept = one?.choice === "other" ? one.marks[0][2] : "";
    row.querySelector("[data-verdict]").textContent = one ? `${WORDS[one.choice]}${kept ? `: ${kept}` : ""} · ${one.reason}` : "open";
    for (const side of row.querySelectorAll(".column")) side.classList.toggle("chosen", CHOICES[side.dataset.side] === one?.choice);
  });
  document.getElementById("left").textContent = `${rows.filter((row) => !settled.has(row.dataset.key)).length} left`;
}

function go(step) {
  position = Math.max(0, Math.min(position + step, rows.length - 1));
  show();
  rows[position].focus({ preventScroll: true });
  rows[position].scrollIntoView({ block: "nearest" });
}

function askReason() {
  const dialog = document.getElementById("reason");
  const rows = data.reasons.map((reason) => ({ key: LETTERS[reason], words: reason }));
  return ask(dialog, (finish) => showRows(dialog, document.getElementById("reasons"), rows, ({ words }) => finish(words)));
}

async function settle(choice, marks = []) {
  const row = rows[position];
  const reason = await askReason();
  if (!reason) return;
  const settlement = { id: newId(), difference: row.dataset.key, choice, reason, marks };
  settled.set(row.dataset.key, settlement);
  outbox.add(settlement);
  const open = rows.findIndex((one) => !settled.has(one.dataset.key));
  if (open >= 0) position = open;
  go(0);
  say(open < 0 ? "All settled; Enter closes the note." : `${WORDS[choice]}, ${reason}.`);
}

async function settleOther() {
  const { start, end } = rows[position].dataset;
  const label = await chooseLabel(data.labels, "Mark the whole stretch as");
  if (label) await settle("other", [[Number(start), Number(end), label, true, 1, "adjudicator"]]);
}

async function close() {
  if (data.done) return location.assign("/");
  const open = rows.findIndex((row) => !settled.has(row.dataset.key));
  if (open >= 0) {
    position = open;
    go(0);
    return say("This difference is open.");
  }
  leaving = true;
  try {
    await outbox.empty();
    const { next } = await post(`/review/cases/${data.number}/close`, {});
    return location.assign(next ? `/cases/${next}` : "/");
  } catch (error) {
    leaving = false;
    return error.code === "idle" ? lock() : say(error.message);
  }
}

document.addEventListener("keydown", (event) => {
  if (leaving || isTaken(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = { n: () => go(1), p: () => go(-1), 3: settleOther, Enter: close, q: () => location.assign("/") };
  const action = event.key in CHOICES ? () => settle(CHOICES[event.key]) : actions[event.key];
  if (!action) return;
  event.preventDefault();
  if (event.key === "Enter" && event.repeat) return;
  if (data.done && event.key !== "Enter") say("This note is settled.");
  else action();
});

releaseFocus();
addEventListener("beforeunload", (event) => outbox.waiting.length && event.preventDefault());
go(Math.max(0, rows.findIndex((row) => !settled.has(row.dataset.key))));
document.body.dataset.ready = "case";
