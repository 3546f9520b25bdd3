// Talks to the API. The token arrives in the address (#token=...), is kept for this tab and taken out of the address.
const KEY = "windfall-token";

export function takeToken() {
  const found = location.hash.match(/[#&?]token=([0-9a-f]+)/);
  if (found) {
    sessionStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", location.pathname + (location.hash.replace(/[#&?]token=[0-9a-f]+/, "") || "#/cluster"));
  }
}
export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

export async function read(path) {
  const answer = await fetch("/api/v1" + path, { headers: { Accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok && answer.status !== 503) throw new Error(body.error || `${answer.status}`);
  return body;
}

export async function change(method, path, body) {
  let token = sessionStorage.getItem(KEY);
  if (!token) {
    token = (prompt("Changes need the token that `windfall up` prints:") || "").trim();
    if (!token) throw new Error("no token given, nothing was changed");
    sessionStorage.setItem(KEY, token);
  }
  const answer = await fetch("/api/v1" + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const result = await answer.json().catch(() => ({}));
  if (answer.status === 401) sessionStorage.removeItem(KEY);
  if (!answer.ok) throw new Error(result.error || `${answer.status}`);
  return result;
}

// One stream for the whole page. A browser reconnects by itself; until then `onState` hears of it.
export function follow(onEvent, onState) {
  const stream = new EventSource("/api/v1/events");
  stream.addEventListener("state", (event) => onEvent(JSON.parse(event.data)));
  stream.onopen = () => onState(true);
  stream.onerror = () => onState(false);
}
