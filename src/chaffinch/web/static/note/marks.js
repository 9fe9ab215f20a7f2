// Marks of a note and edits that change them; the same rules as on the server. Nothing here touches the page.

export const same = (a, b) => a.start === b.start && a.end === b.end && a.label === b.label;

export function newId() {
  return crypto.randomUUID();
}

// The first index of a sorted array whose value is not below.
export function lowerBound(length, value, at) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Marks {
  constructor(list) {
    this.replace(list);
    this.undone = [];
    this.done = [];
  }

  // Take other marks for these; edits can still be undone.
  replace(list) {
    this.list = [...list].sort((a, b) => a.start - b.start);
  }

  // The index of the first mark that ends after a place.
  indexAfter(place) {
    return lowerBound(this.list.length, place + 1, (i) => this.list[i].end);
  }

  at(place) {
    const mark = this.list[this.indexAfter(place)];
    return mark && mark.start <= place ? mark : null;
  }

  touching(start, end) {
    const found = [];
    for (let i = this.indexAfter(start); i < this.list.length && this.list[i].start < end; i += 1) found.push(this.list[i]);
    return found;
  }

  get open() {
    return this.list.filter((mark) => !mark.confirmed);
  }

  // Apply an edit, which may displace marks.
  apply(edit) {
    const gone = new Set(edit.removed.map((mark) => `${mark.start} ${mark.end} ${mark.label}`));
    if (gone.size) this.list = this.list.filter((mark) => !gone.has(`${mark.start} ${mark.end} ${mark.label}`));
    for (const mark of edit.added) {
      const first = this.indexAfter(mark.start);
      let last = first;
      while (last < this.list.length && this.list[last].start < mark.end) last += 1;
      this.list.splice(first, last - first, mark);
    }
  }

  // Make an edit of this reader: what the added marks displace is part of it, so that it can be undone.
  edit(kind, removed, added) {
    const taken = [...removed];
    for (const mark of added) {
      for (const other of this.touching(mark.start, mark.end)) if (!taken.some((one) => same(one, other))) taken.push(other);
    }
    const edit = { id: newId(), kind, removed: taken, added };
    this.apply(edit);
    this.done.push(edit);
    this.undone = [];
    return edit;
  }

  undo() {
    const edit = this.done.pop();
    if (!edit) return null;
    this.undone.push(edit);
    return this.#inverse("undo", edit.added, edit.removed);
  }

  redo() {
    const edit = this.undone.pop();
    if (!edit) return null;
    this.done.push(edit);
    return this.#inverse("redo", edit.removed, edit.added);
  }

  #inverse(kind, removed, added) {
    const edit = { id: newId(), kind, removed, added };
    this.apply(edit);
    return edit;
  }
}

const WORD = /[\p{L}\p{N}\p{M}_]/u;

// Where words occur in a text, whole words only, where no mark touches them.
export function findIdentical(text, words, marks) {
  const found = [];
  if (!words.trim()) return found;
  for (let i = text.indexOf(words); i >= 0; i = text.indexOf(words, i + words.length)) {
    const end = i + words.length;
    const before = i > 0 ? charBefore(text, i) : "";
    const after = end < text.length ? String.fromCodePoint(text.codePointAt(end)) : "";
    const cut = (WORD.test(words[0]) && WORD.test(before)) || (WORD.test(words.at(-1)) && WORD.test(after));
    if (!cut && marks.touching(i, end).length === 0) found.push([i, end]);
  }
  return found;
}

function charBefore(text, place) {
  const unit = text.charCodeAt(place - 1);
  return unit >= 0xdc00 && unit < 0xe000 ? text.slice(place - 2, place) : text[place - 1];
}
