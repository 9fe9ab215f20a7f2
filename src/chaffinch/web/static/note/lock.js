// The lock: after some idle minutes the text is hidden and the password asked, whether or not the server was asked.
import { unlock } from "./server.js";

export function watchIdle(onUnlock) {
  const dialog = document.getElementById("lock");
  const form = document.getElementById("unlock");
  const message = document.getElementById("unlock-message");
  const limit = Number(document.body.dataset.idle) * 60_000;
  let last = Date.now();
  const note = () => {
    if (!dialog.open) last = Date.now();
  };
  for (const name of ["keydown", "pointerdown", "wheel"]) addEventListener(name, note, { passive: true, capture: true });
  const lock = () => {
    document.body.classList.add("locked");
    if (!dialog.open) dialog.showModal();
  };
  setInterval(() => Date.now() - last > limit && lock(), 1000);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => document.body.classList.contains("locked") && lock()); // a second Escape closes it
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await unlock(new FormData(form).get("password"));
    } catch (error) {
      if (error.code === "no_session") return location.assign("/login");
      message.textContent = error.message;
      message.hidden = false;
      return undefined;
    } finally {
      form.reset();
    }
    message.hidden = true;
    last = Date.now();
    document.body.classList.remove("locked");
    dialog.close();
    return onUnlock();
  });
  return lock;
}
