// Choose a type by its first letters.
import { ask } from "./dialog.js";

export function chooseLabel(labels, title) {
  const dialog = document.getElementById("chooser");
  const input = document.getElementById("letters");
  const list = document.getElementById("choices");
  let found = labels;
  let position = 0;
  input.value = "";
  document.getElementById("chooser-title").textContent = title;

  const show = (finish) => {
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
  const answer = ask(dialog, (finish) => {
    input.oninput = () => {
      position = 0;
      show(finish);
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
      show(finish);
    };
    show(finish);
  });
  input.focus();
  return answer;
}
