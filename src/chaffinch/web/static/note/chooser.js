// Choose a type by its first letters.

export function chooseLabel(labels, title) {
  const dialog = document.getElementById("chooser");
  const input = document.getElementById("letters");
  const list = document.getElementById("choices");
  let found = labels;
  let position = 0;
  input.value = "";
  document.getElementById("chooser-title").textContent = title;

  const show = () => {
    const letters = input.value.trim().toLowerCase();
    const rank = ({ name }) => (name.toLowerCase().startsWith(letters) ? 0 : 1);
    found = labels.filter(({ name }) => name.toLowerCase().includes(letters)).sort((a, b) => rank(a) - rank(b));
    position = Math.min(position, Math.max(found.length - 1, 0));
    list.replaceChildren(...found.map((label, index) => {
      const item = document.createElement("li");
      item.id = `choice-${index}`;
      item.role = "option";
      item.ariaSelected = String(index === position);
      item.textContent = label.name;
      item.addEventListener("click", () => finish(label.name));
      return item;
    }));
    input.setAttribute("aria-activedescendant", found.length ? `choice-${position}` : "");
    list.children[position]?.scrollIntoView({ block: "nearest" });
  };
  let resolve = null;
  const finish = (name) => {
    dialog.close();
    resolve?.(name);
    resolve = null;
  };
  input.oninput = () => {
    position = 0;
    show();
  };
  input.onkeydown = (event) => {
    if (event.key === "ArrowDown") position = Math.min(position + 1, found.length - 1);
    else if (event.key === "ArrowUp") position = Math.max(position - 1, 0);
    else if (event.key === "Enter") {
      event.preventDefault();
      if (found[position]) finish(found[position].name);
      return;
    } else return;
    event.preventDefault();
    show();
  };
  dialog.onclose = () => {
    resolve?.(null);
    resolve = null;
  };
  show();
  dialog.showModal();
  input.focus();
  return new Promise((done) => {
    resolve = done;
  });
}
