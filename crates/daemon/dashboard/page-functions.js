// All functions, searched and sorted by the server.
import { change, read } from "/assets/client.js";
import { remember } from "/assets/address.js";
import { spark } from "/assets/charts.js";
import { attempt, budget, cores, count, functionLink, h, millis, number, slo, standing } from "/assets/elements.js";

// Label, the server's name of the order, classes. On a phone the most telling ones stay.
const COLUMNS = [["Function", "name"], ["SLO", "slo"], ["Error budget", null, "hide-small"], ["Calls, 5 min", null, "hide-small"], ["Calls", "calls", "number hide-small"], ["p99", "p99", "number"], ["Objective", null, "number hide-small"], ["Reserved", null, "number hide-small"], ["Held", null, "number hide-small"], ["Saved core-h", "saved", "number hide-small"], ["Trips", "trips", "number hide-small"], ["Managed", null, "hide-small"], ["", null]];

// Rows that are added at a time.
const PAGE = 60;

export function functionsPage(app, parameters) {
  let sort = COLUMNS.some(([, key]) => key && key === parameters.get("sort")) ? parameters.get("sort") : "calls";
  let waiting;
  const search = h("input", { type: "search", placeholder: "Search functions ( / )", "aria-label": "search functions", value: parameters.get("search") || "", oninput: () => { remember({ search: search.value }); clearTimeout(waiting); waiting = setTimeout(refresh, 150); } });
  const found = h("span", { class: "sub" }, "");
  const body = h("tbody");
  const head = h("tr");
  const rows = new Map();
  // As many rows as are looked at: what is further down comes when the page is scrolled to it.
  let limit = PAGE;
  const more = h("button", { class: "show-more", hidden: true, onclick: () => { limit += PAGE; refresh(); } }, "Show more");
  new IntersectionObserver(([seen]) => { if (seen.isIntersecting && !more.hidden) more.click(); }).observe(more);

  function drawHead() {
    head.replaceChildren(...COLUMNS.map(([label, key, cls]) => h("th", { class: cls, scope: "col", "aria-sort": key === sort ? (key === "name" ? "ascending" : "descending") : null }, key ? h("button", { onclick: () => { sort = key; remember({ sort: key === "calls" ? null : key }); drawHead(); refresh(); } }, label, key === sort ? " ↓" : "") : label)));
  }
  function cells(row) {
    const paused = row.standing.word === "paused" || row.standing.word === "pinned";
    const path = `/functions/${encodeURIComponent(row.name)}/hold`;
    const line = spark(row.spark);
    const held = row.core_seconds_reserved ? row.core_seconds_held / row.core_seconds_reserved : null;
    const contents = [
      [functionLink(row.name), h("div", { class: "faint" }, `${row.runtime}`)],
      slo(row.slo), budget(row.budget_left, row.calls), line,
      [count(row.calls), h("div", { class: "faint" }, `${number(row.calls_per_minute, row.calls_per_minute < 10 ? 1 : 0)}/min`)],
      millis(row.p99_ms), h("span", { class: "soft" }, millis(row.objective_ms)),
      [cores(row.reserved_cores), h("div", { class: "faint" }, "cores")],
      held === null ? "–" : `${number(held * 100, 0)} %`,
      number(row.saved_core_hours, 3), count(row.trips), standing(row.standing),
      h("button", { class: "small", onclick: attempt(() => (paused ? change("DELETE", path) : change("PUT", path, {})), refresh) }, paused ? "Resume" : "Pause"),
    ];
    return contents.map((content, place) => h("td", { class: COLUMNS[place][2] }, content));
  }
  // Rows keep their place in the page, so that nothing jumps and focus stays.
  function draw(list) {
    const next = list.map((row) => {
      let element = rows.get(row.name);
      const state = JSON.stringify([row.slo, row.calls, row.late, row.standing, row.spark, row.p99_ms]);
      if (!element) rows.set(row.name, (element = h("tr")));
      if (element.state !== state) { element.state = state; element.replaceChildren(...cells(row)); }
      return element;
    });
    if (next.length !== body.children.length || next.some((row, place) => body.children[place] !== row)) body.replaceChildren(...next);
  }
  async function refresh() {
    const query = new URLSearchParams({ sort, search: search.value, limit });
    const answer = await read(`/functions?${query}`);
    found.textContent = answer.count > answer.functions.length ? `the first ${answer.functions.length} of ${count(answer.count)}` : `${count(answer.count)}`;
    more.hidden = answer.count <= answer.functions.length;
    draw(answer.functions);
    if (!answer.functions.length) body.replaceChildren(h("tr", {}, h("td", { colspan: COLUMNS.length, class: "empty" }, search.value ? `No function is called like “${search.value}”.` : "No functions yet.")));
  }
  drawHead();
  return {
    title: "Functions", refresh,
    elements: [h("div", { class: "head" }, h("h1", {}, "Functions"), found, h("div", { class: "push" }, search)), h("section", { class: "card scroll" }, h("table", {}, h("thead", {}, head), body), more)],
  };
}
