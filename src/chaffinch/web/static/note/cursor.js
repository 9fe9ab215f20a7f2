// The cursor: a word, moved word by word or, with Alt, character by character; and a selection from an anchor.
import { lowerBound } from "./marks.js";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export class Cursor {
  constructor(text, { starts, ends }) {
    Object.assign(this, { text, starts, ends, token: 0, anchor: null, byCharacter: false, place: 0, column: null });
  }

  get start() {
    return this.byCharacter ? this.place : (this.starts[this.token] ?? 0);
  }

  // What is under the cursor.
  get pointed() {
    if (this.byCharacter) return [this.place, this.charAfter(this.place)];
    return [this.starts[this.token] ?? 0, this.ends[this.token] ?? 0];
  }

  // What a type would mark: the selection, else what is under the cursor.
  get stretch() {
    const [start, end] = this.pointed;
    if (this.anchor === null) return [start, end];
    return [Math.min(start, this.anchor[0]), Math.max(end, this.anchor[1])];
  }

  tokenAt(place) {
    const index = lowerBound(this.ends.length, place + 1, (i) => this.ends[i]);
    return Math.min(index, this.ends.length - 1);
  }

  moveTo(place) {
    this.anchor = null;
    this.token = Math.max(0, this.tokenAt(place));
    this.byCharacter = this.starts[this.token] !== undefined && this.starts[this.token] < place; // inside a word
    this.place = place;
  }

  #select(select) {
    if (select && this.anchor === null) this.anchor = this.pointed;
    if (!select) this.anchor = null;
  }

  moveToken(step, select) {
    this.#select(select);
    if (this.byCharacter) this.token = this.tokenAt(this.place);
    this.byCharacter = false;
    this.token = Math.max(0, Math.min(this.token + step, this.starts.length - 1));
  }

  moveCharacter(step, select) {
    this.#select(select);
    const place = this.start;
    this.byCharacter = true;
    this.place = step > 0 ? Math.min(this.charAfter(place), Math.max(0, this.text.length - 1)) : this.charBefore(place);
  }

  // The edge of a span moved by a word or a character; null if it cannot move there.
  edge(mark, edge, direction, byCharacter) {
    const place = mark[edge];
    if (byCharacter) return direction > 0 ? this.charAfter(place) : this.charBefore(place);
    const edges = edge === "start" ? this.starts : this.ends;
    const index = lowerBound(edges.length, place, (i) => edges[i]);
    const target = direction > 0 ? (edges[index] === place ? index + 1 : index) : index - 1;
    return target < 0 || target >= edges.length ? null : edges[target];
  }

  // A character as readers see it: a letter with its accents, or an emoji of several code points, is one.
  charAfter(place) {
    const part = this.text.slice(place, place + 64);
    for (const { segment } of graphemes.segment(part)) return place + segment.length;
    return this.text.length;
  }

  charBefore(place) {
    const begin = Math.max(0, place - 64);
    let last = begin;
    for (const { index } of graphemes.segment(this.text.slice(begin, place))) last = begin + index;
    return Math.min(last, place);
  }
}
