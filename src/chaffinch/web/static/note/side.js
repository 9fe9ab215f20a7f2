// What is shown beside the note: types with their keys, the span under the cursor, names and other notes of the patient.

import { post } from "./server.js";

const SOURCES = { reader: "marked by you", applied: "the same words as in another note of yours", known: "on the admission list", deny: "on the list of phrases", repeat: "the same words are marked elsewhere" };

function element(name, { text = "", className = "" } = {}, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export class Side {
  show(task) {
    const shown = task.labels.filter(({ key }) => key);
    document.getElementById("legend").replaceChildren(...shown.map(({ name, category, key }) =>
      element("li", {}, element("kbd", { text: key }), " ", element("span", { text: name, className: `swatch c-${category.toLowerCase()}` }))));
    document.getElementById("names").replaceChildren(...(task.names.length
      ? task.names.map(({ words, times }) => element("li", {}, element("span", { text: words }), element("small", { text: ` ${times}×` })))
      : [element("li", { text: "none marked yet", className: "soft" })]));
    document.getElementById("others").replaceChildren(...(task.others.length
      ? task.others.map(({ task: number, note, done }) => {
          const link = element("a", { text: `Note ${note}` });
          link.href = number ? `/notes/${number}` : `/notes/${task.task}/others/${note}`;
          return element("li", {}, link, element("small", { text: !number ? " text only" : done ? " done" : " to read" }));
        })
      : [element("li", { text: "none", className: "soft" })]));
    this.task = task;
  }

  counts(station) {
    const open = station.marks.open.length;
    const state = document.getElementById("state");
    state.textContent = station.task.done ? "done" : open ? `${open} to confirm` : "all confirmed";
  }

  point(station, mark) {
    this.counts(station);
    const here = document.getElementById("here");
    if (!mark) {
      const [start, end] = station.cursor.stretch;
      here.replaceChildren(element("p", { text: station.text.slice(start, Math.min(end, start + 80)), className: "words" }), element("p", { text: "not marked", className: "soft" }));
      return;
    }
    const category = (station.categories.get(mark.label) ?? "OTHER").toLowerCase();
    here.replaceChildren(
      element("p", { text: station.text.slice(mark.start, Math.min(mark.end, mark.start + 80)), className: "words" }),
      element("p", {}, element("span", { text: mark.label, className: `swatch c-${category}` }), element("small", { text: mark.confirmed ? " confirmed" : " suggested" })),
      element("p", { text: this.reason(mark), className: "soft" }),
    );
  }

  reason(mark) {
    const why = SOURCES[mark.source] ?? (mark.source ? `found by ${mark.source}` : "found by the detector");
    return mark.confirmed && mark.source === "reader" ? why : `${why}, score ${mark.score.toFixed(2)}`;
  }

  // What the project's detector says of the span under the cursor; it may take a while, and the cursor be elsewhere then.
  async why(station) {
    const { mark, task } = station;
    if (!mark) return station.say("No span here.");
    station.say(`${mark.label}: ${this.reason(mark)}. Asking the detector …`);
    const stretch = { start: station.units.toPoint(mark.start), end: station.units.toPoint(mark.end) };
    let lines = [];
    try {
      const { headline, voices } = await post(`/review/tasks/${task.task}/why`, stretch);
      lines = [headline, ...voices];
    } catch (error) {
      lines = [error.message];
    }
    if (station.task !== task || station.mark !== mark) return undefined;
    const list = element("ul", { className: "voices" }, ...lines.map((text) => element("li", { text })));
    list.ariaLabel = "Why this span";
    document.getElementById("here").querySelector(".voices")?.remove();
    document.getElementById("here").append(list);
    return station.say(`${mark.label}: ${this.reason(mark)}. ${lines.join("; ")}.`);
  }
}
