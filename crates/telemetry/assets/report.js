// Fills the page from the data block: a comparison, one run, a workload, or a document of sections.
"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const M = Object.fromEntries(D.metrics.map(metric => [metric.key, metric]));
const page = document.querySelector("main");
const SHARES = ["violation_share", "harvested_violation_share", "cold_share", "harvested_share", "accelerated_share"];
// Relative run times differ in the third digit after the point.
const show = (key, value) => {
  if (SHARES.includes(key)) return percent(value);
  return key.startsWith("rfet") && isNumber(value) && value < 100 ? value.toFixed(3) : short(value);
};
function plainBar([name, value]) {
  return { name, style: { color: "var(--p2)", shape: 0 }, values: [{ label: name, value, text: short(value) }] };
}
function styleOf(policy) {
  const { color, shape, hollow } = D.palette[policy] || { color: 0, shape: 0 };
  return { color: `var(--p${color})`, shape, hollow, dash: DASHES[shape] };
}
// The links at the top; with them the load that everything below is about.
function navigation(fill) {
  const nav = el("nav", "top", page);
  if (fill) fill(nav);
  const links = el("div", "links", nav);
  return () => {
    for (const one of document.querySelectorAll("section")) {
      el("a", "", links, one.querySelector("h2").textContent).href = "#" + one.id;
    }
  };
}
function distribution(host, runs, tail, log) {
  const series = runs.map(run => ({
    name: run.policy, ...styleOf(run.policy),
    points: run.slowdown_cdf.map(([x, share]) => ({ x, y: tail ? 1 - share : share, share })),
  }));
  chart(host, {
    label: "distribution of slowdowns", height: 380, series,
    x: { label: "slowdown" + (log ? " (log)" : ""), log },
    y: { label: tail ? "share of calls slower (log)" : "share of calls at most this slow", log: tail },
    describe: p => [`slowdown ${short(p.x)}`, `${percent(p.share)} of calls at most`, `${percent(1 - p.share)} slower`],
  });
}
const CORES = [
  ["capacity", "capacity_cores", 3, { dash: "2 3" }], ["demand", "demand_cores", 0, { dash: "5 4" }],
  ["granted", "granted_cores", 2, { fill: true }], ["used", "used_cores", 4, { fill: true }],
  ["held back", "held_back_cores", 6, { dash: "1 2" }], ["harvested", "harvested_cores", 1, {}], ["lent", "lent_cores", 5, {}],
];
const COUNTS = [
  ["running", "running", 2, {}], ["waiting", "waiting", 6, { fill: true }], ["instances", "instances", 4, {}],
];
function lines(run, columns) {
  return columns.map(([name, key, color, more]) => ({
    name, color: `var(--p${color})`, ...more,
    points: run.series.time.map((second, k) => ({ x: second / 60, y: run.series[key][k] })),
  }));
}
function overTime(host, run, columns, unit, more) {
  chart(host, {
    label: `${unit} over time, ${run.policy}`, height: unit === "cores" ? 320 : 220, across: true,
    x: { label: "time, minutes", tight: true }, y: { label: unit, zero: true, ...(more || {}).y },
    series: lines(run, columns), describe: p => `minute ${short(p.x)}`, ...(more || {}).spec,
  });
}
function functionTable(parent, run) {
  const heads = ["function", "calls", "p99 slowdown", "violations", "core-s used", "core-s granted", "granted / used",
    "core-s held back"];
  const rows = run.functions.map(f => [
    f.name, f.calls, f.slowdown_p99, f.violations, f.core_seconds_used, f.core_seconds_granted,
    f.core_seconds_used > 0 ? f.core_seconds_granted / f.core_seconds_used : null, f.core_seconds_held_back,
  ]);
  sortable(parent, heads, rows, { by: 5 });
  if (run.functions_left_out) {
    el("p", "lead", parent, `${run.functions_left_out} more functions, granted less than these, are not listed.`);
  }
}
function provenance() {
  const made = section("How to repeat it");
  if (D.command) copyable(made, D.command);
  if (D.settings) {
    const box = el("details", "", made);
    el("summary", "", box, "Settings as they were resolved");
    el("pre", "", box, JSON.stringify(D.settings, null, 2));
  }
  if (!D.metrics.length) return;
  const box = el("details", "", made);
  el("summary", "", box, "What every metric means");
  table(box, ["metric", "unit", "", "meaning"], D.metrics.map(m => [m.key, m.unit, m.direction, m.meaning]), "wide");
}
function comparison() {
  const C = D.comparison, views = [], state = { load: D.loads[D.loads.length - 1], policy: D.best_policy };
  const view = draw => { views.push(draw); draw(); };
  const at = () => C.aggregates.filter(a => a.load === state.load);
  const kept = () => D.details.filter(run => run.load === state.load);
  const nameCell = (policy, ref) => ({ text: policy, style: styleOf(policy), ref });
  const finish = navigation(left => {
    if (D.loads.length < 2) return;
    segments(left, "load", D.loads, state.load, load => { state.load = load; views.forEach(draw => draw()); });
  });
  headline({ C, state, view, at, nameCell });
  costAgainstLatency({ view, at });
  seedBySeed({ C, state, view, at });
  if (D.details.length) {
    slowdowns({ view, kept });
    clusterOverTime({ state, view, kept });
  }
  brokenPromises({ view, at });
  paired({ C, state, view, nameCell });
  if (D.details.length) functionByFunction({ state, view, kept });
  provenance();
  finish();
}
function headline({ state, view, at, nameCell }) {
  const made = section("Headline", "Means over seeds with half their 95 % interval; slowdowns are geometric means with "
    + "[least..greatest]. Shaded is the best without the oracle, which knows the future.");
  const host = el("div", "", made), verdict = el("div", "verdict", made);
  const cell = (aggregate, key) => {
    const e = aggregate.metrics[key];
    if (!e) return { text: "n/a", title: "no call to say it of" };
    const half = (e.high - e.low) / 2, isFactor = key.startsWith("slowdown") || key.startsWith("bounded");
    const spread = isFactor ? `[${short(e.min)}..${short(e.max)}]` : half ? "±" + show(key, half) : "";
    const isEligible = aggregate.policy !== "oracle" && aggregate.metrics.completed.mean > 0;
    const isBest = isEligible && (D.best[state.load] || {})[key] === e.mean;
    return { text: show(key, e.mean), small: e.samples < 2 ? "" : spread, best: isBest };
  };
  view(() => {
    host.textContent = verdict.textContent = "";
    const rows = at().map(a => [nameCell(a.policy, a.is_reference), ...D.headline.map(key => cell(a, key))]);
    table(host, ["policy", ...D.headline.map(key => M[key].label)], rows, "numbers");
    const judged = D.verdicts[state.load];
    if (!judged) return;
    el("h3", "", verdict, `Where ${judged.policy} loses at load ${state.load}`);
    const list = el("ul", "", verdict);
    for (const sentence of judged.losses) el("li", "", list, sentence);
  });
}
function costAgainstLatency({ view, at }) {
  const made = section("Cost against latency", "Down and left is better. Bars are the range over seeds, hollow marks "
    + "are references. Core-seconds held are those granted plus those held back for running calls. The dashed line is "
    + "the CPU really used: nothing can be held less. Drag to zoom, double click to reset, arrow keys to read.");
  const bar = el("div", "controls", made), host = el("div", "", made);
  let key = "slowdown_p99", log = true;
  function draw() {
    const drawn = at().filter(a => a.metrics[key] && a.metrics.core_seconds_held);
    const used = drawn.map(a => a.metrics.core_seconds_used.mean);
    chart(host, {
      label: `${M[key].label} against core-seconds held`, names: true, height: 440,
      x: { label: "core-seconds held" }, y: { label: M[key].label + (log ? " (log)" : ""), log, zero: !log },
      lines: used.length ? [{ x: Math.min(...used), text: "used" }] : [],
      series: drawn.map(a => {
        const x = a.metrics.core_seconds_held, y = a.metrics[key];
        const point = { x: x.mean, x0: x.min, x1: x.max, y: y.mean, y0: y.min, y1: y.max };
        return { name: a.policy, mode: "points", ...styleOf(a.policy), points: [point] };
      }),
      describe: p => [`${M[key].label} ${short(p.y)} [${short(p.y0)}..${short(p.y1)}]`, `${short(p.x)} core-s held`],
    });
  }
  const keys = ["slowdown_p99", "slowdown_p999", "bounded_slowdown_p99", "slowdown_p95", "slowdown_p50", "latency_p99_seconds"];
  pick(bar, "latency", keys, v => { key = v; draw(); }, k => M[k].label);
  pick(bar, "scale", ["log", "linear"], v => { log = v === "log"; draw(); });
  view(draw);
}
function seedBySeed({ C, state, view, at }) {
  const made = section("Seed by seed", "Every mark is one seed, the bar the mean. Where seeds differ more than "
    + "policies, compare marks of one seed: hover over one and its sisters light up.");
  const bar = el("div", "controls", made), host = el("div", "strips", made);
  let key = "slowdown_p99";
  function draw() {
    host.textContent = "";
    const rows = D.seeds.filter(row => row.load === state.load && isNumber(row[key]));
    const values = rows.map(row => row[key]), log = values.every(v => v > 0);
    const X = axis(range(values, log, false), log, 1.5, 98.5);
    for (const a of at()) {
      const style = styleOf(a.policy), line = el("div", "strip", host), name = el("div", "bar-name", line);
      mark(name, style);
      name.append(a.policy);
      const track = el("div", "strip-track", line), mean = a.metrics[key];
      if (mean) el("i", "strip-mean", track).style.left = X.at(mean.mean) + "%";
      for (const row of rows.filter(r => r.policy === a.policy)) {
        const dot = el("i", "strip-dot", track);
        dot.style.left = X.at(row[key]) + "%";
        dot.style.setProperty("--c", style.color);
        dot.dataset.seed = row.seed;
        dot.title = `${a.policy}, seed ${row.seed}: ${show(key, row[key])}`;
      }
    }
    const scale = el("div", "strip", host), track = el("div", "strip-scale", (el("div", "", scale), scale));
    for (const v of ticks(X.low, X.high, log, host.clientWidth / 110)) {
      el("span", "", track, tick(v)).style.left = X.at(v) + "%";
    }
  }
  host.onpointerover = event => {
    const seed = event.target.dataset && event.target.dataset.seed;
    for (const dot of host.querySelectorAll(".strip-dot")) dot.classList.toggle("lit", dot.dataset.seed === seed);
  };
  host.onpointerleave = () => host.querySelectorAll(".lit").forEach(dot => dot.classList.remove("lit"));
  pick(bar, "metric", D.seed_metrics, v => { key = v; draw(); }, k => M[k].label);
  view(draw);
}
function slowdowns({ view, kept }) {
  const made = section("Slowdown of all calls", "One seed per policy. The tail view shows how rare the slow calls are: "
    + "a curve further down and left is better.");
  const bar = el("div", "controls", made), host = el("div", "", made);
  let tail = true, log = true;
  const draw = () => distribution(host, kept(), tail, log);
  pick(bar, "view", ["tail (1 - CDF)", "CDF"], v => { tail = v !== "CDF"; draw(); });
  pick(bar, "slowdown axis", ["log", "linear"], v => { log = v === "log"; draw(); });
  view(draw);
}
function clusterOverTime({ state, view, kept }) {
  const made = section("The cluster over time", "One seed per policy, all panels on one scale: demand is what users "
    + "reserve for all calls in the system, dashed; choose a panel to see it in full below.");
  const panels = el("div", "panels", made), title = el("h3", "", made);
  const high = el("div", "", made), low = el("div", "", made);
  el("p", "lead", made, "Harvested was taken below reservations, lent was given above them; held back is kept out of "
    + "new calls' reach for running ones, beside what is granted. Drag sideways for a stretch of time.");
  const small = CORES.filter(([name]) => ["demand", "granted", "used"].includes(name));
  function focus() {
    const run = kept().find(r => r.policy === state.policy) || kept()[0];
    for (const panel of panels.children) {
      panel.firstChild.setAttribute("aria-pressed", String(!!run && panel.dataset.policy === run.policy));
    }
    title.textContent = run ? `${run.policy}, load ${run.load}, seed ${run.seed}` : "no run of this load was kept";
    high.textContent = low.textContent = "";
    if (!run) return;
    overTime(high, run, CORES, "cores");
    overTime(low, run, COUNTS, "count");
  }
  view(() => {
    panels.textContent = "";
    const most = kept().flatMap(run => small.flatMap(([, key]) => run.series[key]));
    const y = { range: range(most, false, true) };
    for (const run of kept()) {
      const panel = el("div", "panel", panels), button = el("button", "panel-name", panel);
      panel.dataset.policy = run.policy;
      button.type = "button";
      mark(button, styleOf(run.policy));
      button.append(run.policy);
      button.onclick = () => { state.policy = run.policy; focus(); };
      overTime(el("div", "", panel), run, small, "cores", { y, spec: { mini: true, height: 130 } });
    }
    focus();
  });
}
function brokenPromises({ view, at }) {
  const made = section("Broken promises", "Calls that ran more than 5 % longer than at their user's size. Dark: among "
    + "all calls. Light: among those that were harvested, the promise to those who gave.");
  const host = el("div", "", made);
  view(() => bars(host, at().map(a => ({
    name: a.policy, style: styleOf(a.policy),
    values: ["violation_share", "harvested_violation_share"].map((key, k) => {
      const e = a.metrics[key];
      return { label: M[key].label, value: e && e.mean, text: e ? percent(e.mean) : k ? "none harvested" : "n/a" };
    }),
  }))));
}
function paired({ C, state, view, nameCell }) {
  const made = section(`Against ${C.baseline}`, "On the same seeds: ratio of ours to theirs with its 95 % interval, "
    + "then wins-losses-ties. Shaded: the interval of the difference leaves zero out in our favour; red: against us. "
    + "The last column draws functions again, not only seeds: where it is much wider, few functions decide the cost.");
  const host = el("div", "", made);
  const keys = ["slowdown_p99", "bounded_slowdown_p99", "rfet_mean", "violation_share", "mib_seconds_granted",
    "core_seconds_held"];
  const cell = pair => {
    if (!pair) return { text: "n/a" };
    const { ratio, difference, wins, losses, ties, metric } = pair;
    const factor = value => metric === "rfet_mean" ? show(metric, value) : short(value);
    const text = ratio ? "×" + factor(ratio.mean) : (difference.mean > 0 ? "+" : "") + show(metric, difference.mean);
    const interval = ratio && ratio.samples > 1 ? `[${factor(ratio.low)}, ${factor(ratio.high)}] ` : "";
    const small = `${interval}${wins}-${losses}-${ties}`;
    const isDecided = difference.samples > 1;
    return { text, small, best: isDecided && difference.high < 0, worse: isDecided && difference.low > 0 };
  };
  view(() => {
    host.textContent = "";
    const here = C.pairs.filter(p => p.load === state.load), names = [...new Set(here.map(p => p.policy))];
    if (!names.length) {
      el("p", "lead", host, "No run has a partner on the same seed.");
      return;
    }
    const find = (name, key) => here.find(p => p.policy === name && p.metric === key);
    const rows = names.map(name => {
      const cells = keys.map(key => cell(find(name, key)));
      return [nameCell(name), ...cells, overFunctions(find(name, "core_seconds_held"))];
    });
    table(host, ["policy", ...keys.map(key => M[key].label), "core-s held, functions drawn again"], rows, "numbers");
  });
}
function overFunctions(pair) {
  const drawn = pair && pair.over_functions;
  if (!drawn) return { text: "n/a" };
  const small = `[${short(drawn.low)}, ${short(drawn.high)}] of ${drawn.functions}`;
  return { text: "×" + short(drawn.ratio), small, best: drawn.high < 1, worse: drawn.low > 1 };
}
function functionByFunction({ state, view, kept }) {
  const made = section("Function by function", "One seed. The functions that were granted most; click a head to sort.");
  const bar = el("div", "controls", made), host = el("div", "", made);
  function draw() {
    host.textContent = "";
    const run = kept().find(r => r.policy === state.function_policy);
    if (run) functionTable(host, run);
    else el("p", "lead", host, "No run of this policy was kept at this load.");
  }
  state.function_policy = D.best_policy;
  pick(bar, "policy", D.policies, v => { state.function_policy = v; draw(); })(D.best_policy);
  view(draw);
}
function facts(parent, pairs) {
  const host = el("dl", "facts", parent);
  for (const [name, value, meaning] of pairs) {
    const box = el("div", "", host);
    el("dt", "", box, name);
    el("dd", "", box, value);
    if (meaning) box.title = meaning;
  }
}
function single() {
  const finish = navigation(), row = D.run, run = D.details[0];
  const keys = ["calls", ...D.headline, "core_seconds_granted", "core_seconds_used", "changes_per_hour", "latency_p99_seconds", "amendments",
    "fallbacks"];
  const undefinedKeys = D.undefined || [];
  const value = key => undefinedKeys.includes(key) ? "n/a" : show(key, row[key]);
  facts(section("In numbers"), keys.map(key => [M[key].label, value(key), M[key].meaning]));
  const time = section("The cluster over time", "Drag sideways for a stretch of time, double click to reset.");
  overTime(el("div", "", time), run, CORES, "cores");
  overTime(el("div", "", time), run, COUNTS, "count");
  const made = section("Slowdown of all calls"), bar = el("div", "controls", made), host = el("div", "", made);
  pick(bar, "view", ["tail (1 - CDF)", "CDF"], v => distribution(host, [run], v !== "CDF", true));
  distribution(host, [run], true, true);
  const rules = Object.entries(run.amendments).sort((a, b) => b[1] - a[1]);
  if (rules.length) {
    bars(el("div", "", section("Where safeguards stepped in")), rules.map(plainBar));
  }
  functionTable(section("Function by function", "Click a head to sort."), run);
  provenance();
  finish();
}
function picture() {
  const finish = navigation(), T = D.trace, points = pairs => pairs.map(([x, y]) => ({ x, y }));
  if (T.facts.length) facts(section("Facts"), T.facts);
  chart(el("div", "", section("Arrivals over time")), {
    label: "arrivals over time",
    x: { label: "time, minutes", tight: true }, y: { label: "calls per second", zero: true },
    series: [{
      name: "arrivals", color: "var(--p2)", fill: true,
      points: T.arrivals.map(([second, rate]) => ({ x: second / 60, y: rate })),
    }],
    describe: p => [`${short(p.y)} per second`, `minute ${short(p.x)}`],
  });
  const two = el("div", "two", page);
  chart(el("div", "", section("Durations", null, two)), {
    label: "durations", x: { label: "seconds (log)", log: true }, y: { label: "share of calls", zero: true },
    series: [{ name: "durations", color: "var(--p4)", fill: true, step: true, points: points(T.durations) }],
    describe: p => [`${short(p.x)} s`, `${percent(p.y)} of calls`],
  });
  chart(el("div", "", section("Popularity", null, two)), {
    label: "popularity", x: { label: "busiest functions, taken together (log)", log: true }, y: { label: "calls (log)", log: true },
    series: [{ name: "functions", color: "var(--p1)", points: points(T.popularity) }],
    describe: p => [`rank ${short(p.x)}`, `${short(p.y)} calls`],
  });
  if (T.triggers.length) bars(el("div", "", section("What sets them off")), T.triggers.map(plainBar));
  if (D.command || D.settings) provenance();
  finish();
}
// How a series of a document is drawn.
const LOOKS = {
  line: { band: true }, reference: { dash: "5 4", width: 1.3 }, points: { mode: "points" }, frontier: { joined: true },
};
function described(host, spec) {
  if (spec.title) el("h3", "", host, spec.title);
  const axisOf = axis => ({ ...axis, label: axis.label + (axis.log ? " (log)" : "") });
  chart(el("div", "", host), {
    label: spec.title, x: axisOf(spec.x), y: axisOf(spec.y), names: spec.series.every(s => s.style === "points"),
    series: spec.series.map(s => ({ ...styleOf(s.name), name: s.name, points: s.points, ...LOOKS[s.style] })),
    describe: p => [
      ...(p.label ? [p.label] : []), `${spec.x.label}: ${short(p.x)}`, `${spec.y.label}: ${short(p.y)}`,
      ...(isNumber(p.y0) ? [`from ${short(p.y0)} to ${short(p.y1)}`] : []),
    ],
  });
}
const BLOCKS = {
  paragraph: (host, text) => el("p", "", host, text),
  facts,
  table: (host, { heads, rows }) => table(host, heads, rows),
  charts: (host, charts) => {
    const grid = el("div", charts.length > 1 ? "two" : "", host);
    for (const spec of charts) described(el("div", "cell", grid), spec);
  },
};
function sections() {
  const finish = navigation();
  for (const { title, lead, blocks } of D.sections) {
    const made = section(title, lead);
    for (const block of blocks) BLOCKS[block.kind](made, block.of);
  }
  if (D.command || D.settings) provenance();
  finish();
  if (D.refresh_seconds) setTimeout(() => location.reload(), D.refresh_seconds * 1000);
}
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(box => { box.open = true; }));
({ comparison, run: single, trace: picture, document: sections })[D.kind]();
el("footer", "", page, D.footer);
