// The decision tape: everything that was decided, newest first, up to the time cursor.
import { read } from "/assets/client.js";
import { remember } from "/assets/address.js";
import { cursor } from "/assets/charts.js";
import { clock, h, tapeEntry } from "/assets/elements.js";

export function tapePage(app, parameters) {
  const list = h("div", { class: "tape" });
  const note = h("span", { class: "sub" });
  const filter = () => { remember({ kind: kind.value, trips: trips.checked, function: search.value, id: null }); refresh(); };
  const kind = h("select", { "aria-label": "kind", onchange: filter }, ...[["", "everything"], ["call", "calls"], ["tick", "ticks"], ["order", "orders"], ["policy", "policies"], ["manager", "manager"]].map(([value, label]) => h("option", { value, selected: parameters.get("kind") === value }, label)));
  const trips = h("input", { type: "checkbox", id: "trips", checked: parameters.get("trips") === "true", onchange: filter });
  const search = h("input", { type: "search", placeholder: "Function ( / )", "aria-label": "only this function", value: parameters.get("function") || "", list: "names", onchange: filter });
  const names = h("datalist", { id: "names" });
  const marked = Number(parameters.get("id") || 0);
  let waiting;

  async function refresh() {
    const query = new URLSearchParams({ limit: 150 });
    if (kind.value) query.set("kind", kind.value);
    if (trips.checked) query.set("trips", "true");
    if (search.value) query.set("function", search.value);
    if (cursor.at !== null) query.set("until", cursor.at + 0.06);
    let answer;
    try {
      answer = await read(`/decisions?${query}`);
    } catch (error) {
      list.replaceChildren(h("p", { class: "empty" }, error.message));
      return;
    }
    note.textContent = cursor.at === null ? `${answer.last} so far, following` : `up to ${clock(cursor.at)}`;
    const known = new Map([...list.children].map((element) => [element.id, element]));
    list.replaceChildren(...(answer.entries.length ? answer.entries.map((entry) => known.get(`d${entry.id}`) || tapeEntry(entry, entry.id === marked)) : [h("p", { class: "empty" }, "Nothing here. A call that simply gets its user's size leaves no entry.")]));
  }
  read("/functions?limit=500&sort=calls").then(({ functions }) => names.replaceChildren(...functions.map((row) => h("option", { value: row.name }))));
  return {
    title: "Decision tape", refresh,
    moved() { clearTimeout(waiting); waiting = setTimeout(refresh, 120); },
    elements: [
      h("div", { class: "head" }, h("h1", {}, "Decision tape"), note, h("div", { class: "push" }, search, names, kind, h("label", { class: "row", for: "trips" }, trips, "safeguard trips only"))),
      h("section", { class: "card" }, h("header", {}, h("span", { class: "note" }, "seen → decided → amended → done → outcome. Move the time cursor below to go back; a time is a link to its moment.")), list),
    ],
  };
}
