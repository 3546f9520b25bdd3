// The frame: pages by the address, live state, the time cursor, the mode and the kill switch.
import { change, follow, hasToken, read, takeToken } from "/assets/client.js";
import { attempt, clock, count, h, millis, percent, toast } from "/assets/elements.js";
import { address, remember } from "/assets/address.js";
import { cursor, setCursor } from "/assets/charts.js";
import { clusterPage } from "/assets/page-cluster.js";
import { functionsPage } from "/assets/page-functions.js";
import { functionPage } from "/assets/page-function.js";
import { tapePage } from "/assets/page-tape.js";
import { learningPage } from "/assets/page-learning.js";
import { advicePage } from "/assets/page-advice.js";

// Errors of the page itself, for the browser test.
window.windfallProblems = [];
addEventListener("error", (event) => window.windfallProblems.push(String(event.message)));
addEventListener("unhandledrejection", (event) => window.windfallProblems.push(String(event.reason)));

takeToken();
const PAGES = [["cluster", "Cluster", clusterPage], ["functions", "Functions", functionsPage], ["tape", "Tape", tapePage], ["advice", "Advice", advicePage], ["learning", "Learning", learningPage]];
const main = document.getElementById("main");
const app = { status: null, following: true, refresh: () => page && page.refresh && page.refresh() };
let page = null;
let shown = "";

function route() {
  const { path, parameters } = address();
  const [name, ...rest] = path.split("/");
  if (parameters.has("at")) setCursor(Number(parameters.get("at")));
  else if (cursor.at !== null) remember({ at: cursor.at.toFixed(1) });
  // Another moment on the same page moves the cursor alone.
  parameters.delete("at");
  const key = `${path}?${parameters}`;
  if (key === shown) return;
  shown = key;
  const found = PAGES.find(([id]) => id === name);
  page = name === "function" ? functionPage(app, decodeURIComponent(rest.join("/"))) : (found || PAGES[0])[2](app, parameters);
  main.replaceChildren(...page.elements);
  document.title = `${page.title} · Windfall`;
  drawNav(found ? name : name === "function" ? "functions" : "cluster");
  if (app.status && page.update) page.update(app.status, []);
  app.refresh();
  scrollTo(0, 0);
}
function drawNav(current) {
  document.getElementById("nav").replaceChildren(...PAGES.map(([id, label]) => h("a", { href: `#/${id}`, "aria-current": id === current ? "page" : null }, label)));
}

// ---- mode, kill switch, health
const mode = document.getElementById("mode");
const MODES = [["observe", "observe"], ["recommend", "recommend"], ["canary:0.1", "canary 10 %"], ["canary:0.5", "canary 50 %"], ["auto", "auto"]];
mode.replaceChildren(...MODES.map(([value, label]) => h("option", { value }, label)));
mode.addEventListener("change", attempt(() => change("PUT", "/mode", { mode: mode.value }), app.refresh));
const kill = document.getElementById("kill");
let armed = 0;
function pressKill() {
  if (app.status && app.status.killed) return attempt(() => change("PUT", "/kill", { on: false }))();
  if (Date.now() - armed > 4000) {
    armed = Date.now();
    kill.classList.add("armed");
    kill.textContent = "Press again";
    setTimeout(() => { kill.classList.remove("armed"); if (app.status) drawKill(app.status.killed); }, 4000);
    return;
  }
  armed = 0;
  attempt(() => change("PUT", "/kill", { on: true }), app.refresh)();
}
kill.addEventListener("click", pressKill);
function drawKill(isOn) {
  kill.textContent = isOn ? "Manage again" : "Kill switch";
  kill.classList.toggle("on", isOn);
  kill.title = isOn ? "The kill switch is on: every function has its own allocation. Press to manage again." : "Give every function its own allocation (press twice, or key K twice)";
}
function drawHealth(status, isConnected) {
  const pill = document.getElementById("health");
  const [level, text] = !isConnected ? ["bad", "no connection"] : { ok: ["good", "healthy"], degraded: ["warn", "degraded"], failing: ["bad", "failing"] }[status ? status.health : "ok"] || ["", "…"];
  pill.className = `pill ${level}`;
  pill.textContent = text;
}
async function drawBanner(status) {
  const banner = document.getElementById("banner");
  if (!status.killed && status.health === "ok") { banner.hidden = true; return; }
  let text = status.killed ? "The kill switch is on: every function has its own allocation; decisions are recorded and not carried out." : "";
  if (status.health !== "ok") {
    const report = await read("/health").catch(() => null);
    if (report) text += ` ${report.checks.filter((one) => one.state !== "ok").map((one) => `${one.name}: ${one.detail}`).join(" · ")}`;
  }
  banner.textContent = text;
  banner.className = `banner ${status.killed || status.health === "failing" ? "bad" : ""}`;
  banner.hidden = !text;
}

