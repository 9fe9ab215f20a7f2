// Code points of the server ↔ UTF-16 units of the browser. Converted here, nowhere else.

export class Units {
  constructor(text) {
    const pairs = [];
    for (let i = 0; i < text.length; i += 1) {
      const unit = text.charCodeAt(i);
      if (unit >= 0xd800 && unit < 0xdc00) pairs.push(i); // the first half of a pair
    }
    this.pairs = pairs;
  }

  // The unit at which a code point begins.
  fromPoint(point) {
    let low = 0;
    let high = this.pairs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pairs[middle] - middle < point) low = middle + 1;
      else high = middle;
    }
    return point + low;
  }

  // The code point that begins at a unit; a unit inside a pair counts as the end of it.
  toPoint(unit) {
    let low = 0;
    let high = this.pairs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pairs[middle] < unit) low = middle + 1;
      else high = middle;
    }
    const inside = low > 0 && this.pairs[low - 1] === unit - 1;
    return unit + (inside ? 1 : 0) - low;
  }

  markFromServer([start, end, label, confirmed = true, score = 1, source = ""]) {
    return { start: this.fromPoint(start), end: this.fromPoint(end), label, confirmed, score, source };
  }

  markToServer(mark) {
    return [this.toPoint(mark.start), this.toPoint(mark.end), mark.label, mark.confirmed, mark.score, mark.source];
  }

  editFromServer(edit) {
    const convert = (marks) => marks.map((mark) => this.markFromServer(mark));
    return { id: edit.id, kind: edit.kind, removed: convert(edit.removed), added: convert(edit.added) };
  }

  editToServer(edit) {
    const convert = (marks) => marks.map((mark) => this.markToServer(mark));
    return { id: edit.id, kind: edit.kind, removed: convert(edit.removed), added: convert(edit.added) };
  }
}
