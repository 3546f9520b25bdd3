// One function: latency against objective, allocation against use, cost against latency, calls, decisions, replay.
import { change, read } from "/assets/client.js";
import { chart, cursor, nearest, timeLabel } from "/assets/charts.js";
import { attempt, budget, clock, cores, count, functionLink, h, legend, mib, millis, number, percent, slo, standing, tapeEntry, tile, toast } from "/assets/elements.js";

export function functionPage(app, name) {
  const path = `/functions/${encodeURIComponent(name)}`;
  const tiles = h("div", { class: "tiles" });
  const badges = h("span", { class: "row" });
  const actions = h("div", { class: "push" });
  const moment = h("span", { class: "note" });
  const latency = chart({ series: [] }, { label: "latency against the objective" });
  const allocation = chart({ series: [] }, { label: "allocation against use" });
  const instances = chart({ series: [] }, { label: "instances over time" });
  const cost = chart({ series: [] }, { label: "core-seconds held against latency of recent calls" });
  const callRows = h("tbody");
  const tape = h("div", { class: "tape" });
  const answer = h("div", { class: "soft" });
  const coresInput = h("input", { type: "number", step: "0.05", min: "0.01", style: "width:88px", "aria-label": "cores" });
  const mibInput = h("input", { type: "number", step: "16", min: "1", style: "width:96px", "aria-label": "MiB" });
  const target = h("input", { type: "number", min: "1", style: "width:96px", placeholder: "learned", "aria-label": "objective in milliseconds" });
  let data = null;

  async function invoke(body, what) {
    const ran = await change("POST", `${path}/invoke`, body);
    const compared = ran.own_size_ms ? ` (${number(ran.run_ms / ran.own_size_ms, 2)} times its own size's ${millis(ran.own_size_ms)})` : "";
    answer.textContent = `${what} at ${cores(ran.size.cpu / 1000)} cores, ${mib(ran.size.memory)}: ${ran.end} in ${millis(ran.run_ms)}${compared}. ${ran.note}${ran.answer ? ` Answer: ${JSON.stringify(ran.answer).slice(0, 300)}` : ""}`;
    toast(`${what}: ${ran.end} in ${millis(ran.run_ms)}`);
  }
  const size = () => ({ cores: Number(coresInput.value), mib: Number(mibInput.value) });

  function drawHead() {
    const held = data.standing.word === "paused" || data.standing.word === "pinned";
    badges.replaceChildren(slo(data.slo), standing(data.standing), h("span", { class: "soft" }, data.standing.reason || "the policy decides, within its safeguards"));
    const buttons = [h("button", { id: "pause", onclick: attempt(() => (held ? change("DELETE", `${path}/hold`) : change("PUT", `${path}/hold`, {})), refresh) }, held ? "Resume" : "Pause")];
    if (data.recommendation) buttons.push(h("button", { class: "primary", id: "apply", title: `95 of 100 of the last ${data.recommendation.decisions} decisions would be content with it`, onclick: attempt(() => change("POST", `${path}/apply`), refresh) }, `Apply ${cores(data.recommendation.cores)} cores, ${mib(data.recommendation.mib)}`));
    actions.replaceChildren(...buttons);
    const [reserved, heldSeconds] = [data.core_seconds_reserved, data.core_seconds_held];
    tiles.replaceChildren(
      tile("Latency p99", millis(data.p99_ms), data.objective_ms ? `objective ${millis(data.objective_ms)}${data.objective_is_set ? "" : ", learned"}` : "objective is being learned", data.objective_ms && data.p99_ms > data.objective_ms ? "bad" : ""),
      tile("Error budget", budget(data.budget_left, data.calls), `${count(data.late)} of ${count(data.calls)} calls late`),
      tile("Saved", reserved ? percent(1 - heldSeconds / reserved, 0) : "–", `${number(data.saved_core_hours, 3)} core-hours`),
      tile("Calls", count(data.calls), `${number(data.calls_per_minute, 1)} per minute, ${count(data.cold_starts)} cold`),
      tile("Instances", `${data.instances.ready}`, `${data.instances.busy} busy, ${data.instances.starting} starting, ${data.queued} waiting`),
      tile("Reserves", h("span", {}, cores(data.reserved_cores), h("small", {}, " cores")), `${mib(data.reserved_mib)}, ${data.runtime}`));
    if (!coresInput.value) { coresInput.value = data.recommendation ? data.recommendation.cores.toFixed(2) : data.reserved_cores; mibInput.value = data.recommendation ? data.recommendation.mib : data.reserved_mib; }
  }
  function drawCharts() {
    const x1 = data.now;
    const first = data.buckets.length ? data.buckets[0].at : 0;
    const x0 = Math.max(0, Math.min(x1 - 120, Math.max(first, x1 - 3600)));
    const line = (of) => data.buckets.map((bucket) => [bucket.at + 5, of(bucket)]);
    const common = { x0, x1, marks: data.buckets.filter((b) => b.trips > 0).map((b) => [b.at + 5, "--warn"]) };
    latency.update({ ...common, format: timeLabel, level: data.objective_ms ? [data.objective_ms, "--bad", "objective"] : null, series: [
      { points: data.recent.map((call) => [call.at, call.latency_ms]), color: "--held", kind: "dots" },
      { points: line((b) => b.latency_max_ms), color: "--lent", gap: 40 }, { points: line((b) => b.latency_mean_ms), color: "--used", gap: 40 }] });
    allocation.update({ ...common, max: data.reserved_cores, series: [
      { points: line((b) => b.held), color: "--held", gap: 40, width: 2.4 }, { points: line((b) => b.used), color: "--used", gap: 40 },
      { points: line((b) => b.ghost), color: "--ghost", kind: "dash" }], level: [data.reserved_cores, "--reserved", "user's own size"] });
    const steps = data.instance_steps.map((step) => ({ ...step, at: Math.max(step.at, x0) }));
    if (steps.length) steps.push({ ...steps.at(-1), at: x1 });
    const stepped = (of) => steps.map((step) => [step.at, of(step)]);
    instances.update({ x0, x1, max: 1, empty: "no instance so far", series: [
      { points: stepped((s) => s.ready), color: "--held", kind: "step", width: 2.4 }, { points: stepped((s) => s.busy), color: "--used", kind: "step" },
      { points: stepped((s) => s.queued), color: "--warn", kind: "step" }] });
    cost.update({ plainX: true, formatX: timeLabel, min: 0, x0: 0, series: [
      { points: data.recent.filter((c) => c.met !== false).map((c) => [c.latency_ms, (c.first_cores + c.lowest_cores) / 2]), color: "--used", kind: "dots", size: 3.2 },
      { points: data.recent.filter((c) => c.met === false).map((c) => [c.latency_ms, (c.first_cores + c.lowest_cores) / 2]), color: "--bad", kind: "dots", size: 3.6 }], level: [data.reserved_cores, "--reserved", "user's own size"] });
  }
  function drawCalls() {
    const list = data.recent.slice().reverse().filter((call) => cursor.at === null || call.at <= cursor.at).slice(0, 12);
    callRows.replaceChildren(...list.map((call) => h("tr", {},
      h("td", { class: "mono" }, clock(call.at)), h("td", { class: "mono" }, call.id), h("td", { class: "number" }, millis(call.latency_ms), call.met === false ? h("span", { class: "pill bad plain", style: "margin-left:6px" }, "late") : ""),
      h("td", { class: "number hide-small" }, call.cold_start_ms ? `${millis(call.cold_start_ms)} cold` : "warm"), h("td", { class: "number" }, `${cores(call.first_cores)}${call.lowest_cores !== call.first_cores ? ` → ${cores(call.lowest_cores)}` : ""}`), h("td", { class: "number" }, cores(call.used_cores)),
      h("td", { class: "number hide-small" }, call.shadow_cores === null ? "–" : cores(call.shadow_cores)),
      h("td", { class: "hide-small soft" }, Object.entries(call.amended).map(([rule, times]) => `${rule}${times > 1 ? ` ${times}×` : ""}`).join(", ") || "–"),
      h("td", {}, h("button", { class: "small", onclick: attempt(() => invoke({ replay: call.id }, `Replay of call ${call.id}`)) }, "Replay"), " ", h("button", { class: "small hide-small", title: "with the size given above", onclick: attempt(() => invoke({ replay: call.id, size: size() }, `Replay of call ${call.id}`)) }, "at size")))));
  }
  function moved(at) {
    if (!data || !data.buckets.length) return;
    const bucket = at === null ? data.buckets.at(-1) : nearest(data.buckets.map((one) => [one.at + 5, one]), at)[1];
    moment.textContent = `${at === null ? "last" : "at the cursor"}: ${bucket.calls} calls in 10 s, mean ${millis(bucket.latency_mean_ms)}, worst ${millis(bucket.latency_max_ms)}; held ${cores(bucket.held)} of ${cores(bucket.reserved)} cores, used ${cores(bucket.used)}${bucket.ghost !== null ? `, shadow ${cores(bucket.ghost)}` : ""}`;
    drawCalls();
    if (at !== null) loadTape(at);
  }
  async function loadTape(until) {
    const query = new URLSearchParams({ function: name, limit: 15, ...(until ? { until } : {}) });
    const { entries } = await read(`/decisions?${query}`);
    tape.replaceChildren(...(entries.length ? entries.map((entry) => tapeEntry(entry)) : [h("p", { class: "empty" }, "No decision differs from the user's own size so far.")]));
  }
  async function refresh() {
    try {
      data = await read(path);
    } catch (error) {
      tiles.replaceChildren(h("p", { class: "empty" }, error.message));
      return;
    }
    drawHead(); drawCharts(); drawCalls(); moved(cursor.at);
    if (cursor.at === null) await loadTape();
  }
  return {
    title: name, refresh, moved,
    elements: [
      h("div", { class: "head" }, h("h1", {}, name), badges, actions), tiles,
      h("div", { class: "grid" },
        h("section", { class: "card span-6" }, h("header", {}, h("h2", {}, "Latency against the objective"), h("span", { class: "note" }, "from arrival to end")), latency.canvas, legend([["each call", "--held"], ["worst of 10 s", "--lent", "line"], ["mean", "--used", "line"], ["objective", "--bad", "dash"]])),
        h("section", { class: "card span-6" }, h("header", {}, h("h2", {}, "Allocation against use"), h("span", { class: "note" }, "mean cores per running call")), allocation.canvas, legend([["user's own size", "--reserved", "dash"], ["held", "--held", "line"], ["used", "--used", "line"], ["shadow policy", "--ghost", "dash"], ["safeguard trips", "--warn", "line"]]))),
      h("p", { class: "soft", style: "margin:0;min-height:20px" }, moment),
      h("div", { class: "grid" },
        h("section", { class: "card span-8" }, h("header", {}, h("h2", {}, "Recent calls"), h("span", { class: "note" }, "cores: at first → least while it ran"), h("span", { class: "push row" }, coresInput, "cores", mibInput, "MiB", h("button", { onclick: attempt(() => invoke({ size: size() }, "Call")), id: "invoke" }, "Invoke"), h("button", { id: "pin", onclick: attempt(() => change("PUT", `${path}/hold`, { pin: size() }), refresh) }, "Pin"))), answer,
          h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...["At", "Call", "Latency", "Start", "Granted", "Used", "Shadow", "Changed by", ""].map((label, place) => h("th", { class: [2, 3, 4, 5, 6].includes(place) ? `number ${[3, 6].includes(place) ? "hide-small" : ""}` : place === 7 ? "hide-small" : "" }, label)))), callRows))),
        h("section", { class: "card span-4" }, h("header", {}, h("h2", {}, "Instances"), h("span", { class: "note" }, "most in 10 s")), instances.canvas, legend([["ready", "--held", "line"], ["busy", "--used", "line"], ["calls waiting", "--warn", "line"]]),
          h("header", { class: "next" }, h("h2", {}, "Cost against latency"), h("span", { class: "note" }, "cores held by a call, by its latency")), cost.canvas, legend([["in time", "--used"], ["late", "--bad"]]),
          h("header", { class: "next" }, h("h2", {}, "Objective")), h("div", { class: "row" }, "99 % within", target, "ms", h("button", { class: "small", onclick: attempt(() => change("PUT", `${path}/objective`, { target_ms: target.value ? Number(target.value) : null }), refresh) }, "Set")))),
      h("section", { class: "card" }, h("header", {}, h("h2", {}, "Decisions"), h("span", { class: "note" }, "seen → decided → amended → done → outcome"), h("a", { class: "push soft", href: `#/tape?function=${encodeURIComponent(name)}` }, "whole tape")), tape),
    ],
  };
}