// ---- the time cursor
const bar = document.getElementById("cursor-bar");
const slider = h("input", { type: "range", min: 0, max: 1, value: 1, step: 0.5, "aria-label": "time cursor", oninput: () => { app.following = false; setCursor(Number(slider.value)); } });
const when = h("span", { class: "mono" }, "0:00");
const followButton = h("button", { class: "small following", title: "Follow live (key f)", onclick: () => goLive() }, "following");
bar.append(followButton, slider, when);
function goLive() {
  app.following = true;
  setCursor(null);
  remember({ at: null });
}
cursor.listeners.add(() => {
  const end = app.status ? app.status.now : 1;
  const at = cursor.at ?? end;
  app.following = cursor.at === null;
  followButton.textContent = app.following ? "following" : "follow live";
  followButton.classList.toggle("following", app.following);
  when.textContent = app.following ? clock(end) : `${clock(at)} of ${clock(end)}`;
  slider.value = at;
  if (page && page.moved) page.moved(cursor.at);
});
let writing;
cursor.listeners.add(() => {
  clearTimeout(writing);
  if (cursor.at === null) return;
  writing = setTimeout(() => { if (cursor.at !== null) remember({ at: cursor.at.toFixed(1) }); }, 250);
});
function drawTime(status) {
  slider.min = Math.max(0, status.now - 3600);
  slider.max = status.now;
  if (app.following) { slider.value = status.now; when.textContent = clock(status.now); }
  document.getElementById("facts").textContent = `${status.platform} · ${status.policy}${status.shadow ? ` beside ${status.shadow}` : ""} · ${count(status.totals.calls)} calls · p99 ${millis(status.p99_ms)} · objective met ${percent(status.objective_met_share, 2)}${hasToken() ? "" : " · read only"}`;
}

// ---- live
let isConnected = false;
follow(({ status, tape }) => {
  app.status = status;
  isConnected = true;
  drawHealth(status, true);
  drawTime(status);
  drawBanner(status);
  if (document.activeElement !== mode) {
    if (![...mode.options].some((option) => option.value === status.mode)) mode.append(h("option", { value: status.mode }, status.mode));
    mode.value = status.mode;
  }
  if (Date.now() - armed > 4000) drawKill(status.killed);
  if (page && page.update && app.following) page.update(status, tape);
}, (is) => { isConnected = is; drawHealth(app.status, is); });
setInterval(() => { if (app.following && isConnected) app.refresh(); }, 3000);

// ---- keyboard
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) && document.activeElement.type !== "range";
  if (event.key === "Escape") { if (typing) document.activeElement.blur(); else goLive(); return; }
  if (typing) return;
  if (/^[1-5]$/.test(event.key)) location.hash = `#/${PAGES[event.key - 1][0]}`;
  else if (event.key === "K" || (event.key === "k" && event.shiftKey)) pressKill();
  else if (event.key === "f") goLive();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "/") { event.preventDefault(); const box = document.querySelector("input[type=search]"); if (box) box.focus(); else location.hash = "#/functions"; }
  else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && document.activeElement !== slider && app.status) {
    const step = (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 30 : app.status.tick_seconds);
    setCursor(Math.min(app.status.now, Math.max(0, (cursor.at ?? app.status.now) + step)));
  } else if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
  else if (event.key === "Enter") { const link = document.querySelector("tr.selected a.name"); if (link) location.hash = link.hash; }
});
function moveRow(step) {
  const rows = [...document.querySelectorAll("tbody tr")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  rows.forEach((row) => row.classList.remove("selected"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next.classList.add("selected");
  next.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", route);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setCursor(cursor.at));
read("/status").then((status) => { app.status = status; route(); }).catch((error) => { route(); toast(error.message, true); });
