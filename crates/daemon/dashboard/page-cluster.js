// The cluster: one stacked bar per node with its cost, the last hour, safeguards.
import { read } from "/assets/client.js";
import { chart, cursor, nearest } from "/assets/charts.js";
import { cores, count, h, legend, millis, mib, money, number, percent, tile } from "/assets/elements.js";

// Nodes with a bar of their own; beyond that the others share one.
const MOST_NODES = 12;
function together(nodes) {
  const sum = { is_up: true };
  for (const node of nodes) for (const [key, value] of Object.entries(node)) if (typeof value === "number") sum[key] = (sum[key] || 0) + value;
  return sum;
}

export function clusterPage() {
  const tiles = h("div", { class: "tiles" });
  const nodes = h("div", { class: "nodes" });
  const moment = h("span", { class: "note" }, "now");
  const rules = h("div", {});
  const cpu = chart({ series: [] }, { tall: true, label: "cores reserved, granted, used and harvested over time" });
  const calls = chart({ series: [] }, { label: "calls per second and calls waiting" });
  let data = null;
  let status = null;

  const elements = [
    h("div", { class: "head" }, h("h1", {}, "Cluster"), h("span", { class: "sub", id: "what" }, "")),
    tiles,
    h("section", { class: "card" }, h("header", {}, h("h2", {}, "Nodes"), h("span", { class: "note" }, "cores of each node: what runs uses, holds, and has given up; the line is what users reserve")), nodes,
      legend([["used", "--used"], ["held, not used", "--held"], ["lent", "--lent"], ["harvested", "--harvested"], ["held back for running calls", "--back"], ["reserved by users", "--reserved", "line"]])),
    h("div", { class: "grid" },
      h("section", { class: "card span-8" }, h("header", {}, h("h2", {}, "Cores over the last hour"), moment), cpu.canvas,
        legend([["reserved", "--reserved", "line"], ["granted", "--held"], ["used", "--used"], ["shadow policy would have granted", "--ghost", "dash"], ["safeguard trips", "--warn", "line"]])),
      h("section", { class: "card span-4" }, h("header", {}, h("h2", {}, "Safeguards"), h("span", { class: "note" }, "times each changed a decision")), rules)),
    h("section", { class: "card" }, h("header", {}, h("h2", {}, "Calls"), h("span", { class: "note" }, "ended per second, and waiting")), calls.canvas, legend([["ended per second", "--used", "line"], ["waiting", "--warn", "line"]])),
  ];

  function drawTiles() {
    const { totals } = status;
    const saved = totals.core_seconds_reserved ? status.core_seconds_saved / totals.core_seconds_reserved : 0;
    document.getElementById("what").textContent = `${status.platform_explained}; ${status.functions} functions on ${status.nodes} node${status.nodes === 1 ? "" : "s"} with ${cores(status.capacity_cores)} cores`;
    tiles.replaceChildren(
      tile("Objective met", percent(status.objective_met_share, 2), `${count(totals.judged - totals.met)} of ${count(totals.judged)} calls late`, status.objective_met_share >= 0.99 ? "good" : status.objective_met_share >= 0.97 ? "warn" : "bad"),
      tile("Saved", h("span", {}, percent(saved, 0), h("small", {}, " of reserved")), `${number(status.core_seconds_saved / 3600, 2)} core-hours, ${money(status.money_saved, status.currency)}`),
      tile("Latency p99", millis(status.p99_ms), `median ${millis(status.p50_ms)}`),
      tile("Calls", count(totals.calls), `${number(status.point ? status.point.calls_per_second : 0, 1)} per second, ${count(totals.failed)} failed`),
      tile("Safeguard trips", count(totals.safeguard_trips), `${totals.calls ? number((100 * totals.safeguard_trips) / totals.calls, 1) : 0} per 100 calls`),
      tile("Held and used", h("span", {}, number(totals.core_seconds_held / 3600, 2), h("small", {}, " core-h held")), `${number(totals.core_seconds_used / 3600, 2)} used, ${number(totals.core_seconds_reserved / 3600, 2)} reserved`));
  }
  function drawNodes() {
    const width = (value, node) => `width:${Math.max(0, Math.min(100, (100 * value) / node.capacity_cores))}%`;
    const shown = data.nodes.length > MOST_NODES ? MOST_NODES - 1 : data.nodes.length;
    const named = data.nodes.slice(0, shown).map((node, place) => [`node ${place}`, node]);
    if (shown < data.nodes.length) named.push([`${data.nodes.length - shown} more`, together(data.nodes.slice(shown))]);
    nodes.replaceChildren(...named.map(([name, node]) => {
      const lent = Math.min(node.lent_cores, node.granted_cores);
      const used = Math.min(node.used_cores, node.granted_cores);
      const idle = Math.max(0, node.granted_cores - used - lent);
      const price = (value) => money(value * data.price_per_core_hour, data.currency);
      return h("div", { class: "node" }, h("div", { class: "name" }, name),
        h("div", { class: "bar", role: "img", "aria-label": `${name}: ${cores(node.used_cores)} cores used, ${cores(node.granted_cores)} granted, ${cores(node.reserved_cores)} reserved of ${cores(node.capacity_cores)}`, title: `used ${cores(node.used_cores)} · granted ${cores(node.granted_cores)} · reserved ${cores(node.reserved_cores)} · harvested ${cores(node.harvested_cores)} · lent ${cores(node.lent_cores)} · held back ${cores(node.held_back_cores)} · capacity ${cores(node.capacity_cores)} cores · ${mib(node.granted_mib)} of ${mib(node.capacity_mib)}` },
          h("i", { class: "used", style: width(used, node) }), h("i", { class: "held", style: width(idle, node) }), h("i", { class: "lent", style: width(lent, node) }), h("i", { class: "harvested", style: width(node.harvested_cores, node) }), h("i", { class: "back", style: width(node.held_back_cores, node) }),
          h("span", { class: "mark-reserved", style: `left:${Math.min(99.6, (100 * node.reserved_cores) / node.capacity_cores)}%` })),
        h("div", { class: "cost" }, node.is_up ? [`${cores(node.granted_cores)} of ${cores(node.capacity_cores)} cores `, h("small", {}, `${price(node.granted_cores)}/h, −${price(node.harvested_cores)}`)] : "down"));
    }));
  }
  function drawCharts() {
    const line = (of) => data.history.map((point) => [point.at, of(point)]);
    const x1 = data.now;
    const x0 = Math.max(0, x1 - Math.max(120, Math.min(3600, x1)));
    cpu.update({ x0, x1, series: [
      { points: line((p) => p.granted), color: "--held", kind: "area", opacity: 0.55 },
      { points: line((p) => p.used), color: "--used", kind: "area", opacity: 0.85 },
      { points: line((p) => p.reserved), color: "--reserved", kind: "line" },
      { points: line((p) => p.ghost), color: "--ghost", kind: "dash" }],
      marks: data.history.filter((p) => p.trips > 0).map((p) => [p.at, "--warn"]) });
    calls.update({ x0, x1, series: [{ points: line((p) => p.calls_per_second), color: "--used" }, { points: line((p) => p.queued), color: "--warn" }] });
    const most = Math.max(1, ...Object.values(data.trips_by_rule));
    const sorted = Object.entries(data.trips_by_rule).sort((a, b) => b[1] - a[1]);
    rules.replaceChildren(...(sorted.length ? sorted.map(([rule, times]) => h("div", { style: "display:grid;grid-template-columns:minmax(0,1fr) 56px;gap:2px 8px;margin-bottom:9px" }, h("span", {}, rule), h("span", { style: "text-align:right" }, count(times)), h("span", { class: "bar", style: "height:5px;grid-column:span 2" }, h("i", { class: "used", style: `width:${(100 * times) / most}%` })))) : [h("p", { class: "empty" }, "No safeguard has stepped in so far.")]));
  }
  function moved(at) {
    if (!data || !data.history.length) return;
    const point = at === null ? data.history.at(-1) : nearest(data.history.map((one) => [one.at, one]), at)[1];
    moment.textContent = `${at === null ? "now" : "at the cursor"}: ${cores(point.reserved)} reserved, ${cores(point.granted)} granted, ${cores(point.used)} used, ${cores(point.harvested)} harvested, ${cores(point.lent)} lent${point.ghost !== null ? `, shadow ${cores(point.ghost)}` : ""}`;
  }
  return {
    title: "Cluster", elements, moved,
    update(next) { status = next; drawTiles(); },
    async refresh() { data = await read("/cluster"); drawNodes(); drawCharts(); moved(cursor.at); },
  };
}
