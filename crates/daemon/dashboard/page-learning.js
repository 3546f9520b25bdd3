// Learning: reward, violations, versions of the policy with why each was accepted, refused or rolled back.
import { change, read } from "/assets/client.js";
import { chart } from "/assets/charts.js";
import { attempt, clock, h, legend, number, percent } from "/assets/elements.js";

const FATES = { "in-charge": ["good", "in charge"], replaced: ["", "replaced"], refused: ["warn", "refused"], "rolled-back": ["bad", "rolled back"] };

export function learningPage(app) {
  const rewards = chart({ series: [] }, { label: "reward per minute" });
  const service = chart({ series: [] }, { label: "late calls and savings per minute" });
  const versions = h("tbody");
  const note = h("span", { class: "sub" });
  const policy = h("select", { "aria-label": "policy" });
  const shadow = h("select", { "aria-label": "shadow policy" });
  const force = h("input", { type: "checkbox", id: "force" });
  const checks = h("div", { class: "checks" });

  async function refresh() {
    const data = await read("/learning");
    note.textContent = `${data.is_learning ? `a learner has tried ${data.tried} candidates` : "no learner; start with --learn"}${data.on_trial_until ? `; the version in charge is on trial until ${clock(data.on_trial_until)}` : ""}`;
    const line = (of) => data.rewards.map((point) => [point.at, of(point)]);
    const x0 = Math.max(0, data.rewards.length ? Math.min(data.rewards[0].at - 60, data.now - 120) : data.now - 120);
    rewards.update({ x0, x1: data.now, series: [{ points: line((p) => p.reward), color: "--accent", gap: 200 }], marks: data.versions.map((v) => [v.at, v.fate === "rolled-back" ? "--bad" : v.fate === "refused" ? "--warn" : "--good"]) });
    service.update({ x0, x1: data.now, series: [{ points: line((p) => p.saved_share * 100), color: "--used", gap: 200 }, { points: line((p) => p.late_share * 100), color: "--bad", gap: 200 }] });
    versions.replaceChildren(...data.versions.slice().reverse().map((version) => h("tr", {},
      h("td", { class: "mono" }, version.number), h("td", { class: "mono" }, clock(version.at)), h("td", {}, h("b", {}, version.policy), h("div", { class: "faint" }, `by ${version.origin}`)),
      h("td", {}, h("span", { class: `pill ${FATES[version.fate][0]}` }, FATES[version.fate][1])), h("td", { class: "wrap" }, version.reason),
      h("td", { class: "number hide-small" }, version.score ? `${percent(version.score.delayed_share)} delayed, ${number(version.score.core_seconds_held, 0)} core-s` : "–"))));
    const health = await read("/health");
    checks.replaceChildren(...health.checks.map((one) => h("div", {}, h("span", { class: `pill ${{ ok: "good", degraded: "warn", failing: "bad" }[one.state]}` }, one.name), h("span", { class: "soft" }, one.detail))));
  }
  read("/policies").then(({ policies }) => {
    const usable = policies.filter((one) => !one.needs_future);
    policy.replaceChildren(...usable.map((one) => h("option", { value: one.name, title: one.summary }, one.name)));
    shadow.replaceChildren(h("option", { value: "" }, "none"), ...usable.map((one) => h("option", { value: one.name, title: one.summary }, one.name)));
    if (app.status) { policy.value = app.status.policy; shadow.value = app.status.shadow || ""; }
  });
  return {
    title: "Learning", refresh,
    elements: [
      h("div", { class: "head" }, h("h1", {}, "Learning"), note),
      h("div", { class: "grid" },
        h("section", { class: "card span-6" }, h("header", {}, h("h2", {}, "Reward"), h("span", { class: "note" }, "per minute: share saved less ten times the share late")), rewards.canvas, legend([["reward", "--accent", "line"], ["version accepted", "--good", "line"], ["refused", "--warn", "line"], ["rolled back", "--bad", "line"]])),
        h("section", { class: "card span-6" }, h("header", {}, h("h2", {}, "Saved and late"), h("span", { class: "note" }, "% per minute")), service.canvas, legend([["core-seconds saved", "--used", "line"], ["calls late", "--bad", "line"]])),
        h("section", { class: "card span-8" }, h("header", {}, h("h2", {}, "Versions"), h("span", { class: "note" }, "each is checked on recent calls, then on trial for a minute"), h("button", { class: "small push", id: "rollback", title: "Put the version before back in charge", onclick: attempt(() => change("POST", "/rollback"), refresh) }, "Roll back")), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...["No.", "At", "Policy", "", "Why", "On recent calls"].map((label, place) => h("th", { class: place === 5 ? "number hide-small" : "" }, label)))), versions))),
        h("section", { class: "card span-4" }, h("header", {}, h("h2", {}, "Another policy")), h("div", { class: "row" }, policy, h("label", { class: "row", for: "force" }, force, "even if the check refuses it"), h("button", { onclick: attempt(() => change("PUT", "/policy", { name: policy.value, force: force.checked }), refresh) }, "Offer")),
          h("header", { class: "next" }, h("h2", {}, "Shadow"), h("span", { class: "note" }, " asked beside it, never obeyed")), h("div", { class: "row" }, shadow, h("button", { onclick: attempt(() => change("PUT", "/shadow", { name: shadow.value || null }), refresh) }, "Ask")),
          h("header", { class: "next" }, h("h2", {}, "Health")), checks)),
    ],
  };
}
