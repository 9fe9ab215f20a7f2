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

// A redirect leads to the login: the session has ended. Without a connection there is no answer at all.
async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, redirect: "manual" });
  } catch {
    throw new Refused(0, "offline", "no connection to the station; try again");
  }
  if (response.type === "opaqueredirect") throw new Refused(401, "no_session", "log in first");
  return answerOf(response);
}

function change(path, body, headers = {}) {
  return send(path, { method: "POST", headers: { ...headers, "x-chaffinch-csrf": document.body.dataset.csrf }, body });
}

export function post(path, content) {
  return change(path, JSON.stringify(content), { "content-type": "application/json" });
}

export function get(path) {
  return send(path, {});
}

export function unlock(password) {
  return change("/unlock", new URLSearchParams({ password }));
}
