// Recommendations: what each function would need, what that saves, and a button.
import { change, read } from "/assets/client.js";
import { attempt, cores, count, functionLink, h, mib, money, number, slo, standing } from "/assets/elements.js";

export function advicePage(app) {
  const body = h("tbody");
  const note = h("span", { class: "sub" });
  async function refresh() {
    const { recommendations } = await read("/recommendations");
    const currency = app.status ? app.status.currency : "$";
    const total = recommendations.reduce((sum, one) => sum + one.saved_money_per_hour, 0);
    note.textContent = recommendations.length ? `${recommendations.length} functions; all of them together ${total < 0 ? "cost" : "save"} ${money(Math.abs(total), currency)} an hour` : "";
    body.replaceChildren(...(recommendations.length ? recommendations.map((one) => h("tr", {},
      h("td", {}, functionLink(one.name)), h("td", { class: "hide-small" }, slo(one.slo)), h("td", { class: "number hide-small" }, count(one.calls)),
      h("td", { class: "number" }, `${cores(one.reserved_cores)} → `, h("b", {}, cores(one.recommendation.cores)), " cores", h("div", { class: "soft" }, `${mib(one.reserved_mib)} → ${mib(one.recommendation.mib)}`)),
      h("td", { class: "number hide-small" }, number(one.recommendation.saved_core_seconds_per_hour / 3600, 3)), h("td", { class: "number hide-small" }, money(one.saved_money_per_hour, currency)), h("td", { class: "hide-small" }, standing(one.standing)),
      h("td", {}, one.standing.word === "pinned" ? h("button", { class: "small", onclick: attempt(() => change("DELETE", `/functions/${encodeURIComponent(one.name)}/hold`), refresh) }, "Take back") : h("button", { class: "small primary", onclick: attempt(() => change("POST", `/functions/${encodeURIComponent(one.name)}/apply`), refresh) }, "Apply")))) : [h("tr", {}, h("td", { colspan: 8, class: "empty" }, "No recommendation yet: a function needs 20 decisions, and a size that differs from its own by more than a tenth."))]));
  }
  const heads = [["Function"], ["SLO", "hide-small"], ["Calls", "number hide-small"], ["Reserved → needed", "number"], ["Core-hours saved per hour", "number hide-small"], ["Saved per hour", "number hide-small"], ["Managed", "hide-small"], [""]];
  return {
    title: "Recommendations", refresh,
    elements: [h("div", { class: "head" }, h("h1", {}, "Recommendations"), note), h("section", { class: "card scroll" }, h("header", {}, h("span", { class: "note" }, "The size that 95 of 100 recent decisions would be content with. Applying pins the function to it; the kill switch still restores its own.")), h("table", {}, h("thead", {}, h("tr", {}, ...heads.map(([label, cls]) => h("th", { class: cls }, label)))), body))],
  };
}
