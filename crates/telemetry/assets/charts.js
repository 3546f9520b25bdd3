// Small SVG charts: lines, points with error bars, bars. Hover, legend toggling, drag to zoom, double
// click to reset, logarithmic axes. Colours come from CSS variables, so light and dark need no redraw.
"use strict";
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
function short(value) {
  if (value === null || value === undefined || !isFinite(value)) return "n/a";
  const size = Math.abs(value);
  const digits = v => { const s = Math.abs(v); return s >= 99.95 ? v.toFixed(0) : s >= 9.995 ? v.toFixed(1) : s >= 0.9995 ? v.toFixed(2) : s >= 0.001 ? v.toFixed(3) : v.toExponential(1); };
  if (size === 0) return "0";
  if (size >= 999.5e6) return digits(value / 1e9) + "G";
  if (size >= 999.5e3) return digits(value / 1e6) + "M";
  if (size >= 9999.5) return digits(value / 1e3) + "k";
  return digits(value);
}
function tick(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e9) return +(value / 1e9).toPrecision(4) + "G";
  if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
  if (size < 1e-3) return value.toExponential(0);
  return String(+value.toPrecision(4));
}
function ticks(low, high, log, count) {
  const out = [];
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades < 1.2 ? [1, 1.5, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / count));
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      if (e % every) continue;
      for (const s of steps) { const v = s * 10 ** e; if (v >= low * 0.9999 && v <= high * 1.0001) out.push(v); }
    }
    return out;
  }
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => s >= raw);
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) out.push(+v.toPrecision(12));
  return out;
}
function range(values, log, fromZero) {
  const good = values.filter(v => v !== null && isFinite(v) && (!log || v > 0));
  if (!good.length) return log ? [1, 10] : [0, 1];
  let low = Math.min(...good), high = Math.max(...good);
  if (log) { const pad = Math.max((high / low) ** 0.06, 1.08); return [low / pad, high * pad]; }
  if (fromZero) low = Math.min(0, low);
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [fromZero && low === 0 ? 0 : low - pad, high + pad];
}
let clips = 0;
function chart(host, spec) {
  const hidden = new Set();
  let zoom = null;
  host.textContent = "";
  const legend = el("div", "legend", host), box = el("div", "plot", host), tip = el("div", "tip", box);
  for (const s of spec.series) {
    const key = el("button", "key", legend);
    key.type = "button";
    const swatch = el("i", s.mode === "points" ? "dot" : s.dash ? "dash" : "", key);
    swatch.style.setProperty("--c", s.color);
    el("span", "", key, s.name);
    key.setAttribute("aria-pressed", "true");
    key.onclick = () => { hidden.has(s.name) ? hidden.delete(s.name) : hidden.add(s.name); key.setAttribute("aria-pressed", String(!hidden.has(s.name))); draw(); };
  }
  const svg = node("svg", { role: "img", "aria-label": spec.label || "" }, box);
  function draw() {
    svg.textContent = "";
    const W = Math.max(box.clientWidth, 260), H = spec.height || 340, m = { l: 58, r: 16, t: 10, b: 44 };
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`); svg.setAttribute("height", H); svg.setAttribute("width", W);
    const shown = spec.series.filter(s => !hidden.has(s.name));
    const lines = (spec.lines || []).map(v => v.x);
    const xs = shown.flatMap(s => s.points.flatMap(p => p.x0 !== undefined ? [p.x, p.x0, p.x1] : [p.x])).concat(lines);
    const ys = shown.flatMap(s => s.points.flatMap(p => p.y0 !== undefined ? [p.y, p.y0, p.y1] : [p.y]));
    const [xa, xb] = zoom ? zoom.x : spec.x.range || range(xs, spec.x.log, spec.x.zero), [ya, yb] = zoom ? zoom.y : range(ys, spec.y.log, spec.y.zero);
    const scale = (a, b, log, from, to) => log ? v => from + (Math.log(Math.max(v, 1e-12)) - Math.log(a)) / (Math.log(b) - Math.log(a)) * (to - from) : v => from + (v - a) / (b - a) * (to - from);
    const X = scale(xa, xb, spec.x.log, m.l, W - m.r), Y = scale(ya, yb, spec.y.log, H - m.b, m.t);
    const back = (a, b, log, from, to) => p => { const f = (p - from) / (to - from); return log ? Math.exp(Math.log(a) + f * (Math.log(b) - Math.log(a))) : a + f * (b - a); };
    for (const v of ticks(xa, xb, spec.x.log, W / 90)) { node("line", { x1: X(v), x2: X(v), y1: m.t, y2: H - m.b, class: "grid" }, svg); node("text", { x: X(v), y: H - m.b + 17, "text-anchor": "middle" }, svg, tick(v)); }
    for (const v of ticks(ya, yb, spec.y.log, H / 55)) { node("line", { x1: m.l, x2: W - m.r, y1: Y(v), y2: Y(v), class: "grid" }, svg); node("text", { x: m.l - 8, y: Y(v) + 4, "text-anchor": "end" }, svg, tick(v)); }
    node("line", { x1: m.l, x2: W - m.r, y1: H - m.b, y2: H - m.b, class: "axis" }, svg);
    node("text", { x: (m.l + W - m.r) / 2, y: H - 6, "text-anchor": "middle", class: "title" }, svg, spec.x.label);
    node("text", { transform: `translate(13 ${(m.t + H - m.b) / 2}) rotate(-90)`, "text-anchor": "middle", class: "title" }, svg, spec.y.label);
    const id = "clip" + ++clips;
    node("rect", { x: m.l, y: m.t, width: W - m.l - m.r, height: H - m.t - m.b }, node("clipPath", { id }, svg));
    const area = node("g", { "clip-path": `url(#${id})` }, svg);
    for (const v of spec.lines || []) { node("line", { x1: X(v.x), x2: X(v.x), y1: m.t, y2: H - m.b, class: "floor" }, area); node("text", { x: X(v.x) + 6, y: m.t + 13, class: "note" }, area, v.text); }
    const near = [];
    for (const s of shown) {
      const good = s.points.filter(p => p.y !== null && isFinite(p.y) && (!spec.y.log || p.y > 0) && (!spec.x.log || p.x > 0));
      if (s.mode !== "points") {
        let d = "";
        good.forEach((p, k) => { d += !k ? `M${X(p.x).toFixed(1)} ${Y(p.y).toFixed(1)}` : s.step ? `H${X(p.x).toFixed(1)}V${Y(p.y).toFixed(1)}` : `L${X(p.x).toFixed(1)} ${Y(p.y).toFixed(1)}`; });
        if (s.fill && good.length) node("path", { d: d + `V${Y(Math.max(ya, 0))}H${X(good[0].x)}Z`, fill: s.color, opacity: 0.13, stroke: "none" }, area);
        node("path", { d, fill: "none", stroke: s.color, "stroke-width": s.width || 1.8, "stroke-linejoin": "round", "stroke-dasharray": s.dash || "none" }, area);
      }
      for (const p of good) {
        const x = X(p.x), y = Y(p.y);
        if (s.mode === "points") {
          if (p.x0 !== undefined) node("line", { x1: X(p.x0), x2: X(p.x1), y1: y, y2: y, stroke: s.color, "stroke-width": 1.4, opacity: 0.7 }, area);
          if (p.y0 !== undefined) node("line", { x1: x, x2: x, y1: Y(p.y0), y2: Y(p.y1), stroke: s.color, "stroke-width": 1.4, opacity: 0.7 }, area);
          node("circle", { cx: x, cy: y, r: 6, fill: s.hollow ? "var(--card)" : s.color, stroke: s.color, "stroke-width": 2 }, area);
          if (spec.names) { const right = x > W - 130; node("text", { x: x + (right ? -11 : 11), y: y - 9, "text-anchor": right ? "end" : "start", class: "name" }, svg, s.name); }
        }
        near.push({ x, y, p, s });
      }
    }
    const mark = node("circle", { r: 4.5, class: "mark", visibility: "hidden" }, area), band = node("rect", { class: "band", visibility: "hidden" }, area);
    let start = null;
    const at = e => { const r = svg.getBoundingClientRect(); return [(e.clientX - r.left) * W / r.width, (e.clientY - r.top) * H / r.height]; };
    svg.onpointerdown = e => { start = at(e); svg.setPointerCapture(e.pointerId); };
    svg.onpointermove = e => {
      const [x, y] = at(e);
      if (start) { for (const [k, v] of Object.entries({ x: Math.min(x, start[0]), y: Math.min(y, start[1]), width: Math.abs(x - start[0]), height: Math.abs(y - start[1]), visibility: "visible" })) band.setAttribute(k, v); return; }
      let best = null, least = 1600;
      for (const n of near) { const d = (n.x - x) ** 2 + (n.y - y) ** 2 * 0.6; if (d < least) { least = d; best = n; } }
      if (!best) { tip.style.opacity = 0; mark.setAttribute("visibility", "hidden"); return; }
      mark.setAttribute("cx", best.x); mark.setAttribute("cy", best.y); mark.setAttribute("stroke", best.s.color); mark.setAttribute("visibility", "visible");
      tip.textContent = ""; el("b", "", tip, best.s.name);
      for (const line of spec.tell(best.p, best.s)) el("div", "", tip, line);
      tip.style.opacity = 1; tip.style.left = Math.min(best.x + 14, W - 200) + "px"; tip.style.top = Math.max(best.y - 20, 0) + "px";
    };
    svg.onpointerleave = () => { tip.style.opacity = 0; mark.setAttribute("visibility", "hidden"); };
    svg.onpointerup = e => {
      const from = start, [x, y] = at(e); start = null; band.setAttribute("visibility", "hidden");
      if (!from || Math.abs(x - from[0]) < 8 || Math.abs(y - from[1]) < 8) return;
      const bx = back(xa, xb, spec.x.log, m.l, W - m.r), by = back(ya, yb, spec.y.log, H - m.b, m.t);
      zoom = { x: [bx(Math.min(x, from[0])), bx(Math.max(x, from[0]))], y: [by(Math.max(y, from[1])), by(Math.min(y, from[1]))] };
      draw();
    };
    svg.ondblclick = () => { zoom = null; draw(); };
  }
  draw();
  if (host._watch) host._watch.disconnect();
  let width = box.clientWidth;
  host._watch = new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; draw(); } });
  host._watch.observe(box);
}
// Horizontal bars: rows [{name, color, values: [{label, value, text}]}].
function bars(host, rows) {
  host.textContent = "";
  const most = Math.max(...rows.flatMap(r => r.values.map(v => v.value || 0)), 1e-12);
  for (const row of rows) {
    const line = el("div", "bar-row", host);
    el("div", "bar-name", line, row.name);
    const stack = el("div", "bar-stack", line);
    row.values.forEach((v, k) => {
      const track = el("div", "bar-track", stack), bar = el("div", "bar" + (k ? " second" : ""), track);
      bar.style.width = (v.value || 0) / most * 78 + "%"; bar.style.setProperty("--c", row.color);
      bar.title = v.label + ": " + v.text; el("span", "bar-text", track, v.text);
    });
  }
}
