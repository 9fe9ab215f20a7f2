// The page of a note: what is open, what the cursor is on, and what the keys do.
import { Cursor } from "./cursor.js";
import { chooseLabel } from "./chooser.js";
import { ask, showRows } from "./dialog.js";
import { bindKeys } from "./keys.js";
import { watchIdle } from "./lock.js";
import { findIdentical, Marks, newId } from "./marks.js";
import { Outbox, showState } from "./outbox.js";
import { Paper } from "./paper.js";
import { get, post } from "./server.js";
import { Side } from "./side.js";
import { Units } from "./units.js";

const AWAY = 60; // seconds without a key after which the reader does not count as reading
const PAUSE = 300; // milliseconds before the next note is made ready, or the note as released is asked for again

class Station {
  constructor() {
    this.paper = new Paper(document.getElementById("text"));
    this.side = new Side();
    this.leaving = false; // for another page: until it is there, keys are for nothing
    this.fetches = 0;
    this.previews = 0;
    this.lastKey = performance.now();
    this.seconds = 0;
    this.lock = watchIdle(() => this.outbox.resume());
    this.show(JSON.parse(document.getElementById("task").textContent));
    bindKeys(this);
    addEventListener("beforeunload", (event) => this.outbox.waiting.length && event.preventDefault());
    addEventListener("online", () => this.outbox.flush());
    addEventListener("popstate", () => location.reload());
    addEventListener("pageshow", (event) => event.persisted && location.reload()); // kept by the browser: out of date
    performance.mark("ready");
    document.body.dataset.ready = String(this.task.task);
  }

  show(task) {
    this.task = task;
    this.units = new Units(task.text);
    this.text = task.text;
    this.categories = new Map(task.labels.map(({ name, category }) => [name, category]));
    this.marks = new Marks(task.marks.map((mark) => this.units.markFromServer(mark)));
    this.lastLabel = task.labels[0].name;
    this.applied = Promise.resolve();
    this.mode = "original";
    this.paper.element.className = "text original";
    this.paper.show(this.text, this.marks, this.categories);
    this.cursor = new Cursor(this.text, this.#tokens(task.tokens));
    this.outbox = new Outbox({
      name: `edits-${task.task}`,
      send: (edits, head) => this.#sendSeconds(`/review/tasks/${task.task}/edits`, { edits, head }),
      onState: (state) => showState(document.getElementById("saved"), state),
      onMarks: (marks) => this.#takeMarks(marks),
      onLock: (code) => (code === "idle" ? this.lock() : location.assign("/login")),
    });
    this.outbox.head = task.head;
    this.#applyWaiting(); // of before a reload
    if (this.outbox.waiting.length) this.paper.redrawAll();
    this.outbox.flush();
    document.getElementById("number").textContent = task.number;
    document.title = `Note ${task.number} · Chaffinch`;
    this.side.show(task);
    this.say(task.suggested ? "" : "Suggestions are hidden for this note: mark every identifier yourself.");
    const first = this.marks.list.find((mark) => !mark.confirmed);
    this.goTo(first ? first.start : 0, { quiet: true });
    this.#prefetch();
  }

  #tokens(gaps) {
    const starts = new Int32Array(gaps.length / 2);
    const ends = new Int32Array(gaps.length / 2);
    let place = 0;
    for (let i = 0; i < starts.length; i += 1) {
      starts[i] = this.units.fromPoint((place += gaps[2 * i]));
      ends[i] = this.units.fromPoint((place += gaps[2 * i + 1]));
    }
    return { starts, ends };
  }

