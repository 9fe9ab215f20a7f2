// Enter goes on where the reader left.
document.addEventListener("keydown", (event) => {
  const inForm = event.target instanceof HTMLElement && event.target.closest("a, button, input, select, dialog");
  const resume = document.getElementById("resume");
  if (event.key === "Enter" && !inForm && resume) location.assign(resume.href);
});
