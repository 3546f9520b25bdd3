// What pages are made of: elements, numbers as people write them, selectors, tables, bars.
// All text goes in as text, never as markup.
"use strict";
// A script that fails must say so on the page: half a report looks like a whole one.
window.addEventListener("error", event => {
  const note = document.createElement("p");
  note.className = "script-error";
  note.textContent = `This report could not be drawn completely: ${event.message} (line ${event.lineno})`;
  document.body.prepend(note);
});
const SVG = "http://www.w3.org/2000/svg";
function node(tag, attributes, parent, text) {
  const made = document.createElementNS(SVG, tag);
  for (const key in attributes || {}) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}
function el(tag, className, parent, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}
const isNumber = value => typeof value === "number" && isFinite(value);
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return size >= 0.001 ? value.toFixed(3) : value.toExponential(1);
}
// Three digits that matter; the same rule as the tables in a terminal.
function short(value) {
  if (!isNumber(value)) return "n/a";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.5e6) return digits(value / 1e9) + "G";
  if (size >= 999.5e3) return digits(value / 1e6) + "M";
  if (size >= 9999.5) return digits(value / 1e3) + "k";
  return digits(value);
}
function percent(share) {
  if (!isNumber(share)) return "n/a";
  const value = share * 100, size = Math.abs(value);
  if (size === 0) return "0 %";
  if (size < 0.001) return "<0.001 %";
  return value.toFixed(size < 0.1 ? 3 : size < 10 ? 2 : 1) + " %";
}
function section(title, lead, parent) {
  const made = el("section", "", parent || document.querySelector("main"));
  made.id = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  el("h2", "", made, title);
  if (lead) el("p", "lead", made, lead);
  return made;
}
// A drop-down; returns a function that sets it without telling.
function pick(parent, label, values, changed, text) {
  const wrap = el("label", "pick", parent, label + " "), select = el("select", "", wrap);
  values.forEach((value, k) => { el("option", "", select, text ? text(value) : String(value)).value = k; });
  select.onchange = () => changed(values[select.value]);
  return value => { select.value = values.indexOf(value); };
}
// A row of which one is chosen: real radio buttons, so arrow keys work.
let groups = 0;
function segments(parent, label, values, chosen, changed) {
  const set = el("fieldset", "segments", parent), name = "group" + ++groups;
  el("legend", "", set, label);
  for (const value of values) {
    const wrap = el("label", "", set), radio = el("input", "", wrap);
    radio.type = "radio";
    radio.name = name;
    radio.checked = value === chosen;
    radio.onchange = () => changed(value);
    el("span", "", wrap, String(value));
  }
}
// Cells are text or {text, small, best, style, ref, href}.
function table(parent, heads, rows, className) {
  const made = el("table", className || "", el("div", "scroll", parent));
  const head = el("tr", "", el("thead", "", made)), body = el("tbody", "", made);
  for (const text of heads) el("th", "", head, text).scope = "col";
  for (const row of rows) {
    const line = el("tr", "", body);
    row.forEach((given, k) => {
      const cell = given !== null && typeof given === "object" ? given : { text: given };
      const made = el(k ? "td" : "th", cell.best ? "best" : cell.worse ? "worse" : "", line);
      if (!k) made.scope = "row";
      if (cell.style) mark(made, cell.style);
      made.append(cell.text);
      if (cell.best) el("span", "sr", made, " (best)");
      if (cell.ref) el("span", "ref", made, "reference");
      if (cell.small) el("small", "", made, cell.small);
      if (cell.title) made.title = cell.title;
    });
  }
  return made;
}
// Rows of plain values with a filter on the first column and a button to sort in every head.
function sortable(parent, heads, rows, options) {
  let by = options.by, down = true, word = "";
  const bar = el("div", "controls", parent), box = el("input", "", bar), host = el("div", "tall", parent);
  box.type = "search";
  box.placeholder = "filter by name";
  box.setAttribute("aria-label", "filter by name");
  const count = el("span", "", bar);
  count.setAttribute("role", "status");
  const compare = (a, b) => {
    const x = a[by], y = b[by];
    if (x === null || y === null) return (x === null) - (y === null);
    return (x > y ? 1 : x < y ? -1 : 0) * (down ? -1 : 1);
  };
  const text = (value, k) => !k ? value : Number.isInteger(value) && value < 1e5 ? String(value) : short(value);
  function draw() {
    host.textContent = "";
    const found = rows.filter(row => String(row[0]).toLowerCase().includes(word)).sort(compare);
    count.textContent = `${found.length} of ${rows.length} shown`;
    const made = table(host, heads.map(() => ""), found.map(row => row.map(text)));
    made.querySelectorAll("thead th").forEach((head, k) => {
      const button = el("button", "sort", head, heads[k] + (k === by ? (down ? " ↓" : " ↑") : ""));
      button.type = "button";
      if (k === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      button.onclick = () => {
        down = by === k ? !down : k > 0;
        by = k;
        draw();
        host.querySelectorAll("thead button")[k].focus();
      };
    });
  }
  box.oninput = () => { word = box.value.toLowerCase(); draw(); };
  draw();
}
// The sign of a policy: colour and shape together, so that either alone is enough.
const DASHES = ["none", "8 3", "2 3", "9 3 2 3"];
function symbol(parent, shape, x, y, r, attributes) {
  const d = [
    `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}Z`,
    `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}Z`,
    `M${x} ${y - r * 1.15}l${r * 1.15} ${r * 2.1}h${-r * 2.3}Z`,
  ][shape || 0];
  return node("path", { d, ...attributes }, parent);
}
function mark(parent, style) {
  const sign = node("svg", { viewBox: "0 0 14 14", class: "sign", "aria-hidden": "true" }, parent);
  const fill = style.hollow ? "var(--card)" : style.color;
  symbol(sign, style.shape, 7, 7, 4.6, { fill, stroke: style.color, "stroke-width": 2 });
}
// Horizontal bars: rows [{name, style, values: [{label, value, text}]}].
function bars(host, rows) {
  host.textContent = "";
  const all = rows.flatMap(row => row.values.map(v => isNumber(v.value) ? v.value : 0));
  const most = all.reduce((a, b) => Math.max(a, b), 1e-12);
  for (const row of rows) {
    const line = el("div", "bar-row", host), name = el("div", "bar-name", line);
    mark(name, row.style);
    name.append(row.name);
    const stack = el("div", "bar-stack", line);
    row.values.forEach((v, k) => {
      const track = el("div", "bar-track", stack), bar = el("div", k ? "bar second" : "bar", track);
      bar.style.width = (isNumber(v.value) ? v.value : 0) / most * 78 + "%";
      bar.style.setProperty("--c", row.style.color);
      bar.title = `${v.label}: ${v.text}`;
      el("span", "bar-text", track, v.text);
    });
  }
}
function copyable(parent, text) {
  const box = el("div", "copyable", parent), shown = el("pre", "", box, text);
  const button = el("button", "button", box, "copy");
  button.type = "button";
  const done = ok => {
    button.textContent = ok ? "copied" : "press Ctrl+C";
    setTimeout(() => { button.textContent = "copy"; }, 1600);
  };
  // Where the clipboard is out of reach the text is at least selected.
  const select = () => { getSelection().selectAllChildren(shown); done(false); };
  button.onclick = () => {
    if (!navigator.clipboard) return select();
    return navigator.clipboard.writeText(text).then(() => done(true), select);
  };
}
