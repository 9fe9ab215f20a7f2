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
let leaving = false; // for another page: until it is there, keys are for nothing
let asked = false; // to close this note; true until the answer is known

for (const mark of document.querySelectorAll("mark.m")) mark.classList.add(`c-${(categories.get(mark.dataset.label) ?? "OTHER").toLowerCase()}`);

const outbox = new Outbox({
  name: `settlements-${data.number}`,
  send: async ([settlement]) => {
    await post(`/review/cases/${data.number}/settle`, { settlement });
    return { acknowledged: [settlement.id], head: 0 };
  },
  onState: (state) => showState(document.getElementById("saved"), state),
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

// Why nothing can be settled; nothing if it can.
function closed() {
  if (data.done) return "This note is settled.";
  return asked ? "The station did not answer whether this note is settled; press Enter again." : "";
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

// Go elsewhere when everything is stored; until then keys are for nothing.
async function leave(go) {
  leaving = true;
  try {
    await outbox.empty();
    return await go();
  } catch (error) {
    leaving = false;
    return error.code === "idle" ? lock() : say(error.message);
  }
}

// Close the note. Without an answer it may be closed or not: nothing is settled until the answer is known.
async function finish() {
  asked = true;
  try {
    Object.assign(data, await post(`/review/cases/${data.number}/close`, {}), { done: true });
  } catch (error) {
    asked = !error.status;
    throw error;
  }
}

async function close() {
  if (data.done) return leave(() => location.assign("/"));
  const open = rows.findIndex((row) => !settled.has(row.dataset.key));
  if (open >= 0) {
    position = open;
    go(0);
    return say("This difference is open.");
  }
  return leave(async () => {
    await finish();
    location.assign(data.next ? `/cases/${data.next}` : "/");
  });
}

document.addEventListener("keydown", (event) => {
  if (isTaken(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { n: () => go(1), p: () => go(-1), Enter: close, q: () => leave(() => location.assign("/")) };
  const verdict = event.key in CHOICES ? () => settle(CHOICES[event.key]) : event.key === "3" ? settleOther : null;
  const action = moves[event.key] ?? (verdict && closed() ? () => say(closed()) : verdict);
  if (!action) return;
  event.preventDefault();
  if (leaving) say("The next page is on its way; this key did nothing.");
  else if (event.key !== "Enter" || !event.repeat) action();
});

releaseFocus();
addEventListener("beforeunload", (event) => outbox.waiting.length && event.preventDefault());
addEventListener("online", () => outbox.flush());
addEventListener("pageshow", (event) => event.persisted && location.reload()); // kept by the browser: out of date
go(Math.max(0, rows.findIndex((row) => !settled.has(row.dataset.key))));
document.body.dataset.ready = "case";
