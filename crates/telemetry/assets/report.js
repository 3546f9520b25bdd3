// Fills the page from the data block. All text goes in as text, never as markup.
"use strict";
const D = JSON.parse(document.getElementById("data").textContent), main = document.querySelector("main");
const M = Object.fromEntries(D.metrics.map(m => [m.key, m]));
const known = ["fixed", "safeguard-random", "histogram", "oracle"], others = (D.policies || []).filter(p => !known.includes(p));
const color = p => `var(--p${known.includes(p) ? known.indexOf(p) : 4 + others.indexOf(p) % 8})`;
const pct = v => (v * 100 === 0 ? "0" : v < 1e-5 ? "<0.001" : (v * 100).toFixed(v < 0.001 ? 3 : v < 0.1 ? 2 : 1)) + " %";
const shareKeys = ["violation_share", "harvested_violation_share", "cold_share", "harvested_share", "accelerated_share"];
const show = (key, v) => shareKeys.includes(key) ? pct(v) : short(v);
function section(title, lead, parent) { const s = el("section", "", parent || main); el("h2", "", s, title); if (lead) el("p", "lead", s, lead); return s; }
function pick(parent, label, values, changed, text) {
  const wrap = el("label", "", parent, label + " "), select = el("select", "", wrap);
  values.forEach((v, k) => { const o = el("option", "", select, text ? text(v) : String(v)); o.value = k; });
  select.onchange = () => changed(values[select.value]);
  return v => { select.value = values.indexOf(v); };
}
function table(parent, heads, rows, className) {
  const wrap = el("div", "scroll", parent), t = el("table", className || "", wrap), h = el("tr", "", el("thead", "", t));
  heads.forEach(x => el("th", "", h, x));
  const body = el("tbody", "", t);
  for (const row of rows) { const tr = el("tr", "", body); for (const cell of row) { const c = typeof cell === "object" ? cell : { text: cell }, td = el("td", c.best ? "best" : "", tr); if (c.dot) { el("i", "swatch", td).style.background = c.dot; } td.append(c.text); if (c.ref) el("span", "ref", td, "reference"); if (c.small) { td.append(" "); el("small", "", td, c.small); } } }
  return t;
}
function sorted(parent, heads, rows, note) {
  let by = heads.length - 2, down = true, word = "";
  const bar = el("div", "controls", parent), box = el("input", "", bar); box.placeholder = "filter by name"; box.setAttribute("aria-label", "filter by name");
  el("span", "", bar, note || ""); const host = el("div", "", parent);
  function draw() {
    host.textContent = "";
    const found = rows.filter(r => String(r[0]).toLowerCase().includes(word)).sort((a, b) => (a[by] > b[by] ? 1 : a[by] < b[by] ? -1 : 0) * (down ? -1 : 1)).slice(0, 200);
    const t = table(host, heads.map((h, k) => h + (k === by ? (down ? " ↓" : " ↑") : "")), found.map(r => r.map((v, k) => !k ? v : Number.isInteger(v) && v < 1e4 ? String(v) : short(v))));
    t.querySelectorAll("th").forEach((th, k) => { th.dataset.sort = k; th.tabIndex = 0; if (k === by) th.setAttribute("aria-sort", down ? "descending" : "ascending"); th.onclick = () => { down = by === k ? !down : k > 0; by = k; draw(); }; th.onkeydown = e => { if (e.key === "Enter") th.onclick(); }; });
  }
  box.oninput = () => { word = box.value.toLowerCase(); draw(); };
  draw();
}
function cdf(host, runs, tail) {
  chart(host, { label: "distribution of slowdowns", height: 340, x: { label: "slowdown", log: true }, y: { label: tail ? "share of calls slower" : "share of calls at most this slow", log: tail },
    series: runs.map(r => ({ name: r.policy, color: color(r.policy), step: true, points: r.slowdown_cdf.map(([x, y]) => ({ x, y: tail ? 1 - y : y, q: y })).filter(p => !tail || p.y > 0) })),
    tell: p => [`slowdown ${short(p.x)}`, `${pct(p.q)} of calls at most`] });
}
function overTime(host, run, kind) {
  const S = run.series, line = (name, key, c, more) => ({ name, color: c, points: S.time.map((t, k) => ({ x: t / 60, y: S[key][k] })), ...more });
  const series = kind === "cores" ? [line("demand", "demand_cores", "var(--p0)", { dash: "5 4" }), line("granted", "granted_cores", "var(--p2)", { fill: true }), line("used", "used_cores", "var(--p4)", { fill: true }), line("harvested", "harvested_cores", "var(--p1)"), line("lent", "lent_cores", "var(--p5)"), line("capacity", "capacity_cores", "var(--p3)", { dash: "2 3" })] : [line("running", "running", "var(--p2)"), line("waiting", "waiting", "var(--p6)", { fill: true }), line("instances", "instances", "var(--p4)")];
  chart(host, { label: kind + " over time", height: kind === "cores" ? 320 : 220, x: { label: "time, minutes" }, y: { label: kind === "cores" ? "cores" : "count", zero: true }, series, tell: (p, s) => [`${short(p.y)} at ${short(p.x)} min`] });
}
function functions(parent, run) { sorted(parent, ["function", "calls", "p99 slowdown", "violations", "core-s used", "core-s granted", "granted / used"], run.functions.map(f => [f.name, f.calls, f.slowdown_p99, f.violations, f.core_seconds_used, f.core_seconds_granted, f.core_seconds_used > 0 ? f.core_seconds_granted / f.core_seconds_used : Infinity]), "click a column to sort; at most 200 functions, those granted most"); }
function definitions() {
  const s = section("Settings, definitions");
  if (D.command) { el("p", "lead", s, "To reproduce:"); el("pre", "", s, D.command); }
  if (D.settings) { const d = el("details", "", s); el("summary", "", d, "Settings as they were resolved"); el("pre", "", d, JSON.stringify(D.settings, null, 2)); }
  const d = el("details", "", s); el("summary", "", d, "What every metric means"); table(d, ["metric", "unit", "", "meaning"], D.metrics.map(m => [m.key, m.unit, m.direction, m.meaning]), "wide");
  el("footer", "", main, D.footer);
}
function comparison() {
  const C = D.comparison, loads = D.loads, at = load => C.aggregates.filter(a => a.load === load), est = (a, k) => a.metrics[k];
  const first = loads[loads.length - 1];
  const run = (load, p) => D.details.find(r => r.load === load && r.policy === p);
  function loadPicker(parent, draw) { const bar = el("div", "controls", parent); if (loads.length > 1) pick(bar, "load", loads, draw)(first); return bar; }
  let s = section("Headline", "Means over seeds with 95 % intervals; slowdowns are geometric means with [least..greatest]. Shaded is the best without the oracle, which knows the future.");
  { loadPicker(s, draw); const host = el("div", "", s), keys = D.headline;
    function draw(load) { host.textContent = ""; table(host, ["policy", ...keys.map(k => M[k].label)], at(load).map(a => [{ text: a.policy, dot: color(a.policy), ref: a.is_reference }, ...keys.map(k => { const e = est(a, k), g = k === "slowdown_p99"; return { text: show(k, e.mean), small: e.samples < 2 ? "" : g ? `[${short(e.min)}..${short(e.max)}]` : ["rfet_mean", "core_seconds_granted"].includes(k) ? "±" + show(k, (e.high - e.low) / 2) : "", best: D.best[load] && D.best[load][k] === e.mean && a.policy !== "oracle" }; })])); }
    draw(first); }
  s = section("Cost against latency", "Down and left is better. Bars are the range over seeds. Nothing can stand left of the dashed line: that much CPU was really used. Drag to zoom, double click to reset.");
  { let key = "slowdown_p99", load = first; const bar = loadPicker(s, v => { load = v; draw(); }), host = el("div", "", s);
    pick(bar, "latency", ["slowdown_p99", "bounded_slowdown_p99", "slowdown_p95"], v => { key = v; draw(); }, k => M[k].label);
    function draw() { const used = at(load).map(a => est(a, "core_seconds_used").mean); chart(host, { label: "cost against latency", names: true, height: 420, x: { label: "core-seconds granted" }, y: { label: M[key].label, log: true }, lines: used.length ? [{ x: Math.min(...used), text: "used" }] : [],
      series: at(load).map(a => { const x = est(a, "core_seconds_granted"), y = est(a, key); return { name: a.policy, mode: "points", hollow: a.is_reference, color: color(a.policy), points: [{ x: x.mean, x0: x.min, x1: x.max, y: y.mean, y0: y.min, y1: y.max }] }; }),
      tell: p => [`${M[key].label} ${short(p.y)} [${short(p.y0)}..${short(p.y1)}]`, `${short(p.x)} core-s granted`] }); }
    draw(); }
  if (D.details.length) {
    s = section("Slowdown of all calls", "One seed per policy. The tail view shows how rare the slow calls are.");
    { let load = first, tail = true; const bar = loadPicker(s, v => { load = v; draw(); }), host = el("div", "", s); pick(bar, "view", ["tail (1 - CDF)", "CDF"], v => { tail = v !== "CDF"; draw(); }); const draw = () => cdf(host, D.details.filter(r => r.load === load), tail); draw(); }
    s = section("The cluster over time", "Demand is what users reserve for all calls in the system; harvested was taken below reservations, lent was given above them.");
    { let load = first, policy = D.best_policy; const bar = loadPicker(s, v => { load = v; draw(); }), host = el("div", "", s), low = el("div", "", s); pick(bar, "policy", D.policies, v => { policy = v; draw(); })(policy); function draw() { const r = run(load, policy); if (!r) { host.textContent = low.textContent = "no such run was kept"; return; } overTime(host, r, "cores"); overTime(low, r, "count"); } draw(); }
  }
  s = section("Broken promises", "Calls that ran more than 5 % longer than at their user's size. Dark: among all calls. Light: among those that were harvested.");
  { loadPicker(s, draw); const host = el("div", "", s); function draw(load) { bars(host, at(load).map(a => ({ name: a.policy, color: color(a.policy), values: ["violation_share", "harvested_violation_share"].map(k => ({ label: M[k].label, value: est(a, k).mean, text: pct(est(a, k).mean) })) }))); } draw(first); }
  s = section(`Against ${C.baseline}, seed by seed`, "Ratio of ours to theirs on the same seeds with its 95 % interval, then wins-losses-ties. Shaded: the interval of the difference leaves zero out in our favour.");
  { loadPicker(s, draw); const host = el("div", "", s), keys = ["slowdown_p99", "bounded_slowdown_p99", "rfet_mean", "violation_share", "core_seconds_granted", "mib_seconds_granted"];
    function draw(load) { host.textContent = ""; const ps = C.pairs.filter(p => p.load === load), names = [...new Set(ps.map(p => p.policy))]; if (!names.length) { el("p", "lead", host, "No run has a partner on the same seed."); return; } table(host, ["policy", ...keys.map(k => M[k].label)], names.map(n => [{ text: n, dot: color(n) }, ...keys.map(k => { const p = ps.find(q => q.policy === n && q.metric === k); if (!p) return ""; const r = p.ratio, d = p.difference; return { text: r ? "×" + short(r.mean) : (d.mean > 0 ? "+" : "") + show(k, d.mean), small: (r && r.samples > 1 ? `[${short(r.low)}, ${short(r.high)}] ` : "") + `${p.wins}-${p.losses}-${p.ties}`, best: d.samples > 1 && d.high < 0 }; })])); }
    draw(first); }
  if (D.details.length) { s = section("Function by function"); let load = first, policy = D.best_policy; const bar = loadPicker(s, v => { load = v; draw(); }), host = el("div", "", s); pick(bar, "policy", D.policies, v => { policy = v; draw(); })(policy); function draw() { host.textContent = ""; const r = run(load, policy); if (r) functions(host, r); } draw(); }
}
function single() {
  const R = D.run, r = D.details[0];
  const s = section("In numbers"), facts = el("div", "facts", s);
  for (const k of ["calls", ...D.headline, "core_seconds_used", "changes_per_hour", "latency_p99_seconds", "amendments", "fallbacks"]) { const f = el("div", "", facts); el("span", "", f, M[k].label); el("b", "", f, show(k, R[k])); f.title = M[k].meaning; }
  const t = section("The cluster over time", "Drag to zoom, double click to reset."); overTime(el("div", "", t), r, "cores"); overTime(el("div", "", t), r, "count");
  cdf(el("div", "", section("Slowdown of all calls")), [r], true);
  const rules = Object.entries(r.amendments).sort((a, b) => b[1] - a[1]);
  if (rules.length) bars(el("div", "", section("Where safeguards stepped in")), rules.map(([name, n]) => ({ name, color: "var(--p2)", values: [{ label: name, value: n, text: short(n) }] })));
  functions(section("Function by function"), r);
}
function picture() {
  const T = D.trace, s = section("Facts"), facts = el("div", "facts", s);
  for (const [k, v] of T.facts) { const f = el("div", "", facts); el("span", "", f, k); el("b", "", f, v); }
  const points = a => a.map(([x, y]) => ({ x, y }));
  chart(el("div", "", section("Arrivals over time")), { x: { label: "time, minutes" }, y: { label: "calls per second", zero: true }, series: [{ name: "arrivals", color: "var(--p2)", fill: true, points: T.arrivals.map(([x, y]) => ({ x: x / 60, y })) }], tell: p => [`${short(p.y)} per second at ${short(p.x)} min`] });
  const two = el("div", "two", main);
  chart(el("div", "", section("Durations", null, two)), { x: { label: "seconds", log: true }, y: { label: "share of calls", zero: true }, series: [{ name: "durations", color: "var(--p4)", fill: true, step: true, points: points(T.durations) }], tell: p => [`${short(p.x)} s: ${short(p.y)}`] });
  chart(el("div", "", section("Popularity", null, two)), { x: { label: "rank of function", log: true }, y: { label: "calls", log: true }, series: [{ name: "functions", color: "var(--p1)", points: points(T.popularity) }], tell: p => [`rank ${short(p.x)}: ${short(p.y)} calls`] });
  if (T.triggers.length) bars(el("div", "", section("What sets them off")), T.triggers.map(([name, v]) => ({ name, color: "var(--p2)", values: [{ label: name, value: v, text: short(v) }] })));
}
({ comparison, run: single, trace: picture })[D.kind]();
definitions();
