// Edits on their way to the server: sent in the background in order, kept until they are acknowledged, sent again after
// a failure. They survive a reload of the window. They hold offsets and types, no word of the note.

const FIRST_WAIT = 300; // milliseconds after a failure
const LONGEST_WAIT = 8000;
const MOST = 200; // edits in one message
const LOCKED = "locked"; // stopped until the password is given

export class Outbox {
  constructor({ name, send, onState, onLock, onMarks = () => {} }) {
    Object.assign(this, { name, send, onState, onLock, onMarks });
    this.waiting = JSON.parse(sessionStorage.getItem(name) ?? "[]");
    this.head = 0;
    this.sending = null;
    this.wait = FIRST_WAIT;
    this.stopped = "";
    this.settled = [];
  }

  add(edit) {
    this.waiting.push(edit);
    this.#keep();
    this.#tell();
    queueMicrotask(() => this.flush());
  }

  // Resolves when everything is acknowledged; rejects if the server refuses some of it.
  empty() {
    if (!this.waiting.length) return Promise.resolve();
    if (this.stopped && this.stopped !== LOCKED) return Promise.reject(new Error(`not saved: ${this.stopped}`));
    this.flush();
    return new Promise((resolve, reject) => this.settled.push({ resolve, reject }));
  }

  async flush() {
    if (this.sending || !this.waiting.length || this.stopped) return;
    clearTimeout(this.timer);
    const part = this.waiting.slice(0, MOST);
    this.sending = part;
    let answer = null;
    try {
      answer = await this.send(part, this.head);
      this.wait = FIRST_WAIT;
    } catch (error) {
      this.sending = null;
      this.#fail(error);
      return;
    }
    const known = new Set(answer.acknowledged);
    this.waiting = this.waiting.filter((edit) => !known.has(edit.id));
    this.sending = null;
    this.head = answer.head;
    this.#keep();
    if (answer.marks) this.onMarks(answer.marks);
    this.#tell();
    if (this.waiting.length) this.flush();
    else this.settled.splice(0).forEach(({ resolve }) => resolve());
  }

  resume() {
    this.stopped = "";
    this.flush();
  }

  #fail(error) {
    if (error.code === "idle" || error.code === "no_session") {
      this.stopped = LOCKED;
      this.onLock(error.code);
    } else if (error.status && error.status < 500 && error.status !== 429) {
      this.stopped = error.message; // the server refused it: sending it again would change nothing
      this.settled.splice(0).forEach(({ reject }) => reject(error));
    } else {
      this.timer = setTimeout(() => this.flush(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    }
    this.#tell(error);
  }

  #keep() {
    if (this.waiting.length) sessionStorage.setItem(this.name, JSON.stringify(this.waiting));
    else sessionStorage.removeItem(this.name);
  }

  #tell(error = null) {
    this.onState({ waiting: this.waiting.length, stopped: this.stopped, failed: error !== null });
  }
}

// Show the state of an outbox.
export function showState(element, { waiting, stopped, failed }) {
  const state = stopped ? "stopped" : failed ? "offline" : waiting ? "saving" : "saved";
  const words = {
    stopped: stopped === LOCKED ? "locked" : `not saved: ${stopped}`,
    offline: `no connection, ${waiting} waiting`,
    saving: `saving ${waiting}`,
    saved: "saved",
  };
  element.dataset.state = state;
  element.textContent = words[state];
}