  // Make the next note ready, as it is when all edits of this one are stored.
  #prefetch() {
    const { outbox, task: { next } } = this;
    const turn = (this.fetches += 1);
    this.prefetched = null;
    clearTimeout(this.fetching);
    if (!next) return;
    const keep = (task) => turn === this.fetches && (this.prefetched = task); // an earlier answer may be out of date
    this.fetching = setTimeout(() => outbox.empty().then(() => get(`/review/tasks/${next}`)).then(keep, () => {}), PAUSE);
  }

  // Send a message with the time of reading since the last one; what does not arrive counts with the next.
  async #sendSeconds(path, content) {
    const seconds = Math.round(this.seconds * 10) / 10;
    this.seconds -= seconds;
    try {
      return await post(path, { ...content, seconds: Math.max(0, seconds) });
    } catch (error) {
      this.seconds += seconds;
      throw error;
    }
  }

  noteKey() {
    const now = performance.now();
    this.seconds += Math.min((now - this.lastKey) / 1000, AWAY);
    this.lastKey = now;
  }

  #applyWaiting() {
    for (const edit of this.outbox.waiting) this.marks.apply(this.units.editFromServer(edit));
  }

  // Show the stored marks, which another window changed, and over them what is not stored yet.
  #takeMarks(marks) {
    this.marks.replace(marks.map((mark) => this.units.markFromServer(mark)));
    this.#applyWaiting();
    this.paper.redrawAll();
    this.point();
    this.say("Another window changed this note; its marks are shown.");
  }

  // Why the note cannot be changed; nothing if it can.
  get closed() {
    const { locked, done, asked } = this.task;
    if (locked) return "This note is closed.";
    if (done) return "This note is done; press r to open it again.";
    return asked ? "The station did not answer whether this note is done; press Enter again." : "";
  }

  // What the cursor is on: a mark, or the selected or pointed-at words.
  get mark() {
    return this.cursor.anchor === null ? this.marks.at(this.cursor.start) : null;
  }

  get stretch() {
    const mark = this.mark;
    return mark ? [mark.start, mark.end] : this.cursor.stretch;
  }

  goTo(place, { quiet = false } = {}) {
    this.cursor.moveTo(place);
    this.point({ quiet });
  }

  point({ quiet = false, reveal = true } = {}) {
    const mark = this.mark;
    const [start, end] = mark ? [mark.start, mark.end] : this.cursor.pointed;
    const range = this.paper.point(start, end, this.cursor.anchor === null ? null : this.cursor.stretch);
    if (reveal) this.paper.reveal(range);
    this.side.point(this, mark);
    if (!quiet) this.say(this.describe(mark, start, end));
  }

  describe(mark, start, end) {
    const [a, b] = this.cursor.anchor === null ? [start, end] : this.cursor.stretch;
    const words = this.text.slice(a, b);
    if (!mark) return this.cursor.anchor === null ? words : `selected: ${words}`;
    return `${words}: ${mark.label}${mark.confirmed ? "" : ", suggested"}`;
  }

  say(words) {
    document.getElementById("live").textContent = words.replace(/\s+/g, " ").slice(0, 300);
  }

  nextMark(step, wanted = () => true) {
    const here = this.mark;
    const place = here ? (step > 0 ? here.end : here.start) : this.cursor.start;
    const marks = this.marks.list.filter(wanted);
    const found = step > 0 ? marks.find((mark) => mark.start >= place && mark !== here) : marks.findLast((mark) => mark.end <= place);
    if (found) this.goTo(found.start);
    else this.say(step > 0 ? "No further span." : "No earlier span.");
    return Boolean(found);
  }

  // Make an edit, draw it, and save it in the background.
  edit(kind, removed, added, { move = null } = {}) {
    if (this.closed) return this.say(this.closed);
    this.#commit(this.marks.edit(kind, removed, added));
    return move === null ? this.point() : this.goTo(move);
  }

  #commit(edit) {
    if (!edit) return false;
    for (const mark of [...edit.removed, ...edit.added]) this.paper.redraw(mark.start, mark.end);
    this.outbox.add(this.units.editToServer(edit));
    this.side.counts(this);
    if (this.#isOfPatient(this.task.next)) this.#prefetch(); // the names beside it come from here, too
    if (this.mode !== "original") {
      clearTimeout(this.previewing);
      this.previewing = setTimeout(() => this.mode !== "original" && this.#showReleased(), PAUSE);
    }
    return true;
  }

  #isOfPatient(number) {
    return this.task.others.some(({ task }) => task && task === number);
  }

  undo() {
    if (this.closed) return this.say(this.closed);
    return this.#stepBack(this.marks.undo(), "Nothing to undo.");
  }

  redo() {
    if (this.closed) return this.say(this.closed);
    return this.#stepBack(this.marks.redo(), "Nothing to redo.");
  }

  #stepBack(edit, otherwise) {
    if (!this.#commit(edit)) return this.say(otherwise);
    const mark = edit.added[0] ?? edit.removed[0];
    return this.goTo(mark.start);
  }

  accept() {
    const mark = this.mark;
    if (!mark) return this.say("No span here.");
    if (!mark.confirmed) this.edit("accept", [mark], [{ ...mark, confirmed: true }]);
    return this.nextMark(1, (one) => !one.confirmed) || this.say("No further suggestion below.");
  }

  acceptInSight() {
    const open = this.marks.open.filter((mark) => this.paper.inSight(mark));
    if (!open.length) return this.say("No suggestion in sight.");
    this.edit("accept", open, open.map((mark) => ({ ...mark, confirmed: true })));
    return this.say(`${open.length} suggestions in sight accepted.`);
  }

  remove() {
    const mark = this.mark;
    if (!mark) return this.say("No span here.");
    this.edit("remove", [mark], []);
    return this.nextMark(1, (one) => !one.confirmed);
  }

  removeIdentical() {
    const mark = this.mark;
    if (this.closed || !mark) return this.say(this.closed || "No span here.");
    const words = this.text.slice(mark.start, mark.end);
    const marks = this.marks.list.filter((one) => one.label === mark.label && this.text.slice(one.start, one.end) === words);
    const row = { key: "1", words: `${marks.length} in this note`, do: () => this.edit("remove", marks, []) };
    return this.ask("Remove in this note", [row]);
  }

  // Give a stretch a type: a mark that it touches is replaced.
  setLabel(label, [start, end] = this.stretch) {
    if (end <= start) return this.say("No word here.");
    this.lastLabel = label;
    const added = { start, end, label, confirmed: true, score: 1, source: "reader" };
    const isMarked = this.marks.touching(start, end).some((mark) => mark.start === start && mark.end === end);
    return this.edit(isMarked ? "type" : "mark", [], [added], { move: start });
  }

  // The type is for what was asked, whatever another window marks meanwhile.
  async chooseLabel() {
    const [start, end] = this.stretch;
    if (this.closed) return this.say(this.closed);
    const label = await chooseLabel(this.task.labels, `Type of “${this.text.slice(start, Math.min(end, start + 40))}”`);
    return label && this.setLabel(label, [start, end]);
  }

  // Move an edge of the span by a word or a character: outwards with a positive step.
  resize(edge, step, byCharacter) {
    const mark = this.mark;
    if (!mark) return this.say("No span here.");
    const direction = edge === "start" ? -step : step;
    const place = this.cursor.edge(mark, edge, direction, byCharacter);
    const moved = { ...mark, confirmed: true, [edge]: place };
    if (place === null || moved.start >= moved.end) return this.say("The span cannot get smaller.");
    return this.edit("resize", [mark], [moved], { move: moved.start });
  }

  // The same words elsewhere: the counts come first. Keys belong to the question from the first moment on.
  async everywhere() {
    const { task, outbox } = this;
    const [start, end] = this.stretch;
    if (this.closed || end <= start) return this.say(this.closed || "No word here.");
    const label = this.mark?.label ?? this.lastLabel;
    const words = this.text.slice(start, end);
    const own = this.mark ? [] : [[start, end]];
    const isElsewhere = ([a, b]) => own.every(([from, to]) => b <= from || a >= to);
    const places = () => [...own, ...findIdentical(this.text, words, this.marks).filter(isElsewhere)];
    const markAt = ([a, b]) => ({ start: a, end: b, label, confirmed: true, score: 1, source: "reader" });
    const inNote = () => {
      const added = places().map(markAt); // another window may have marked some of them meanwhile
      if (added.length) this.edit("apply", [], added, { move: start });
      return added.length;
    };
    const beyond = (scope) => () => {
      const here = inNote();
      const message = { id: newId(), mark: this.units.markToServer(markAt([start, end])), scope };
      this.applied = Promise.all([this.applied, this.#applyBeyond(task, outbox, message, here)]);
    };
    const rows = [
      { key: "1", words: `${places().length} more in this note`, do: inNote },
      { key: "2", words: "and of this patient: counting …", ready: false, do: beyond("patient") },
      { key: "3", words: "and all your notes: counting …", ready: false, do: beyond("project") },
    ];
    const show = this.ask(`“${words.slice(0, 60)}” as ${label}`, rows);
    const rest = (count) => `${count.places} in ${count.notes} other notes${count.done ? ` (${count.done} in notes you closed stay as they are)` : ""}`;
    try {
      await outbox.empty();
      const stretch = { start: this.units.toPoint(start), end: this.units.toPoint(end) };
      const counts = await post(`/review/tasks/${task.task}/identical`, stretch);
      Object.assign(rows[1], { words: `and of this patient: ${rest(counts.patient)}`, ready: true });
      Object.assign(rows[2], { words: `and all your notes: ${rest(counts.project)}`, ready: true });
    } catch (error) {
      for (const row of rows.slice(1)) row.words = `other notes cannot be counted: ${error.message}`;
    }
    return show();
  }

  async #applyBeyond(task, outbox, message, here) {
    try {
      await outbox.empty();
      const done = await post(`/review/tasks/${task.task}/apply`, message);
      this.say(`Marked ${here} here; suggested ${done.places} in ${done.notes} other notes.`);
    } catch (error) {
      this.say(error.message);
    }
    if (this.task === task) this.#prefetch(); // the next note may have a suggestion more
  }

  // Ask a question with rows to choose from; returns a function that shows the words of the rows again.
  ask(title, rows) {
    const dialog = document.getElementById("everywhere");
    document.getElementById("everywhere-title").textContent = title;
    let show = () => {};
    const chosen = ask(dialog, (finish) => {
      show = showRows(dialog, document.getElementById("scopes"), rows, finish);
    });
    chosen.then((row) => row?.do());
    return show;
  }

  // Original, as released, both.
  async changeView() {
    const modes = ["original", "released", "both"];
    this.mode = modes[(modes.indexOf(this.mode) + 1) % modes.length];
    if (this.mode !== "released") return this.#showMode();
    this.say("Preparing the note as it would be released …");
    return this.#showReleased();
  }

  #showMode() {
    this.paper.element.className = `text ${this.mode}`;
    this.point({ quiet: true });
    this.say({ original: "Original text.", released: "As released.", both: "Original and as released." }[this.mode]);
  }

  // Show what a release would write, unless another note is open or it is asked for again when the answer comes.
  async #showReleased() {
    const { task, outbox } = this;
    const turn = (this.previews += 1);
    const isLate = () => this.task !== task || turn !== this.previews;
    try {
      await outbox.empty();
      const { places } = await post(`/review/tasks/${task.task}/preview`, {});
      if (isLate()) return;
      const convert = ([start, end, words]) => [`${this.units.fromPoint(start)}-${this.units.fromPoint(end)}`, words];
      this.paper.places = new Map(places.map(convert));
    } catch (error) {
      if (isLate()) return;
      this.mode = "original";
      this.#showMode();
      this.say(error.message);
      return;
    }
    this.paper.redrawAll();
    this.#showMode();
  }

  async done() {
    const { task } = this;
    const open = this.marks.open;
    if (open.length && !task.done) {
      this.goTo(open[0].start);
      return this.say(`${open.length} suggestions are open; accept or remove them.`);
    }
    return this.#leave(async () => {
      if (!task.done) await this.#finish(task);
      await this.next(task.next, task.after);
    });
  }

  // Go elsewhere when everything is stored; until then keys are for nothing.
  async #leave(go) {
    this.leaving = true;
    delete document.body.dataset.ready;
    try {
      await this.applied;
      await this.outbox.empty();
      return await go();
    } catch (error) {
      this.#arrive();
      return error.code === "idle" ? this.lock() : this.say(error.message);
    }
  }

  backToQueue() {
    return this.#leave(() => location.assign("/"));
  }

  // Close the note. Without an answer it may be closed or not: it is not changed until the answer is known.
  async #finish(task) {
    task.asked = true;
    try {
      Object.assign(task, await this.#sendSeconds(`/review/tasks/${task.task}/done`, {}), { done: true });
      this.side.counts(this);
    } catch (error) {
      task.asked = !error.status;
      throw error;
    }
  }

  async next(number, after) {
    if (!number) return location.assign("/");
    performance.mark("next");
    const ready = this.prefetched?.task === number ? this.prefetched : await get(`/review/tasks/${number}`);
    if (after !== undefined) { // what was made ready earlier does not know that this note is done
      ready.next = after;
      for (const other of ready.others) if (other.task === this.task.task) other.done = true;
    }
    scrollTo({ top: 0, behavior: "instant" });
    history.pushState(null, "", `/notes/${number}`);
    this.show(ready);
    performance.measure("next-note", "next");
    return this.#arrive();
  }

  #arrive() {
    this.leaving = false;
    document.body.dataset.ready = String(this.task.task);
  }

  async reopen() {
    const { task } = this;
    if (!this.closed || task.locked) return this.say(this.closed || "This note is open.");
    try {
      await post(`/review/tasks/${task.task}/reopen`, {});
    } catch (error) {
      return this.say(error.message);
    }
    Object.assign(task, { done: false, asked: false });
    if (this.task !== task) return undefined;
    this.outbox.resume(); // the station refused edits of a note that was done
    this.side.show(task);
    this.side.counts(this);
    return this.say("Open again.");
  }

  open(name) {
    document.getElementById(name).showModal();
  }
}

window.station = new Station();
