// Small builders and number formats shared by all pages.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export const number = (value, digits = 1) => (value === null || value === undefined || Number.isNaN(value) ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits > 1 ? digits : 0, signDisplay: "negative" }).replace("-", "−"));
export const count = (value) => (value >= 1e6 ? number(value / 1e6, 1) + " M" : value >= 1e5 ? number(value / 1e3, 0) + " k" : number(value, 0));
export const percent = (share, digits = 1) => (share === null || share === undefined ? "–" : number(share * 100, digits) + " %");
export const millis = (ms) => (ms === null || ms === undefined ? "–" : ms >= 10000 ? number(ms / 1000, 1) + " s" : ms >= 1000 ? number(ms / 1000, 2) + " s" : number(ms, ms < 10 ? 1 : 0) + " ms");
export const cores = (value) => (value === null || value === undefined ? "–" : value >= 100 ? number(value, 0) : value >= 10 ? number(value, 1) : number(value, 2));
export const mib = (value) => (value >= 1024 ? number(value / 1024, 1) + " GiB" : number(value, 0) + " MiB");
export const money = (value, currency) => `${value < 0 ? "−" : ""}${currency}${Math.abs(value) >= 100 ? number(Math.abs(value), 0) : Math.abs(value).toFixed(Math.abs(value) >= 0.1 ? 2 : 4)}`;
export function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, "0");
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
}

const SLO = { met: ["good", "met"], "at-risk": ["warn", "at risk"], violated: ["bad", "violated"], learning: ["", "learning"], idle: ["", "idle"] };
export const slo = (state) => h("span", { class: "pill " + (SLO[state] || ["", ""])[0] }, (SLO[state] || ["", state])[1]);
const STANDING = { managed: "good", paused: "warn", pinned: "warn", own: "" };
export const standing = (it) => h("span", { class: `pill plain ${STANDING[it.word] || ""}`, title: it.reason || "the policy decides, within its safeguards" }, it.word === "own" ? "own size" : it.word);
export function budget(left, calls) {
  if (!calls) return h("span", { class: "faint" }, "–");
  const level = left < 0 ? "bad" : left < 0.5 ? "warn" : "";
  const text = left < -1 ? "over" : `${left < 0 ? "−" : ""}${number(Math.abs(left) * 100, 0)} %`;
  const width = left < 0 ? 100 : Math.max(2, Math.min(100, left * 100));
  return h("span", { class: `budget ${level}`, title: left < 0 ? `${number(1 - left, 1)} times as many calls were late in the last hour as the objective allows` : `${text} of the last hour's error budget is left` }, h("span", {}, h("i", { style: `width:${width}%` })), text);
}
export function tile(label, value, more, level = "") {
  return h("div", { class: `tile ${level}` }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "more" }, more || "\u00a0"));
}
export const legend = (items) => h("div", { class: "legend" }, items.map(([name, color, kind = ""]) => h("span", {}, h("i", { class: kind, style: kind === "dash" ? `border-color:var(${color})` : `background:var(${color})` }), name)));
export const functionLink = (name) => h("a", { class: "name", href: `#/function/${encodeURIComponent(name)}` }, name);

let fading;
export function toast(text, isBad = false) {
  const element = document.getElementById("toast");
  element.textContent = text;
  element.className = `toast show ${isBad ? "bad" : ""}`;
  clearTimeout(fading);
  fading = setTimeout(() => (element.className = "toast"), 4500);
}
export const attempt = (work, refresh) => async () => {
  try {
    const result = await work();
    if (result && result.done) toast(result.done);
    if (refresh) await refresh();
  } catch (error) {
    toast(error.message, true);
  }
};

// One decision: seen -> decided -> amended -> done -> outcome.
const ORDERS = ["manager-mode", "manager-hold"];
export function tapeEntry(entry, marked) {
  const step = (what, text, cls = "") => (text ? h("span", { class: `step ${cls}` }, h("span", { class: "what" }, what), text) : null);
  const parts = [step("seen", entry.seen), step("decided", entry.decided)];
  for (const it of entry.amended) {
    const to = it.allowed !== null && it.proposed !== null ? ` ${number(it.proposed, 2)} → ${number(it.allowed, 2)}` : "";
    parts.push(step(it.rule, `${it.reason}${to}${it.times > 1 ? ` (${it.times}×)` : ""}`, `amend ${ORDERS.includes(it.rule) ? "order" : ""}`));
  }
  parts.push(step("done", entry.done), step("outcome", entry.outcome));
  const steps = parts.filter(Boolean).flatMap((part, place) => (place ? [h("span", { class: "arrow", "aria-hidden": "true" }, "→"), part] : [part]));
  const kinds = { call: entry.call === null ? "call" : `call ${entry.call}`, tick: "tick", order: "order", policy: "policy", manager: "manager" };
  return h("div", { class: `entry ${entry.trip ? "trip" : ""} ${entry.kind} ${marked ? "marked" : ""}`, id: `d${entry.id}`, tabindex: "0", "data-at": entry.at },
    h("div", { class: "when mono" }, h("a", { href: `#/tape?at=${entry.at.toFixed(1)}&id=${entry.id}`, title: "link to this moment" }, clock(entry.at))),
    h("div", {}, entry.name ? functionLink(entry.name) : h("b", {}, kinds[entry.kind]), h("div", { class: "faint" }, entry.name ? kinds[entry.kind] : "")),
    h("div", { class: "steps" }, steps));
}
