// The address is the state of the view: page, filters and the moment of the time cursor, so that every view is a link.
export function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { path, parameters: new URLSearchParams(query || "") };
}

// Notes a change of the view in the address without leaving an entry in the history; null or "" takes a parameter out.
export function remember(changes) {
  const { path, parameters } = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "" || value === false) parameters.delete(name);
    else parameters.set(name, value);
  }
  const query = parameters.toString();
  history.replaceState(null, "", `#/${path}${query ? `?${query}` : ""}`);
}
