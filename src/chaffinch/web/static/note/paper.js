// The note on the page: blocks of lines, each drawn again only when a mark in it changes.
import { lowerBound } from "./marks.js";

const BLOCK = 1500; // characters, about what a screen shows: an edit draws this much

export class Paper {
  constructor(element) {
    this.element = element;
    this.places = new Map();
    this.cursor = new Highlight();
    this.selection = new Highlight();
    CSS.highlights.set("selected", this.selection);
    CSS.highlights.set("cursor", this.cursor);
  }

  show(text, marks, categories) {
    this.text = text;
    this.marks = marks;
    this.categories = categories;
    this.places = new Map();
    this.starts = [0];
    for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) {
      if (i + 1 - this.starts.at(-1) >= BLOCK && i + 1 < text.length) this.starts.push(i + 1);
    }
    this.blocks = this.starts.map(() => ({ element: document.createElement("div"), pieces: [] }));
    this.blocks.forEach(({ element }, index) => {
      element.className = "block";
      this.draw(index);
    });
    this.element.replaceChildren(...this.blocks.map(({ element }) => element));
    this.focused = [];
  }

  blockOf(place) {
    return Math.max(0, lowerBound(this.starts.length, place + 1, (i) => this.starts[i]) - 1);
  }

  endOf(index) {
    return this.starts[index + 1] ?? this.text.length;
  }

  // Draw the blocks that a stretch touches.
  redraw(start, end) {
    for (let i = this.blockOf(start); i <= this.blockOf(Math.max(start, end - 1)); i += 1) this.draw(i);
  }

  redrawAll() {
    this.blocks.forEach((_, index) => this.draw(index));
  }

  draw(index) {
    const block = this.blocks[index];
    const [begin, end] = [this.starts[index], this.endOf(index)];
    const pieces = [];
    const nodes = [];
    let place = begin;
    const addText = (until) => {
      if (until <= place) return;
      const node = document.createTextNode(this.text.slice(place, until));
      pieces.push({ start: place, node });
      nodes.push(node);
      place = until;
    };
    for (const mark of this.marks.touching(begin, end)) {
      addText(Math.max(mark.start, begin));
      const until = Math.min(mark.end, end);
      const node = document.createTextNode(this.text.slice(place, until));
      pieces.push({ start: place, node, mark });
      nodes.push(this.#element(mark, node, until === mark.end));
      place = until;
    }
    addText(end);
    block.pieces = pieces;
    block.element.replaceChildren(...nodes);
  }

  #element(mark, node, last) {
    const element = document.createElement("mark");
    const category = this.categories.get(mark.label) ?? "OTHER";
    element.className = `m c-${category.toLowerCase()}${mark.confirmed ? "" : " s"}`;
    if (last) element.dataset.label = mark.confirmed ? mark.label : `${mark.label}?`;
    const replacement = this.places.get(`${mark.start}-${mark.end}`);
    if (replacement !== undefined) element.dataset.new = replacement;
    const words = document.createElement("span");
    words.className = "t";
    words.append(node);
    element.append(words);
    return element;
  }

  // The node and offset of a place in the text.
  position(place, { end = false } = {}) {
    const block = this.blocks[this.blockOf(end && place > 0 ? place - 1 : place)];
    const { pieces } = block;
    const target = end ? place : place + 1;
    const index = Math.max(0, Math.min(pieces.length, lowerBound(pieces.length, target, (i) => pieces[i].start)) - 1);
    const piece = pieces[index];
    return piece ? [piece.node, Math.min(place - piece.start, piece.node.length)] : [block.element, 0];
  }

  // The place in the text of a node and offset.
  placeOf(node, offset) {
    for (const block of this.blocks) {
      if (!block.element.contains(node)) continue;
      const piece = block.pieces.find((one) => one.node === node);
      if (piece) return piece.start + offset;
      const inside = block.pieces.find((one) => node.contains(one.node));
      return inside ? inside.start : null;
    }
    return null;
  }

  range(start, end) {
    const range = document.createRange();
    range.setStart(...this.position(start));
    range.setEnd(...this.position(end, { end: true }));
    return range;
  }

  // Show where the reader is: a word or a mark, and the selection around it.
  point(start, end, selected) {
    this.cursor.clear();
    this.selection.clear();
    const range = this.range(start, end);
    this.cursor.add(range);
    if (selected) this.selection.add(this.range(...selected));
    for (const element of this.focused) element.classList.remove("here");
    const elements = new Set();
    for (let node = range.startContainer; node && node !== this.element; node = node.parentNode) {
      if (node.nodeName === "MARK") elements.add(node);
    }
    this.focused = [...elements];
    for (const element of this.focused) element.classList.add("here");
    return range;
  }

  // Bring a stretch into sight, a third from the top if it was out of sight.
  reveal(range) {
    const box = range.getBoundingClientRect();
    const top = 70;
    const bottom = innerHeight - 20 - document.getElementById("live").offsetHeight; // which lies over the note
    if (box.top < top || box.bottom > bottom) scrollBy({ top: box.top - innerHeight / 3, behavior: "instant" });
  }

  inSight(mark) {
    const box = this.range(mark.start, mark.end).getBoundingClientRect();
    return box.bottom > 50 && box.top < innerHeight;
  }
}
