// Messages to the server.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

async function answerOf(response) {
  if (response.ok) return response.status === 204 ? {} : response.json();
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.code ?? "", body.error ?? `status ${response.status}`);
}

export async function post(path, content) {
  const headers = { "content-type": "application/json", "x-chaffinch-csrf": document.body.dataset.csrf };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(content), redirect: "error" });
  return answerOf(response);
}

export async function get(path) {
  return answerOf(await fetch(path, { redirect: "error" }));
}

export async function unlock(password) {
  const headers = { "x-chaffinch-csrf": document.body.dataset.csrf };
  const response = await fetch("/unlock", { method: "POST", headers, body: new URLSearchParams({ password }), redirect: "error" });
  return answerOf(response);
}
