// Questions in dialogs, and whose a key is while dialogs open and close.

// Open a dialog; resolves with what `finish` is called with, or with null if the dialog is closed otherwise. The answer
// counts at once: the event of closing is queued, and may come when the dialog is open again with another question.
export function ask(dialog, prepare) {
  return new Promise((resolve) => {
    const finish = (answer) => {
      resolve(answer);
      dialog.close();
    };
    dialog.onclose = () => dialog.open || resolve(null);
    prepare(finish);
    dialog.showModal();
  });
}

// Show rows as buttons, each chosen by its key; returns a function that shows their words again. A row that is not
// `ready` cannot be chosen.
export function showRows(dialog, list, rows, choose) {
  const take = (row) => row.ready !== false && choose(row);
  const drawn = rows.map((row) => {
    const button = document.createElement("button");
    const key = document.createElement("kbd");
    const words = document.createElement("span");
    key.textContent = row.key;
    button.append(key, " ", words);
    button.addEventListener("click", () => take(row));
    const item = document.createElement("li");
    item.append(button);
    return { row, button, words, item };
  });
  const show = () => drawn.forEach(({ row, button, words }) => {
    words.textContent = row.words;
    button.ariaDisabled = String(row.ready === false);
  });
  dialog.onkeydown = (event) => {
    const row = rows.find((one) => one.key === event.key);
    if (!row) return;
    event.preventDefault();
    take(row);
  };
  list.replaceChildren(...drawn.map(({ item }) => item));
  show();
  return show;
}

// Whether a key belongs to a dialog, a field or a link, or the page is locked. A dialog that was closed may keep the
// focus for a while.
export function isTaken(event) {
  if (event.defaultPrevented || document.body.classList.contains("locked") || document.querySelector("dialog[open]")) return true;
  const owner = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, dialog, button, a");
  return Boolean(owner && (owner.closest("dialog")?.open ?? true));
}

// Let no closed dialog keep the focus; the event may come when it is open again.
export function releaseFocus() {
  const leave = ({ target }) => !target.open && target.contains(document.activeElement) && document.activeElement.blur();
  document.addEventListener("close", leave, { capture: true });
}
